"""What only a simulation can say of a result, because it has all rows in one place.

None of it is private, and none of it may be published with a result: it is kept apart from both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.row_numbers import as_text
from splitmeans.party.labels import segment_probabilities
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.simulate.pooling import pooled_rows
from splitmeans.synopsis.clustering import Clustering
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable


@dataclass(frozen=True, kw_only=True)
class PartyYardstick:
    """One party, measured on rows.

    Attributes:
        party: Its name.
        labels_right: Share of users whose likeliest segment, from the party's own columns and the
            published grid, is the nearest one in all columns.
        alone_explains: How much of all differences between users as many segments explain that the
            party finds alone, in its own columns and without noise.
        alone_right: Share of users whom those put into the right common segment, each standing for
            the common one that it shares most users with.
    """

    party: str
    labels_right: float
    alone_explains: float
    alone_right: float


@dataclass(frozen=True, kw_only=True)
class Yardsticks:
    """A result, measured on rows.

    Attributes:
        users: Users at all parties, whose rows were joined.
        loss: Mean squared distance of a user to the nearest published centre.
        pooled_loss: The same of k-means on all columns in one place, without privacy.
        explained: How much of all differences between users the published segments explain.
        pooled_explained: The same of k-means on all columns in one place.
        parties: Each party.
    """

    users: int
    loss: float
    pooled_loss: float
    explained: float
    pooled_explained: float
    parties: tuple[PartyYardstick, ...]

    @property
    def ratio(self) -> float:
        """The loss against pooling everything; 1 is perfect."""
        return self.loss / self.pooled_loss if self.pooled_loss > 0 else float("inf")


def measure(
    tables: Sequence[PartyTable],
    synopsis: Synopsis,
    clustering: Clustering,
) -> Yardsticks:
    """Measure a result on the rows that it was made from; simulation only.

    Values that are not there are taken at the mean of their column.

    Tables are in the order of the study; there must be a segment.
    """
    rows, ids = pooled_rows(tables)
    # All are measured on the same rows, and k-means needs a value everywhere.
    rows = (
        np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows) if np.isnan(rows).any() else rows
    )
    rows, centres = synopsis.seen(rows), synopsis.seen(clustering.scaled_centres)
    k = len(centres)
    labels = assign_labels(rows, centres)
    spread = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
    pooled = normalised_loss(rows, central_kmeans(rows, k, random_state=0))
    loss = normalised_loss(rows, centres)
    found = []
    start = 0
    for table in tables:
        width = table.features_of(slice(0)).shape[1]
        own = rows[:, start : start + width]
        start += width
        alone = assign_labels(own, central_kmeans(own, k, random_state=0))
        found.append(
            PartyYardstick(
                party=table.party,
                labels_right=_labels_right(table, ids, labels, synopsis, clustering),
                alone_explains=1 - _within(rows, alone) / spread if spread else 0.0,
                alone_right=_right(alone, labels, k),
            )
        )
    return Yardsticks(
        users=len(rows),
        loss=loss,
        pooled_loss=pooled,
        explained=1 - loss / spread if spread else 0.0,
        pooled_explained=1 - pooled / spread if spread else 0.0,
        parties=tuple(found),
    )


def _labels_right(
    table: PartyTable,
    ids: pa.Array,
    labels: LabelArray,
    synopsis: Synopsis,
    clustering: Clustering,
) -> float:
    shares = segment_probabilities(table, synopsis, centres=clustering)
    places = pc.index_in(ids, value_set=as_text(table.ids)).to_numpy(zero_copy_only=False)
    return float((shares.argmax(axis=1)[places] == labels).mean())


def _within(rows: FloatArray, labels: LabelArray) -> float:
    """Return the mean squared distance of rows to the mean of their label."""
    left = 0.0
    for label in np.unique(labels):
        own = rows[labels == label]
        left += float(np.square(own - own.mean(axis=0)).sum())
    return left / len(rows)


def _right(alone: LabelArray, common: LabelArray, k: int) -> float:
    shared = np.zeros((k, k))
    np.add.at(shared, (alone, common), 1)
    return float(shared.max(axis=1).sum() / len(alone))
