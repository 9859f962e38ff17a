"""The step ``slim``: the vectors of a sample."""
