"""``python -m precompute``: what a person sees, what a machine reads, and one line for every mistake."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.runs.run import Run, run_names
from precompute.cli import COMMANDS, main
from precompute.options import add_common, add_progress
from precompute.table import STEP_COMMANDS

Rows = Callable[..., list[dict[str, Any]]]
Write = Callable[..., Path]
Command = Callable[..., Any]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def corpus(write_corpus: Write, some_rows: Rows) -> Path:
    return write_corpus(some_rows(10))


def check_mistake(outcome: Any, *words: str) -> None:
    """Exit status 2, and exactly one line on standard error."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert outcome.err.endswith("\n")
    (line,) = outcome.err.splitlines()
    assert line.startswith("headscope: ")
    for word in words:
        assert word in line


def check_nothing_finished(cache: Path) -> None:
    """Nothing that the app would show as a finished run."""
    for name in run_names(cache):
        assert not Run(cache, name).manifest().is_done("embed")


# Help


def test_help(command: Command) -> None:
    outcome = command("--help")
    assert outcome.status == 0
    assert outcome.err == ""
    for name in COMMANDS:
        assert name in outcome.out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_each_command(command: Command, name: str) -> None:
    outcome = command(name, "--help")
    assert outcome.status == 0
    assert "--cache" in outcome.out
    assert ("--part-size" in outcome.out) == (name in ("embed", "all"))


def test_as_a_program(start_job: Callable[..., subprocess.Popen[str]], finish: Callable[..., Any]) -> None:
    outcome = finish(start_job("--help", cold=True))
    assert outcome.status == 0
    assert outcome.out.startswith("usage: python -m precompute")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frobnicate",),
        ("embed",),
        ("verify",),
        ("embed", "run", "--part-size", "many"),
        ("embed", "run", "--pooling", "max"),
        ("embed", "run", "--no-such-option"),
    ],
)
def test_arguments_that_cannot_be_parsed(command: Command, arguments: tuple[str, ...]) -> None:
    check_mistake(command(*arguments))


# An empty cache


def test_status_of_an_empty_cache(command: Command, cache: Path) -> None:
    outcome = command("status", "--cache", cache)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == "The cache is empty. Build the demo with 'make demo'.\n"
    assert not cache.exists(), "looking makes nothing"


def test_status_of_an_empty_cache_for_a_machine(command: Command, cache: Path) -> None:
    outcome = command("status", "--cache", cache, "--json")
    assert (outcome.status, json.loads(outcome.out), outcome.err) == (0, [], "")


@pytest.mark.parametrize("name", ["status", "verify"])
def test_a_run_that_is_not_there(command: Command, cache: Path, name: str) -> None:
    check_mistake(command(name, "none", "--cache", cache), "There is no run 'none'", "The cache is empty")


def test_the_cache_is_taken_from_the_environment(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "elsewhere"))
    assert json.loads(command("status", "--json").out) == []


# A run


