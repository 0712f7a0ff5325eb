"""Public parameters of the decoy join: the law of the decoy counts, as exact integers.

Every cell gets D decoys, D on {0..2t}: a discrete Gaussian of scale sigma, truncated to [-t, t] and
shifted by t. A draw is the look-up of a uniform 64-bit word in an integer table that is built with
60-digit decimals, so every machine has the same table, accounting is about the law that is really
drawn (rule R3), and parties find the same counts from the same key.
"""

import functools
import hashlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.membership.decoy.direct_labels import WORDS, DirectLabels
from splitmeans.privacy.events import ShiftEvent

# A cell has t decoys on average; beyond this a message would be decoys and little else.
MAX_TRUNCATION = 65_535

# The ends of a truncated decoy law cost their probability as delta; this share of the study's
# delta, over all groups and runs, leaves nearly all of it to the rest.
TRUNCATION_SHARE = 0.01

# The recurrence below loses about 2 log10(t) < 10 of 60 digits; a table needs 20.
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True, kw_only=True)
class DecoyLaw:
    """How many decoys a cell gets, and what the server adds before it publishes.

    Guarantee: a user with all columns at all parties is in one cell of a group, so adding or
    removing the user moves one H + D by one. `event` is that shift under the exact table; one event
    per group covers all parties of the group together.

    Attributes:
        sigma: Scale of the decoy counts.
        truncation: t; a cell has 0 to 2t decoys, t on average.
        server_sigma: Scale of the discrete Gaussian noise E that the server draws once for every
            cell before anything is published. Parties know D, so E alone protects against them.
    """

    TAG: ClassVar[str] = "DecoyLaw"

    sigma: float
    truncation: int
    server_sigma: float

    def __post_init__(self) -> None:
        _validate.positive(sigma=self.sigma, server_sigma=self.server_sigma)
        _validate.at_least(1, truncation=self.truncation)
        if self.truncation > MAX_TRUNCATION:
            raise ParameterError(f"truncation must be <= {MAX_TRUNCATION}, got {self.truncation}")

    @property
    def weights(self) -> tuple[int, ...]:
        """How many of 2^64 words give 0, 1, ..., 2t decoys; symmetric, and the sum is 2^64.

        Entry t + j is 2^64 exp(-j^2 / (2 sigma^2)) / Z, rounded to the nearest whole number but
        never below 1, for j = 1..t; entry t - j is the same; the middle takes what is left, so it
        is the only one that is off by more than one unit (by 2t at most).
        """
        return _weights(float(self.sigma), int(self.truncation))

    @property
    def cdf_table(self) -> WordArray:
        """Thresholds for a look-up, shape (2t,): D is the number of entries that are <= the word.

        The last sum, 2^64, is left out: it needs no comparison and does not fit a word.
        """
        return _cdf_table(float(self.sigma), int(self.truncation))

    @property
    def event(self) -> ShiftEvent:
        """The privacy event of one group's records, of all its parties together."""
        return ShiftEvent(weights=self.weights)

    @property
    def end_probability(self) -> Fraction:
        """Chance of no decoys (or of 2t); a delta that each group is charged once."""
        return Fraction(self.weights[0], WORDS)

    @property
    def mean(self) -> int:
        """Expected decoys of a cell: t, by symmetry."""
        return self.truncation

    @property
    def variance(self) -> Fraction:
        """Variance of the decoys of a cell, from the table."""
        spread = sum(
            weight * (value - self.truncation) ** 2 for value, weight in enumerate(self.weights)
        )
        return Fraction(spread, WORDS)

    @property
    def table_hash(self) -> str:
        """SHA-256 of the table, 8 little-endian bytes an entry; a plan holds it (rule R3)."""
        data = b"".join(weight.to_bytes(8, "little") for weight in self.weights)
        return hashlib.sha256(data).hexdigest()


