"""LDP-AGG and LDP-AGG-2PEst: randomised labels (paper, section 4.1, baseline 2, and appendix).

Each user's label passes generalised randomised response (GRR), or where there are many clusters for
the budget a hash of it does (optimised local hashing, OLH).
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray, WordArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.paper.basic_est import consistent
from splitmeans.paper.two_party_est import fit_to_pairs
from splitmeans.privacy.noise import NoiseSource

# Users whose supports are counted at a time.
_CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class LabelResponse:
    """Public parameters: GRR if k' <= 3 e^epsilon_2 + 2, else OLH."""

    epsilon_2: float
    n_local_clusters: int

    def __post_init__(self) -> None:
        _validate.positive(epsilon_2=self.epsilon_2)
        _validate.at_least(2, n_local_clusters=self.n_local_clusters)

    @property
    def uses_hashing(self) -> bool:
        """Whether reports are hashes of labels (OLH)."""
        return self.n_local_clusters > 3 * math.exp(self.epsilon_2) + 2

    @property
    def n_values(self) -> int:
        """How many different reports there are: k', or floor(e^epsilon_2 + 1) for OLH."""
        if self.uses_hashing:
            return math.floor(math.exp(self.epsilon_2) + 1)
        return self.n_local_clusters

    @property
    def true_support(self) -> float:
        """Probability p that a report supports the user's own label."""
        return 1 / (1 + (self.n_values - 1) * math.exp(-self.epsilon_2))

    @property
    def false_support(self) -> float:
        """Probability q that a report supports one given other label.

        For OLH the paper prints p = 1/2 and q = 1/(e^epsilon_2 + 1), which is exact only if
        e^epsilon_2 + 1 is a whole number. With a whole number g of values it is 1/g; the printed
        values would give biased weights.
        """
        if self.uses_hashing:
            return 1 / self.n_values
        return (1 - self.true_support) / (self.n_values - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomisedLabels:
    """The message of one party: a report of each user, and for OLH a hash seed, shape (n,)."""

    reports: npt.NDArray[np.uint8] = field(repr=False)
    seeds: npt.NDArray[np.uint32] = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """Size of the message."""
        return self.reports.nbytes + self.seeds.nbytes


def ldp_agg_encode(
    rows: FloatArray, centres: FloatArray, response: LabelResponse, *, noise: NoiseSource
) -> RandomisedLabels:
    """Return one randomised report for each user.

    Guarantee: epsilon_2-DP for replacing one user's values. It does NOT cover adding or removing a
    user, the relation of the other methods: the message shows how many users there are.
    """
    n = len(rows)
    values = nearest_centres(rows, centres).astype(np.int64)
    seeds = np.empty(0, dtype=np.uint32)
    if response.uses_hashing:
        seeds = (noise.words(n) >> np.uint64(32)).astype(np.uint32)
        values = hash_labels(seeds, values, n_values=response.n_values)
    kept = _uniform(noise.words(n)) < response.true_support
    other = (_uniform(noise.words(n)) * (response.n_values - 1)).astype(np.int64)
    reports = np.where(kept, values, other + (other >= values))  # steps over the true value
    return RandomisedLabels(reports=reports.astype(np.uint8), seeds=seeds)


def ldp_agg_estimate(response: LabelResponse, messages: Sequence[RandomisedLabels]) -> FloatArray:
    """Return unbiased cell weights w = P^-1 w-hat, shape (k', ..., k').

    Parties randomise independently, so P is a Kronecker product of one small matrix for each party,
    with p on its diagonal and q elsewhere. Its inverse is applied axis by axis.
    """
    weights = count_supports(response, messages)
    k = response.n_local_clusters
    p, q = response.true_support, response.false_support
    inverse = (np.eye(k) - q / (p + (k - 1) * q)) / (p - q)
    for axis in range(weights.ndim):
        weights = np.moveaxis(np.tensordot(inverse, weights, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(weights)


def ldp_agg(response: LabelResponse, messages: Sequence[RandomisedLabels]) -> FloatArray:
    """Return the unbiased weights, made consistent with the number of reports."""
    return consistent(ldp_agg_estimate(response, messages), total=len(messages[0].reports))


def ldp_agg_2pest(
    response: LabelResponse, messages: Sequence[RandomisedLabels], *, rng: np.random.Generator
) -> FloatArray:
    """Return weights fitted to all pairs of parties as in Algorithm 5; see `fit_to_pairs`."""
    if len(messages) <= 2:
        return ldp_agg(response, messages)
    sizes = [ldp_agg_estimate(response, [message]) for message in messages]
    pairs = {
        (first, second): ldp_agg(response, [messages[first], messages[second]])
        for first, second in itertools.combinations(range(len(messages)), 2)
    }
    return fit_to_pairs(len(messages[0].reports), sizes, pairs, rng=rng)


def count_supports(response: LabelResponse, messages: Sequence[RandomisedLabels]) -> FloatArray:
    """Count the users who support each cell, shape (k', ..., k')."""
    k = response.n_local_clusters
    shape = (k,) * len(messages)
    if not response.uses_hashing:
        cells = np.ravel_multi_index(tuple(m.reports.astype(np.int64) for m in messages), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    labels = np.arange(k)
    counts = np.zeros(math.prod(shape))
    for start in range(0, len(messages[0].reports), _CHUNK):
        users = slice(start, start + _CHUNK)
        supports = [
            message.reports[users, None]
            == hash_labels(message.seeds[users, None], labels, n_values=response.n_values)
            for message in messages
        ]
        joint = functools.reduce(
            lambda left, right: (left[:, :, None] & right[:, None, :]).reshape(len(left), -1),
            supports,
        )
        counts += joint.sum(axis=0)
    return counts.reshape(shape)


def hash_labels(seeds: npt.NDArray[np.uint32], labels: IntArray, *, n_values: int) -> IntArray:
    """Hash labels 0..255 to 0..n_values-1 with public seeds; the two arrays broadcast.

    The output function of splitmix64: over uniform seeds two different labels share a value with
    probability 1/n_values, up to about 2^-16.
    """
    word: WordArray = (seeds.astype(np.uint64) << np.uint64(8)) | labels.astype(np.uint64)
    # Without the offset, seed 0 with label 0 would be a fixed point of the mixing below.
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    scaled = ((word >> np.uint64(32)) * np.uint64(n_values)) >> np.uint64(32)
    return scaled.astype(np.int64)


def _uniform(words: WordArray) -> FloatArray:
    """Return 64-bit words as numbers in [0, 1)."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)
