"""DPFM: the differentially private Flajolet-Martin sketch of one set (paper, Algorithm 2)."""

import math
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import RegisterArray, WordArray
from splitmeans.errors import PrivacyError
from splitmeans.kernels.registers import user_registers
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class SketchParameters:
    """Public parameters of the sketches, the same for all parties.

    Attributes:
        epsilon_2: Privacy loss of one party's sketch.
        delta_2: Its delta.
        gamma: Parameter of the geometric distribution; smaller is finer.
        repetitions: M, the number of hash keys.
    """

    epsilon_2: float
    delta_2: float
    gamma: float = 1.0
    repetitions: int = 4096

    def __post_init__(self) -> None:
        _validate.positive(epsilon_2=self.epsilon_2)
        _validate.open_unit(delta_2=self.delta_2)
        _validate.at_least(1, repetitions=self.repetitions)
        most = 2 * math.log(1 / self.delta_2)
        if self.epsilon_2 > most:
            raise PrivacyError(
                f"epsilon_2 must be <= 2 ln(1/delta_2) = {most:.4g} for the privacy lemma of "
                f"Algorithm 2 to hold, got {self.epsilon_2!r}; lower epsilon or delta"
            )

    @property
    def epsilon_prime(self) -> float:
        """Privacy loss of one of the M sketches (Algorithm 3, line 1)."""
        return self.epsilon_2 / (4 * math.sqrt(self.repetitions * math.log(1 / self.delta_2)))

    @property
    def phantoms(self) -> int:
        """Phantom elements of each set, n_p (Algorithm 2, line 1)."""
        return math.ceil(1 / math.expm1(self.epsilon_prime))

    @property
    def floor(self) -> int:
        """Smallest value of a sketch, alpha_min (Algorithm 2, line 1)."""
        return math.ceil(-math.log(-math.expm1(-self.epsilon_prime)) / math.log1p(self.gamma))


def dpfm(
    member_hashes: WordArray, parameters: SketchParameters, *, noise: NoiseSource
) -> RegisterArray:
    """Return M sketches alpha of one set, one for each hash key, shape (M,).

    Guarantee: (epsilon_2, delta_2)-DP for adding or removing one element, for this set's sketches
    alone and while the observer does not know the hash keys.

    The M values H_zeta(id) of an element come from a stream of random words that its 128-bit hash
    starts. Values up to alpha_min never show, so only those above it are drawn: how many of the M
    there are, which ones, and by how much they exceed it.

    `member_hashes` has a keyed 128-bit hash of each element, shape (size, 2).
    """
    n_p, alpha_min = parameters.phantoms, parameters.floor
    geometric = RegisterLaw(gamma=parameters.gamma)
    words = noise.words(parameters.repetitions)
    alpha_p = 1 + np.searchsorted(geometric.maximum_table(n_p), words, side="right")
    # The maximum of the elements' values and alpha_min.
    alpha_real = user_registers(
        member_hashes,
        np.zeros(len(member_hashes), dtype=np.int32),
        n_clusters=1,
        repetitions=parameters.repetitions,
        floor=alpha_min,
        count_table=geometric.count_table(repetitions=parameters.repetitions, floor=alpha_min),
        excess_table=geometric.value_table,
    )[:, 0]
    return np.maximum(alpha_p, alpha_real).astype(np.uint16)
