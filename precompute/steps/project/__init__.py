"""The step ``project``: maps."""
