"""Who may come in: what [auth] must hold, who is of a domain, and that doubt closes the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.errors import Mistake
from core.settings import read_settings
from pages.shared.server.access import Gate, check_auth, find_gate, may_enter
from tests.support import ROOT

SECRET = "0123456789abcdef" * 2
PROVIDER = {"client_id": "c", "client_secret": "s", "server_metadata_url": "http://127.0.0.1:1/.well-known/x"}
SHARED = {"redirect_uri": "https://heads.example.org/oauth2callback", "cookie_secret": SECRET}
OPEN = read_settings({})


def without(section: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in section.items() if name != key}


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Streamlit's secrets, from a file that is not there yet."""
    from streamlit import config

    before, path = config.get_option("secrets.files"), tmp_path / "secrets.toml"
    config.set_option("secrets.files", [str(path)])
    st.secrets._reset()
    yield path
    config.set_option("secrets.files", before)
    st.secrets._reset()


def test_the_names_of_providers() -> None:
    assert check_auth({**SHARED, **PROVIDER}) == ("default",)
    assert check_auth({**SHARED, "okta": PROVIDER, "entra": PROVIDER}) == ("okta", "entra")
    assert check_auth({**SHARED, **PROVIDER, "okta": PROVIDER}) == ("default", "okta")
    assert check_auth({**SHARED, **PROVIDER, "client_kwargs": {"prompt": "login"}}) == ("default",)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        *((without({**SHARED, **PROVIDER}, key), f"is missing {key}.") for key in (*SHARED, *PROVIDER)),
        ({}, "is missing redirect_uri, cookie_secret."),
        (SHARED, "is missing client_id, client_secret, server_metadata_url."),
        ({**SHARED, **PROVIDER, "cookie_secret": ""}, "is missing cookie_secret."),
        ({**SHARED, **PROVIDER, "cookie_secret": 12345678901234567890}, "is missing cookie_secret."),
        ({**SHARED, **PROVIDER, "cookie_secret": SECRET[:-1]}, "too short to be secure"),
        ({**SHARED, **PROVIDER, "redirect_uri": "https://heads.example.org/"}, "redirect_uri"),
        ({**SHARED, **PROVIDER, "redirect_uri": "heads.example.org/oauth2callback"}, "redirect_uri"),
        (
            {**SHARED, "okta": without(PROVIDER, "client_id")},
            "[auth.okta] in Streamlit's secrets is missing client_id.",
        ),
        ({**SHARED, "my_okta": PROVIDER}, "underscore"),
    ],
)
def test_a_wrong_section_is_one_sentence(section: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake) as caught:
        check_auth(section)
    assert said in str(caught.value)
    assert SECRET[:-1] not in str(caught.value)


def test_without_authlib_nobody_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.shared.server.access.find_spec", lambda package: None)
    with pytest.raises(Mistake, match="Authlib or httpx is missing"):
        check_auth({**SHARED, **PROVIDER})


KELVIN, CYRILLIC_A, WIDE_DOT = "\u212a", "\u0430", "\u3002"
ADA = {"email": "ada@kelvin.example.org"}
VERIFIED = {**ADA, "email_verified": True}


@pytest.mark.parametrize(
    ("user", "enters"),
    [
        # what counts as verified
        (VERIFIED, True),
        ({**ADA, "email_verified": "true"}, True),
        (ADA, False),
        *(
            ({**ADA, "email_verified": verified}, False)
            for verified in (False, None, 0, 1, "0", "1", "", "no", "yes", "false", "True ", [], [True], {}, 1.0)
        ),
        # what is of the domain
        ({**VERIFIED, "email": "Ada@KELVIN.example.ORG"}, True),
        *(
            ({**VERIFIED, "email": email}, False)
            for email in (
                f"ada@{KELVIN}elvin.example.org",
                f"ada@kelvin.ex{CYRILLIC_A}mple.org",
                f"ada@kelvin.example{WIDE_DOT}org",
                "ada@kelvin.example.org.",
                "ada@kel\u200bvin.example.org",
                "ada@sub.kelvin.example.org",
                "ada@notkelvin.example.org",
                "ada@kelvin.example.org.evil.net",
                "ada@evil.net@kelvin.example.org",
                "ada@kelvin.example.org\n@evil.net",
                "ada@kelvin.example.org\n",
                "kelvin.example.org",
                "@kelvin.example.org",
                ["ada@kelvin.example.org"],
                None,
            )
        ),
        ({"name": "ada@kelvin.example.org", "email_verified": True}, False),
        ({}, False),
    ],
)
def test_who_is_of_the_domain(user: dict[str, Any], enters: bool) -> None:
    assert may_enter(user, ("kelvin.example.org",)) is enters
    assert may_enter(user, ())


