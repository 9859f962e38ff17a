"""Which versions of the libraries made a run."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from core import VERSION

_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")


def versions() -> dict[str, str]:
    found = {"headscope": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