def test_embed_says_what_it_has_done(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    arguments = ("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model)
    outcome = command(*arguments)
    assert outcome.status == 0
    assert outcome.out == ""
    *progress, first, second = outcome.err.splitlines()
    assert all(line.startswith("embed ") for line in progress)
    assert first == "run: 10 documents × 4 heads × 4 stages by tiny, layer 2, mean pooling."
    assert second.startswith("  90 tokens in ")
    assert second.endswith("MB in the cache, vectors of stages 1, 2, 3 and 4 as float16.")
    again = command(*arguments)
    assert (again.status, again.out) == (0, "")
    assert again.err == "run: up to date, 10 documents. Nothing to do.\n"


@pytest.mark.slow
def test_all_does_what_embed_does(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    for name in ("all", "embed"):
        arguments = ("--cache", cache, "--source", corpus, "--model", tiny_model, "--part-size", 4, "--quiet")
        assert command(name, f"by-{name}", *arguments).status == 0
    one, other = Run(cache, "by-all"), Run(cache, "by-embed")
    assert one.documents().equals(other.documents())
    for stage in (1, 2, 3):
        ours, theirs = ([path.read_bytes() for path in run.parts(stage)] for run in (one, other))
        assert ours == theirs
        assert len(ours) == 3
    assert one.manifest().steps["embed"].fingerprint == other.manifest().steps["embed"].fingerprint


def test_a_limit_on_a_file_sorted_by_topic_is_noticed(
    command: Command, cache: Path, write_corpus: Write, tiny_model: Path
) -> None:
    rows = [{"id": f"{number}", "text": f"text {number}", "topic": f"topic {number // 20}"} for number in range(60)]
    arguments = ("embed", "run", "--cache", cache, "--source", write_corpus(rows), "--model", tiny_model, "--replace")
    outcome = command(*arguments, "--limit", 30)
    assert outcome.status == 0
    (warning,) = [line for line in outcome.err.splitlines() if line.startswith("headscope: ")]
    assert "is sorted by topic" in warning
    assert "Use --sample 30" in warning
    assert "headscope" not in command(*arguments, "--sample", 30).err


def test_quiet_prints_nothing(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    for _ in range(2):  # made, then skipped
        outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model, "--quiet")
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_progress_for_a_program(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    outcome = command(
        "embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model, "--part-size", 4,
        "--progress", "json",
    )  # fmt: skip
    reports = [json.loads(line) for line in outcome.out.splitlines()]
    assert reports[0]["message"] == "loading the model"
    assert reports[-1]["message"] == "writing documents.parquet"
    assert [report["documents"] for report in reports] == [0, 4, 8, 10, 10]
    fractions = [report["fraction"] for report in reports[1:]]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_every_option_reaches_the_step(command: Command, cache: Path, write_corpus: Write, tiny_model: Path) -> None:
    rows = [{"body": f"{word} loom", "key": number, "head": word.upper(), "at": f"https://x/{number}", "kind": "k"}
            for number, word in enumerate(("harbour", "violin", "violin", "a", "enzyme", "glacier"))]  # fmt: skip
    source = write_corpus([*rows, "{broken"], "named.jsonl")
    outcome = command(
        "embed", "run", "--cache", cache, "--source", source, "--model", tiny_model, "--text-column", "body",
        "--id-column", "key", "--title-column", "head", "--url-column", "at", "--topic-column", "kind", "--layer", 1,
        "--pooling", "first", "--prompt", "orchard ", "--query-prompt", "verdict ", "--max-tokens", 50, "--device",
        "cpu", "--dtype", "float32", "--token-budget", 64, "--padding", "left", "--min-chars", 8, "--skip-bad",
        "--keep-duplicates", "--part-size", 2, "--limit", 4,
    )  # fmt: skip
    assert outcome.status == 0
    manifest = Run(cache, "run").manifest()
    expected = {"layer": 1, "pooling": "first", "prompt": "orchard ", "query_prompt": "verdict ", "max_tokens": 50}
    assert {key: manifest.model[key] for key in expected} == expected
    assert manifest.vectors["part_size"] == 2
    table = Run(cache, "run").documents()
    assert table["id"].to_pylist() == ["0", "1", "2", "4"]
    assert table["title"].to_pylist() == ["HARBOUR", "VIOLIN", "VIOLIN", "ENZYME"]
    assert table["url"].to_pylist()[3] == "https://x/4"
    assert table["topic"].to_pylist() == ["k"] * 4
    assert table["tokens"].to_pylist() == [5] * 4  # [CLS] orchard … loom [SEP]


def test_batches_without_padding_and_compiled_blocks_are_asked_for_by_name(cache: Path) -> None:
    parser = argparse.ArgumentParser()
    add_common(parser)
    add_progress(parser)
    embed = STEP_COMMANDS["embed"]
    embed.options(parser)
    for given, wanted in (([], (False, False)), (["--packed"], (True, False)), (["--compile"], (False, True))):
        embedder = embed.config(parser.parse_args(["run", "--cache", str(cache), *given])).embedder
        assert (embedder.packed, embedder.compile) == wanted


def test_a_sample_is_chosen_by_its_seed(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    ids = []
    for run, seed in (("a", 0), ("b", 0), ("c", 1)):
        arguments = ("--source", corpus, "--model", tiny_model, "--sample", 4, "--seed", seed, "--quiet")
        assert command("embed", run, "--cache", cache, *arguments).status == 0
        ids.append(Run(cache, run).documents(["id"])["id"].to_pylist())
        assert Run(cache, run).manifest().steps["embed"].counts["sampled_out"] == 6
    assert ids[0] == ids[1] != ids[2]
    assert [len(each) for each in ids] == [4, 4, 4]


def test_status_of_a_run(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    command("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model)
    (record,) = json.loads(command("status", "run", "--cache", cache, "--json").out)
    assert record["run"] == "run"
    assert record["documents"] == 10
    assert record["at_work"] is False
    assert record["model"]["heads"] == 4
    assert record["steps"]["embed"]["state"] == "done"
    assert record["steps"]["embed"]["counts"]["tokens"] == 90
    assert record["bytes"] == sum(path.stat().st_size for path in (cache / "run").rglob("*") if path.is_file())
    shown = command("status", "--cache", cache).out
    assert shown.startswith("run\n  model      tiny · 2 layers, 4 heads, width 8, hidden 32 · layer 2, mean pooling")
    assert "corpus     corpus.jsonl · 10 documents" in shown
    assert "embed      done · " in shown


def test_status_of_several_runs_one_of_them_damaged(
    command: Command, cache: Path, corpus: Path, tiny_model: Path
) -> None:
    command("embed", "good", "--cache", cache, "--source", corpus, "--model", tiny_model)
    (cache / "bad").mkdir()
    (cache / "bad" / "manifest.json").write_text("{")
    outcome = command("status", "--cache", cache)
    assert outcome.status == 0
    assert outcome.out.startswith("bad\n  The manifest.json of run 'bad' is damaged. Rebuild the run with")
    assert "\n\ngood\n" in outcome.out
    bad, good = json.loads(command("status", "--cache", cache, "--json").out)
    assert "damaged" in bad["problem"]
    assert good["documents"] == 10


def test_status_is_not_stopped_by_a_folder_that_is_no_run(
    command: Command, cache: Path, corpus: Path, tiny_model: Path
) -> None:
    command("embed", "good", "--cache", cache, "--source", corpus, "--model", tiny_model)
    shutil.copytree(cache / "good", cache / "a copy")
    outcome = command("status", "--cache", cache)
    assert outcome.status == 0
    assert outcome.out.startswith("good\n")


def test_what_was_left_out_is_told(command: Command, cache: Path, write_corpus: Write, tiny_model: Path) -> None:
    rows = [{"text": "loom"}, "{broken", {"text": "loom"}, {"text": ""}, {"text": "violin " * 300}]
    source = write_corpus(rows, "mixed.jsonl")
    outcome = command("embed", "run", "--cache", cache, "--source", source, "--model", tiny_model, "--skip-bad")
    assert outcome.status == 0
    assert "  Left out of 5: 1 unreadable, 1 too short, 1 duplicates." in outcome.err.splitlines()
    assert "  1 document was truncated to 128 tokens (--max-tokens)." in outcome.err.splitlines()


def test_what_is_missing_and_which_ids_come_twice_is_told(
    command: Command, cache: Path, write_corpus: Write, tiny_model: Path
) -> None:
    rows = [{"text": "loom"}, {"text": "violin", "id": "a", "topic": "Art"}, {"text": "enzyme", "id": "a"}]
    source = write_corpus(rows, "mixed.jsonl")
    arguments = ("embed", "run", "--cache", cache, "--source", source, "--model", tiny_model)
    refused = command(*arguments, "--quiet")
    assert refused.status == 2
    assert "mixed.jsonl has more than one document with the id 'a'" in refused.err
    outcome = command(*arguments, "--duplicate-ids", "number")
    assert outcome.status == 0, outcome.err
    told = outcome.err.splitlines()
    assert "  Of 3 documents: 1 without an id, 2 without a topic." in told
    assert "  Duplicate ids numbered: 1." in told
    counts = Run(cache, "run").manifest().steps["embed"].counts
    assert {name: counts[name] for name in ("no_id", "no_topic", "numbered")} == {
        "no_id": 1,
        "no_topic": 2,
        "numbered": 1,
    }
    assert Run(cache, "run").documents(["id", "topic"]).to_pydict() == {
        "id": ["mixed.jsonl:1", "a", "a#2"],
        "topic": [None, "Art", None],
    }


def test_ctrl_c_says_how_to_go_on(
    cache: Path, corpus: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    changed = replace(STEP_COMMANDS["embed"], run=interrupted)
    monkeypatch.setattr("precompute.steps.embed.command.COMMAND", changed)
    assert main(["embed", "run", "--cache", str(cache), "--source", str(corpus), "--model", str(tiny_model)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "headscope: stopped. Start the same command again" in err


# Mistakes


def bad_source(write_corpus: Write, kind: str) -> Path:
    if kind == "missing":
        return Path("no/such/corpus.jsonl")
    if kind == "UTF-8":
        path = write_corpus([], "latin.jsonl")
        path.write_bytes(b'{"text": "loom"}\n{"text": "caf\xe9"}\n')
        return path
    rows: dict[str, list[Any]] = {
        "empty": [],
        "no text": [{"colour": "red", "size": 4}],
        "broken": [{"text": "loom"}, {"text": "violin"}, '{"text": "cut'],
        "short": [{"text": ""}, {"text": "  "}],
        "no object": [{"text": "loom"}, "[1, 2]"],
        "no string": [{"text": "loom"}, {"text": 5}],
    }
    return write_corpus(rows[kind], f"{kind.replace(' ', '-')}.jsonl")


SOURCES = {
    "missing": ("There is no file or folder 'no/such/corpus.jsonl'",),
    "empty": ("empty.jsonl is empty",),
    "no text": ("no-text.jsonl has no text column", "'colour', 'size'", "--text-column"),
    "broken": ("broken.jsonl line 3 is not valid JSON", "--skip-bad"),
    "UTF-8": ("latin.jsonl line 2 is not valid UTF-8", "--skip-bad"),
    "short": ("No document is left of short.jsonl: 2 read, 2 shorter than 1 characters", "--min-chars"),
    "no object": ("no-object.jsonl line 2 is JSON but not an object",),
    "no string": ("no-string.jsonl line 2 has a 'text' of type",),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_bad_source(command: Command, cache: Path, write_corpus: Write, tiny_model: Path, kind: str) -> None:
    source = bad_source(write_corpus, kind)
    outcome = command("embed", "run", "--cache", cache, "--source", source, "--model", tiny_model, "--quiet")
    check_mistake(outcome, *SOURCES[kind])
    check_nothing_finished(cache)


@pytest.mark.parametrize("kind", ["broken", "UTF-8", "no object", "no string"])
def test_the_advice_to_skip_bad_lines_can_be_followed(
    command: Command, cache: Path, write_corpus: Write, tiny_model: Path, kind: str
) -> None:
    """In the same run: nothing was finished in it that could be lost."""
    source = bad_source(write_corpus, kind)
    arguments = ("embed", "run", "--cache", cache, "--source", source, "--model", tiny_model)
    check_mistake(command(*arguments, "--quiet"))
    outcome = command(*arguments, "--skip-bad")
    assert outcome.status == 0, outcome.err
    assert "1 unreadable" in outcome.err


def test_a_broken_line_is_skipped_and_counted(
    command: Command, cache: Path, write_corpus: Write, tiny_model: Path
) -> None:
    source = bad_source(write_corpus, "broken")
    outcome = command("embed", "run", "--cache", cache, "--source", source, "--model", tiny_model, "--skip-bad")
    assert outcome.status == 0
    assert "  Left out of 3: 1 unreadable." in outcome.err.splitlines()
    assert Run(cache, "run").manifest().steps["embed"].counts["bad"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--layer", "99"), "Layer 99 does not exist (this model has layers 1–2)"),
        (("--layer", "0"), "Layer 0 does not exist"),
        (("--part-size", "0"), "--part-size must be at least 1, not 0"),
        (("--part-size", "-3"), "--part-size must be at least 1, not -3"),
        (("--limit", "0"), "--limit must be at least 1, not 0"),
        (("--sample", "-1"), "--sample must be at least 1, not -1"),
        (("--max-tokens", "2"), "--max-tokens 2 leaves no room for text"),
        (("--max-tokens", "0"), "--max-tokens 0"),
        (("--device", "toaster"), "Device 'toaster' cannot be used here"),
        (("--text-column", "body"), "has no column 'body': it has 'id', 'text', 'n'"),
        (("--min-chars", "1000"), "10 shorter than 1000 characters"),
        (("--trust-remote-code", "someone/else"), "names 'someone/else', but the model is"),
        (("--model", "nothing-of-that-name"), "There is no model 'nothing-of-that-name'"),
        (("--model", "nobody/nothing"), "The model 'nobody/nothing' could not be fetched from the hub"),
        (("--source", "hf:nobody/nothing"), "nobody/nothing"),
    ],
)
def test_a_bad_option(
    command: Command, cache: Path, corpus: Path, tiny_model: Path, options: tuple[str, str], words: str
) -> None:
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model, "--quiet", *options)
    check_mistake(outcome, words)
    assert run_names(cache) == []


def test_more_tokens_than_the_model_has_positions(
    command: Command, cache: Path, write_corpus: Write, tiny_model: Path
) -> None:
    source = write_corpus([{"text": "loom " * 300}], "long.jsonl")
    arguments = ("--source", source, "--model", tiny_model, "--max-tokens", 4_000, "--quiet")
    check_mistake(command("embed", "run", "--cache", cache, *arguments), "4000")


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a" * 65, "x\ny"])
@pytest.mark.parametrize("step", ["embed", "status", "verify"])
def test_a_bad_run_name(command: Command, cache: Path, corpus: Path, step: str, name: str) -> None:
    if step == "status" and not name:
        return  # no name: all of them
    options = ("--source", corpus) if step == "embed" else ()
    check_mistake(command(step, name, "--cache", cache, *options), "cannot name a run")
    assert not cache.exists()
    assert not (cache.parent / "x").exists()


def test_a_model_without_weights(command: Command, cache: Path, corpus: Path, tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "no-weights"
    shutil.copytree(tiny_model, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", folder, "--quiet")
    check_mistake(outcome, "has a config.json but no weights")
    (folder / "config.json").unlink()
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", folder, "--quiet")
    check_mistake(outcome, "has no config.json")
    assert run_names(cache) == []


def test_a_model_whose_weights_are_cut_short(
    command: Command, cache: Path, corpus: Path, tiny_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(tiny_model, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1_000])
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", folder, "--quiet")
    check_mistake(outcome, "The model 'cut' could not be loaded")
    assert run_names(cache) == []


def test_a_cache_that_is_a_file(command: Command, tmp_path: Path, corpus: Path, tiny_model: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    outcome = command("embed", "run", "--cache", path, "--source", corpus, "--model", tiny_model, "--quiet")
    check_mistake(outcome, "cannot be written", "--cache")
    assert path.read_text() == "mine"
    check_mistake(command("verify", "run", "--cache", path), "There is no run 'run'")


def test_a_run_that_is_a_file(command: Command, cache: Path, corpus: Path, tiny_model: Path) -> None:
    cache.mkdir()
    (cache / "run").write_text("mine")
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model, "--quiet")
    check_mistake(outcome, "cannot be written")
    assert (cache / "run").read_text() == "mine"


def test_a_mistake_of_a_real_process(
    cache: Path,
    write_corpus: Write,
    tiny_model: Path,
    start_job: Callable[..., subprocess.Popen[str]],
    finish: Callable[..., Any],
) -> None:
    """Also what libraries write to standard error behind Python's back would show here."""
    broken = bad_source(write_corpus, "broken")
    arguments = ("--cache", cache, "--model", tiny_model, "--quiet", "--source")
    bad = finish(start_job("embed", "b", *arguments, broken, cold=True))
    check_mistake(bad, "broken.jsonl line 3 is not valid JSON")
    check_nothing_finished(cache)


def test_before_the_sentence_there_is_only_progress(
    command: Command, cache: Path, corpus: Path, tiny_model: Path
) -> None:
    outcome = command("embed", "run", "--cache", cache, "--source", corpus, "--model", tiny_model, "--layer", 99)
    assert outcome.status == 2
    *progress, sentence = outcome.err.splitlines()
    assert all(line.startswith("embed ") for line in progress)
    assert sentence.startswith("headscope: Layer 99")
