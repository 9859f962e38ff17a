"""A person's mistake, told in a sentence with a remedy."""


class Mistake(Exception):
    """What was wrong, the value, and what to do, in one sentence; shown as it is, without a traceback."""


def listed(names: object) -> str:
    """Known names for the end of a sentence: ``a, b, c``."""
    return ", ".join(str(name) for name in names)  # type: ignore[attr-defined]
