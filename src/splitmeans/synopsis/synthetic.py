"""Synthetic rows drawn from a synopsis: what the published values say, in the shape of a table.

The draw uses released values only, so the rows are as private as the synopsis: post-processing.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.study.features import Feature, to_own_units
from splitmeans.study.parties import MISSING_LEVEL
from splitmeans.synopsis.round_values import as_written

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis


class _Place(NamedTuple):
    """Where a column is among its party's features; no levels mean a number."""

    name: str
    start: int
    levels: tuple[str, ...]

    @property
    def features(self) -> slice:
        return slice(self.start, self.start + max(1, len(self.levels)))


def draw_rows(synopsis: "Synopsis", n: int, *, rng: np.random.Generator) -> pa.Table:
    """Draw rows in own units; see `Synopsis.sample`. The synopsis must count some users."""
    # Every node as often as its weight says, up to one: less chance than drawing each row alone.
    nodes = rng.permutation(draw_evenly(synopsis.weights, n, rng=rng))
    names: list[str] = []
    arrays: list[Any] = []
    for position, party in enumerate(synopsis.party_names):
        places = _places(synopsis, position)
        names += [f"{party}: {place.name}" for place in places]
        arrays += _draw_party(synopsis, position, places=places, nodes=nodes, rng=rng)
    return pa.Table.from_arrays(arrays, names=names)


def _places(synopsis: "Synopsis", position: int) -> list[_Place]:
    if synopsis.columns is None:  # which features belong together is not known: all are numbers
        names = [feature.name for feature in synopsis.features[position]]
        return [_Place(name, start, ()) for start, name in enumerate(names)]
    places = []
    start = 0
    for column in synopsis.columns[position]:
        place = _Place(column.name, start, column.levels)
        places.append(place)
        start = place.features.stop
    return places


def _draw_party(
    synopsis: "Synopsis",
    position: int,
    *,
    places: list[_Place],
    nodes: IntArray,
    rng: np.random.Generator,
) -> list[Any]:
    """Return one Arrow array for each column of a party."""
    features = synopsis.features[position]
    columns = synopsis.columns_of(synopsis.party_names[position])
    own = to_own_units(features, synopsis.scaled_nodes[nodes, columns])
    arrays = []
    for place in places:
        if place.levels:
            drawn = _draw_categories(_shares(own[:, place.features]), rng=rng)
            # Who has no category in the data has none here.
            values = [None if level == MISSING_LEVEL else level for level in place.levels]
            arrays.append(pa.array(values, pa.string()).take(pa.array(drawn)))
        else:
            whole = columns.start + place.start in synopsis.whole_features
            arrays.append(_numbers(features[place.start], own[:, place.start], whole=whole))
    return arrays


def _numbers(feature: Feature, drawn: FloatArray, *, whole: bool) -> Any:
    """Return numbers as people write them, whole ones as such if the whole column is."""
    values = as_written(feature, np.ascontiguousarray(drawn), whole=whole)
    return pa.array(values.astype(np.int64) if whole else values)


def _shares(own: FloatArray) -> FloatArray:
    """Read a node's one-hot coordinates, shape (n, categories), as shares of the categories.

    In own units a coordinate is the share of its category among the node's users, up to noise.
    """
    shares = np.maximum(own, 0.0)
    sums = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1 / shares.shape[1])
    return np.asarray(np.divide(shares, sums, out=even, where=sums > 0))


def _draw_categories(shares: FloatArray, *, rng: np.random.Generator) -> IntArray:
    """Draw one position from each row of probabilities."""
    edges = np.cumsum(shares, axis=1)
    marks = rng.random((len(shares), 1)) * edges[:, -1:]
    # `<=` and not `<`: a mark on an edge, as 0 is, must not hit a category of share zero.
    drawn = np.sum(edges <= marks, axis=1)
    return np.asarray(np.minimum(drawn, shares.shape[1] - 1), dtype=np.int64)
