"""Public parameters of IND-LAP: a histogram with Laplace noise (paper, section 4.1, baseline 1)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import LaplaceEvent


@dataclass(frozen=True, kw_only=True)
class NoisyHistogram:
    """Cluster sizes of one party plus discrete Laplace noise of scale 1 / epsilon.

    Guarantee: epsilon-DP for adding or removing one user, who changes one size by one (L1
    sensitivity 1). Replacing a user changes two sizes and costs twice that.
    """

    TAG: ClassVar[str] = "NoisyHistogram"

    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        if math.isinf(1 / self.epsilon):
            raise ParameterError(f"epsilon must have a finite 1 / epsilon, got {self.epsilon!r}")

    @property
    def scale(self) -> float:
        """Scale of the noise: the smallest float that is not below 1 / epsilon."""
        scale = 1 / float(self.epsilon)
        if Fraction(scale) * Fraction(float(self.epsilon)) < 1:
            return math.nextafter(scale, math.inf)
        return scale

    @property
    def event(self) -> LaplaceEvent:
        """The privacy event of one party's message."""
        return LaplaceEvent(noise_multiplier=self.scale, single_count=True)
