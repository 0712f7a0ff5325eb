"""Public parameters of LDP-AGG (paper, section 4.1, baseline 2, and appendix "LDP-AGG Details").

Each user's label passes generalised randomised response (GRR) directly, or, where there are many
clusters for the budget, a hash of it does (optimised local hashing, OLH). The response is one look
at a uniform 64-bit word: `other_words` words stand for each wrong value and the rest for the true
one. So the probabilities are exact fractions of 2^64, the same on every machine, and the server
inverts the law that was really used.
"""

import functools
import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import RandomisedResponseEvent

MAX_LOCAL_CLUSTERS = 255
WORDS = 2**64

# Above this every wrong value has one word of 2^64 and more budget changes nothing.
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True, kw_only=True)
class RandomisedLabels:
    """GRR or OLH on labels 0..k'-1, whichever the paper's rule picks.

    Guarantee: each user's report is epsilon-locally DP, so replacing one user's values costs
    epsilon. The number of users is not hidden, and adding or removing a user is not covered.

    Attributes:
        epsilon: The budget of one party's message.
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
        """The privacy event of one party's message."""
        return RandomisedResponseEvent(epsilon=self.epsilon)

    @property
    def uses_hashing(self) -> bool:
        """Whether reports are hashes (OLH); labels themselves (GRR) if k' <= 3 e^eps + 2."""
        return self.n_local_clusters > 3 * _exp_below(self.epsilon) + 2

    @property
    def n_values(self) -> int:
        """How many different reports there are: k' for GRR, g = floor(e^eps + 1) for OLH."""
        if self.uses_hashing:
            return math.floor(_exp_below(self.epsilon) + 1)
        return self.n_local_clusters

    @property
    def other_words(self) -> int:
        """How many of 2^64 words give each wrong value.

        Rounded up: with t words for each of the m - 1 wrong values the ratio of probabilities is
        2^64/t - (m - 1), which is at most e^eps when t is at least 2^64 / (e^eps + m - 1).
        """
        return math.ceil(WORDS / (_exp_below(self.epsilon) + self.n_values - 1))

    @property
    def true_words(self) -> int:
        """How many of 2^64 words give the true value."""
        return WORDS - (self.n_values - 1) * self.other_words

    @property
    def true_support(self) -> Fraction:
        """Probability p that a report supports the user's own label."""
        return Fraction(self.true_words, WORDS)

    @property
    def false_support(self) -> Fraction:
        """Probability q that a report supports one given other label.

        For OLH this is 1/g: a wrong label shares the true bucket with probability 1/g, and
        p/g + (1-p)/(g-1) (1-1/g) = 1/g. The paper prints p = 1/2 and q = 1/(e^eps + 1), which is
        exact only when g = e^eps + 1, a whole number; g is rounded down, so inverting with the
        printed values would give biased weights.
        """
        if self.uses_hashing:
            return Fraction(1, self.n_values)
        return Fraction(self.other_words, WORDS)


def hash_labels(
    seeds: npt.NDArray[np.uint32], labels: npt.NDArray[np.integer], *, n_values: int
) -> npt.NDArray[np.uint8]:
    """Hash labels 0..255 to 0..n_values-1 with public seeds; the two arrays broadcast.

    Seed and label fill the low 40 bits of a word, which goes through the splitmix64 output
    function; its upper half is scaled to the range. Over uniform seeds two different labels share
    a value with probability 1/n_values, up to about 2^-16 (there are 2^32 seeds).
    """
    word: WordArray = (seeds.astype(np.uint64) << np.uint64(8)) | labels.astype(np.uint64)
    # Without the offset, seed 0 with label 0 would be a fixed point of the mixing below.
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    scaled = ((word >> np.uint64(32)) * np.uint64(n_values)) >> np.uint64(32)
    return scaled.astype(np.uint8)


@functools.lru_cache(maxsize=256)
def _exp_below(epsilon: float) -> Fraction:
    """Return a rational just below e^epsilon, the same on every machine.

    Decimal arithmetic rounds exp correctly, unlike the floating-point libraries of different
    machines, so parties and server agree on every threshold and on floor(e^eps + 1).
    """
    context = Context(prec=60)
    power = context.exp(Decimal(min(float(epsilon), _LARGEST_EPSILON)))
    return Fraction(context.next_minus(power))
