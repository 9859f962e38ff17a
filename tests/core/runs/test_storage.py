"""What a run stores can be chosen: stages and precision, what is refused, and what the commands say of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import Mistake
from core.model.embedder import EmbedderConfig
from core.model.shape import ModelShape
from core.model.tokens import Tokens
from core.runs.describe import check_stages, left_out, stage_names
from core.runs.number_formats import quantise
from core.runs.parts import digest_of, write_part
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.storage import Storage
from precompute.steps.embed import part
from precompute.steps.embed.step import EmbedConfig, run
from tests.support.jobs import Outcome
from tests.support.models import HUGE

EVEN = ModelShape(layers=2, heads=4, kv_heads=4, hidden=32, head_dim=8)
UNEVEN = ModelShape(layers=2, heads=5, kv_heads=5, hidden=32, head_dim=8)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def embed(
    tmp_path: Path, tiny_model: Path, write_corpus: Callable[..., Path], some_rows: Callable[..., list[dict[str, Any]]]
) -> Callable[..., Run]:
    """Embeds ten documents, four to a part, into a run of its own."""
    source = write_corpus(some_rows(10))

    def make(name: str, stages: tuple[int, ...] | None = None, dtype: str = "float16", **more: Any) -> Run:
        config = EmbedConfig(
            tmp_path / "cache", name, str(source), EmbedderConfig(model=str(more.pop("model", tiny_model))),
            part_size=4, storage=Storage(stages, dtype), **more,
        )  # fmt: skip
        run(config)
        return Run(tmp_path / "cache", name)

    return make


def rows(of: Run, stage: int) -> np.ndarray:
    return np.concatenate(list(of.vectors(stage))).astype(np.float64)


def test_stages_are_those_asked_for_in_order_and_all_is_the_default() -> None:
    assert check_stages(None, EVEN) == (1, 2, 3)
    assert check_stages((3, 1, 3), EVEN) == (1, 3)
    assert check_stages(None, UNEVEN) == (1,)
    assert Storage((3, 2, 1)) == Storage()
    assert Storage((3, 1)).asked() == {"store_stages": (1, 3)}
    assert [stage_names(some) for some in ((3,), (1, 3), (1, 2, 3))] == [
        "stage 3",
        "stages 1 and 3",
        "stages 1, 2 and 3",
    ]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [((5,), "--stages 5 does not exist. Choose some of 1, 2, 3, 4."), ((1, 3), "Stage 3 cannot be cut into heads")],
)
def test_a_stage_that_cannot_be_is_refused_with_a_sentence(asked: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence):
        check_stages(asked, UNEVEN)


def test_chosen_stages_are_stored_and_no_other_and_hold_the_same_numbers(embed: Callable[..., Run]) -> None:
    whole, slim = embed("whole"), embed("slim", (3,))
    assert slim.manifest().stages == (3,)
    assert left_out(slim.manifest()) == (1, 2)
    assert [path.name for path in sorted((slim.folder / "heads").iterdir())] == ["stage=3"]
    assert np.array_equal(rows(slim, 3), rows(whole, 3))
    assert verify(slim, part_digest).problems == ()
    with pytest.raises(Mistake, match=r"Stage 1 is not available here\. Choose one of 3"):
        next(slim.vectors(1))


def test_other_storage_is_another_input_and_replace_makes_it(embed: Callable[..., Run]) -> None:
    embed("run", (3,))
    with pytest.raises(
        Mistake, match=r"has vectors from different inputs \(.*, stage 3 as float16, .* --replace"
    ) as found:
        embed("run")
    assert "\n" not in str(found.value)
    with pytest.raises(Mistake, match="stage 3 as float16"):
        embed("run", (3,), "int8")
    again = embed("run", (1, 2), "int8", replace=True)
    assert (again.manifest().stages, again.manifest().vectors["dtype"]) == ((1, 2), "int8")
    assert not again.parts(3)
    assert verify(again, part_digest).problems == ()


def test_int8_is_within_half_a_step_of_what_the_model_gave_and_half_the_size(embed: Callable[..., Run]) -> None:
    whole, small = embed("whole"), embed("small", dtype="int8")
    for stage in (1, 2, 3):
        wanted, found = rows(whole, stage), rows(small, stage)
        step = np.repeat(quantise(wanted, 4).scale, wanted.shape[1] // 4, axis=1)
        # float16 has rounded both: a part in 2048 of what was stored, and of what came back.
        assert (np.abs(found - wanted) <= step * 0.51 + np.abs(wanted) / 1000).all()
        assert not np.array_equal(found, wanted)
    assert verify(small, part_digest).problems == ()


def test_int8_holds_what_is_beyond_float16(
    embed: Callable[..., Run], huge_model: Path, write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    source = write_corpus([{"text": f"{HUGE} {HUGE} {HUGE}"}, {"text": "violin enzyme"}], "huge.jsonl")
    kept = {}
    for dtype in ("float16", "int8"):
        model = EmbedderConfig(model=str(huge_model))
        run(EmbedConfig(tmp_path / "cache", dtype, str(source), model, storage=Storage(dtype=dtype)))
        kept[dtype] = Run(tmp_path / "cache", dtype)
    assert kept["float16"].manifest().vectors["dtype"] == "float32"
    assert kept["int8"].manifest().vectors["dtype"] == "int8"
    wanted, found = rows(kept["float16"], 1), rows(kept["int8"], 1)
    assert np.abs(wanted).max() > 65_504
    assert np.abs(found - wanted).max() <= np.abs(wanted).max() / 127 / 2 * 1.001
    assert np.linalg.norm(found[1]) == pytest.approx(np.linalg.norm(wanted[1]), rel=0.01)


def test_verify_finds_a_scale_that_is_none_and_another_precision(embed: Callable[..., Run]) -> None:
    made = embed("run", (3,), "int8")
    path = made.part_path(3, 1)
    broken = np.ones((4, 32))
    broken[2, 9] = np.nan
    write_part(path, np.arange(4, 8), broken, "int8", digest_of(path) or "", heads=4)
    assert (
        verify(made, part_digest)
        .problems[0]
        .startswith("heads/stage=3/part-00001.parquet holds a number that is not finite, in document 6.")
    )
    write_part(path, np.arange(4, 8), np.ones((4, 32)), "float16", digest_of(path) or "")
    assert "part-00001.parquet" in verify(made, part_digest).problems[0]


def test_the_same_storage_again_is_up_to_date(embed: Callable[..., Run]) -> None:
    made = embed("run", (2,), "int8")
    before = made.part_path(2, 0).stat().st_mtime_ns
    assert embed("run", (2,), "int8").part_path(2, 0).stat().st_mtime_ns == before


def test_a_slim_run_that_was_broken_off_goes_on_and_is_the_same(
    embed: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = embed("whole", (1, 3), "int8")
    with monkeypatch.context() as patch:
        patch.setattr(part, "write_done", _after(1, part.write_done))
        with pytest.raises(KeyboardInterrupt):
            embed("broken", (1, 3), "int8")
    again = embed("broken", (1, 3), "int8")
    for stage in (1, 3):
        assert [a.read_bytes() for a in again.parts(stage)] == [b.read_bytes() for b in whole.parts(stage)]


def _after(count: int, write: Callable[..., Any]) -> Callable[..., Any]:
    """``write``, which stops the job when it is called once more than ``count`` times."""
    calls = iter(range(count))

    def called(*arguments: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return write(*arguments)

    return called


def test_a_document_left_out_closes_up_parts_of_int8(
    embed: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, whole = Tokens.encode, embed("whole", (3,), "int8")
    before = rows(whole, 3)

    def refuse(self: Tokens, texts: list[str], prompt: str) -> Any:
        if poison in texts:
            raise ValueError("a byte that has no token")
        return encode(self, texts, prompt)

    poison = whole.documents(["text"])["text"][2].as_py()
    monkeypatch.setattr(Tokens, "encode", refuse)
    found = embed("left", (3,), "int8", max_failures=1)
    assert found.manifest().corpus["documents"] == 9
    # Batches are others now, so that numbers differ by a rounding: a step of the largest number at most.
    assert np.abs(rows(found, 3) - np.delete(before, 2, axis=0)).max() <= np.abs(before).max() / 127 * 1.1
    assert verify(found, part_digest).problems == ()


def test_the_commands_say_how_a_run_is_stored(
    command: Callable[..., Outcome], write_corpus: Callable[..., Path], tiny_model: Path, tmp_path: Path,
    some_rows: Callable[..., list[dict[str, Any]]],
) -> None:  # fmt: skip
    cache = tmp_path / "cache"
    source = write_corpus([row | {"topic": ("a", "b")[number % 2]} for number, row in enumerate(some_rows(12))])
    given = ("run", "--cache", cache, "--source", source, "--model", tiny_model)
    made = command("embed", *given, "--stages", 3, "--store-dtype", "int8")
    assert made.status == 0, made.err
    assert "12 documents × 4 heads × 1 stage by tiny" in made.err
    assert "vectors of stage 3 as int8." in made.err
    assert "stage 3 as int8, 0.0 MB · " in command("status", "run", "--cache", cache).out
    told = json.loads(command("status", "run", "--cache", cache, "--json").out)[0]
    assert told["vectors"]["stages"] == [3]
    assert told["vector_bytes"] == Run(cache, "run").part_path(3, 0).stat().st_size
    refused = command("embed", *given)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "stage 3 as int8" in refused.err
    assert command("embed", *given, "--stages", 4).status == 2
    assert command("embed", *given, "--store-dtype", "int4").status == 2
    assert command("analyse", "run", "--cache", cache, "--model", tiny_model, "--quiet").status == 0
    report = command("report", "run", "--cache", cache).out
    assert "Vectors: stage 3 as int8, 0.0 MB of" in report
    wanted = "python -m precompute all run --source … --model … --store-dtype int8 --replace"
    assert f"A slim run: stages 1 and 2 are not stored; '{wanted}' adds them." in report
    assert json.loads(command("report", "run", "--cache", cache, "--json").out)["vectors"]["dtype"] == "int8"
