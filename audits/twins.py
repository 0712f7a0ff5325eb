"""Mechanisms that are broken on purpose, in other ways than by half the noise.

Each twin claims what the sound mechanism claims (docs/concepts/rules.md lists them). An audit that
misses one of them is worth nothing.
"""

import functools
from collections.abc import Callable, Mapping

from audits import decoy_views, sketch_views
from audits.case import Scores, Twin
from audits.claims import BudgetClaim, CurveClaim
from audits.column_parts import COLUMN_TWINS
from audits.membership_parts import audit_decoys
from audits.published_gap import SharedKeys
from splitmeans.membership.sketch.registers import RegisterLaw


def _phantoms_per_cluster(
    name: str,
    *,
    gamma: float,
    least: int,
    trials: int,
    long_trials: int,
    real_encoder: bool = False,
) -> Twin:
    case = SharedKeys(gamma=gamma)
    sample = (
        sketch_views.published_both_parties if real_encoder else sketch_views.published_rare_rows
    )
    source = "encoder" if real_encoder else "law of the registers"
    return Twin(
        name=name,
        what=f"published sketches under shared keys, gamma {gamma:g}, v0 {least} ({source})",
        claim=BudgetClaim(epsilon=case.epsilon, delta=case.delta),
        sample=functools.partial(sample, case, least=least),
        trials=trials,
        long_trials=long_trials,
        event_at=1.0,
    )


def _no_phantoms() -> Twin:
    repetitions = 64
    law = RegisterLaw(gamma=1.0)
    return Twin(
        name="no-phantoms",
        what="a sketch without phantoms and without a floor",
        claim=BudgetClaim(epsilon=SharedKeys().epsilon, delta=SharedKeys().delta),
        sample=functools.partial(sketch_views.no_phantoms, law, repetitions=repetitions),
        trials=2_000,
        long_trials=10_000,
    )


def _decoy_twin(name: str, what: str, sample: Callable[..., Scores], **options: object) -> Twin:
    law = audit_decoys()
    return Twin(
        name=name,
        what=what,
        claim=CurveClaim(events=(law.event,)),
        sample=functools.partial(sample, law, **options),
        trials=2_000,
        long_trials=20_000,
    )


TWINS: Mapping[str, Callable[[], Twin]] = {
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
        decoy_views.tag_as_sample,
        rate=0.05,
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
    **COLUMN_TWINS,
}
