"""A run on disk: its folder, its manifest, its files."""