def test_a_provider_that_says_nothing_of_addresses_can_be_trusted_by_name() -> None:
    enters = lambda user: may_enter(user, ("kelvin.example.org",), ("entra",))  # noqa: E731
    assert enters({**ADA, "provider": "entra"})
    assert not enters({**ADA, "provider": "okta"})
    assert not enters(ADA)
    assert not enters({**ADA, "provider": "entra", "email_verified": False}), "what it does say counts"
    assert not enters({**ADA, "provider": "entra", "email_verified": None})


def test_a_domain_of_other_letters_is_compared_as_dns_has_it() -> None:
    (domain,) = read_settings({"HEADSCOPE_ALLOWED_DOMAINS": "bücher.example"}).allowed_domains
    assert domain == "xn--bcher-kva.example"
    for written in ("bücher.example", "xn--bcher-kva.example", "XN--bcher-kva.example"):
        assert may_enter({"email": f"ada@{written}", "email_verified": True}, (domain,))


def test_a_trusted_provider_must_be_one_of_the_secrets(secrets: Path) -> None:
    lines = [f'{key} = "{value}"' for key, value in SHARED.items()]
    secrets.write_text("\n".join(["[auth]", *lines, "[auth.entra]", *(f'{k} = "{v}"' for k, v in PROVIDER.items())]))
    settings = read_settings({"HEADSCOPE_TRUSTED_PROVIDERS": "entra"})
    assert find_gate(settings) == Gate(("entra",), "https://heads.example.org")
    with pytest.raises(Mistake, match="HEADSCOPE_TRUSTED_PROVIDERS has okta"):
        find_gate(read_settings({"HEADSCOPE_TRUSTED_PROVIDERS": "entra, okta"}))


def test_no_secrets_is_an_open_door(secrets: Path) -> None:
    assert find_gate(OPEN) == Gate()
    secrets.write_text('OPENAI_API_KEY = "x"\n')
    assert find_gate(OPEN).is_open


@pytest.mark.parametrize("environment", [{"HEADSCOPE_ALLOWED_DOMAINS": "example.org"}, {"HEADSCOPE_LOGIN": "required"}])
def test_an_operator_who_wants_a_login_is_not_left_with_an_open_door(
    secrets: Path, environment: dict[str, str]
) -> None:
    with pytest.raises(Mistake, match=f"{next(iter(environment))}.* is set, but there is no"):
        find_gate(read_settings(environment))


@pytest.mark.parametrize("text", ["[auth]\n", 'auth = "yes"\n', "[auth\n", "\x00", '[auth]\ncookie_secret = "x'])
def test_what_cannot_be_understood_closes_every_page(
    secrets: Path, text: str, planted_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets.write_text(text)
    with pytest.raises(Mistake):
        find_gate(OPEN)
    monkeypatch.setenv("HEADSCOPE_CACHE", str(planted_cache))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert [heading.value for heading in app.subheader] == ["Headscope is not set up yet"]
    assert len(app.error) == 1
    assert not app.selectbox
    assert not app.exception


def test_bytes_that_are_no_text_close_it_too(secrets: Path) -> None:
    secrets.write_bytes(b"\xff\xfe[auth]")
    with pytest.raises(Mistake, match="cannot be read"):
        find_gate(OPEN)


def test_every_page_asks_for_the_login(secrets: Path, planted_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'{key} = "{value}"' for key, value in (SHARED | PROVIDER).items()]
    secrets.write_text("\n".join(["[auth]", *lines]))
    monkeypatch.setenv("HEADSCOPE_CACHE", str(planted_cache))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    pages = sorted(path for room in ("explore", "understand", "use") for path in ROOT.glob(f"pages/{room}/*/page.py"))
    assert len(pages) == 13
    for path in pages:
        app.switch_page(str(path.relative_to(ROOT))).run()
        assert [button.label for button in app.button] == ["Sign in"]
        assert not app.selectbox
        assert not app.exception
