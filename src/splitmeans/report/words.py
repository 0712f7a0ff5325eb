"""Numbers and texts of the report for people: digits that mean something, and sizes in words."""

import math

from splitmeans import figures
from splitmeans.insights.drift import Change
from splitmeans.insights.two_columns import PairCell
from splitmeans.intervals.sizes import WIDTH_95
from splitmeans.report.data import ColumnInfo

# From how many spreads on a segment's difference is shown as one, two and three steps.
STEPS = (0.25, 0.75, 1.5)
# Stands between a number and the sign for per cent.
THIN = "\u202f"
INTERVAL = f"95{THIN}% interval"
# How many colours the page has for segments.
COLOURS = 12
# From this many times as many, or as few, a cell of a cross table is marked twice.
_FAR = 2.0
# A cell that could be noise is shaded from this many times as many, or as few.
_SHADED = 1.25
_WORDS = ("about average", "somewhat", "clearly", "far")


def value(number: float, column: ColumnInfo) -> str:
    """Return a value of a column: shares in per cent, numbers to about 1/200 of their range."""
    if column.category is not None:
        return figures.percent(number, space=THIN)
    span = column.high - column.low
    if not 1e-6 <= span < 1e9:
        return figures.digits(number, 4)
    return figures.fixed(number, max(0, 2 - math.floor(math.log10(span / 2))))


def users(number: float, ends: tuple[float, float] | None = None) -> str:
    """Return a number of users, rounded to one digit of its deviation if its interval is known."""
    deviation = 0.0 if ends is None else (ends[1] - ends[0]) / 2 / WIDTH_95
    if deviation < 1:
        return figures.users(number)
    unit = 10 ** math.floor(math.log10(deviation))
    return figures.users(round(number / unit) * unit)


def interval_text(ends: tuple[float, float] | None) -> str:
    """Return an interval of users in words; rounding never makes it shorter."""
    if ends is None:
        return "not known"
    deviation = (ends[1] - ends[0]) / 2 / WIDTH_95
    unit = 10 ** math.floor(math.log10(deviation)) if deviation >= 1 else 1
    low, high = math.floor(ends[0] / unit) * unit, math.ceil(ends[1] / unit) * unit
    return f"{figures.users(low)} to {figures.users(high)}"


def percent(share: float) -> str:
    """Return a share of all users."""
    return figures.percent(share, 0 if share >= 0.095 else 1, space=THIN)


def step(difference: float) -> int:
    """Return -3 to 3: how far a difference is from none, and which way."""
    size = sum(abs(difference) >= limit for limit in STEPS)
    return size if difference > 0 else -size


def compared(difference: float) -> str:
    """Return a difference from the mean in words."""
    size = step(difference)
    if size == 0:
        return _WORDS[0]
    return f"{_WORDS[abs(size)]} {'above' if size > 0 else 'below'}"


def change(one: Change, *, share: bool = False) -> str:
    """Return a change with its interval; of a share in per cent of all users."""
    scale, form, unit = (100.0, "+.1f", f"{THIN}%") if share else (1.0, "+,.0f", "")
    text = f"{one.change * scale:{form}}{unit}"
    if one.low is None or one.high is None:
        return text
    return f"{text} ({one.low * scale:{form}} to {one.high * scale:{form}})"


def share_interval(low: float, high: float) -> str:
    """Return an interval of shares in words; rounding never makes it shorter."""
    places, unit = (0, 100) if high >= 0.095 else (1, 1000)
    # A rounding error above a whole number is none.
    lower, upper = math.floor(low * unit + 1e-9) / unit, math.ceil(high * unit - 1e-9) / unit
    shown = [figures.percent(end, places, space=THIN) for end in (lower, upper)]
    return " to ".join(shown)


def cell_step(cell: PairCell) -> int:
    """Return -3 to 3: how far a cell is from independence, and which way; 2 and 3 are no noise."""
    more = cell.users > cell.independent
    larger, smaller = max(cell.users, cell.independent), min(cell.users, cell.independent)
    if cell.told:
        size = 3 if larger >= _FAR * smaller else 2
    else:
        size = int(larger > 0 and larger >= _SHADED * smaller)
    return size if more else -size


def colour_of(letter: str) -> int:
    """Return which of the page's colours belongs to a letter."""
    number = 0
    for character in letter:
        number = 26 * number + ord(character) - 64
    return (number - 1) % COLOURS
