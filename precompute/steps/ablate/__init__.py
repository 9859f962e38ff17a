"""The step ``ablate``: what happens without a head."""
