"""What the environment says: one table of settings, read and checked together."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import idna

from core.cache_address import Address, check_run_name, is_address, parse
from core.errors import Mistake, Mistakes, listed

PREFIX = "HEADSCOPE_"
PROJECT = Path(__file__).resolve().parent.parent
SECRETS = PROJECT / ".streamlit" / "secrets.toml"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
LOGINS = ("if-configured", "required")
MOST_UPLOAD_MB = 200
MOST_UPLOADS_MB = 100_000
MOST_LOGIN_HOURS = 720
"""Streamlit's own login lasts 30 days, and never longer."""
SHORTEST_TOKEN = 16
_DEVICE = re.compile(r"cpu|mps|cuda(:\d{1,3})?")
_DOMAIN = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
_HOST = re.compile(r"(?=.{1,253}$)(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\*", re.ASCII)
_PROVIDER = re.compile(r"[\w-]+", re.ASCII)
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """Every setting, parsed; a field for each row of ``SETTINGS``."""

    cache: Path | Address
    mirror: Path
    run: str | None
    device: str | None
    models: Path
    upload_mb: int
    uploads_mb: int
    read_only: bool
    login: str
    allowed_domains: tuple[str, ...]
    trusted_providers: tuple[str, ...]
    login_hours: int
    state: Path
    allowed_hosts: tuple[str, ...]
    metrics_token: str | None
    log_level: str
    log_format: str
    secrets: Path


@dataclass(frozen=True)
class Setting:
    """One row. ``parse`` is given text that is not empty, and raises ValueError with what it should be."""

    field: str
    parse: Callable[[str], Any]
    default: Callable[[], Any]
    shown: str
    """The default in words, as docs/configuration.md has it."""
    meaning: str


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError("a folder, and this is a file")
    return path


def _cache(text: str) -> Path | Address:
    """What is wrong with an address is not quoted, for it may be a secret."""
    return parse(text) if is_address(text) else _folder(text)


def _run(text: str) -> str:
    try:
        return check_run_name(text)
    except Mistake:
        raise ValueError("the name of a run, such as demo") from None


def _device(text: str) -> str | None:
    name = text.lower()
    if name != "auto" and not _DEVICE.fullmatch(name):
        raise ValueError("auto, cpu, cuda, cuda:1 (or another number) or mps")
    return None if name == "auto" else name


