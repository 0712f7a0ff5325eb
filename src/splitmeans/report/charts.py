"""Charts as SVG text: the map of segments, and the curves by which k is chosen.

Drawn here and not by a script: they are in the page for printing, for readers without scripts and
for screen readers, and no plotting library has to be shipped in every report.
"""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.figures import digits, fixed
from splitmeans.kmeans.distances import squared_distances
from splitmeans.report.data import MapInfo, ReportData, SegmentationInfo
from splitmeans.report.profiles import colour_of
from splitmeans.report.words import escape, heads, percent, table, users

_WIDTH, _HEIGHT, _MARGIN = 560, 420, 34
_LARGEST_NODE = 15.0
# The radius of a node that had all users: many small ones must not cover the map.
_ALL_USERS = 60.0
_LABEL, _SMALL_LABEL = 17.0, 13.0
# From this many segments on their letters are smaller, to hide fewer nodes.
_MANY = 7
# Nodes with less than this share of the shown users have no text of their own.
_TITLED = 0.004


def segment_map(data: ReportData, item: SegmentationInfo) -> str:
    """Return the map: nodes as circles by number of users, tied to their segment's letter."""
    place = _Scale(data.map, item)
    nodes = place.nodes
    centres = place.centres
    radius = _LABEL if item.k < _MANY else _SMALL_LABEL
    labels = _spread_out(centres, radius=radius)
    shares = np.array(data.map.users) / sum(data.map.users)
    largest = min(_LARGEST_NODE, _ALL_USERS * math.sqrt(shares.max()))
    radii = largest * np.sqrt(shares / shares.max())
    of_node = np.array(item.of_node)
    drawn = []
    for at, segment in enumerate(item.segments):
        mine = np.flatnonzero(of_node == at)
        if len(mine) == 0 and segment.size <= 0:
            continue
        x, y = centres[at]
        spokes = "".join(f"M{x:.0f} {y:.0f}L{nodes[i, 0]:.0f} {nodes[i, 1]:.0f}" for i in mine)
        circles = "".join(_node(data.map, int(i), nodes[i], radii[i], segment.letter) for i in mine)
        drawn.append(
            f'<g class="c{colour_of(segment.letter)}">'
            f'<path class="spoke" d="{spokes}"/>{circles}</g>'
        )
    for at, segment in enumerate(item.segments):
        (x, y), (lx, ly) = centres[at], labels[at]
        leader = f'<path class="leader" d="M{x:.0f} {y:.0f}L{lx:.0f} {ly:.0f}"/>'
        drawn.append(
            f'<g class="tag c{colour_of(segment.letter)}">{leader}'
            f'<circle cx="{lx:.0f}" cy="{ly:.0f}" r="{radius:.0f}"/>'
            f'<text x="{lx:.0f}" y="{ly:.0f}" font-size="{1.2 * radius:.0f}">'
            f"{escape(segment.letter)}</text></g>"
        )
    name, words = f"map{item.k}-name", f"map{item.k}-words"
    return (
        f'<svg class="map" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="{name} {words}"><title id="{name}">Map of {item.k} segments</title>'
        f'<desc id="{words}">{_map_words(item)}</desc>{"".join(drawn)}</svg>'
    )


def _map_words(item: SegmentationInfo) -> str:
    """Name for each segment the one nearest to it on the map."""
    if item.k < 2:
        return ""
    places = np.array([(segment.x, segment.y) for segment in item.segments])
    gaps = squared_distances(places, places)
    np.fill_diagonal(gaps, np.inf)
    nearest = gaps.argmin(axis=1)
    letters = [escape(segment.letter) for segment in item.segments]
    pairs = [f"{letters[at]} to {letters[other]}" for at, other in enumerate(nearest)]
    return f"Nearest on the map: {', '.join(pairs)}. The table below has all places."


def _node(info: MapInfo, i: int, place: FloatArray, radius: float, letter: str) -> str:
    circle = f'<circle cx="{place[0]:.0f}" cy="{place[1]:.0f}" r="{max(radius, 1.5):.1f}"'
    share = info.users[i] / sum(info.users)
    if share < _TITLED:
        return circle + "/>"
    text = f"about {users(info.users[i])} users, segment {escape(letter)}"
    return f"{circle}><title>{text}</title></circle>"


class _Scale:
    """From distance units to the drawing: one scale for both axes, so that distances are true."""

    def __init__(self, info: MapInfo, item: SegmentationInfo) -> None:
        nodes = np.column_stack([info.x, info.y])
        low, high = nodes.min(axis=0), nodes.max(axis=0)
        room = np.array([_WIDTH, _HEIGHT]) - 2 * _MARGIN
        self._factor = float((room / np.maximum(high - low, 1e-9)).min())
        self._middle = (low + high) / 2
        self.nodes = self._to_drawing(nodes)
        self.centres = self._to_drawing(
            np.array([(segment.x, segment.y) for segment in item.segments])
        )

    def _to_drawing(self, places: FloatArray) -> FloatArray:
        scaled = (places - self._middle) * self._factor * np.array([1.0, -1.0])
        return np.asarray(scaled + np.array([_WIDTH / 2, _HEIGHT / 2]))


