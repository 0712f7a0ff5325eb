"""Decoy join at the server: add noise once to what was counted, subtract expected decoys.

Three steps, kept apart because of who may see what: `join_counts` (`join.py`) gives H + D, which
the server knows and must not publish (parties know D); `add_server_noise` makes H + D + E of it,
once, to be stored; `DecoyEstimator` has those tables alone, so whatever is computed from it may be
published.
Counts stay whole numbers until the last step.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.membership.decoy.direct_labels import DirectLabels, inverse_support
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import (
    Group,
    cell_count,
    cell_shape,
    check_groups,
    law_and_widths,
)
from splitmeans.membership.estimator import check_parties
from splitmeans.privacy.noise import NoiseSource


def add_server_noise(
    law: DecoyLaw,
    counts: Mapping[Group, IntArray],
    *,
    noise: NoiseSource,
    presence: DecoyLaw | None = None,
) -> dict[Group, IntArray]:
    """Return H + D + E, one draw of E for every cell.

    Guarantee: parties know D and their own labels; what they learn from the result about a user's
    labels elsewhere is limited by E. It must be drawn once for a run, stored before anything is
    published, and be the same for everyone (rule R17): a second draw would average it away.
    `presence` is the law of the presence table, where that of three or more parties is one. Other
    labels of a user elsewhere move two cells of a table at most, whatever parties send (`join.py`).
    """
    noisy_tables: dict[Group, IntArray] = {}
    for group, table in counts.items():
        n_cells = cell_count(table.shape)
        flat = table.flatten()
        own = law if presence is None or table.ndim == 2 else presence
        flat[:n_cells] += noise.gaussian(own.server_sigma, n_cells)
        noisy_tables[group] = flat.reshape(table.shape)
    return noisy_tables


@dataclass(frozen=True, kw_only=True, eq=False)
class DecoyEstimator:
    """Unbiased cell weights from the noisy tables.

    Attributes:
        law: The law of decoys and server noise.
        noisy_tables: H + D + E by group, as `add_server_noise` made them.
        n_local_clusters: k' of each party.
        sample_rate: Share of users who took part.
        collusion: Randomised response of each party, None where there is none; () for no party.
        presence_law: The law of the presence table, where the group of all parties is one.
    """

    law: DecoyLaw
    noisy_tables: Mapping[Group, IntArray]
    n_local_clusters: tuple[int, ...]
    sample_rate: float = 1.0
    collusion: tuple[DirectLabels | None, ...] = ()
    presence_law: DecoyLaw | None = None

    def __post_init__(self) -> None:
        widths = tuple(self.n_local_clusters)
        laws = tuple(self.collusion) or (None,) * len(widths)
        object.__setattr__(self, "n_local_clusters", widths)
        object.__setattr__(self, "collusion", laws)
        sample_threshold(self.sample_rate)
        if len(laws) != len(widths):
            raise ParameterError(f"collusion must have {len(widths)} entries, got {len(laws)}")
        for width, response in zip(widths, laws, strict=True):
            if response is not None and response.n_local_clusters != width:
                raise ParameterError(f"collusion must be a randomised response on {width} labels")
        tables: dict[Group, IntArray] = {}
        for group in check_groups(tuple(self.noisy_tables), n_local_clusters=widths):
            _, own = law_and_widths(group, self.law, self.presence_law, n_local_clusters=widths)
            shape = cell_shape(group, n_local_clusters=own)
            table = np.array(self.noisy_tables[group])
            if table.dtype != np.int64 or table.shape != shape:
                raise ParameterError(
                    f"the table of group {group!r} must be 64-bit integers of shape {shape}, "
                    f"got {table.dtype} {table.shape}"
                )
            tables[group] = table
        object.__setattr__(self, "noisy_tables", MappingProxyType(tables))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of parties whose cells were counted."""
        return tuple(self.noisy_tables)

    def one(self, party: int) -> FloatArray:
        """Return the sizes of one party's clusters, shape (k',); some may be negative."""
        return self.joint([party])

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Return the number of users in each cell of these parties, shape (k'_1, ..., k'_s).

        A user counts if present at all of these parties, wherever else. Every group that contains
        them gives an estimate of the same users; the average has weights inverse to the number of
        cells that were summed, which is the one of least variance.
        """
        chosen = check_parties(parties, n_parties=len(self.n_local_clusters))
        ordered = tuple(sorted(chosen))
        margins = [self._margin(group, ordered) for group in self._groups_with(chosen)]
        total = sum(1 / summed for _, summed in margins)
        weights = sum(counts / (summed * total) for counts, summed in margins) / self.sample_rate
        for axis, party in enumerate(ordered):
            response = self.collusion[party]
            if response is not None:
                inverted = np.tensordot(inverse_support(response), weights, axes=(1, axis))
                weights = np.moveaxis(inverted, 0, axis)
        in_order = np.transpose(weights, [ordered.index(party) for party in chosen])
        return np.ascontiguousarray(in_order, dtype=np.float64)

    def deviation(self, parties: Sequence[int]) -> float:
        """Return the standard deviation of a cell of `joint(parties)`, root mean square over cells.

        Noise of m summed cells has variance m (Var D + server_sigma^2). With rate q and inverse
        response matrices whose columns have squared norms a_1, ..., a_s and product a, it becomes
        a / q^2 times that, and each user adds a/q - 1 over all cells, for being left out or
        misreported; their number is estimated from the noisy tables.
        """
        chosen = check_parties(parties, n_parties=len(self.n_local_clusters))
        summed = [self._summed(group, chosen) for group in self._groups_with(chosen)]
        per_cell = float(self.law.variance) + self.law.server_sigma**2
        noise_variance = per_cell / sum(1 / cells for cells in summed)
        amplification = math.prod(
            float(np.square(inverse_support(response)[:, 0]).sum())
            for response in (self.collusion[party] for party in chosen)
            if response is not None
        )
        variance = noise_variance * amplification / self.sample_rate**2
        per_user = amplification / self.sample_rate - 1
        if per_user > 0:
            weights = self.joint(chosen)
            variance += per_user * max(0.0, float(weights.sum())) / weights.size
        return math.sqrt(variance)

    def with_absent(self, pair: Group) -> FloatArray:
        """Return the users in each cell of two parties with "absent" as their last label.

        Shape (k'_1 + 1, k'_2 + 1), as estimated; the corner, absent at both, is not counted: zero.
        """
        counts = (self.noisy_tables[pair] - self.law.mean) / self.sample_rate
        counts[-1, -1] = 0.0
        for axis, party in enumerate(pair):
            response = self.collusion[party]
            if response is not None:
                # Who is absent reports nothing, so nothing is randomised there.
                inverse = np.eye(response.n_local_clusters + 1)
                inverse[:-1, :-1] = inverse_support(response)
                counts = np.moveaxis(np.tensordot(inverse, counts, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(counts, dtype=np.float64)

    def presence(self) -> tuple[FloatArray, float]:
        """Return how many users are at which parties, and the deviation of such a number.

        Shape (2, ..., 2): 0 is present, 1 absent; the last cell, absent everywhere, is zero. Of two
        parties the numbers are sums over the cells of their table; the deviation is the largest.
        """
        everyone = tuple(range(len(self.n_local_clusters)))
        if everyone not in self.groups:
            raise ParameterError("no presence table was counted")
        law, widths = law_and_widths(
            everyone, self.law, self.presence_law, n_local_clusters=self.n_local_clusters
        )
        counts = self.presence_sums(everyone) / self.sample_rate
        per_cell = float(law.variance) + law.server_sigma**2
        variance = math.prod(widths) * per_cell / self.sample_rate**2
        # A user is in the sample or not.
        variance += (1 / self.sample_rate - 1) * max(0.0, float(counts.flat[0]))
        return np.asarray(counts, dtype=np.float64), math.sqrt(variance)

    def presence_sums(self, group: Group) -> IntArray:
        """Return how many users are at which parties of a group, as sums over their clusters.

        Shape (2, ..., 2): 0 is present, 1 absent; of the last cell, absent everywhere, nothing is
        known: zero. Whole numbers of sampled users, with expected decoys removed. Randomised labels
        do not matter: they change a user's cluster, never the presence.
        """
        law, _ = law_and_widths(
            group, self.law, self.presence_law, n_local_clusters=self.n_local_clusters
        )
        counts = self.noisy_tables[group] - law.mean
        for axis, width in enumerate(counts.shape):
            counts = np.add.reduceat(counts, [0, width - 1], axis=axis)
        counts[(1,) * counts.ndim] = 0
        return np.asarray(counts)

    def _groups_with(self, parties: tuple[int, ...]) -> list[Group]:
        found = [group for group in self.groups if set(parties) <= set(group)]
        if self.presence_law is not None:
            found = [group for group in found if len(group) < len(self.n_local_clusters)]
        if not found:
            raise ParameterError(
                f"parties must be together in a group; {parties!r} are in none of {self.groups!r}"
            )
        return found

    def _summed(self, group: Group, parties: tuple[int, ...]) -> int:
        """Return how many cells of the group make one cell of these parties."""
        shape = self.noisy_tables[group].shape
        return math.prod(
            width for party, width in zip(group, shape, strict=True) if party not in parties
        )

    def _margin(self, group: Group, parties: tuple[int, ...]) -> tuple[IntArray, int]:
        """Return counts of these parties' labels, expected decoys removed, and the cells summed."""
        others = tuple(axis for axis, party in enumerate(group) if party not in parties)
        present = tuple(slice(self.n_local_clusters[party]) for party in parties)
        counts: IntArray = self.noisy_tables[group].sum(axis=others)[present]
        summed = self._summed(group, parties)
        return counts - summed * self.law.mean, summed
