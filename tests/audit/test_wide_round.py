"""A round that releases the sum of many columns' squares stays under its claim.

Seeds are fixed, so a run repeats. Over seeds the sound bound exceeds its claim with probability
below 1e-3.
"""

import dataclasses
import functools

from splitmeans.audit import guided_views
from splitmeans.audit.case import Part, Twin, run_case
from splitmeans.audit.claims import GaussianClaim
from splitmeans.audit.noise_twins import Silence, with_half_noise
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.laws.guided_lloyd import MOST_SQUARES
from splitmeans.privacy.noise import InsecureSeededNoise

# Four columns are far wider than the others, so that many centres have room on them.
_BOUNDS = (2**20,) * 4 + (2**17,) * (MOST_SQUARES - 3)
_CLAIM = GaussianClaim(mu=1.0)
_TRIALS = 10_000


def test_a_wide_round_stays_under_its_claim_and_half_its_noise_is_caught() -> None:
    mechanism = GuidedLloyd(n_clusters=1, bounds=_BOUNDS, mu=1.0)
    assert mechanism.n_squares == 1
    sample = functools.partial(guided_views.one_round, mechanism)
    part = Part(
        name="wide-round",
        what="noisy sums of one round over thirteen columns, user at three radii",
        claim=_CLAIM,
        sample=sample,
        halved=with_half_noise(sample),
        trials=_TRIALS,
        long_trials=0,
    )
    found = run_case(part, noise=InsecureSeededNoise(7), confidence=1 - 1e-3)
    assert found.sound is not None
    assert 0.35 * found.sound.allowed < found.sound.shown <= found.sound.allowed
    assert found.broken.shown > found.broken.allowed


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
    twin = Twin(
        name="heavy-squares",
        what="a round whose squares weigh too much",
        claim=_CLAIM,
        sample=functools.partial(guided_views.one_round, mechanism),
        trials=_TRIALS,
        long_trials=0,
    )
    found = run_case(twin, noise=InsecureSeededNoise(7), confidence=1 - 1e-3)
    assert found.verdict == "caught"
