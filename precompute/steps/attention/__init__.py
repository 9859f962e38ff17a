"""The step ``attention``: what heads look at."""
