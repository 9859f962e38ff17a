"""The key: found in the environment or a secrets file, and kept out of everything that is written or said."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import NoReturn

from core.errors import Mistake
from core.settings import SECRETS
from precompute.labelling.endpoint import other_server

KEY, FILE = "OPENAI_API_KEY", "HEADSCOPE_SECRETS"
_HIDDEN = "***"
_DUMMY = "none"
"""Local servers want some key, and take any."""
_PIECE = 8
"""So many characters of the key in a row give it away; servers like to quote the half of one."""
_RUN = re.compile(f"[!-~]{{{_PIECE},}}")
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk-|Bearer\s+)[!-~]+", re.IGNORECASE)
_WHERE = (
    f'Set {KEY} in the environment, or write {KEY} = "…" into .streamlit/secrets.toml (or the file that {FILE} names)'
)


class Secret:
    """A key that does not show itself: not in repr, not in a pickle, not in a sentence that went through ``clean``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """For the one place that sends it."""
        return self._value

    def clean(self, text: object, most: int = 200) -> str:
        """What a server said, fit for a sentence: without the key or pieces of it, in one line, not too long.

        The key goes first: cut in two, it would no longer be recognised.
        """
        line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[: 100 * most]).split())
        line = _LOOKS_LIKE_A_KEY.sub(_HIDDEN, line.replace(self._value, _HIDDEN) if self._value != _DUMMY else line)
        line = _RUN.sub(lambda run: _HIDDEN if self._shares(run.group()) else run.group(), line)
        return line if len(line) <= most else line[: most - 1] + "…"

    def _shares(self, run: str) -> bool:
        return any(run[at : at + _PIECE] in self._value for at in range(len(run) - _PIECE + 1))

    def __repr__(self) -> str:
        return f"Secret({_HIDDEN})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not written anywhere.")


def find_secret(base_url: str | None) -> Secret:
    """The environment's key, else the secrets file's; servers other than OpenAI's do without."""
    value = (os.environ.get(KEY) or _from_file() or "").strip()
    if not value:
        if other_server(base_url) is None:
            raise Mistake(f"There is no key for OpenAI. {_WHERE}; or name another server with --base-url.")
        return Secret(_DUMMY)
    if not re.fullmatch(r"[!-~]+", value):
        raise Mistake(
            f"The key in {KEY} contains characters that are not valid in a key (a space, an accented letter). "
            f"{_WHERE} again."
        )
    return Secret(value)


def _from_file() -> str | None:
    named = os.environ.get(FILE)
    path = Path(named) if named else SECRETS
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig")).get(KEY)
    except FileNotFoundError:
        if named:
            raise Mistake(f"{FILE} names a file that does not exist. {_WHERE}.") from None
        return None
    except (OSError, ValueError):  # what the error quotes may be the key
        raise Mistake(f"The secrets file '{path.name}' cannot be read as TOML. {_WHERE}.") from None
    if found is not None and not isinstance(found, str):
        raise Mistake(f"{KEY} in the secrets file '{path.name}' is not text. Write it in quotes.")
    return found