def _spread_out(centres: FloatArray, *, radius: float) -> FloatArray:
    """Return places for letters near the centres that do not lie on each other."""
    places = centres.copy()
    # Equal places would have no direction to move apart in.
    turn = 2 * math.pi * np.arange(len(places)) / max(1, len(places))
    places += 0.5 * np.column_stack([np.cos(turn), np.sin(turn)])
    apart = 2 * radius + 3
    for _ in range(60):
        gaps = places[:, np.newaxis] - places
        distance = np.linalg.norm(gaps, axis=2)
        np.fill_diagonal(distance, np.inf)
        push = np.maximum(apart - distance, 0.0) / 2
        if not push.any():
            break
        places += (gaps / distance[:, :, np.newaxis] * push[:, :, np.newaxis]).sum(axis=1)
    edge = radius + 1
    return np.clip(places, edge, np.array([_WIDTH, _HEIGHT]) - edge)


def map_table(item: SegmentationInfo) -> str:
    """Return the places of segments on the map as a table."""
    rows = "".join(
        f'<tr><th scope="row">{escape(segment.letter)}</th><td>{percent(segment.share)}</td>'
        f"<td>{fixed(segment.x, 2)}</td><td>{fixed(segment.y, 2)}</td></tr>"
        for segment in item.segments
    )
    head = heads("Segment", "Share of users", "Across", "Up")
    return table(f"Places of {item.k} segments on the map", head=head, body=rows)


_CURVE_WIDTH, _CURVE_HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 30, 52


def curve(data: ReportData, which: str, *, title: str) -> str:
    """Return one measure against k, with a mark at the k that is shown.

    Args:
        data: The report.
        which: "silhouette" or "loss".
        title: What the chart is called.
    """
    ks = [item.k for item in data.segmentations]
    values = [float(getattr(item, which)) for item in data.segmentations]
    top = max(*values, 1e-9) * 1.08
    step = (_CURVE_WIDTH - _LEFT - _RIGHT) / max(1, len(ks) - 1)
    xs = [_LEFT + step * at for at in range(len(ks))]
    floor = _CURVE_HEIGHT - _BOTTOM
    ys = [floor - (floor - _TOP) * value / top for value in values]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    grid = "".join(_grid_line(at, top=top) for at in _round_steps(top))
    ticks = "".join(
        f'<text class="tick" x="{x:.1f}" y="{floor + 20}">{k}</text>'
        for x, k in zip(xs, ks, strict=True)
    )
    below = (
        f'<text class="tick" x="{(_LEFT + _CURVE_WIDTH - _RIGHT) / 2:.0f}" '
        f'y="{_CURVE_HEIGHT - 8}">number of segments</text>'
    )
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        for x, y in zip(xs, ys, strict=True)
    )
    marks = "".join(
        f'<g class="at" data-k="{item.k}"{"" if item.published else " hidden"}>'
        f'<path d="M{x:.1f} {_TOP}V{floor}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        f'<text x="{min(max(x, _LEFT + 20), _CURVE_WIDTH - 40):.1f}" y="{_TOP - 10}">'
        f"{digits(value, 3)}</text></g>"
        for item, x, y, value in zip(data.segmentations, xs, ys, values, strict=True)
    )
    name = f"curve-{which}"
    return (
        f'<svg class="curve" viewBox="0 0 {_CURVE_WIDTH} {_CURVE_HEIGHT}" role="img" '
        f'aria-labelledby="{name}"><title id="{name}">{escape(title)}, by number of segments; '
        f"the table below has the values</title>{grid}{ticks}{below}"
        f'<path class="line" d="M{line}"/>{dots}{marks}</svg>'
    )


def _round_steps(top: float) -> list[float]:
    """Return some round numbers from 0 up to `top`, seven at most."""
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0) if top / (unit * part) <= 6)
    return [step * number for number in range(int(top / step) + 1)]


def _grid_line(value: float, *, top: float) -> str:
    floor = _CURVE_HEIGHT - _BOTTOM
    y = floor - (floor - _TOP) * value / top
    return (
        f'<path class="grid" d="M{_LEFT} {y:.1f}H{_CURVE_WIDTH - _RIGHT}"/>'
        f'<text class="axis" x="{_LEFT - 8}" y="{y:.1f}">{value:.2g}</text>'
    )
