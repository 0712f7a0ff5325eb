"""Mechanisms that are broken on purpose: an audit that misses one of them is worth nothing.

Each twin claims what the sound mechanism claims (docs/concepts/rules.md lists them).
"""

import functools
import math
from collections.abc import Callable, Mapping

from splitmeans.audit import decoy_views, local_views, sketch_views
from splitmeans.audit.case import Case, Sampler, Scores
from splitmeans.audit.local_views import HalfNoise
from splitmeans.audit.mechanisms import DELTA, audit_decoys, audit_gaussian_tree
from splitmeans.audit.published_gap import SharedKeys, true_cost
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.sketch.law import RegisterLaw
from splitmeans.privacy.events import GaussianEvent
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.pld import epsilon_for

# A coarse grid is enough to show the size of the gap beside an audit.
_GAP_POINTS = 2**18


def _half_laplace() -> Case:
    law = NoisyHistogram(epsilon=1.0)
    return Case(
        name="half-laplace",
        what="cluster size with half the Laplace noise",
        claimed=law.epsilon,
        delta=0.0,
        exact=2 / law.scale,
        sample=_with_half_noise(functools.partial(local_views.histogram, law)),
        trials=20_000,
        long_trials=500_000,
        sound=False,
    )


def _half_gaussian() -> Case:
    tree = audit_gaussian_tree()
    (event,) = tree.event.parts[-1:]
    assert isinstance(event, GaussianEvent)
    halved = GaussianEvent(noise_multiplier=event.noise_multiplier / 2, slack=event.slack)
    return Case(
        name="half-gaussian",
        what="leaf sum with half the Gaussian noise",
        claimed=1.0,
        delta=DELTA,
        exact=epsilon_for((halved,), DELTA),
        sample=_with_half_noise(functools.partial(local_views.leaf_sum, tree)),
        trials=60_000,
        long_trials=200_000,
        sound=False,
    )


def _half_decoys() -> Case:
    stated, used = audit_decoys(), audit_decoys(mu=1.0)
    return Case(
        name="half-decoys",
        what="decoy counts of half the spread",
        claimed=epsilon_for((stated.event,), DELTA),
        delta=DELTA,
        exact=epsilon_for((used.event,), DELTA),
        sample=functools.partial(decoy_views.changed_cell, used),
        trials=40_000,
        long_trials=500_000,
        sound=False,
    )


def _phantoms_per_cluster(
    name: str,
    *,
    gamma: float,
    least: int,
    trials: int,
    long_trials: int,
    real_encoder: bool = False,
) -> Case:
    case = SharedKeys(gamma=gamma)
    sample = (
        sketch_views.published_both_parties if real_encoder else sketch_views.published_rare_rows
    )
    source = "encoder" if real_encoder else "law of the registers"
    return Case(
        name=name,
        what=f"published sketches under shared keys, gamma {gamma:g}, v0 {least} ({source})",
        claimed=case.epsilon,
        delta=case.delta,
        exact=true_cost(case, points=_GAP_POINTS).epsilon,
        sample=functools.partial(sample, case, least=least),
        trials=trials,
        long_trials=long_trials,
        sound=False,
        event_at=1.0,
    )


def _no_phantoms() -> Case:
    repetitions = 64
    law = RegisterLaw(gamma=1.0)
    return Case(
        name="no-phantoms",
        what="a sketch without phantoms and without a floor",
        claimed=SharedKeys().epsilon,
        delta=SharedKeys().delta,
        exact=math.inf,
        sample=functools.partial(sketch_views.no_phantoms, law, repetitions=repetitions),
        trials=2_000,
        long_trials=10_000,
        sound=False,
    )


def _decoy_twin(name: str, what: str, sample: Callable[..., Scores], **options: object) -> Case:
    law = audit_decoys()
    return Case(
        name=name,
        what=what,
        claimed=epsilon_for((law.event,), DELTA),
        delta=DELTA,
        exact=math.inf,
        sample=functools.partial(sample, law, **options),
        trials=2_000,
        long_trials=20_000,
        sound=False,
    )


def _with_half_noise(sample: Sampler) -> Sampler:
    def broken(trials: int, noise: NoiseSource) -> Scores:
        return sample(trials, HalfNoise(noise))

    return broken


TWINS: Mapping[str, Callable[[], Case]] = {
    "half-laplace": _half_laplace,
    "half-gaussian": _half_gaussian,
    "half-decoys": _half_decoys,
    "phantoms-per-cluster": functools.partial(
        _phantoms_per_cluster,
        "phantoms-per-cluster",
        gamma=0.02,
        least=693,
        trials=50_000,
        long_trials=200_000,
    ),
    "phantoms-per-cluster-encoder": functools.partial(
        _phantoms_per_cluster,
        "phantoms-per-cluster-encoder",
        gamma=0.02,
        least=693,
        trials=0,
        long_trials=20_000,
        real_encoder=True,
    ),
    "phantoms-per-cluster-gamma-1": functools.partial(
        _phantoms_per_cluster,
        "phantoms-per-cluster-gamma-1",
        gamma=1.0,
        least=25,
        trials=0,
        long_trials=4_000_000,
    ),
    "no-phantoms": _no_phantoms,
    "tag-as-sample": functools.partial(
        _decoy_twin,
        "tag-as-sample",
        "decoy join that samples users by their tags",
        decoy_views.low_tags,
        rate=0.05,
        broken=True,
    ),
    "reused-key": functools.partial(
        _decoy_twin,
        "reused-key",
        "two data sets under one run key",
        decoy_views.second_message,
        joined=True,
    ),
    "recomputed-retry": functools.partial(
        _decoy_twin,
        "recomputed-retry",
        "a retry that was computed again",
        decoy_views.second_message,
        joined=False,
    ),
    "own-decoys": functools.partial(
        _decoy_twin, "own-decoys", "decoys that each party draws itself", decoy_views.own_decoys
    ),
}