def decoy_law(mu: float, *, delta_share: float, server_sigma: float | None = None) -> DecoyLaw:
    """Return the law whose counts cost about `mu` of Gaussian privacy.

    Args:
        mu: Sigma is the smallest float that is not below 1 / mu.
        delta_share: Largest allowed `end_probability`, which fixes t: the smallest that obeys.
        server_sigma: Scale of the server's noise; sigma if not given.
    """
    _validate.positive(mu=mu)
    _validate.open_unit(delta_share=delta_share)
    limit = math.floor(Fraction(delta_share) * WORDS)
    if limit < 1:
        raise ParameterError(f"delta_share must be >= 2^-64, got {delta_share!r}")
    sigma = _inverse_above(float(mu))
    law = DecoyLaw(
        sigma=sigma,
        truncation=_least_truncation(sigma, limit=limit),
        server_sigma=sigma if server_sigma is None else server_sigma,
    )
    if law.end_probability > Fraction(delta_share):
        raise PrivacyError("the truncation of the decoy law is too short for its share of delta")
    return law


def rough_truncation(sigma: float, *, delta_share: float) -> float:
    """Return about the t of `decoy_law`, from the density of a Gaussian at its end."""
    at_the_middle = 1 / (sigma * math.sqrt(2 * math.pi))
    return sigma * math.sqrt(2 * max(math.log(at_the_middle / delta_share), 0.0))


def collusion_law(epsilon: float | None, *, n_local_clusters: int) -> DirectLabels | None:
    """Return the randomised response of a party for `collusion_epsilon`; None if there is none.

    A party with one cluster needs none: its label says nothing.
    """
    if epsilon is None or n_local_clusters == 1:
        return None
    return DirectLabels(epsilon=epsilon, n_local_clusters=n_local_clusters)


def sample_threshold(sample_rate: float) -> int:
    """Return how many of 2^64 words keep a user; the rate is public and above 0, up to 1."""
    _validate.positive(sample_rate=sample_rate)
    if sample_rate > 1:
        raise ParameterError(f"sample_rate must be <= 1, got {sample_rate!r}")
    threshold = math.floor(Fraction(sample_rate) * WORDS)
    if threshold < 1:
        raise ParameterError(f"sample_rate must be >= 2^-64, got {sample_rate!r}")
    return threshold


def _inverse_above(mu: float) -> float:
    sigma = 1 / mu
    if math.isinf(sigma):
        raise ParameterError(f"mu must have a finite 1 / mu, got {mu!r}")
    return math.nextafter(sigma, math.inf) if Fraction(sigma) * Fraction(mu) < 1 else sigma


def _densities(sigma: float) -> Iterator[Decimal]:
    """Yield exp(-j^2 / (2 sigma^2)) for j = 0, 1, 2, ...; to be used in the exact context."""
    ratio = (-1 / (2 * Decimal(sigma) ** 2)).exp()  # density j+1 over density j is ratio^(2j+1)
    step, density = ratio, Decimal(1)
    while True:
        yield density
        density *= step
        step *= ratio * ratio


def _words(density: Decimal, total: Decimal) -> int:
    return max(1, int((density * WORDS / total).to_integral_value()))


def _least_truncation(sigma: float, *, limit: int) -> int:
    with localcontext(_EXACT):
        total = Decimal(1)
        for truncation, density in enumerate(
            itertools.islice(_densities(sigma), 1, MAX_TRUNCATION + 1), start=1
        ):
            total += 2 * density
            if _words(density, total) <= limit:
                return truncation
    raise ParameterError(
        f"mu is too small: the decoy counts would have to reach beyond 2 x {MAX_TRUNCATION}"
    )


@functools.lru_cache(maxsize=64)
def _weights(sigma: float, truncation: int) -> tuple[int, ...]:
    with localcontext(_EXACT):
        densities = list(itertools.islice(_densities(sigma), truncation + 1))
        total = densities[0] + sum(2 * density for density in densities[1:])
        side = [_words(density, total) for density in densities[1:]]
    return (*reversed(side), WORDS - 2 * sum(side), *side)


@functools.lru_cache(maxsize=64)
def _cdf_table(sigma: float, truncation: int) -> WordArray:
    sums = list(itertools.accumulate(_weights(sigma, truncation)))[:-1]
    table = np.array(sums, dtype=np.uint64)
    table.setflags(write=False)
    return table
