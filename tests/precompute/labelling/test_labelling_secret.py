"""The key is found where it may be, and shows itself nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from core.errors import Mistake
from precompute.labelling import secret as module
from precompute.labelling.secret import Secret, find_secret

KEY = "sk-proj-Zq8fT3xLw0Rk5Vn2"
LOCAL = "http://localhost:8000/v1"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("HEADSCOPE_SECRETS", raising=False)
    monkeypatch.setattr(module, "SECRETS", tmp_path / ".streamlit" / "secrets.toml")


def test_the_environment_comes_first_then_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module.SECRETS.parent.mkdir()
    module.SECRETS.write_text('OPENAI_API_KEY = "from-the-project"\n')
    assert find_secret(None).reveal() == "from-the-project"
    named = tmp_path / "mine.toml"
    named.write_text('OPENAI_API_KEY = "from-my-file"\n[other]\nx = 1\n')
    monkeypatch.setenv("HEADSCOPE_SECRETS", str(named))
    assert find_secret(None).reveal() == "from-my-file"
    monkeypatch.setenv("OPENAI_API_KEY", " from-the-environment\n")
    assert find_secret(None).reveal() == find_secret(LOCAL).reveal() == "from-the-environment"


def test_no_key_is_a_mistake_that_names_both_places_unless_the_server_is_another() -> None:
    with pytest.raises(Mistake, match=r"OPENAI_API_KEY in the environment.*secrets\.toml.*HEADSCOPE_SECRETS"):
        find_secret(None)
    with pytest.raises(Mistake, match="no key"):
        find_secret("https://api.openai.com/v1")
    assert find_secret(LOCAL).reveal()


@pytest.mark.parametrize("text", [f'OPENAI_API_KEY = "{KEY}', f"OPENAI_API_KEY = {KEY}", f'OPENAI_API_KEY = ["{KEY}"]'])
def test_a_file_that_cannot_be_read_does_not_give_the_key_away(text: str) -> None:
    module.SECRETS.parent.mkdir()
    module.SECRETS.write_text(text)
    with pytest.raises(Mistake) as told:
        find_secret(None)
    assert "Zq8f" not in str(told.value)
    assert told.value.__suppress_context__ or told.value.__context__ is None


def test_a_named_file_that_is_not_there_and_a_key_with_a_space_are_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_SECRETS", "/nowhere/secrets.toml")
    with pytest.raises(Mistake, match="does not exist"):
        find_secret(None)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY} {KEY}")
    with pytest.raises(Mistake, match="characters that are not valid in a key") as told:
        find_secret(None)
    assert "Zq8f" not in str(told.value)


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {KEY}.",
        f"Authorization: Bearer {KEY}",
        f"no: {KEY[:12]}",
        f"no: ...{KEY[-10:]}",
        f'{{"key": "{KEY}"}}',
        f"http://x/?key={KEY}&more=1",
        "x" * 190 + KEY,  # where the sentence is cut
        "sk-proj-****Vn2",  # OpenAI's own way of hiding it shows the end
    ],
)
def test_what_a_server_says_is_cleaned_of_the_key_and_its_pieces(said: str) -> None:
    clean = Secret(KEY).clean(said)
    assert not any(KEY[at : at + 6] in clean for at in range(8, len(KEY) - 5))
    assert "Vn2" not in clean


def test_what_a_server_says_becomes_one_short_line() -> None:
    clean = Secret(KEY).clean("first\nsecond\t\x1b[31mthird\x00" + " word" * 200)
    assert clean.startswith("first second [31mthird word")
    assert "\n" not in clean
    assert len(clean) == 200
    assert clean.endswith("…")
    assert Secret(KEY).clean("An ordinary sentence stays.") == "An ordinary sentence stays."
