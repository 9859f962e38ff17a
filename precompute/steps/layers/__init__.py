"""The step ``layers``: where in depth the structure is."""
