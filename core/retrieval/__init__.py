"""Ranking documents by heads, and choosing heads by what they find."""
