"""The step ``label``: every document gets a topic."""
