"""The tables that SQL sees: `synopsis`, a row for each pseudo-user, and `segments`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.result.result import Result
from splitmeans.study.features import to_distance_units
from splitmeans.study.parties import MISSING_LEVEL
from splitmeans.synopsis.column_places import ColumnPlace, column_places
from splitmeans.synopsis.replicates.replicates import Replicates
from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of a synopsis, ready to be handed to SQL with any weights.

    Values are Arrow arrays; categories as text, whole numbers as such.
    """

    places: tuple[ColumnPlace, ...]
    columns: dict[str, Any]
    segments: Any

    def table(
        self,
        weights: FloatArray,
        moved: dict[str, FloatArray] | None = None,
        segments: Any = None,
    ) -> pa.Table:
        """Return the table `synopsis`.

        `moved` has values in place of the published ones, by column, and `segments` letters.
        """
        instead = {
            name: pa.array(own).cast(self.columns[name].type) for name, own in (moved or {}).items()
        }
        return pa.table(
            {
                "weight": pa.array(np.ascontiguousarray(weights)),
                "segment": self.segments if segments is None else segments,
                **{name: instead.get(name, own) for name, own in self.columns.items()},
            }
        )


def rows_of(result: Result, synopsis: Synopsis) -> Rows:
    """Return the rows of a synopsis, each with the letter of its published segment."""
    places = column_places(synopsis)
    nodes = synopsis.nodes
    columns = {}
    for place in places:
        if not place.levels:
            own = np.ascontiguousarray(nodes[:, place.feature])
            columns[place.name] = pa.array(own.astype(np.int64) if place.whole else own)
            continue
        # Who has no category in the data has none here.
        levels = [None if level == MISSING_LEVEL else level for level in place.levels]
        likeliest = nodes[:, place.features].argmax(axis=1)
        columns[place.name] = pa.array(levels, pa.string()).take(pa.array(likeliest))
    return Rows(places=places, columns=columns, segments=_letters(result, synopsis))


def segment_table(result: Result) -> pa.Table:
    """Return the table `segments`: letter, name, size with interval, and the centre."""
    item = result.published
    ends = result.size_intervals()
    nothing = [None] * item.k
    return pa.table(
        {
            "segment": pa.array(item.letters, pa.string()),
            "name": pa.array([result.names.get(one) for one in item.letters], pa.string()),
            "size": pa.array(item.sizes),
            "size low": pa.array(nothing if ends is None else ends.low, pa.float64()),
            "size high": pa.array(nothing if ends is None else ends.high, pa.float64()),
            **{
                name: pa.array(np.ascontiguousarray(own))
                for name, own in zip(result.synopsis.feature_names, item.centres.T, strict=True)
            },
        }
    )


def _letters(result: Result, synopsis: Synopsis) -> Any:
    item = result.published
    if item.k == 0:
        return pa.nulls(len(synopsis.weights), pa.string())
    nearest: IntArray = nearest_centres(
        np.ascontiguousarray(synopsis.seen(synopsis.scaled_nodes)),
        np.ascontiguousarray(synopsis.seen(item.scaled_centres)),
    ).astype(np.int64)
    return pa.array(item.letters, pa.string()).take(pa.array(nearest))


def replicate_segments(result: Result, replicates: Replicates) -> IntArray:
    """Return the position of the published segment of each row, shape (rows, R).

    Places of rows are known to within bins and local clusters (`replicates/within_cells.py`), and a
    row near a border may be on its other side. So its segment is looked up again where the
    replicate says that the row may be; otherwise segments would look more certain than their
    borders are. There must be some segments.
    """
    synopsis = replicates.synopsis
    centres = synopsis.seen(result.published.scaled_centres)
    features = tuple(feature for group in synopsis.features for feature in group)
    seen = synopsis.seen(synopsis.scaled_nodes)
    shape = (len(seen), replicates.n, len(centres))
    distances = np.zeros(shape, dtype=np.float32)
    for place in column_places(synopsis):
        if place.levels:
            own = seen[:, np.newaxis, place.features] - centres[:, place.features]
            distances += np.square(own).sum(axis=2, dtype=np.float32)[:, np.newaxis, :]
            continue
        at = slice(place.feature, place.feature + 1)
        moved = to_distance_units(
            (features[place.feature],), replicates.values(place.name)[..., None]
        )
        moved = synopsis.seen(moved, at)[..., 0]
        for segment, middle in enumerate(centres[:, place.feature]):
            distances[:, :, segment] += np.square(moved - middle)
    return np.asarray(distances.argmin(axis=2), dtype=np.int64)
