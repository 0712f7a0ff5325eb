"""What the server gets from whole small runs, with and without a user.

The parties' releases are all that a run sends to the server about rows; everything after them is
computed from them.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores
from audits.sketch_views import fresh_key
from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import high_bits_of
from splitmeans.party.release import release_party
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.server.combine import combine
from splitmeans.study import Budget, Column, PartySpec, Renewal, Study
from splitmeans.study.features import bounds_of, features_of
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable
from splitmeans.wire.messages import DecoyMessage, PartyRelease

# Users beside the one who comes or goes.
_OTHERS = 30


def small_study(
    *,
    membership: str,
    epsilon: float,
    delta: float,
    renewal: Renewal | None = None,
) -> Study:
    """Two parties with one column each and two clusters each."""
    column = Column(name="x", low=-1.0, high=1.0)
    return Study(
        name="audit",
        parties=(
            PartySpec(name="one", columns=(column,)),
            PartySpec(name="two", columns=(column,)),
        ),
        n_clusters=2,
        budget=Budget(epsilon=epsilon, delta=delta),
        membership=membership,
        n_local_clusters=2,
        expected_users=100,
        renewal=renewal,
    )


def memberships_of_runs(plan: Plan, trials: int, noise: NoiseSource, *, runs: int = 1) -> Scores:
    """Both parties' releases of whole decoy runs, reduced to the count of the user's cell.

    A trial is one run, or a series of them that the user is in all of: each then follows what the
    server made of the one before, and the counts of all are added up.

    The observer knows everybody's rows. From the released centres it works out every label, so it
    knows which cell the user would be in and how many others are there; what the server counts
    beyond that is decoys, and the user. Whatever the centres are, this costs what the membership
    release costs.
    """

    def scores(present: bool, rng: np.random.Generator) -> FloatArray:
        side = "with" if present else "without"
        sources = (noise.spawn(f"{side} {trial}") for trial in range(trials))
        return np.array([_series(plan, present, runs=runs, noise=own, rng=rng) for own in sources])

    first, second = np.random.default_rng(0).spawn(2)
    return Scores(with_user=scores(True, first), without=scores(False, second))


def _series(
    plan: Plan, present: bool, *, runs: int, noise: NoiseSource, rng: np.random.Generator
) -> float:
    score, previous = 0.0, None
    for number in range(1, runs + 1):
        own = noise.spawn(f"run {number}")
        beyond, releases = _one_run(plan, present, noise=own, rng=rng, previous=previous)
        score += beyond
        if number < runs:
            publication = own.spawn("publication")
            combined = combine(plan, releases, noise=publication, rng=rng, previous=previous)
            previous = combined.synopsis
    return score


def _one_run(
    plan: Plan,
    present: bool,
    *,
    noise: NoiseSource,
    rng: np.random.Generator,
    previous: Synopsis | None,
) -> tuple[float, list[PartyRelease]]:
    rows = _rows(plan.study)
    n = _OTHERS + present
    ids = pa.array([f"user {i}" for i in range(n)], type=pa.large_string())
    key = fresh_key(noise)
    releases = [
        release_party(
            plan,
            PartyTable(party=party, ids=ids, raw_rows=own[:n]),
            run_key=key,
            noise=noise.spawn(party),
            rng=rng,
            previous=previous,
        )
        for party, own in zip(plan.study.party_names, rows, strict=True)
    ]
    return _count_beyond_others(plan, rows, releases), releases


def _rows(study: Study) -> list[IntArray]:
    """Return each party's rows; the user is last, alone in a combination of corners."""
    limits = [int(bounds_of(features_of(party))[0]) for party in study.parties]
    group = np.arange(_OTHERS) % 2
    others = np.where(group, 1, -1)
    columns = [np.append(others, 1) * limits[0], np.append(others, -1) * limits[1]]
    return [column.astype(np.int64)[:, np.newaxis] for column in columns]


def _count_beyond_others(plan: Plan, rows: list[IntArray], releases: list[PartyRelease]) -> float:
    messages = [
        release.membership for release in releases if isinstance(release.membership, DecoyMessage)
    ]
    assert isinstance(plan.membership, DecoyLaw), "a study with decoys"
    tables = join_counts(
        messages,
        groups=plan.groups,
        n_local_clusters=plan.n_local_clusters,
        high_bits=high_bits_of(plan.membership, plan),
    )
    labels = np.stack(
        [nearest(own, release.centres) for own, release in zip(rows, releases, strict=True)]
    )
    cell = labels[:, -1]
    others = (labels[:, :-1] == cell[:, np.newaxis]).all(axis=0).sum()
    return float(tables[plan.groups[0]][tuple(cell)] - others)
