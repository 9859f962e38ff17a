"""Scripts for the browser: the committed ones are what their sources build to; the map keeps no more than it needs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
BUILT = {
    "map": [f"pages/shared/components/{name}" for name in ("map.js", "map.css", "map_feed.js")],
    "plotly": [
        "frontend/plotly/bundled.json",
        *(f"pages/shared/plotly/{name}" for name in ("plotly.js", "many_points.js", "common.js", "LICENSES.txt")),
    ],
}


@pytest.mark.parametrize("part", BUILT)
def test_the_scripts_are_built_from_their_source(tmp_path: Path, part: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the bundle cannot be built again here")
    source, shared = tmp_path / "frontend" / part, "pages/shared/components/dom.js"
    shutil.copytree(ROOT / "frontend" / part, source, ignore=shutil.ignore_patterns("node_modules", "bundled.json"))
    (tmp_path / shared).parent.mkdir(parents=True)
    shutil.copy(ROOT / shared, tmp_path / shared)
    fetched = subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=source, capture_output=True, timeout=300)
    assert fetched.returncode == 0, fetched.stderr.decode()  # where Node is, nothing is left out
    subprocess.run([npm, "run", "build"], cwd=source, check=True, capture_output=True, timeout=120)
    for name in BUILT[part]:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), (
            f"{name} is not what frontend/{part} builds to: run 'make frontend' and commit it"
        )


def in_node(script: str) -> object:
    """What a script prints that loads the map's sources into a window without a page."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    source = (ROOT / "frontend" / "map" / "src").as_uri()
    opening = f'globalThis.window = {{}}; const load = (name) => import("{source}/" + name);\n'
    done = subprocess.run(
        [node, "--expose-gc", "--input-type=module", "--eval", opening + script], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_map_whose_element_is_gone_can_be_forgotten() -> None:
    found = in_node("""
        const { mount } = await load("mount.js");
        const hub = window.headscopeMap;
        const root = { isConnected: true };
        const seen = { received: 0, destroyed: 0 };
        const make = () => ({ root, receive: () => seen.received++, destroy: () => seen.destroyed++ });
        const element = {};
        const later = () => new Promise((done) => setTimeout(done, 700));
        hub.latest = {};
        mount(element, make);
        const listener = new WeakRef(hub.listener);
        mount(element, make)();  // a rerun
        await later();
        const kept = [Boolean(hub.listener), seen.destroyed];
        hub.listener({});
        root.isConnected = false;
        mount(element, make)();
        await later();
        globalThis.gc();
        await later();
        console.log(JSON.stringify({ kept, left: hub.listener ?? null, ...seen, alive: Boolean(listener.deref()) }));
    """)
    # It received at each of three mounts what was there, and once what came; the listener holds the map.
    assert found == {"kept": [True, 0], "left": None, "received": 4, "destroyed": 1, "alive": False}


def test_the_store_keeps_the_documents_of_the_last_runs_alone() -> None:
    found = in_node("""
        const { keep, mapOf } = await load("store.js");
        const table = (columns) => ({ getChild: (name) => Object.assign([...columns[name]], {
            toArray: () => Uint32Array.from(columns[name]), get: (at) => columns[name][at] }) });
        const documents = () => table({ doc: [0, 1], title: ["a", "b"] });
        const points = () => table({ x: [1, 2], y: [1, 2], activation: [1, 2] });
        const of = (run) => ({ base: run, key: `${run}/1`, columns: [] });
        const sent = (run) => keep({ ...of(run), documents: documents(), points: points() });
        ["a", "b", "c"].forEach(sent);
        mapOf(of("a"));  // looked at again: the one not looked at for longest goes
        keep({ ...of("d"), documents: documents(), points: points() });
        const drawn = Object.fromEntries(["a", "b", "c", "d"].map((run) => [run, Boolean(mapOf(of(run)))]));
        const { documents: kept, stages } = window.headscopeMap;
        console.log(JSON.stringify({ drawn, kept: [...kept.keys()].sort(), stages: [...stages.keys()].sort() }));
    """)
    assert found == {
        "drawn": {"a": True, "b": False, "c": True, "d": True},
        "kept": ["a", "c", "d"],
        "stages": ["a/1", "c/1", "d/1"],
    }
