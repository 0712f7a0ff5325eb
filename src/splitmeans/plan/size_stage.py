"""The stage in which parties release how many users they have, and its laws.

It is for k' alone, where the study leaves k' open: a rough number does, so its share of the budget
is small (`privacy.split`). Each party has a number of its own, and a user moves all of them by one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.local.law import COUNT_UNITS, gaussian_event, mu_scale
from splitmeans.plan.stages import Stage, StageLaw
from splitmeans.privacy.events import GaussianEvent
from splitmeans.study import Study

SIZE = "size"

# Noise exceeds `most_noise` with a probability below exp(-_TAIL) = 2e-22.
_TAIL = 50


@dataclass(frozen=True, kw_only=True)
class SizeLaw:
    """The number of users with discrete Gaussian noise, then rounded to whole users.

    Guarantee: a user added or removed moves it by one; `event` says what that costs. Replacing a
    user's values moves nothing. The noise has `scale` in 1/COUNT_UNITS of a user.
    """

    TAG: ClassVar[str] = "GaussianSize"

    scale: int

    def __post_init__(self) -> None:
        _validate.at_least(1, scale=self.scale)

    @property
    def length(self) -> int:
        """One number."""
        return 1

    @property
    def event(self) -> GaussianEvent:
        """The cost of one party's number."""
        return gaussian_event(self.scale, sensitivity=COUNT_UNITS, coordinates=1)

    @property
    def replaced_event(self) -> None:
        """Nothing changes."""
        return

    @property
    def most_noise(self) -> int:
        """Users by which the number is below the truth, or above it, at most (`_TAIL`)."""
        # The noise is sub-Gaussian; rounding to whole users adds less than one.
        return math.ceil(math.sqrt(2 * _TAIL) * self.scale / COUNT_UNITS) + 1

    def noise_lines(self) -> Iterator[NoiseLine]:
        """Yield the noise in users."""
        yield "number of users", self.scale / COUNT_UNITS, "users"


def sizing_parties(study: Study) -> tuple[str, ...]:
    """Return the parties that release how many users they have; none where nobody must know."""
    # A study of counts alone has one cluster, whatever the number of users.
    if study.n_local_clusters != "auto" or study.counts_only:
        return ()
    return study.party_names


def size_stage(study: Study, law: StageLaw) -> Stage:
    """Return the stage of a study that has it."""
    return Stage(name=SIZE, what="number of users", parties=sizing_parties(study), law=law)


def size_law(mu: float) -> SizeLaw:
    """Return the law of one party's number at a given precision."""
    return SizeLaw(scale=mu_scale(COUNT_UNITS, mu=mu))
