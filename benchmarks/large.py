"""The app on 1,000,000 documents against 10,000 of the same kind: ``python -m benchmarks.large``.

The first page is timed in fresh processes, the two runs in turn, from the script's first line to its last; imports that
do not depend on the run come before the clock. One process then walks through all pages, searches, and says how much
memory it holds. Ends with status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.app_run import add_cache
from benchmarks.large_run import large_run, name_of, words
from benchmarks.result import Result

ROOT = Path(__file__).resolve().parent.parent
SMALL, LARGE = 10_000, 1_000_000
MOST_RATIO, MOST_SEARCH_MS, MOST_MB = 1.5, 200, 2_000
PAGES: dict[str, list[dict[str, str]]] = {
    "explore/overview": [{}, {"doc": "7"}],
    "explore/head_map": [{}, {"stage": "2"}, {"stage": "3", "doc": "8"}, {"area": "1_0.0_5000.0_5000.5000_0.5000"}],
    "explore/heat_map": [{}, {"stage": "2"}, {"stage": "3", "doc": "7", "head": "2"}, {"block": "1"}],
    "explore/head_profile": [{}, {"stage": "2", "head": "3"}, {"stage": "3", "view": "gallery"}],
    "understand/stages": [{}, {"doc": "7"}],
    "understand/topics": [{}, {"stage": "2"}, {"stage": "3"}],
    "understand/layers": [{}],
    "understand/attention": [{}],
    "use/your_document": [{}],
    "use/retrieval_lab": [{}, {"stage": "2", "query": "8"}, {"stage": "3"}],
}


def resident() -> float:
    """MB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def searched_for() -> dict[str, str]:
    """Words of the generated language, from the commonest to the rarest."""
    known = [str(word) for word in words()]
    return {
        "the commonest word": known[0],
        "a common word": known[10],
        "a rare word": known[5_000],
        "the beginning of a word": known[200][:3],
        "the commonest word's beginning": known[0][:3],
        "two common words": f"{known[0]} {known[1]}",
        "a common and a rare word": f"{known[2]} {known[4_000]}",
        "words joined by dashes": f"{known[10]}-{known[20]}",
        "no word": "nowhereatall",
    }


def first_page(run: str) -> float:
    """Seconds, in this process, that has shown nothing yet."""
    from streamlit.testing.v1 import AppTest

    import pages.explore.overview.report  # noqa: F401

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.query_params["run"] = run
    began = time.perf_counter()
    app.run()
    seconds = time.perf_counter() - began
    _sound(app, "the first page")
    return seconds


def walk(run: str) -> dict[str, Any]:
    """All pages and searches in one process: seconds of each view, milliseconds of each search, MB at the end."""
    from streamlit.testing.v1 import AppTest

    from pages.shared.corpus import pairs, place, vote_weights, yardstick
    from pages.shared.data import neighbours, run_state, search

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.query_params["run"] = run
    app.run()
    found: dict[str, Any] = {"pages": {}, "memory": {}, "search": {}}
    for page, views in PAGES.items():
        app.switch_page(f"pages/{page}/page.py")
        for view in views:
            for name in list(app.query_params):
                del app.query_params[name]
            for name, value in ({"run": run} | view).items():
                app.query_params[name] = value
            began = time.perf_counter()
            app.run()
            found["pages"][f"{page} {view or ''}".strip()] = time.perf_counter() - began
            _sound(app, page)
        found["memory"][page] = resident()
    state = run_state(run)
    assert state.manifest is not None
    for stage in state.manifest.stages:  # what pages read once somebody asks: neighbours, a document of one's own
        began = time.perf_counter()
        neighbours(state, stage, 0, 7, 6)
        found["pages"][f"nearest documents, stage {stage}"] = time.perf_counter() - began
        began = time.perf_counter()
        vectors = state.run.document_vectors(stage, 7).reshape(state.manifest.shape.heads, -1)
        _ = yardstick(state, stage), vote_weights(state, stage), pairs(state, stage), place(state, stage, vectors)
        found["pages"][f"what a document is held against, stage {stage}"] = time.perf_counter() - began
    for what, text in searched_for().items():
        times = []
        for turn in range(5):
            began = time.perf_counter()
            docs = search(state, " " * turn + text).docs  # spaces: the answer before is not the answer now
            times.append(1_000 * (time.perf_counter() - began))
        found["search"][what] = {"ms": statistics.median(times), "first": times[0], "documents": len(docs)}
    found["memory"]["all"] = resident()
    return found


def _sound(app: Any, what: str) -> None:
    if app.exception or app.error:
        raise SystemExit(f"{what} has an error: {(app.exception or app.error)[0].value}")


def _apart(cache: Path, what: str, documents: int) -> Any:
    command = [sys.executable, "-m", "benchmarks.large", "--do", what, "--run", name_of(documents)]
    environment = {**os.environ, "HEADSCOPE_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(cache: Path, turns: int, small: int, large: int) -> list[Result]:
    for documents in (small, large):
        large_run(cache, documents)
    firsts: dict[int, list[float]] = {small: [], large: []}
    for _ in range(turns):
        for documents, seen in firsts.items():
            seen.append(_apart(cache, "first", documents))
    small_s, large_s = (statistics.median(firsts[documents]) for documents in (small, large))
    walked = _apart(cache, "walk", large)
    for name, seconds in walked["pages"].items():
        print(f"        {name:60}{seconds:8.2f} s")
    for name, value in walked["memory"].items():
        print(f"        memory after {name:47}{value:8,.0f} MB")
    results = [
        Result(
            f"first page, {large:,} against {small:,}",
            f"{large_s / small_s:.2f} × ({large_s:.2f} s, {small_s:.2f} s)",
            f"≤ {MOST_RATIO} ×",
            large_s / small_s <= MOST_RATIO,
        )
    ]
    for what, told in walked["search"].items():
        measured = f"{told['ms']:.0f} ms ({told['first']:.0f} at first, {told['documents']:,} documents)"
        results.append(
            Result(
                f"search: {what}", measured, f"≤ {MOST_SEARCH_MS} ms", max(told["ms"], told["first"]) <= MOST_SEARCH_MS
            )
        )
    memory = walked["memory"]["all"]
    results.append(Result("memory after all pages", f"{memory:,.0f} MB", f"≤ {MOST_MB:,} MB", memory <= MOST_MB))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=5, help="first pages of each run")
    parser.add_argument("--small", type=int, default=SMALL)
    parser.add_argument("--large", type=int, default=LARGE)
    add_cache(parser)
    parser.add_argument("--do", choices=("first", "walk"), help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do:
        print(json.dumps(first_page(options.run) if options.do == "first" else walk(options.run)))
        return
    results = measure(options.cache, options.turns, options.small, options.large)
    for result in results:
        print(f"{'reached' if result.reached else 'MISSED':8}{result.what:44}{result.measured:52}{result.target}")
    print("PASS" if all(result.reached for result in results) else "MISSED")
    sys.exit(0 if all(result.reached for result in results) else 1)


if __name__ == "__main__":
    main()
