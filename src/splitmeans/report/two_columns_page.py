"""The part of the report about two columns of different parties: a heat map of their cross table.

It is a table with share and interval in every cell, so it needs no second form for screen readers.
Colour only repeats what numbers, words and arrows say.
"""

import math

from splitmeans import figures
from splitmeans.insights.two_columns import MOST_LEVELS, PairCell, PairTable, TwoColumns
from splitmeans.report.words import (
    THIN,
    breakable,
    escape,
    heads,
    interval_text,
    percent,
    table,
    users,
)

# From this many times as many, or as few, a cell is marked twice.
_FAR = 2.0
# A cell that could be noise is shaded from this many times as many, or as few.
_SHADED = 1.25
_ARROWS = {3: "▲▲", 2: "▲", -2: "▼", -3: "▼▼"}
_WORDS = {
    3: "far more than independent columns would have",
    2: "more than independent columns would have",
    1: "more than independent columns would have, or noise",
    -1: "fewer than independent columns would have, or noise",
    -2: "fewer than independent columns would have",
    -3: "far fewer than independent columns would have",
}


def two_columns_section(found: TwoColumns | None) -> str:
    """Return the section; nothing with one party alone, and the reason where there is no table."""
    if found is None:
        return ""
    inside = "\n".join(_pair(one) for one in found.tables)
    text = _explained(found) if found.tables else f"<p>{escape(found.withheld)}</p>"
    return (
        '<section aria-labelledby="two-columns">\n'
        '<h2 id="two-columns">Two columns of different parties</h2>\n'
        f"{text}{_left_out(found)}\n{inside}\n</section>\n"
    )


def two_columns_link(found: TwoColumns | None) -> str:
    """Return the entry in the list of parts, if there is such a part."""
    return "" if found is None else '<li><a href="#two-columns">Two columns</a></li>\n'


def _explained(found: TwoColumns) -> str:
    pairs = "The pair that goes" if len(found.tables) == 1 else "The pairs that go"
    return (
        f'<p class="note">{pairs} together most, as far as the published grid can tell; it costs '
        "no privacy. A cell has its share of all users and its 95\u202f% interval. ▲ has more "
        "users than it would if the columns had nothing to do with each other, and ▼ fewer, by "
        "more than the interval allows for; ▲▲ has twice as many or more, ▼▼ half as many or "
        "fewer. A light shade without an arrow could be noise.</p>"
    )


def _left_out(found: TwoColumns) -> str:
    if not found.left_out:
        return ""
    columns = "column has" if found.left_out == 1 else "columns have"
    return (
        f'<p class="note">{found.left_out} {columns} more than {MOST_LEVELS} categories and were '
        "not tried; <code>splitmeans result table</code> shows any two columns.</p>"
    )


def _pair(found: PairTable) -> str:
    first, second = found.columns
    rows = "".join(
        f'<tr><th scope="row">{breakable(name)}</th>'
        + "".join(_cell(cell, total=found.total) for cell in cells)
        + "</tr>"
        for name, cells in zip(found.bins[0], found.cells, strict=True)
    )
    top = (
        f'<thead><tr><th rowspan="2" scope="col">{breakable(first)}</th>'
        f'<th colspan="{len(found.bins[1])}" scope="colgroup">{breakable(second)}</th></tr>'
        f"<tr>{heads(*(breakable(name) for name in found.bins[1]), number=True)}</tr></thead>"
    )
    caption = f"Share of users by {first} and {second}"
    return (
        f"<h3>{breakable(first)} and {breakable(second)}</h3>\n"
        f'<p class="note">Dependence {figures.fixed(found.dependence, 2)}: 0 is none and 1 '
        "complete (Cramér's V, less what noise adds to it).</p>\n"
        f"{table(caption, top=top, body=rows, kind='heat cross')}\n{_in_users(found)}"
    )


def _cell(cell: PairCell, *, total: float) -> str:
    size = cell_step(cell)
    arrow = _ARROWS.get(size, "")
    mark = f'<i aria-hidden="true">{arrow}</i>' if arrow else ""
    words = f'<span class="sr">, {_WORDS[size]}</span>' if size else ""
    kind = f' class="h{"p" if size > 0 else "m"}{abs(size)}"' if size else ""
    ends = share_interval(cell.low / total, min(cell.high / total, 1.0))
    return (
        f"<td{kind}>{percent(cell.users / total)}{mark}"
        f'<small><span class="sr">, 95\u202f% interval </span>{ends}</small>{words}</td>'
    )


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


def _in_users(found: PairTable) -> str:
    rows = "".join(
        f'<tr><th scope="row">{breakable(one)}</th><th scope="row">{breakable(other)}</th>'
        f'<td class="number">{users(cell.users, (cell.low, cell.high))}</td>'
        f'<td class="number">{interval_text((cell.low, cell.high))}</td>'
        f'<td class="number">{users(cell.independent)}</td></tr>'
        for one, cells in zip(found.bins[0], found.cells, strict=True)
        for other, cell in zip(found.bins[1], cells, strict=True)
    )
    head = heads(*(breakable(name) for name in found.columns)) + heads(
        "Users", "95\u202f% interval", "If independent", number=True
    )
    caption = f"Users by {found.columns[0]} and {found.columns[1]}"
    return f"<details><summary>In users</summary>{table(caption, head=head, body=rows)}</details>"
