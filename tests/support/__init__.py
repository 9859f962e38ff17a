"""What tests share: fixtures, fakes, and planted and synthetic runs."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
