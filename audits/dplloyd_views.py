"""What DPLloyd's iterations release, with and without a user at the bounds.

The functions look at the noisy sums before a centre is made of them. All other rows are at zero, so
the observer knows what they add up to. Scores are log likelihood ratios.
"""

from dataclasses import dataclass, field

import numpy as np

from audits.case import Scores, scores_of_calls
from splitmeans._types import FloatArray, IntArray
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# Few other rows: then it makes two iterations, and a bound on epsilon is within reach of trials.
_FEW = 5


def dplloyd_step(mechanism: DpLloyd, trials: int, noise: NoiseSource, *, iterations: int) -> Scores:
    """One of so many iterations of DPLloyd, at one centre."""
    rows = _user_among_zeros(mechanism.bounds)
    centres = np.zeros((1, len(mechanism.bounds)), dtype=np.int64)

    def one_call(present: bool) -> FloatArray:
        seen = mechanism.noisy_sums(
            as_rows(rows[: _FEW + present]), centres, iterations=iterations, noise=noise
        )
        return np.array([_laplace_gain(mechanism, seen, iterations=iterations)])

    return scores_of_calls(one_call, trials=trials)


def dplloyd(mechanism: DpLloyd, trials: int, noise: NoiseSource) -> Scores:
    """Everything that a whole run of DPLloyd computes from rows, but for the number of rows."""
    rows = _user_among_zeros(mechanism.bounds)
    rng = np.random.default_rng(0)

    def one_call(present: bool) -> FloatArray:
        watched = _WatchedDpLloyd(n_clusters=1, bounds=mechanism.bounds, epsilon=mechanism.epsilon)
        watched.release(rows[: _FEW + present], noise=noise, rng=rng)
        gains = [
            _laplace_gain(mechanism, noisy, iterations=iterations)
            for noisy, iterations in watched.seen
        ]
        return np.array([sum(gains)])

    return scores_of_calls(one_call, trials=trials)


def _user_among_zeros(bounds: tuple[int, ...]) -> IntArray:
    """Return rows at zero and, last, the user at the bounds: sums are not relative to a centre."""
    return np.vstack([np.zeros((_FEW, len(bounds)), dtype=np.int64), np.array(bounds)])


def _laplace_gain(mechanism: DpLloyd, noisy: IntArray, *, iterations: int) -> float:
    """Return the log likelihood ratio of one centre's sums and count."""
    count_scale, sum_scales = mechanism.iteration_scales(iterations)
    scales = np.array([*sum_scales, count_scale])
    change = np.array([*mechanism.bounds, 1])
    beyond = noisy[0] - np.array([0] * len(mechanism.bounds) + [_FEW])
    return float(((np.abs(beyond) - np.abs(beyond - change)) / scales).sum())


@dataclass(frozen=True, kw_only=True)
class _WatchedDpLloyd(DpLloyd):
    seen: list[tuple[IntArray, int]] = field(default_factory=list)

    def noisy_sums(
        self, raw_rows: RawRows, centres: IntArray, *, iterations: int, noise: NoiseSource
    ) -> IntArray:
        noisy = super().noisy_sums(raw_rows, centres, iterations=iterations, noise=noise)
        self.seen.append((noisy, iterations))
        return noisy
