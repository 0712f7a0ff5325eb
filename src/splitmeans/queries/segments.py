"""The segment of every row in every replicate: who is near a border may be on its other side.

Places of rows are known to within bins and local clusters (`replicates/within_cells.py`), and a
segment is what is nearest to its centre. So a row's segment is looked up anew where the replicate
says that the row may be; otherwise segments would look more certain than their borders are.
Computed from published values: post-processing, at no cost to privacy.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.result.result import Result
from splitmeans.study.features import to_distance_units
from splitmeans.synopsis.column_places import column_places
from splitmeans.synopsis.replicates.replicates import Replicates


def replicate_segments(result: Result, replicates: Replicates) -> IntArray:
    """Return the position of the published segment of each row, shape (rows, R).

    There must be some segments.
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
