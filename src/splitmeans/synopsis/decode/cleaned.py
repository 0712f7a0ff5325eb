"""Tables whose sizes agree, and without cells that are noise.

Noisy tables contradict each other: least squares makes sizes of labels and totals agree. Cells
within the noise then become zero: a little weight spread over combinations that hold no user costs
k-means far more than the few users cut off, because those combinations lie far from every centre.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.synopsis.decode.counted import PairTables, without_noise
from splitmeans.synopsis.decode.pooling import Pooling

# So many clusters to a region on average: a region of two parties has some thirty cells. Of several
# hundred empty cells some stand out by chance, and far from everybody they can draw a centre.
_CLUSTERS_IN_A_REGION = 5.5


def agree(tables: PairTables, *, same_labels: bool) -> PairTables:
    """Return tables with one total, and where labels are the same in all, one size of each label.

    All cells have noise of the same size, so a sum over few cells counts more than one over many.
    """
    found = {pair: table.copy() for pair, table in tables.items()}
    total = total_of(found)
    for table in found.values():
        table += (total - table.sum()) / table.size
    if not same_labels:
        return found
    for party in range(1 + max(pair[1] for pair in found)):
        # Tables that hold the party, turned so that its labels are the rows; views, not copies.
        turned = [
            table if pair[0] == party else table.T for pair, table in found.items() if party in pair
        ]
        sizes = np.average(
            [table.sum(axis=1) for table in turned],
            axis=0,
            weights=[1 / table.shape[1] for table in turned],
        )
        for table in turned:
            # The shifts add up to zero, so sizes of the other party and the total stay.
            table += ((sizes - table.sum(axis=1)) / table.shape[1])[:, np.newaxis]
    return found


def total_of(tables: PairTables) -> float:
    """Return the users that all tables count, by least squares."""
    sums = [table.sum() for table in tables.values()]
    return float(np.average(sums, weights=[1 / table.size for table in tables.values()]))


def at_both(tables: PairTables) -> PairTables:
    """Return the cells of users who are at both parties."""
    return {pair: table[:-1, :-1].copy() for pair, table in tables.items()}


def cut_noise(
    tables: PairTables, *, deviation: float | None, regions: Sequence[IntArray] | None = None
) -> PairTables:
    """Return tables without cells that are noise, none negative, each with its own total.

    Args:
        tables: Noisy tables without bias.
        deviation: Standard deviation of the noise of a cell. If it is not known, negative cells are
            projected away.
        regions: The region of each label of each party; None takes all for one.
    """
    found = {}
    for (first, second), table in tables.items():
        blocks = None
        if regions is not None:
            rows, columns = regions[first], regions[second]
            blocks = rows[:, np.newaxis] * (columns.max() + 1) + columns
        found[first, second] = _cut(table, deviation, max(float(table.sum()), 0.0), blocks)
    return found


def with_one_total(tables: PairTables) -> PairTables:
    """Return tables scaled to the same total, as many users as they have on average."""
    total = float(np.mean([table.sum() for table in tables.values()]))
    return {pair: table * (total / float(table.sum())) for pair, table in tables.items()}


def regions_of(centres: Sequence[IntArray], pooling: Pooling) -> list[IntArray]:
    """Return the region of each label of each party.

    Neighbouring local clusters are a region: k-means on released centres.
    """
    found = []
    for party, own in enumerate(centres):
        places = own[: pooling.shape[party]].astype(np.float64)
        n_regions = max(1, round(len(places) / _CLUSTERS_IN_A_REGION))
        # Nothing is hidden by the starts, and the same centres have the same regions.
        rng = np.random.default_rng(0)
        middles = weighted_kmeans(places, np.ones(len(places)), n_clusters=n_regions, rng=rng)
        of_cluster = nearest_centres(places, middles).astype(np.int64)
        labels = pooling.labels_of(party, (party + 1) % len(centres))
        _, first = np.unique(labels, return_index=True)
        found.append(of_cluster[first])
    return found


def none_negative(tables: PairTables) -> PairTables:
    """Return tables with negative cells projected away, each with the same total."""
    return cut_noise(tables, deviation=None)


def _cut(
    table: FloatArray, deviation: float | None, total: float, regions: IntArray | None
) -> FloatArray:
    if deviation:
        left = without_noise(table, deviation=deviation, regions=regions)
        if left.sum() > 0:
            return np.asarray(left * (total / left.sum()))
    return project_to_simplex(table, total=total)
