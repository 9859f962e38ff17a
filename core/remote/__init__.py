"""A cache in an object store, and the folder that mirrors it."""
