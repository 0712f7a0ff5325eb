"""Numbers as people read them, the same in commands, notebooks, reports and csv files.

Never "-0": a number that is rounded to zero has no sign.
"""


def number(value: float) -> str:
    """Return a centre's value with the digits that fit a table."""
    return f"{value:z,.0f}" if abs(value) >= 100 else f"{value:z.3g}"


def fixed(value: float, decimals: int) -> str:
    """Return a number with a fixed number of decimals."""
    return f"{value:z,.{decimals}f}"


def digits(value: float, count: int) -> str:
    """Return a number with this many digits that count."""
    return f"{value:z.{count}g}"


def users(value: float) -> str:
    """Return a number of users."""
    return f"{value:z,.0f}"


def percent(share: float, decimals: int = 0, *, space: str = "") -> str:
    """Return a share in per cent."""
    return f"{100 * share:z.{decimals}f}{space}%"
