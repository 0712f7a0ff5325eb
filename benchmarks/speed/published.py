"""The published sketch done the plain way: every user is hashed once for each of the M rows.

This is the paper's Algorithms 2 and 3 in vectorised NumPy, written to be read and to be fair: ids
are hashed to words once, users are put in the order of their clusters once, and the maximum of the
phantoms is drawn in one step instead of phantom by phantom.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, LabelArray, RegisterArray, WordArray
from splitmeans.paper.dpfm import SketchParameters

_Word = np.uint64


def published_sketch(
    id_words: WordArray,
    labels: LabelArray,
    *,
    law: SketchParameters,
    n_clusters: int,
    row_keys: WordArray,
    rng: np.random.Generator,
    tuned: bool = False,
) -> RegisterArray:
    """Return the registers of the rows that have a key, shape (rows, k').

    Args:
        id_words: One pseudorandom word for each user, shape (n,).
        labels: Each user's cluster, shape (n,).
        law: Phantoms, floor and gamma.
        n_clusters: k'.
        row_keys: The hash key of each row, shape (rows,).
        rng: Where phantoms come from; good enough for a measurement of time, not for privacy.
        tuned: Take the maximum before the logarithm, which gives the same registers with less work
            than the text of the paper asks for.
    """
    order = np.argsort(labels, kind="stable")
    words = id_words[order]
    sizes = np.bincount(labels, minlength=n_clusters)
    members = [slice(end - size, end) for end, size in zip(np.cumsum(sizes), sizes, strict=True)]
    shape = (len(row_keys), n_clusters)
    registers = np.zeros(shape)
    for row, key in enumerate(row_keys):
        uniforms = _uniforms(words ^ key)
        if tuned:
            least = np.array([uniforms[own].min(initial=1.0) for own in members])
            registers[row] = _geometric(least, gamma=law.gamma)
        else:
            values = _geometric(uniforms, gamma=law.gamma)
            registers[row] = [values[own].max(initial=0.0) for own in members]
    # The largest of n_p geometric values is that of the smallest of n_p uniforms.
    smallest = -np.expm1(np.log1p(-rng.random(shape)) / law.phantoms)
    phantoms = _geometric(smallest, gamma=law.gamma)
    return np.maximum(np.maximum(registers, phantoms), law.floor).astype(np.uint16)


def _uniforms(words: WordArray) -> FloatArray:
    """Return numbers in (0, 1] by a bijective mix of 64-bit words (the finisher of SplitMix64)."""
    words = (words ^ (words >> _Word(30))) * _Word(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> _Word(27))) * _Word(0x94D049BB133111EB)
    words = words ^ (words >> _Word(31))
    return np.asarray(((words >> _Word(11)) + _Word(1)) * 2.0**-53)


def _geometric(uniforms: FloatArray, *, gamma: float) -> FloatArray:
    """Return log_(1+gamma)(1/u) rounded up, at least 1, so that P(Y > v) = (1+gamma)^-v."""
    return np.asarray(np.maximum(np.ceil(np.log(uniforms) * (-1 / math.log1p(gamma))), 1.0))
