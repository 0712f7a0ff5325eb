"""Randomised response on labels: what hides a user's cluster from a party that joins the server.

The response is one look at a uniform 64-bit word: `other_words` words stand for each wrong label
and the rest for the true one. So the probabilities are exact fractions of 2^64, the same on every
machine, and the server inverts the response that was really used.
"""

import functools
import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import RandomisedResponseEvent
from splitmeans.privacy.noise import NoiseSource

MAX_LOCAL_CLUSTERS = 255
WORDS = 2**64

# Above this every wrong label has one word of 2^64 and more budget changes nothing.
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True, kw_only=True)
class DirectLabels:
    """Randomised response on labels 0..k'-1.

    Guarantee: each user's label is epsilon-locally DP, so replacing one user's values costs
    epsilon. The number of users is not hidden, and adding or removing a user is not covered.

    Attributes:
        epsilon: The budget of one party's labels.
        n_local_clusters: k' of the party, 2 to 255.
    """

    TAG: ClassVar[str] = "RandomisedLabels"

    epsilon: float
    n_local_clusters: int

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.at_least(2, n_local_clusters=self.n_local_clusters)
        if self.n_local_clusters > MAX_LOCAL_CLUSTERS:
            raise ParameterError(
                f"n_local_clusters must be <= {MAX_LOCAL_CLUSTERS}, got {self.n_local_clusters}"
            )
        if self.true_words <= self.other_words:
            raise ParameterError(f"epsilon is too small for 64-bit words, got {self.epsilon!r}")

    @property
    def event(self) -> RandomisedResponseEvent:
        """The privacy event of one party's labels."""
        return RandomisedResponseEvent(epsilon=self.epsilon)

    @property
    def other_words(self) -> int:
        """How many of 2^64 words give each wrong label.

        Rounded up: with t words for each of the k' - 1 wrong labels the ratio of probabilities is
        2^64/t - (k' - 1), which is at most e^eps when t is at least 2^64 / (e^eps + k' - 1).
        """
        return math.ceil(WORDS / (_exp_below(self.epsilon) + self.n_local_clusters - 1))

    @property
    def true_words(self) -> int:
        """How many of 2^64 words give the true label."""
        return WORDS - (self.n_local_clusters - 1) * self.other_words

    @property
    def true_support(self) -> Fraction:
        """Probability p that a report is the user's own label."""
        return Fraction(self.true_words, WORDS)

    @property
    def false_support(self) -> Fraction:
        """Probability q that a report is one given other label."""
        return Fraction(self.other_words, WORDS)


def randomise(response: DirectLabels, labels: LabelArray, *, noise: NoiseSource) -> LabelArray:
    """Return one randomised label per user.

    Guarantee: `response.event`: epsilon-local DP for each user's label. Labels must be drawn once
    per user: a second draw costs epsilon again.

    Args:
        response: The public parameters.
        labels: Each user's cluster, shape (n,).
        noise: Where the random words come from.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < response.n_local_clusters:
        raise ParameterError(f"labels must be between 0 and {response.n_local_clusters - 1}")
    words = noise.words(labels.size)
    changed = words >= np.uint64(response.true_words)
    beyond = words[changed] - np.uint64(response.true_words)
    pick = (beyond // np.uint64(response.other_words)).astype(np.int32)  # 0 .. k'-2
    reports = labels.copy()
    reports[changed] = pick + (pick >= labels[changed])  # step over the true label
    return reports


def inverse_support(response: DirectLabels) -> FloatArray:
    """Return the inverse of the matrix with p on its diagonal and q elsewhere, shape (k', k').

    The matrix is (p-q) I + q J with J all ones, so its inverse is (I - q/r J) / (p-q), where
    r = p + (k'-1) q is its row sum. The entries are computed as fractions and rounded once.
    """
    p, q, width = response.true_support, response.false_support, response.n_local_clusters
    off_diagonal = -q / ((p - q) * (p + (width - 1) * q))
    inverse = np.full((width, width), float(off_diagonal))
    np.fill_diagonal(inverse, float(1 / (p - q) + off_diagonal))
    return inverse


@functools.lru_cache(maxsize=256)
def _exp_below(epsilon: float) -> Fraction:
    """Return a rational just below e^epsilon, the same on every machine.

    Decimal arithmetic rounds exp correctly, unlike the floating-point libraries of different
    machines, so parties and server agree on every threshold.
    """
    context = Context(prec=60)
    power = context.exp(Decimal(min(float(epsilon), _LARGEST_EPSILON)))
    return Fraction(context.next_minus(power))
