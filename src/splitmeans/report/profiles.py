"""Segments as HTML: a strip of shares, a card for each, sizes with intervals, and the heat map.

The heat map is a table with a value in every cell, so it needs no second form for screen readers.
Colour only repeats what numbers, words and arrows say.
"""

import itertools

from splitmeans.report.data import ColumnInfo, ReportData, SegmentationInfo, SegmentInfo
from splitmeans.report.words import (
    breakable,
    compared,
    escape,
    heads,
    interval_text,
    percent,
    step,
    table,
    users,
    value,
)

COLOURS = 12
# A bar of a profile is full at this many spreads from the mean.
_FULL_BAR = 2.0
_ARROWS = {3: "▲▲", 2: "▲", -2: "▼", -3: "▼▼"}


def colour_of(letter: str) -> int:
    """Return which of the page's colours belongs to a letter."""
    number = 0
    for character in letter:
        number = 26 * number + ord(character) - 64
    return (number - 1) % COLOURS


def chip(letter: str) -> str:
    """Return a segment's letter on its colour."""
    return f'<span class="chip c{colour_of(letter)}">{escape(letter)}</span>'


def strip(item: SegmentationInfo) -> str:
    """Return one bar that the segments divide by their sizes; the cards say the same in words."""
    parts = [
        f'<span class="c{colour_of(segment.letter)}" style="flex-grow:{segment.share:.4f}">'
        f"{escape(segment.letter) if segment.share >= 0.04 else ''}</span>"
        for segment in item.segments
    ]
    return f'<div class="strip" aria-hidden="true">{"".join(parts)}</div>'


def cards(item: SegmentationInfo, columns: tuple[ColumnInfo, ...]) -> str:
    """Return a card for each segment."""
    shown = "".join(_card(segment, columns, k=item.k) for segment in item.segments)
    return f'<ul class="cards">{shown}</ul>'


def _card(segment: SegmentInfo, columns: tuple[ColumnInfo, ...], *, k: int) -> str:
    heading = f"s{k}-{segment.letter}"
    name = f" <span>{escape(segment.name)}</span>" if segment.name else ""
    rows = "".join(_profile_row(segment, at, columns[at]) for at in segment.standing_out)
    about = ""
    if segment.interval is not None:
        about = f'<span class="range">95\u202f% interval {interval_text(segment.interval)}</span>'
    return (
        f'<li class="card"><h3 id="{heading}"><span class="sr">Segment </span>'
        f"{chip(segment.letter)}{name}</h3>"
        f'<p class="size"><strong>{percent(segment.share)}</strong> '
        f"{users(segment.size, segment.interval)} users{about}</p>"
        f'<ul class="profile" aria-labelledby="{heading}">{rows}</ul></li>'
    )


def _profile_row(segment: SegmentInfo, at: int, column: ColumnInfo) -> str:
    difference = segment.difference[at]
    width = 50 * min(abs(difference) / _FULL_BAR, 1.0)
    side = "above" if difference > 0 else "below"
    arrow = "▲" if difference > 0 else "▼"
    start = 50.0 if difference > 0 else 50 - width
    return (
        f'<li><span class="line"><span class="what">{breakable(column.label)} '
        f"<small>{escape(column.party)}</small></span> "
        f'<span class="value">{value(segment.centre[at], column)}</span></span>'
        f'<span class="line"><span class="track" aria-hidden="true"><i class="{side}" '
        f'style="left:{start:.1f}%;width:{width:.1f}%"></i></span>'
        f'<span class="mean"><span aria-hidden="true">{arrow} </span>{side} mean '
        f"{value(column.mean, column)}</span></span></li>"
    )


def size_table(item: SegmentationInfo) -> str:
    """Return sizes with their intervals, each with a bar on a common scale."""
    largest = max((segment.interval or (0.0, segment.size))[1] for segment in item.segments)
    rows = "".join(_size_row(segment, largest=max(largest, 1e-9)) for segment in item.segments)
    head = heads("Segment") + heads("Users", "Share", "95\u202f% interval", number=True)
    head += heads('<span class="sr">Bar</span>')
    return table(f"Sizes of {item.k} segments", head=head, body=rows, kind="sizes")


def _size_row(segment: SegmentInfo, *, largest: float) -> str:
    ends = segment.interval
    whisker = ""
    if ends is not None:
        left, right = (100 * end / largest for end in ends)
        whisker = f'<b style="left:{left:.2f}%;width:{right - left:.2f}%"></b>'
    width = 100 * segment.size / largest
    bar = f'<i class="c{colour_of(segment.letter)}" style="width:{width:.2f}%"></i>'
    name = f" {escape(segment.name)}" if segment.name else ""
    return (
        f'<tr><th scope="row">{chip(segment.letter)}{name}</th>'
        f'<td class="number">{users(segment.size, segment.interval)}</td>'
        f'<td class="number">{percent(segment.share)}</td>'
        f'<td class="number">{interval_text(segment.interval)}</td>'
        f'<td class="bar-cell"><span class="size-bar" aria-hidden="true">{bar}{whisker}</span></td>'
        "</tr>"
    )


def heat_map(data: ReportData, item: SegmentationInfo) -> str:
    """Return all columns of all parties against all segments."""
    letters = [f'<span class="sr">Segment </span>{chip(each.letter)}' for each in item.segments]
    head = heads("Column") + heads("Mean", *letters, number=True)
    width = 2 + item.k
    bodies = []
    numbered = list(enumerate(data.columns))
    for party, group in itertools.groupby(numbered, key=lambda entry: entry[1].party):
        rows = "".join(_heat_row(item, at, column) for at, column in group)
        bodies.append(
            f'<tbody><tr class="party"><th scope="rowgroup" colspan="{width}">{escape(party)}</th>'
            f"</tr>{rows}</tbody>"
        )
    caption = f"Centres of {item.k} segments in all columns"
    return table(caption, head=head, body="".join(bodies), kind="heat")


def _heat_row(item: SegmentationInfo, at: int, column: ColumnInfo) -> str:
    cells = []
    for segment in item.segments:
        size = step(segment.difference[at])
        arrow = _ARROWS.get(size, "")
        mark = f'<i aria-hidden="true">{arrow}</i>' if arrow else ""
        words = f'<span class="sr">, {compared(segment.difference[at])}</span>' if size else ""
        kind = f' class="h{"p" if size > 0 else "m"}{abs(size)}"' if size else ""
        cells.append(f"<td{kind}>{value(segment.centre[at], column)}{mark}{words}</td>")
    return (
        f'<tr><th scope="row">{breakable(column.label)}</th>'
        f"<td>{value(column.mean, column)}</td>{''.join(cells)}</tr>"
    )
