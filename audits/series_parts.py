"""Series and counts alone under audit: what a user has of all runs, each with half the noise."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np

from audits import fit_views, guided_views, series_views
from audits.case import Part
from audits.claims import CurveClaim, GaussianClaim
from audits.membership_parts import audit_decoys
from audits.noise_twins import with_half_noise
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, IdRules, PartySpec, Renewal, Study

_DELTA = 1e-3
_RUNS = 2
_BOUND = 2**20
_PARTIES = 8


def _series_plan() -> tuple[Plan, DecoyLaw]:
    """Return the plan of a series of two runs, and its law of decoys in each of them."""
    study = fit_views.small_study(
        membership="decoy",
        epsilon=4.0,
        delta=_DELTA,
        renewal=Renewal(runs=_RUNS),
    )
    plan = make_plan(study)
    assert isinstance(plan.membership, DecoyLaw)
    return plan, plan.membership


def _two_runs() -> Part:
    _, law = _series_plan()
    halved = audit_decoys(2 / law.sigma)
    return Part(
        name="two-runs",
        what="joined records of both runs of a series, in the cells of a user of both",
        claim=CurveClaim(events=(law.event,) * _RUNS),
        sample=functools.partial(series_views.cells_of_runs, law, runs=_RUNS),
        halved=functools.partial(series_views.cells_of_runs, halved, runs=_RUNS),
        trials=20_000,
        long_trials=200_000,
    )


def _chained_runs() -> Part:
    plan, law = _series_plan()
    broken = dataclasses.replace(plan, membership=audit_decoys(2 / law.sigma))
    return Part(
        name="chained-runs",
        what="records of two whole runs, the second from the result of the first, user in both",
        claim=CurveClaim(events=(law.event,) * _RUNS),
        sample=functools.partial(fit_views.memberships_of_runs, plan, runs=_RUNS),
        halved=functools.partial(fit_views.memberships_of_runs, broken, runs=_RUNS),
        trials=0,
        # Each is two whole runs and a publication: a third of a second for all four kinds.
        long_trials=1_000,
    )


def _chained_lloyd() -> Part:
    mechanism = GuidedLloyd(n_clusters=1, bounds=(_BOUND, _BOUND), mu=1.0)
    # Published points where the user is: the most that a result could tell of one.
    start = np.full((64, 2), _BOUND, dtype=np.int64)
    sample = functools.partial(guided_views.guided_lloyd, mechanism, start=start)
    return Part(
        name="chained-lloyd",
        what="survey and all rounds of a whole guided-lloyd that begins from published points",
        claim=GaussianClaim(mu=1.0),
        sample=sample,
        halved=with_half_noise(sample),
        trials=0,
        long_trials=5_000,
    )


def _counts_alone() -> Part:
    study = Study(
        name="audit",
        parties=tuple(PartySpec(name=f"party {n}", columns=()) for n in range(1, _PARTIES + 1)),
        n_clusters=1,
        budget=Budget(epsilon=2.0, delta=_DELTA),
        ids=IdRules(type="text"),
        expected_users=300,
    )
    plan = make_plan(study)
    law = plan.presence
    assert law is not None
    halved = audit_decoys(2 / law.sigma)
    broken = dataclasses.replace(plan, presence=halved, membership=halved)
    return Part(
        name="counts-alone",
        what="joined records of a study of counts alone, of users at just the user's parties",
        claim=CurveClaim(events=plan.events),
        sample=functools.partial(series_views.counts_alone, plan),
        halved=functools.partial(series_views.counts_alone, broken),
        trials=20_000,
        long_trials=200_000,
    )


SERIES_PARTS: Mapping[str, Callable[[], Part]] = {
    "two-runs": _two_runs,
    "counts-alone": _counts_alone,
    "chained-runs": _chained_runs,
    "chained-lloyd": _chained_lloyd,
}
