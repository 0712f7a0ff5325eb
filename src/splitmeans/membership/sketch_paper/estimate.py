"""Server side of the sketch: registers to cardinalities and cell counts (paper, Algorithms 4, 5).

Registers of a union are the maxima of the sets' registers. A cell, the intersection of one cluster
of each party, is what the union of all other clusters leaves out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, RegisterArray
from splitmeans.errors import ProtocolError
from splitmeans.membership.estimator import check_parties
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.study.options import SKETCH_ESTIMATORS
from splitmeans.wire.messages import SketchMessage

# Numbers held at once while the unions of a grid are formed: 1 MB, which stays in the cache.
_CHUNK = 2**17


def cardinality(registers: RegisterArray, *, gamma: float, estimator: str) -> FloatArray:
    """Estimate how many elements each column of registers has seen, phantoms included.

    Args:
        registers: Shape (M, ...), all at least 1.
        gamma: Parameter of the register law.
        estimator: "calibrated" is the bias-corrected harmonic mean of (1+gamma)^register, the form
            of HyperLogLog; "printed" is (1+gamma)^(harmonic mean of the registers), the formula
            in the paper's text, which overshoots (about twofold at gamma = 1).

    Returns:
        Shape (...).
    """
    _validate.one_of(SKETCH_ESTIMATORS, estimator=estimator)
    totals = _evidence(registers, gamma=gamma, estimator=estimator).sum(axis=0)
    rows = registers.shape[0]
    return _from_evidence(totals, repetitions=rows, gamma=gamma, estimator=estimator)


def union_cardinalities(
    tables: Sequence[RegisterArray], *, gamma: float, estimator: str
) -> FloatArray:
    """Estimate for every cell what the union of all clusters but the cell's own holds.

    Args:
        tables: Registers of each party, shape (M, k'_l), at least two clusters each.
        gamma: Parameter of the register law.
        estimator: See `cardinality`.

    Returns:
        Elements, phantoms included, shape (k'_1, ..., k'_s).
    """
    totals = _union_totals(
        [_evidence(_others(table), gamma=gamma, estimator=estimator) for table in tables]
    )
    rows = tables[0].shape[0]
    return _from_evidence(totals, repetitions=rows, gamma=gamma, estimator=estimator)


@dataclass(frozen=True, kw_only=True)
class SketchEstimator:
    """Cell counts from the parties' sketches and the noisy number of users.

    Counts are as estimated: they may be negative and need not add up to `noisy_count`.

    Attributes:
        law: The public parameters, the same for all parties.
        messages: One message for each party; k' may differ.
        noisy_count: The released number of users.
        estimator: See `cardinality`.
    """

    law: SketchPaperLaw
    messages: tuple[SketchMessage, ...]
    noisy_count: float
    estimator: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.finite(noisy_count=self.noisy_count)
        _validate.one_of(SKETCH_ESTIMATORS, estimator=self.estimator)
        object.__setattr__(self, "messages", tuple(self.messages))
        for party, message in enumerate(self.messages):
            _check_registers(message.registers, law=self.law, party=party)

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        """The number of local clusters (k') of each party."""
        return tuple(message.registers.shape[1] for message in self.messages)

    def one(self, party: int) -> FloatArray:
        """Estimate the cluster sizes of one party, shape (k',) (paper, Algorithm 5, line 3)."""
        check_parties([party], n_parties=len(self.messages))
        registers = self.messages[party].registers
        noisy_sizes = cardinality(registers, gamma=self.law.gamma, estimator=self.estimator)
        return noisy_sizes - self.law.phantoms

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Estimate the cells of some parties, shape (k'_1, ..., k'_s) (paper, Algorithm 4).

        This is the estimate before the paper's last line, which makes it consistent.
        """
        chosen = check_parties(parties, n_parties=len(self.messages))
        tables = [self.messages[party].registers for party in chosen]
        noisy_union = union_cardinalities(tables, gamma=self.law.gamma, estimator=self.estimator)
        # Each of the united clusters, k' - 1 of every party, brings its own phantoms.
        united_phantoms = self.law.phantoms * sum(table.shape[1] - 1 for table in tables)
        return np.asarray(self.noisy_count - (noisy_union - united_phantoms))


def _evidence(registers: RegisterArray, *, gamma: float, estimator: str) -> FloatArray:
    """Map registers to what an estimator averages; it falls as the register rises."""
    if estimator == "printed":
        return np.asarray(1 / registers.astype(np.float64))
    return np.asarray((1 + gamma) ** -registers.astype(np.float64))


def _from_evidence(
    totals: FloatArray, *, repetitions: int, gamma: float, estimator: str
) -> FloatArray:
    """Turn sums of evidence over M rows into cardinalities."""
    means = totals / repetitions
    if estimator == "printed":
        return np.asarray((1 + gamma) ** (1 / means))
    # Let r = 1 + gamma. A register is x = log_r(1/U) rounded up, U the least of N uniforms, and
    # r^-x = U has mean 1/N and mean square 2/N^2. The part added by rounding is close to uniform
    # on (0, 1), so the evidence has mean c/N with c = E r^-u = (1 - 1/r) / ln r: 0.7213 at r = 2.
    # The squared coefficient of variation is 2 E r^-2u / c^2 - 1 = (r+1) ln r / (r-1) - 1: 1.079
    # at r = 2. That over M is by how much one over a mean of M exceeds one over its expectation.
    log_ratio = math.log1p(gamma)
    constant = gamma / ((1 + gamma) * log_ratio)
    variation = (gamma + 2) * log_ratio / gamma - 1
    return np.asarray(constant / (1 + variation / repetitions) / means)


def _others(registers: RegisterArray) -> RegisterArray:
    """Return for every cluster the maximum over the party's other clusters, shape (M, k')."""
    # It is the row's largest value everywhere but at the place of that value; there, the second.
    top_two = np.partition(registers, registers.shape[1] - 2, axis=1)[:, -2:]
    is_top = np.arange(registers.shape[1]) == registers.argmax(axis=1)[:, None]
    return np.where(is_top, top_two[:, :1], top_two[:, 1:])


def _union_totals(evidence: Sequence[FloatArray]) -> FloatArray:
    """Sum the evidence of the unions over rows; `evidence` holds one (M, k'_l) for each party.

    Evidence falls as registers rise, so the maximum of registers is the minimum of evidence.
    """
    shape = tuple(table.shape[1] for table in evidence)
    rows = evidence[0].shape[0]
    step = max(1, _CHUNK // math.prod(shape))
    totals = np.zeros(math.prod(shape))
    for start in range(0, rows, step):
        union = evidence[0][start : start + step]
        for table in evidence[1:]:
            part = table[start : start + step]
            union = np.minimum(union[:, :, None], part[:, None, :]).reshape(len(part), -1)
        totals += union.sum(axis=0)
    return totals.reshape(shape)


def _check_registers(registers: RegisterArray, *, law: SketchPaperLaw, party: int) -> None:
    where = f"sketch of party number {party}"
    if registers.dtype != np.uint16 or registers.ndim != 2:
        raise ProtocolError(f"{where} must be a table of 16-bit registers")
    if registers.shape[0] != law.repetitions or registers.shape[1] < 2:
        raise ProtocolError(
            f"{where} must have {law.repetitions} rows and at least 2 clusters, "
            f"got shape {registers.shape}"
        )
    if registers.min() < law.floor:
        raise ProtocolError(f"{where} has registers below the floor {law.floor}")
    if registers.max() > law.largest_register:
        raise ProtocolError(f"{where} has registers above {law.largest_register}, the largest")
