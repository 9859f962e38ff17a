"""The step ``analyse``: the study's tables."""
