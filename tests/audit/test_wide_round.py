"""A round whose sum of many columns' squares weighs too much is noticed; the seed is fixed."""

import dataclasses
import functools

from audits import guided_views
from audits.case import Twin, run_case
from audits.claims import GaussianClaim
from audits.noise_twins import Silence
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.laws.guided_lloyd import MOST_SQUARES
from splitmeans.privacy.noise import InsecureSeededNoise

# Four columns are far wider than the others, so that many centres have room on them.
_BOUNDS = (2**20,) * 4 + (2**17,) * (MOST_SQUARES - 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeavySquares(GuidedLloyd):
    """Broken: the sum of squares has four times the weight that the noise is made for."""

    def noisy_sums(self, rows, centres, radii, *, mu, noise):  # type: ignore[no-untyped-def]
        noisy = super().noisy_sums(rows, centres, radii, mu=mu, noise=noise)
        exact = super().noisy_sums(rows, centres, radii, mu=mu, noise=Silence())
        noisy[:, -1] += 3 * exact[:, -1]
        return noisy


def test_a_sum_of_squares_that_is_too_large_is_noticed() -> None:
    mechanism = HeavySquares(n_clusters=1, bounds=_BOUNDS, mu=1.0)
    assert mechanism.n_squares == 1
    twin = Twin(
        name="heavy-squares",
        what="a round whose squares weigh too much",
        claim=GaussianClaim(mu=1.0),
        sample=functools.partial(guided_views.one_round, mechanism),
        trials=10_000,
        long_trials=0,
    )
    found = run_case(twin, noise=InsecureSeededNoise(7), confidence=1 - 1e-3)
    assert found.verdict == "caught"
