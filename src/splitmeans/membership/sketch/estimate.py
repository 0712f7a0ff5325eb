"""Server side of the cell sketch: registers of a group to cluster and cell sizes.

The sizes are maximum-likelihood estimates (`likelihood.py`) minus the phantoms, whose number is
public. They need no user count and hold for user sets that overlap only in part.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, RegisterArray
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.estimator import check_parties
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch.likelihood import (
    RegisterScale,
    set_sizes,
    shared_sizes,
    tally,
    tally_pairs,
)
from splitmeans.wire.messages import CellSketchMessage

# Pairs of clusters times register values that are held at a time: some twenty arrays of 8 MB.
_CHUNK = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CellSketchEstimator:
    """Cluster and cell sizes from the parties' sketches.

    Sizes are as estimated, so some may be negative, but no cell is below minus its phantoms.

    Attributes:
        law: The public parameters.
        groups: Positions of the parties that share a sketch.
        n_local_clusters: The number of clusters (k') of each party.
        messages: One message for each party.
    """

    law: SketchLaw
    groups: tuple[tuple[int, ...], ...]
    n_local_clusters: tuple[int, ...]
    messages: tuple[CellSketchMessage, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(tuple(group) for group in self.groups))
        object.__setattr__(self, "n_local_clusters", tuple(self.n_local_clusters))
        object.__setattr__(self, "messages", tuple(self.messages))
        n_parties = len(self.n_local_clusters)
        if len(self.messages) != n_parties:
            raise ProtocolError(
                f"expected a sketch from each of {n_parties} parties, got {len(self.messages)}"
            )
        for group in self.groups:
            check_parties(group, n_parties=n_parties)
        for party, message in enumerate(self.messages):
            n_blocks = sum(party in group for group in self.groups)
            if n_blocks == 0:
                raise ParameterError(f"groups must name position {party} at least once")
            shape = (n_blocks * self.law.repetitions, self.n_local_clusters[party])
            _check_registers(message.registers, law=self.law, shape=shape, party=party)

    def one(self, party: int) -> FloatArray:
        """Estimate the cluster sizes of one party, shape (k',), from all groups that it is in."""
        (chosen,) = check_parties([party], n_parties=len(self.messages))
        return self._sizes[chosen].copy()

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Estimate the cells of two parties that share a group, shape (k'_i, k'_j).

        For one party it is `one`. Cells of three or more parties are beyond a pair's likelihood;
        grid methods put them together from pairs.
        """
        chosen = check_parties(parties, n_parties=len(self.messages))
        if len(chosen) == 1:
            return self.one(chosen[0])
        if len(chosen) > 2:
            raise ParameterError(
                f"cells of {len(chosen)} parties cannot be read from sketches of pairs, "
                "ask for two parties at a time"
            )
        shared = [group for group in self.groups if set(chosen) <= set(group)]
        if not shared:
            raise ParameterError(f"no group holds both parties of {chosen!r}")
        return np.asarray(np.mean([self._pair_in(group, *chosen) for group in shared], axis=0))

    @functools.cached_property
    def _scale(self) -> RegisterScale:
        largest = max(int(message.registers.max()) for message in self.messages)
        return RegisterScale.of(gamma=self.law.gamma, floor=self.law.floor, largest=largest)

    @functools.cached_property
    def _sizes(self) -> tuple[FloatArray, ...]:
        """Cluster sizes of every party."""
        return tuple(
            np.mean([self._one_in(group, party) for group in self.groups if party in group], axis=0)
            for party in range(len(self.messages))
        )

    def _one_in(self, group: tuple[int, ...], party: int) -> FloatArray:
        counts = tally(self._block(party, group), self._scale)
        return set_sizes(counts, self._scale) - self._phantoms(group, party)

    def _pair_in(self, group: tuple[int, ...], i: int, j: int) -> FloatArray:
        one, other = self._block(i, group), self._block(j, group)
        # Sizes from all groups of a party are more precise than those of this one alone.
        a = self._sizes[i] + self._phantoms(group, i)
        b = self._sizes[j] + self._phantoms(group, j)
        step = max(1, _CHUNK // (len(b) * self._scale.size))
        parts = []
        for start in range(0, len(a), step):
            rows = slice(start, start + step)
            tallies = tally_pairs(one[:, rows], other, self._scale)
            parts.append(shared_sizes(a[rows], b, tallies, self._scale))
        return np.concatenate(parts) - self._phantoms(group, i, j)

    def _phantoms(self, group: tuple[int, ...], *parties: int) -> int:
        """How many phantoms of a group carry one given label of each of these parties."""
        others = [self.n_local_clusters[p] for p in group if p not in parties]
        return self.law.shared_phantoms(others)

    def _block(self, party: int, group: tuple[int, ...]) -> RegisterArray:
        """A party's registers in one group, shape (M, k')."""
        own_groups = [other for other in self.groups if party in other]
        start = own_groups.index(group) * self.law.repetitions
        return self.messages[party].registers[start : start + self.law.repetitions]


def _check_registers(
    registers: RegisterArray, *, law: SketchLaw, shape: tuple[int, int], party: int
) -> None:
    where = f"sketch of party number {party}"
    if registers.dtype != np.uint16 or registers.shape != shape:
        raise ProtocolError(
            f"{where} must be 16-bit registers of shape {shape}, "
            f"got {registers.dtype} {registers.shape}"
        )
    # Every cluster has phantoms, so no register is 0 even where the floor is.
    floor = max(law.floor, 1)
    if registers.min() < floor:
        raise ProtocolError(f"{where} has registers below {floor}, the smallest")
    if registers.max() > law.largest_register:
        raise ProtocolError(f"{where} has registers above {law.largest_register}, the largest")
