"""Who may import whom: pages and precompute import core, core imports neither, and torch comes late."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "core": {"pages", "precompute", "streamlit", "app", "benchmarks", "tests"},
    "precompute": {"pages", "streamlit", "app", "benchmarks", "tests"},
    "pages": {"precompute", "app", "benchmarks", "tests"},
    "app.py": {"precompute", "benchmarks", "tests"},
    "tests": {"benchmarks"},
}
SECTIONS = ("pages.explore.", "pages.understand.", "pages.use.")
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
        if (bad := imported(ast.parse(path.read_text(encoding="utf-8"))) & FORBIDDEN[room])
    }
    assert wrong == {}


def test_the_reader_of_imports_sees_a_forbidden_one() -> None:
    late = ast.parse("def f():\n    import streamlit as st\n    from pages.shared import data")
    assert imported(late) == {"streamlit", "pages"}


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "pages"])
def test_no_module_loads_torch_when_it_is_imported(room: str) -> None:
    modules = [".".join(path.relative_to(PROJECT).with_suffix("").parts) for path in files(room)]
    modules = [name.removesuffix(".__init__") for name in modules if not name.startswith("pages.explore.overview.page")]
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
