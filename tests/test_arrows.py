"""Who may import whom: pages and precompute import core, core imports neither, and torch comes late.

``headscope`` is a front door, as ``app.py`` is: it may import all three, and nobody imports it.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "core": {"pages", "precompute", "streamlit", "app", "benchmarks", "tests", "headscope"},
    "precompute": {"pages", "streamlit", "app", "benchmarks", "tests", "headscope"},
    "pages": {"precompute", "app", "benchmarks", "tests", "headscope"},
    "app.py": {"precompute", "benchmarks", "tests", "headscope"},
    "headscope": {"streamlit", "app", "benchmarks", "tests"},
    **{f"tests/{room}": {"benchmarks"} for room in ("browser", "core", "pages", "precompute", "support")},
}
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "search": set(),
    "uploads": set(),
    "maps": set(),
    "runs": {"model.shape", "model.share_space", "model.stages", "search.index"},
    "remote": {"runs"},
    "analysis": {"model.shape", "model.share_space", "model.stages", "model.ledger", "runs.labels", "runs.tables"},
    "retrieval": {"model.shape", "model.share_space", "model.stages", "analysis", "runs.tables"},
}
"""Rooms of core, and what each may import of the others, whole or a module; core's own modules import no room."""
PROGRAM = PROJECT / "precompute" / "__main__.py"
"""Not imported by anybody: what ``python -m precompute`` starts, the program ``headscope`` under its older name."""
SECTIONS = ("pages.explore.", "pages.understand.", "pages.use.")
SHOWN = ("pages.explore.overview.page", "pages.explore.compare_runs.page")
"""Pages that compute something of the runs in this folder when they are imported."""
HEAVY = ("torch", "transformers", "sklearn", "datasets")


def imported(tree: ast.AST) -> set[str]:
    """The first parts of all names that are imported anywhere in a module, late imports included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the arrows"
            found.add((node.module or "").split(".")[0])
    return found


def files(room: str) -> list[Path]:
    path = PROJECT / room
    return [path] if path.suffix else sorted(path.rglob("*.py"))


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    assert files(room)
    wrong = {
        str(path.relative_to(PROJECT)): bad
        for path in files(room)
        if path != PROGRAM and (bad := imported(ast.parse(path.read_text(encoding="utf-8"))) & FORBIDDEN[room])
    }
    assert wrong == {}


def test_the_reader_of_imports_sees_a_forbidden_one() -> None:
    late = ast.parse("def f():\n    import streamlit as st\n    from pages.shared import data")
    assert imported(late) == {"streamlit", "pages"}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST, known: set[str]) -> set[str]:
    """The modules among ``known`` that a module imports, late imports included."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inner & known or {node.module}
    return names & known


def graph(*rooms: str) -> dict[str, set[str]]:
    paths = {module_name(path): path for room in rooms for path in files(room)}
    return {name: imports(ast.parse(path.read_text(encoding="utf-8")), set(paths)) for name, path in paths.items()}


def wrong_arrows(arrows: dict[str, set[str]]) -> set[str]:
    """``room.module -> room.module`` that ROOMS does not allow."""
    wrong = set()
    for module, others in arrows.items():
        room = module.split(".")[1] if "." in module else ""
        for other in others - {"core"}:
            there = other.split(".", 1)[1]
            own = there.split(".")[0] == room or there.split(".")[0] not in ROOMS
            if not own and not {there, there.split(".")[0]} & ROOMS.get(room, set()):
                wrong.add(f"{module} -> {other}")
    return wrong


def cycles(arrows: dict[str, set[str]]) -> list[str]:
    """Modules that import themselves by way of others."""
    left = dict(arrows)
    while ends := [name for name, others in left.items() if not others & left.keys()]:
        for name in ends:
            del left[name]
    while ends := [name for name in left if not any(name in others for others in left.values())]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_rooms_of_core_import_only_what_they_may() -> None:
    assert {path.name for path in (PROJECT / "core").iterdir() if (path / "__init__.py").is_file()} == set(ROOMS)
    assert wrong_arrows(graph("core")) == set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles(graph("core")) == []


def test_wrong_arrows_and_cycles_are_seen() -> None:
    assert wrong_arrows({"core.runs.a": {"core.model.shape", "core.errors", "core.maps.b"}}) == {
        "core.runs.a -> core.maps.b"
    }
    assert wrong_arrows({"core.settings": {"core.errors", "core.runs.a"}}) == {"core.settings -> core.runs.a"}
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
    late = ast.parse("def f():\n    from core.runs import run\n    from core.runs.files import replacing")
    assert imports(late, {"core.runs", "core.runs.run", "core.runs.files"}) == {"core.runs.run", "core.runs.files"}


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "pages", "headscope"])
def test_no_module_loads_torch_when_it_is_imported(room: str) -> None:
    modules = [name for name in map(module_name, files(room)) if name not in SHOWN]
    code = f"import sys; [__import__(name) for name in {modules!r}]; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_pages_never_import_each_other() -> None:
    """What two pages draw or say is in pages/shared/, which knows no page."""
    wrong = []
    for path in files("pages"):
        own = ".".join(path.relative_to(PROJECT).parts[:3])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if module.startswith(SECTIONS) and ".".join(module.split(".")[:3]) != own:
                wrong.append(f"{path.relative_to(PROJECT)}: {module}")
    assert wrong == []


def test_no_page_is_a_direct_child_of_pages() -> None:
    """Streamlit would serve it around app.py (FACTS: pages/*.py are discovered by Streamlit itself)."""
    assert list((PROJECT / "pages").glob("*.py")) == []


def test_a_class_name_occurs_once_in_the_product() -> None:
    names: dict[str, list[str]] = {}
    for room in ("core", "precompute", "pages", "headscope"):
        for path in files(room):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    names.setdefault(node.name, []).append(module_name(path))
    assert len(names) > 200
    assert {name: places for name, places in names.items() if len(places) > 1} == {}
