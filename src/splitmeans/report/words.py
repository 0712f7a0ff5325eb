"""Numbers and texts for people: digits that mean something, and nothing that HTML could misread."""

import html
import math

from splitmeans import figures
from splitmeans.intervals.sizes import WIDTH_95
from splitmeans.report.data import ColumnInfo, CostInfo

# From how many spreads on a segment's difference is shown as one, two and three steps.
STEPS = (0.25, 0.75, 1.5)
# Stands between a number and the sign for per cent.
THIN = "\u202f"
_WORDS = ("about average", "somewhat", "clearly", "far")


def escape(text: str) -> str:
    """Return text for HTML, in elements and in attributes."""
    return html.escape(text, quote=True)


def breakable(text: str) -> str:
    """Return a name for HTML that may be broken after an underscore."""
    return escape(text).replace("_", "_<wbr>")


def table(caption: str, *, head: str = "", top: str = "", body: str, kind: str = "") -> str:
    """Return a table that can be scrolled sideways on a narrow screen, by keyboard too.

    Args:
        caption: What the table is, for screen readers.
        head: Cells of the head, if it has one row.
        top: The whole head, if it has more.
        body: Rows, in one or more bodies if it starts with one.
        kind: Class of the table.
    """
    named = f' class="{kind}"' if kind else ""
    top = f"<thead><tr>{head}</tr></thead>" if head else top
    rows = body if body.startswith("<tbody") else f"<tbody>{body}</tbody>"
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Table: {escape(caption)}">'
        f'<table{named}><caption class="sr">{escape(caption)}</caption>{top}{rows}</table></div>'
    )


def heads(*names: str, number: bool = False) -> str:
    """Return cells for the head of a table."""
    kind = ' class="number"' if number else ""
    return "".join(f'<th scope="col"{kind}>{name}</th>' for name in names)


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


def cost(bound: CostInfo | None, *, none: str) -> str:
    """Return a bound as the privacy statement writes it."""
    if bound is None:
        return none
    if bound.delta == 0:
        return f"epsilon {bound.epsilon:.4g}"
    return f"epsilon {bound.epsilon:.4g}, delta {bound.delta:.3g}"


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
