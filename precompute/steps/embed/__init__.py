"""The step ``embed``: documents in, head vectors out."""
