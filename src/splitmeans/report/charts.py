"""Places and sizes in the report's drawings: the map of segments, the curves by which k is chosen.

Templates draw them as SVG, and no script does: they are in the page for printing, for readers
without scripts and for screen readers, and no plotting library has to be in every report.
"""

import math
from typing import Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.figures import digits, users
from splitmeans.kmeans.distances import squared_distances
from splitmeans.report.data import MapInfo, ReportData, SegmentationInfo
from splitmeans.report.words import colour_of

# What is drawn against k.
MEASURES = ("silhouette", "loss")
_WIDTH, _HEIGHT, _MARGIN = 560, 420, 34
_LARGEST_NODE = 15.0
# The radius of a node that had all users: many small ones must not cover the map.
_ALL_USERS = 60.0
_LABEL, _SMALL_LABEL = 17, 13
# From this many segments on their letters are smaller, to hide fewer nodes.
_MANY = 7
# Nodes with less than this share of the shown users have no text of their own.
_TITLED = 0.004


def segment_map(data: ReportData, item: SegmentationInfo) -> dict[str, Any]:
    """Return the map: nodes as circles by number of users, tied to their segment's letter."""
    nodes, centres = _places(data.map, item)
    letter_radius = _LABEL if item.k < _MANY else _SMALL_LABEL
    labels = _spread_out(centres, radius=letter_radius)
    shares = np.array(data.map.users) / sum(data.map.users)
    largest = min(_LARGEST_NODE, _ALL_USERS * math.sqrt(shares.max()))
    radii = np.maximum(largest * np.sqrt(shares / shares.max()), 1.5)
    drawn = [
        {
            "at": at,
            "radius": f"{radius:.1f}",
            "users": users(number) if share >= _TITLED else "",
        }
        for at, radius, number, share in zip(
            _rounded(nodes), radii, data.map.users, shares, strict=True
        )
    ]
    segments = [
        {
            "at": at,
            "label_at": label_at,
            "letter": segment.letter,
            "colour": colour_of(segment.letter),
            "nodes": [node for node, of in zip(drawn, item.of_node, strict=True) if of == number],
        }
        for number, (segment, at, label_at) in enumerate(
            zip(item.segments, _rounded(centres), _rounded(labels), strict=True)
        )
    ]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "radius": letter_radius,
        "font_size": round(1.2 * letter_radius),
        "k": item.k,
        "nearest": _nearest(item),
        "segments": segments,
    }


def _nearest(item: SegmentationInfo) -> list[str]:
    """Name for each segment the one nearest to it on the map."""
    if item.k < 2:
        return []
    places = np.array([(segment.x, segment.y) for segment in item.segments])
    gaps = squared_distances(places, places)
    np.fill_diagonal(gaps, np.inf)
    letters = [segment.letter for segment in item.segments]
    return [f"{letters[at]} to {letters[to]}" for at, to in enumerate(gaps.argmin(axis=1))]


def _places(info: MapInfo, item: SegmentationInfo) -> tuple[FloatArray, FloatArray]:
    """Return nodes and centres in the drawing: one scale for both axes keeps distances true."""
    nodes = np.column_stack([info.x, info.y])
    centres = np.array([(segment.x, segment.y) for segment in item.segments])
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    size = np.array([_WIDTH, _HEIGHT])
    factor = float(((size - 2 * _MARGIN) / np.maximum(high - low, 1e-9)).min())

    def to_drawing(places: FloatArray) -> FloatArray:
        return np.asarray((places - (low + high) / 2) * factor * np.array([1.0, -1.0]) + size / 2)

    return to_drawing(nodes), to_drawing(centres)


def _rounded(places: FloatArray) -> list[list[int]]:
    rounded: list[list[int]] = np.rint(places).astype(int).tolist()
    return rounded


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


_CURVE_WIDTH, _CURVE_HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _FLOOR = 46, _CURVE_WIDTH - 16, 30, _CURVE_HEIGHT - 52


def curve(data: ReportData, what: str) -> dict[str, Any]:
    """Return one of the measures against k, with a mark at the k that is shown."""
    values = [float(getattr(item, what)) for item in data.segmentations]
    top = max(*values, 1e-9) * 1.08
    step = (_RIGHT - _LEFT) / max(1, len(values) - 1)
    points = [
        {
            "x": f"{(x := _LEFT + step * at):.1f}",
            "y": f"{_height(value, top):.1f}",
            "label_x": f"{min(max(x, _LEFT + 20), _CURVE_WIDTH - 40):.1f}",
            "k": item.k,
            "published": item.published,
            "value": digits(value, 3),
        }
        for at, (item, value) in enumerate(zip(data.segmentations, values, strict=True))
    ]
    return {
        "width": _CURVE_WIDTH,
        "height": _CURVE_HEIGHT,
        "left": _LEFT,
        "right": _RIGHT,
        "top": _TOP,
        "floor": _FLOOR,
        "what": what,
        "grid": [
            {"value": f"{value:.2g}", "y": f"{_height(value, top):.1f}"}
            for value in _round_steps(top)
        ],
        "points": points,
    }


def _height(value: float, top: float) -> float:
    return _FLOOR - (_FLOOR - _TOP) * value / top


def _round_steps(top: float) -> list[float]:
    """Return some round numbers from 0 up to `top`, seven at most."""
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0) if top / (unit * part) <= 6)
    return [step * number for number in range(int(top / step) + 1)]
