"""The step ``search``: the full-text index."""
