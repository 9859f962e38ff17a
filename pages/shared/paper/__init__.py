"""Figures for a paper: the scripts and fonts that make files of them in a browser, and their captions."""

from pathlib import Path

TYPES = {".js": "text/javascript", ".ttf": "font/ttf"}
FILES = {path.name: path for path in sorted(Path(__file__).parent.iterdir()) if path.suffix in TYPES}
"""What a browser needs, by name."""
