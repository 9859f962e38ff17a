"""Who may come in: where ``[auth]`` is in Streamlit's secrets, people who have signed in, and are of a listed domain.

Whatever is wrong with ``[auth]`` closes the app; only where there is none at all is it open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import streamlit as st
from streamlit.auth_util import get_origin_from_redirect_uri
from streamlit.errors import StreamlitSecretNotFoundError

from core.errors import Mistake, listed
from core.settings import Settings, domain_name

DEFAULT = "default"
"""Streamlit's name for a provider that stands in ``[auth]`` itself."""
SHORTEST_SECRET = 32
_SHARED = ("redirect_uri", "cookie_secret")
_OF_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
_CALLBACK = re.compile(r"https?://[^\s/]+(/\S*)?/oauth2callback")
_ADDRESS = re.compile(r"[^@\s]+@([^@\s]+)")
_WHERE = "[auth] in Streamlit's secrets"


@dataclass(frozen=True)
class Gate:
    """``providers`` to sign in with; none where the app is open to everybody. ``origin`` is the app's own."""

    providers: tuple[str, ...] = ()
    origin: str = ""

    @property
    def is_open(self) -> bool:
        return not self.providers


def find_gate(settings: Settings) -> Gate:
    """What the secrets say; a Mistake, and a closed app, where they cannot be understood."""
    section = _auth_section()
    if section is not None:
        providers = check_auth(section)
        if unknown := [name for name in settings.trusted_providers if name not in providers]:
            raise Mistake(
                f"HEADSCOPE_TRUSTED_PROVIDERS has {listed(unknown)}, but the providers of {_WHERE} are: "
                f"{listed(providers)}. Change it, or unset it."
            )
        return Gate(providers, get_origin_from_redirect_uri() or "")
    if settings.allowed_domains or settings.login == "required":
        name = "HEADSCOPE_ALLOWED_DOMAINS" if settings.allowed_domains else "HEADSCOPE_LOGIN=required"
        raise Mistake(
            f"{name} is set, but there is no {_WHERE}, so nobody can sign in. Add the section, or unset the variable."
        )
    return Gate()


def check_auth(section: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the providers; all values are looked at now, not when somebody signs in."""
    _need(section, _SHARED, _WHERE)
    if not _CALLBACK.fullmatch(section["redirect_uri"]):
        raise Mistake(f"redirect_uri of {_WHERE} must be the app's address followed by /oauth2callback. Change it.")
    if len(section["cookie_secret"]) < SHORTEST_SECRET:
        raise Mistake(
            f"cookie_secret of {_WHERE} is too short to be secure. Use at least {SHORTEST_SECRET} random characters, "
            "such as the output of 'openssl rand -hex 32'."
        )
    named = [name for name, value in section.items() if isinstance(value, Mapping) and name != "client_kwargs"]
    if wrong := [name for name in named if "_" in name]:
        raise Mistake(
            f"Streamlit does not allow underscores in a provider's name ({listed(wrong)} of {_WHERE}). Rename it."
        )
    for name in named:
        _need(section[name], _OF_PROVIDER, f"[auth.{name}] in Streamlit's secrets")
    if not named or any(key in section for key in _OF_PROVIDER):
        _need(section, _OF_PROVIDER, _WHERE)
        named = [DEFAULT, *(name for name in named if name != DEFAULT)]
    if any(find_spec(package) is None for package in ("authlib", "httpx")):
        raise Mistake(f"There is {_WHERE}, but Authlib or httpx is missing. Install requirements.txt.")
    return tuple(named)


def may_enter(user: Mapping[str, Any], domains: tuple[str, ...], trusted: tuple[str, ...] = ()) -> bool:
    """Whether somebody who has signed in is of a listed domain, by an address that the provider vouches for.

    Only a true ``email_verified`` counts. Providers that are ``trusted`` need not send one, but what they send counts.
    """
    if not domains:
        return True
    address = user.get("email")
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    return found is not None and domain_name(found[1]) in domains and _is_verified(user, trusted)


def _is_verified(user: Mapping[str, Any], trusted: tuple[str, ...]) -> bool:
    if "email_verified" not in user:
        return user.get("provider") in trusted
    verified = user["email_verified"]
    return verified is True or verified == "true"  # a word, as Amazon Cognito sends it


def _auth_section() -> Mapping[str, Any] | None:
    try:
        section = st.secrets.get("auth")
    except StreamlitSecretNotFoundError as error:
        if error.error_id == "no-secrets-found":
            return None
        raise Mistake("Streamlit's secrets are not valid TOML. Fix the file.") from None
    except (OSError, ValueError):  # no leave to read it, or no text
        raise Mistake("Streamlit's secrets cannot be read. Grant this user read permission.") from None
    if section is not None and not isinstance(section, Mapping):
        raise Mistake(f"{_WHERE} is not a section. Write [auth] on a line of its own, and its values below.")
    return section


def _need(section: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    if lacking := [key for key in keys if not (isinstance(section.get(key), str) and section[key].strip())]:
        raise Mistake(f"{where} is missing {listed(lacking)}. Add it, as text; until then nobody can sign in.")
