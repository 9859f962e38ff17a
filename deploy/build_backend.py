"""What ``pip install -e .`` calls: setuptools, for an editable installation only.

An installed copy would put packages named ``core`` and ``pages`` into site-packages, in other packages' way.
"""

from __future__ import annotations

from typing import Any, NoReturn

from setuptools import build_meta

build_editable = build_meta.build_editable
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel


def build_wheel(*_: Any, **__: Any) -> NoReturn:
    """Refused."""
    raise SystemExit("Headscope is installed from its clone: run 'pip install -e .' there. There is no wheel.")


build_sdist = build_wheel
