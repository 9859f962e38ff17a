"""The step ``retrieve``: which heads find what people look for."""
