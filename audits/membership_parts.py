"""The parts of counting and membership under audit, each with half its noise as a twin."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

from audits import (
    bundle_views,
    decoy_views,
    fit_views,
    label_views,
    sketch_views,
    table_views,
)
from audits.case import Part, Sampler, Scores
from audits.claims import BudgetClaim, CurveClaim, GaussianClaim
from audits.noise_twins import with_half_noise
from splitmeans.membership.decoy.direct_labels import DirectLabels
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law, decoy_law
from splitmeans.membership.sketch.law import SketchLaw, phantoms_for
from splitmeans.plan.settle import make_plan
from splitmeans.plan.size_stage import SIZE, size_law
from splitmeans.plan.stages import Stage
from splitmeans.privacy.events import CountGaussianEvent

_DELTA = 1e-3
_DECOY_MU = 0.5
# Noise of two users, so that rounding to whole users hides nothing that a test could see.
_SIZE_MU = 0.5


def audit_decoys(mu: float = _DECOY_MU) -> DecoyLaw:
    """The decoy law that is audited; at twice its mu it has half the noise."""
    return decoy_law(mu, delta_share=1e-5)


def _size() -> Part:
    law = size_law(_SIZE_MU)
    stage = Stage(name=SIZE, what="number of users", parties=("audit",), law=law)
    sample = functools.partial(label_views.user_count, stage)
    return Part(
        name="size",
        what="noisy number of users of the stage that k' follows from",
        claim=GaussianClaim(mu=_SIZE_MU),
        sample=sample,
        halved=with_half_noise(sample),
        trials=15_000,
        long_trials=100_000,
    )


def _randomised() -> Part:
    def sample(epsilon: float) -> Sampler:
        response = DirectLabels(epsilon=epsilon, n_local_clusters=5)
        return functools.partial(label_views.randomised_label, response)

    return Part(
        name="randomised-label",
        what="a user's randomised label among 5, replaced",
        claim=BudgetClaim(epsilon=1.0),
        sample=sample(1.0),
        halved=sample(2.0),
        trials=40_000,
        long_trials=1_000_000,
    )


def _coalition() -> Part:
    def sample(epsilon: float) -> Sampler:
        response = collusion_law(epsilon, n_local_clusters=5)
        assert response is not None
        return functools.partial(decoy_views.coalition, audit_decoys(), response=response)

    return Part(
        name="collusion",
        what="a user's record, towards the server and a party together, replaced",
        claim=BudgetClaim(epsilon=1.0),
        sample=sample(1.0),
        halved=sample(2.0),
        trials=40_000,
        long_trials=500_000,
    )


def _decoy(name: str, what: str, *, rate: float) -> Part:
    law, halved = audit_decoys(), audit_decoys(2 * _DECOY_MU)
    return Part(
        name=name,
        what=what,
        claim=CurveClaim(events=(law.event,)),
        sample=functools.partial(decoy_views.changed_cell, law, rate=rate),
        halved=functools.partial(decoy_views.changed_cell, halved, rate=rate),
        trials=30_000,
        long_trials=500_000,
    )


def _presence() -> Part:
    law, halved = audit_decoys(), audit_decoys(2 * _DECOY_MU)
    return Part(
        name="presence",
        what="joined records of eight parties, of users at just the user's parties",
        claim=CurveClaim(events=(law.event,)),
        sample=functools.partial(decoy_views.changed_presence, law),
        halved=functools.partial(decoy_views.changed_presence, halved),
        trials=30_000,
        long_trials=500_000,
    )


def _tables(name: str, what: str, view: Callable[..., Scores], *, n_tables: int) -> Part:
    """Return a part in which a user is in one cell of each of several tables."""
    law, halved = audit_decoys(), audit_decoys(2 * _DECOY_MU)
    return Part(
        name=name,
        what=f"joined records of {what}, in the user's cells",
        claim=CurveClaim(events=(law.event,) * n_tables),
        sample=functools.partial(view, law),
        halved=functools.partial(view, halved),
        trials=30_000,
        long_trials=300_000,
    )


def _fellow_party() -> Part:
    law = audit_decoys()
    sample = functools.partial(decoy_views.fellow_party, law)
    return Part(
        name="fellow-party",
        what="published counts H + D + E, towards a party that knows the decoys",
        claim=CurveClaim(events=(CountGaussianEvent(scale=law.server_sigma),) * 2),
        sample=sample,
        halved=with_half_noise(sample),
        trials=30_000,
        long_trials=200_000,
    )


def _sketch() -> Part:
    rows, floor = 512, 4
    phantoms = phantoms_for(1.0, repetitions=rows, gamma=1.0, floor=floor)
    law = SketchLaw(repetitions=rows, gamma=1.0, phantoms=phantoms, floor=floor)
    halved = dataclasses.replace(law, phantoms=phantoms // 2)
    return Part(
        name="sketch",
        what="cell sketches of two parties together",
        claim=CurveClaim(events=(law.event,)),
        sample=functools.partial(sketch_views.sketch, law),
        halved=functools.partial(sketch_views.sketch, halved),
        trials=6_000,
        long_trials=100_000,
    )


def _whole_run() -> Part:
    study = fit_views.small_study(membership="decoy", epsilon=4.0, delta=_DELTA)
    plan = make_plan(study)
    law = plan.membership
    assert isinstance(law, DecoyLaw)
    broken = dataclasses.replace(plan, membership=audit_decoys(2 / law.sigma))
    return Part(
        name="whole-run",
        what="records of whole runs of two parties, in the user's cell",
        claim=CurveClaim(events=(law.event,)),
        sample=functools.partial(fit_views.memberships_of_runs, plan),
        halved=functools.partial(fit_views.memberships_of_runs, broken),
        trials=0,
        long_trials=3_000,
    )


MEMBERSHIP_PARTS: Mapping[str, Callable[[], Part]] = {
    "size": _size,
    "randomised-label": _randomised,
    "decoy": functools.partial(
        _decoy, "decoy", "joined records of two parties, in the user's cell", rate=1.0
    ),
    "decoy-sampled": functools.partial(
        _decoy, "decoy-sampled", "the same for a user who is in a sample", rate=0.05
    ),
    "presence": _presence,
    "bundles": functools.partial(
        _tables,
        "bundles",
        "two pair tables that count clusters in bundles",
        bundle_views.changed_cells,
        n_tables=bundle_views.N_TABLES,
    ),
    "columns": functools.partial(
        _tables,
        "columns",
        "two tables of columns",
        table_views.changed_cells,
        n_tables=table_views.N_TABLES,
    ),
    "fellow-party": _fellow_party,
    "collusion": _coalition,
    "sketch": _sketch,
    "whole-run": _whole_run,
}