def _number(most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
            raise ValueError(f"a whole number from 1 to {most}")
        return int(text)

    return parse


def _switch(text: str) -> bool:
    if text.lower() not in _YES + _NO:
        raise ValueError(f"one of {listed(_YES)}, or {listed(_NO)}")
    return text.lower() in _YES


def domain_name(text: str) -> str | None:
    """A domain as DNS has it (IDNA 2008, in small letters); None for what is not a valid one.

    Nothing but A to Z is made small: Python would make a K of the Kelvin sign, and one domain of two.
    """
    small = re.sub("[A-Z]+", lambda found: found[0].lower(), text)
    try:
        name = idna.encode(small, strict=True).decode("ascii")
    except idna.IDNAError:
        return None
    return name if _DOMAIN.fullmatch(name) else None


def _domains(text: str) -> tuple[str, ...]:
    found = [domain_name(part.strip()) for part in text.split(",")]
    if None in found:
        raise ValueError("domains with commas between them, such as example.org,example.com")
    return tuple(dict.fromkeys(name for name in found if name))


def _hosts(text: str) -> tuple[str, ...]:
    """Names alone: the scheme and the port that stand in an address are left out."""
    parts = [re.sub(r"^https?://|(?<=.):\d+$", "", part.strip().lower()) for part in text.split(",")]
    if not all(_HOST.fullmatch(part) for part in parts):
        raise ValueError("host names with commas between them, such as heads.example.org,*.lab.example.org; or *")
    return tuple(dict.fromkeys(parts))


def _providers(text: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(_PROVIDER.fullmatch(part) for part in parts):
        raise ValueError("names of providers with commas between them, such as entra for [auth.entra]")
    return parts


def _token(text: str) -> str:
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise Mistake(
            f"HEADSCOPE_METRICS_TOKEN must be at least {SHORTEST_TOKEN} ASCII characters without spaces, such as those "
            "of 'openssl rand -hex 32'. Change it, or unset it."
        )
    return text


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"one of {listed(names)}")
        return text.lower()

    return parse


def _models() -> Path:
    return _own_cache() / "models"


def _mirror() -> Path:
    return _own_cache() / "mirror"


def _state() -> Path:
    return _own_cache() / "state"


def _own_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headscope"


SETTINGS: dict[str, Setting] = {
    "HEADSCOPE_CACHE": Setting(
        "cache",
        _cache,
        lambda: PROJECT / "cache",
        "`cache/` of the project",
        "the folder with the runs, or `s3://bucket/prefix`, `gs://…` or `file://…`",
    ),
    "HEADSCOPE_MIRROR": Setting(
        "mirror",
        _folder,
        _mirror,
        "`~/.cache/headscope/mirror`",
        "where files of a cache at `s3://` or `gs://` are stored on this machine; may be deleted at any time",
    ),
    "HEADSCOPE_RUN": Setting(
        "run", _run, lambda: None, "`demo`, else the first by name", "the run that the app shows first"
    ),
    "HEADSCOPE_DEVICE": Setting(
        "device",
        _device,
        lambda: None,
        "`auto`: the fastest available",
        "what models run on: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`; the job's `--device` takes precedence",
    ),
    "HEADSCOPE_MODELS": Setting(
        "models",
        _folder,
        _models,
        "`~/.cache/headscope/models`",
        "where converted weights (SmolLM2) are stored, and where the app looks for a run's model that was a folder",
    ),
    "HEADSCOPE_UPLOAD_MB": Setting(
        "upload_mb",
        _number(MOST_UPLOAD_MB),
        lambda: 20,
        "20",
        f"the largest file that may be uploaded, in megabytes (1 to {MOST_UPLOAD_MB}); larger files are refused",
    ),
    "HEADSCOPE_UPLOADS_MB": Setting(
        "uploads_mb",
        _number(MOST_UPLOADS_MB),
        lambda: 400,
        "400",
        "uploaded files that the server holds at a time, in megabytes; one session may hold a quarter of it",
    ),
    "HEADSCOPE_READ_ONLY": Setting(
        "read_only",
        _switch,
        lambda: False,
        "off; on if the cache is not writable",
        "the app writes nothing into the cache and offers no button that builds the demo",
    ),
    "HEADSCOPE_LOGIN": Setting(
        "login",
        _one_of(*LOGINS),
        lambda: "if-configured",
        "`if-configured`",
        "`required`: without `[auth]` in Streamlit's secrets the app refuses everybody, instead of being open",
    ),
    "HEADSCOPE_ALLOWED_DOMAINS": Setting(
        "allowed_domains",
        _domains,
        lambda: (),
        "everybody who can sign in",
        "e-mail domains that may sign in, comma-separated; subdomains are not included",
    ),
    "HEADSCOPE_TRUSTED_PROVIDERS": Setting(
        "trusted_providers",
        _providers,
        lambda: (),
        "none",
        "providers (`NAME` of `[auth.NAME]`, `default` for `[auth]`) whose e-mail addresses count as verified even if "
        "they send no `email_verified`",
    ),
    "HEADSCOPE_LOGIN_HOURS": Setting(
        "login_hours",
        _number(MOST_LOGIN_HOURS),
        lambda: MOST_LOGIN_HOURS,
        "720: 30 days",
        f"how long a login lasts, in hours (1 to {MOST_LOGIN_HOURS})",
    ),
    "HEADSCOPE_STATE": Setting(
        "state",
        _folder,
        _state,
        "`~/.cache/headscope/state`",
        "the folder that records who has signed out, across restarts and for all servers that share it",
    ),
    "HEADSCOPE_ALLOWED_HOSTS": Setting(
        "allowed_hosts",
        _hosts,
        lambda: (),
        "none",
        "further host names that the app answers to, comma-separated (`*.example.org`, or `*` for all); IP addresses, "
        "`localhost`, this machine's name and that of `redirect_uri` are always allowed",
    ),
    "HEADSCOPE_METRICS_TOKEN": Setting(
        "metrics_token",
        _token,
        lambda: None,
        "none",
        "a bearer token that opens `/metrics` and `/_stcore/metrics`; without one they need the same login as pages",
    ),
    "HEADSCOPE_LOG_LEVEL": Setting(
        "log_level",
        _one_of(*LEVELS),
        lambda: "info",
        "`info`",
        "`debug`, `info`, `warning` or `error`; `debug` adds tracebacks, which may quote a document",
    ),
    "HEADSCOPE_LOG_FORMAT": Setting(
        "log_format", _one_of(*FORMATS), lambda: "text", "`text`", "`text`, or `json`: one object per line"
    ),
    "HEADSCOPE_SECRETS": Setting(
        "secrets",
        lambda text: Path(text).expanduser(),
        lambda: SECRETS,
        "`.streamlit/secrets.toml`",
        "for `label`: a TOML file with `OPENAI_API_KEY`, instead of the variable",
    ),
}
"""By the variable's name. A test compares it with the table in docs/configuration.md."""


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """All settings, or Mistakes with a sentence for each that is wrong."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    wrong = []
    for name, row in SETTINGS.items():
        try:
            values[row.field] = setting(name, environment)
        except Mistake as mistake:
            wrong.append(str(mistake))
    if wrong:
        raise Mistakes(wrong)
    return Settings(**values)


def setting(name: str, environment: Mapping[str, str] | None = None) -> Any:
    """One setting; a variable that is empty counts as not set."""
    environment = os.environ if environment is None else environment
    row, text = SETTINGS[name], environment.get(name, "").strip()
    if not text:
        return row.default()
    try:
        return row.parse(text)
    except ValueError as error:
        raise Mistake(f"{name} is {text[:80]!r}; it should be {error}. Change it, or unset it.") from None


def unknown_settings(environment: Mapping[str, str] | None = None) -> list[str]:
    """A sentence for every variable that looks like a setting and is none, with the nearest that is one."""
    environment = os.environ if environment is None else environment
    sentences = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in SETTINGS:
            # Compared without what they all begin with, which would make any two alike.
            near = get_close_matches(name.removeprefix(PREFIX), [known.removeprefix(PREFIX) for known in SETTINGS], n=1)
            hint = f"Did you mean {PREFIX}{near[0]}?" if near else f"There are: {listed(SETTINGS)}."
            sentences.append(f"{name[:80]} is not a Headscope setting and is ignored. {hint}")
    return sentences
