"""The synopsis: a weighted grid of pseudo-points that stands for all users (paper, section 3.4).

Its nodes are in combinations of the parties' local clusters, at their centres or at released points
of them, its weights the estimated number of users near each. It is made from released messages
only. Differential privacy survives post-processing: whatever is computed from released values,
without going back to the rows, tells no more about a user than those values did. So clustering for
any k, choosing k, estimating a loss, drawing synthetic rows, saving and publishing all cost
nothing, however often they are done.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import nearest_distance
from splitmeans.study import Column
from splitmeans.study.coding import level_features
from splitmeans.study.features import Feature, to_distance_units
from splitmeans.synopsis.checks import check_synopsis
from splitmeans.synopsis.choose_k import ChooseK, choose_k, even_spread, measure_fit
from splitmeans.synopsis.clustering import Clustering, cluster_nodes
from splitmeans.synopsis.file import read_synopsis, write_synopsis
from splitmeans.synopsis.precision import Precision
from splitmeans.synopsis.round_values import whole_features, written_nodes
from splitmeans.synopsis.synthetic import draw_rows

if TYPE_CHECKING:
    from splitmeans.synopsis.queries.answers import Correlation, CrossTable
    from splitmeans.synopsis.queries.tables import Bins
    from splitmeans.synopsis.replicates.replicates import Replicates


class LossEstimate(NamedTuple):
    """An estimated loss in distance units, and its standard error if that is known."""

    value: float
    standard_error: float | None


# What a file that is no synopsis may raise.
_UNREADABLE = (pa.ArrowException, AttributeError, LookupError, TypeError, OverflowError, ValueError)


@dataclass(frozen=True, kw_only=True, eq=False)
class Synopsis:
    """Weighted pseudo-points over the columns of all parties.

    Attributes:
        scaled_nodes: Pseudo-points in distance units, shape (nodes, D): pseudo-users where the
            parties' local algorithm tells how users lie, else one for each cell, at its centres.
        weights: Estimated users at each, zero or more, shape (nodes,).
        party_names: Names of the parties, in column order.
        features: The features of each party; D in all.
        columns: The columns of each party, from which the features were made; they tell which
            features are the categories of one column.
        labels: The local cluster of each node at each party, shape (nodes, S).
        centres: The local centres of each party in distance units, each of shape (k'_l, d_l); goes
            with `labels`.
        weight_deviation: Standard deviation of the noise in each weight, where known.
        stretch: By how much every feature counts more in distances than its bounds say, shape (D,);
            None if all count so. Distances of segments are between stretched points (`seen`).
        precision: How noisy cells are and how finely columns are known; None where that is not
            known, and then there are no `replicates`.
    """

    scaled_nodes: FloatArray
    weights: FloatArray
    party_names: tuple[str, ...]
    features: tuple[tuple[Feature, ...], ...]
    columns: tuple[tuple[Column, ...], ...] | None = None
    labels: LabelArray | None = None
    centres: tuple[FloatArray, ...] | None = None
    weight_deviation: float | None = None
    stretch: FloatArray | None = None
    precision: Precision | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "party_names", tuple(self.party_names))
        object.__setattr__(self, "features", tuple(tuple(group) for group in self.features))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(tuple(group) for group in self.columns))
        if self.labels is not None:
            labels = np.ascontiguousarray(self.labels, dtype=np.int32)
            object.__setattr__(self, "labels", labels)
        if self.centres is not None:
            centres = tuple(np.asarray(item, dtype=np.float64) for item in self.centres)
            object.__setattr__(self, "centres", centres)
        check_synopsis(self)

    def __repr__(self) -> str:
        size = f"{len(self.weights):,} nodes, about {self.total:,.0f} users"
        return f"<Synopsis {size}, {self.n_columns} columns of {len(self.features)} parties>"

    @property
    def n_columns(self) -> int:
        """How many columns, as people count them: one with categories is one."""
        return sum(len(group) for group in self.columns or self.features)

    @property
    def _all_features(self) -> tuple[Feature, ...]:
        return tuple(feature for group in self.features for feature in group)

    @functools.cached_property
    def whole_features(self) -> frozenset[int]:
        """Which of the D features are whole numbers, as far as published values tell."""
        return whole_features(self)

    @property
    def nodes(self) -> FloatArray:
        """Pseudo-points in the columns' own units, as people write them, shape (nodes, D)."""
        return written_nodes(self, whole=self.whole_features)

    @property
    def level_features(self) -> tuple[slice, ...]:
        """Which of the D features are the levels of one column, for each column of categories."""
        return level_features([column for group in self.columns or () for column in group])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the D columns, as "party: column"."""
        return tuple(
            f"{party}: {feature.name}"
            for party, group in zip(self.party_names, self.features, strict=True)
            for feature in group
        )

    @property
    def total(self) -> float:
        """Estimated number of users."""
        return float(self.weights.sum())

    def seen(self, points: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Return points in distance units, with these columns, as the final k-means sees them."""
        return points if self.stretch is None else points * self.stretch[columns]

    def columns_of(self, party: str) -> slice:
        """Return which of the D columns are this party's."""
        position = self._position(party)
        start = sum(len(group) for group in self.features[:position])
        return slice(start, start + len(self.features[position]))

    def labels_of(self, party: str) -> LabelArray:
        """Return the local cluster of each node at this party, shape (nodes,)."""
        if self.labels is None:
            raise ParameterError("this synopsis does not say which node has which local cluster")
        return self.labels[:, self._position(party)]

    def local_centres(self, party: str) -> FloatArray:
        """Return the party's local centres in distance units, shape (k', d_l)."""
        if self.centres is None:
            raise ParameterError("this synopsis does not say where local clusters are")
        return self.centres[self._position(party)]

    @property
    def has_places(self) -> bool:
        """Whether nodes are pseudo-users, not the combined centres of whole cells."""
        if self.centres is None or self.labels is None:
            return False
        parts = [own[label] for own, label in zip(self.centres, self.labels.T, strict=True)]
        return not np.array_equal(np.concatenate(parts, axis=1), self.scaled_nodes)

    def _position(self, party: str) -> int:
        if party not in self.party_names:
            listed = ", ".join(self.party_names)
            raise ParameterError(f"party must be one of {listed}, got {party!r}")
        return self.party_names.index(party)

    def cluster(
        self, k: int, *, random_state: int | np.random.Generator | None = None
    ) -> Clustering:
        """Find k segments on the weighted nodes; any k and any number of calls cost no privacy.

        Args:
            k: How many, largest first; fewer are found if fewer places have users.
            random_state: Seeds the starting centres.
        """
        _validate.at_least(1, k=k)
        rng = np.random.default_rng(random_state)
        return cluster_nodes(
            self.scaled_nodes,
            self.weights,
            self._all_features,
            k=k,
            rng=rng,
            stretch=self.stretch,
        )

    def choose_k(
        self,
        ks: Iterable[int] = range(2, 16),
        *,
        random_state: int | np.random.Generator | None = None,
    ) -> ChooseK:
        """Compare numbers of clusters; costs no privacy, whatever the range.

        Args:
            ks: Numbers of clusters to try, each at least 2.
            random_state: Seeds the starting centres.
        """
        rng = np.random.default_rng(random_state)
        return choose_k(
            self.seen(self.scaled_nodes),
            self.weights,
            ks=ks,
            rng=rng,
            node_spread=self._guessed_spread(),
        )

    def fit_of(self, scaled_centres: FloatArray) -> tuple[float, float]:
        """Return loss and simplified silhouette of centres, as `choose_k` measures them."""
        return measure_fit(
            self.seen(self.scaled_nodes),
            self.weights,
            self.seen(scaled_centres),
            node_spread=self._guessed_spread(),
        )

    def _guessed_spread(self) -> FloatArray | None:
        """Guess how far users are from bare nodes; pseudo-users are where users are."""
        if self.centres is None or self.has_places:
            return None
        guesses = [
            even_spread(self.seen(self.local_centres(party), self.columns_of(party)))[
                self.labels_of(party)
            ]
            for party in self.party_names
        ]
        return np.asarray(np.sum(guesses, axis=0))

    def estimated_loss(
        self, centres: Clustering | npt.ArrayLike, *, scaled: bool = False
    ) -> LossEstimate:
        """Estimate the mean squared distance of a user to the nearest centre; costs no privacy.

        The value is the loss of the weighted nodes. Pseudo-users lie as users do, so it estimates
        the users' loss; whole cells at their centres leave out how far users are from those, so
        there it is below the true loss. The standard error covers the noise of the weights alone:
        independent, of `weight_deviation` in every node with users, to first order. It is None if
        that deviation is not known.

        Args:
            centres: A clustering, or centres of shape (k, D) in the columns' own units.
            scaled: Say that an array of centres is in distance units instead.
        """
        if self.total == 0:
            raise ParameterError("the synopsis must count at least one user to estimate a loss")
        points = self.scaled_centres(centres, scaled=scaled)
        used = self.weights > 0
        weights = self.weights[used]
        distances = nearest_distance(self.seen(self.scaled_nodes[used]), self.seen(points))
        value = float(weights @ distances) / self.total
        if self.weight_deviation is None:
            return LossEstimate(value, None)
        slope = float(np.linalg.norm(distances - value)) / self.total
        return LossEstimate(value, self.weight_deviation * slope)

    def scaled_centres(
        self, centres: Clustering | npt.ArrayLike, *, scaled: bool = False
    ) -> FloatArray:
        """Return centres, as `estimated_loss` takes them, in distance units, shape (k, D)."""
        if isinstance(centres, Clustering):
            centres, scaled = centres.scaled_centres, True
        points = np.asarray(centres, dtype=np.float64)
        width = len(self._all_features)
        if points.ndim != 2 or len(points) == 0 or points.shape[1] != width:
            raise ParameterError(f"centres must have the shape (k, {width}), got {points.shape}")
        if scaled:
            return points
        return to_distance_units(self._all_features, points)

    def sample(self, n: int, *, random_state: int | np.random.Generator | None = None) -> pa.Table:
        """Draw synthetic rows in own units, with columns "party: column"; costs no privacy.

        A row is a node drawn by weight, with the node's numbers; a category is drawn with the
        probabilities that the node gives. Pseudo-users are in as many places as there are of them;
        where nodes are whole cells, all rows of a cell have equal numbers.

        Args:
            n: Number of rows.
            random_state: Seeds the draw.
        """
        _validate.at_least(1, n=n)
        if self.total == 0:
            raise ParameterError("the synopsis must count at least one user to draw rows")
        return draw_rows(self, n, rng=np.random.default_rng(random_state))

    @functools.cached_property
    def replicates(self) -> "Replicates | None":
        """What may have been instead, for the interval of any figure; None without `precision`.

        They are drawn when first asked for, from published values and always the same: it costs no
        privacy and about a second.
        """
        if self.precision is None or self.centres is None:
            return None
        from splitmeans.synopsis.replicates.replicates import make_replicates

        return make_replicates(self, self.precision)

    def table(self, *columns: str, bins: "Bins" = None) -> "CrossTable":
        """Return the users by one or two columns, with 95 % intervals; costs no privacy.

        Args:
            columns: One or two: "party: column", or the column alone where one party has it.
            bins: Of columns of numbers: how many with equally many users (4), or the edges between
                them; or a dict of these by column.
        """
        from splitmeans.synopsis.queries.tables import cross_table

        return cross_table(self, columns, bins=bins)

    def correlation(self, *columns: str) -> "Correlation":
        """Return the correlations of columns of numbers, all if none is named.

        There are 95 % intervals for up to 12 columns. Costs no privacy.

        Args:
            columns: Two or more, as for `table`.
        """
        from splitmeans.synopsis.queries.tables import correlations

        return correlations(self, columns)

    def to_parquet(self, path: str | Path) -> None:
        """Write the synopsis: weight, then each column in own units, then each in distance units.

        Readers of the file want the first set; `from_parquet` restores from the second, which is
        exact. Local clusters of each node follow. The rest is in the schema's metadata, as JSON.
        """
        write_synopsis(self, path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> "Synopsis":
        """Read a file that `to_parquet` wrote; errors name the file."""
        try:
            return cls(**read_synopsis(path))
        except OSError as problem:
            raise ParameterError(f"{path}: cannot be read ({problem})") from problem
        except (*_UNREADABLE, RecursionError) as problem:
            raise ParameterError(f"{path}: not a splitmeans synopsis ({problem})") from problem
