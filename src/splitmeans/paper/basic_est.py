"""DPFMPS-BasicEst: cell weights from all parties' sketches (paper, Algorithm 4).

A sketch of a union is the maximum of the sets' sketches. A cell, the intersection of one cluster of
each party, is what the union of all other clusters leaves out.
"""

import math
from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, RegisterArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.paper.dpfm import SketchParameters
from splitmeans.paper.dpfmps_gen import PartitionSketch

# Numbers held at once while unions are formed: 1 MB, which stays in the cache.
_CHUNK = 2**17


def basic_est(
    noisy_count: float, parameters: SketchParameters, sketches: Sequence[PartitionSketch]
) -> FloatArray:
    """Return consistent weights of all cells, shape (k', ..., k'); `noisy_count` is n-hat."""
    tables = [sketch.registers for sketch in sketches]
    union_sizes = union_cardinalities(tables, gamma=parameters.gamma)
    united = sum(table.shape[1] - 1 for table in tables)
    without_phantoms = union_sizes - united * parameters.phantoms
    return consistent(noisy_count - without_phantoms, total=noisy_count)


def consistent(weights: FloatArray, *, total: float) -> FloatArray:
    """Return the closest weights without a negative one that add up to the total (line 11).

    The paper does not say how; its authors' code projects on the simplex.
    """
    return project_to_simplex(weights, total=max(float(total), 0.0))


def cardinality(registers: RegisterArray, *, gamma: float) -> FloatArray:
    """Estimate how many elements each column of M registers has seen, phantoms included.

    Line 8 prints (1 + gamma)^HarmonicMean(registers), which overshoots about twofold at gamma = 1.
    This is the form of the authors' code and of HyperLogLog: a bias-corrected harmonic mean of
    (1 + gamma)^register, 0.7213 / (1 + 1.079 / M) M / sum((1 + gamma)^-register) at gamma = 1.

    Registers have the shape (M, ...), all at least 1.
    """
    return _from_powers(_powers(registers, gamma).sum(axis=0), len(registers), gamma)


def union_cardinalities(tables: Sequence[RegisterArray], *, gamma: float) -> FloatArray:
    """Estimate for every cell the union of all clusters but the cell's own (lines 3 to 8).

    Tables have the shape (M, k'), at least two clusters each. The result counts phantoms too.
    """
    # Powers fall as registers rise, so the maximum of registers is the minimum of powers.
    powers = [_powers(_others(table), gamma) for table in tables]
    shape = tuple(table.shape[1] for table in tables)
    repetitions = len(tables[0])
    totals = np.zeros(math.prod(shape))
    step = max(1, _CHUNK // totals.size)
    for start in range(0, repetitions, step):
        union = powers[0][start : start + step]
        for table in powers[1:]:
            part = table[start : start + step]
            union = np.minimum(union[:, :, None], part[:, None, :]).reshape(len(part), -1)
        totals += union.sum(axis=0)
    return _from_powers(totals.reshape(shape), repetitions, gamma)


def _others(registers: RegisterArray) -> RegisterArray:
    """Return for every cluster the maximum over the party's other clusters, shape (M, k')."""
    # It is the row's largest value everywhere but at the place of that value; there, the second.
    top_two = np.partition(registers, registers.shape[1] - 2, axis=1)[:, -2:]
    is_top = np.arange(registers.shape[1]) == registers.argmax(axis=1)[:, None]
    return np.where(is_top, top_two[:, :1], top_two[:, 1:])


def _powers(registers: RegisterArray, gamma: float) -> FloatArray:
    return np.asarray((1 + gamma) ** -registers.astype(np.float64))


def _from_powers(totals: FloatArray, repetitions: int, gamma: float) -> FloatArray:
    """Turn sums of (1 + gamma)^-register over M registers into cardinalities.

    With r = 1 + gamma a register is log_r(1/U) rounded up, U the least of N uniform numbers, so
    r^-register has mean c / N with c = (1 - 1/r) / ln r: 0.7213 at r = 2. Its squared coefficient
    of variation is (r + 1) ln r / (r - 1) - 1: 1.079 at r = 2.
    """
    log_ratio = math.log1p(gamma)
    constant = gamma / ((1 + gamma) * log_ratio)
    variation = (gamma + 2) * log_ratio / gamma - 1
    return np.asarray(constant / (1 + variation / repetitions) * repetitions / totals)
