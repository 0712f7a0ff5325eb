"""Tables of columns in whole runs: accounted, stated, counted, refused where they are wrong."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from splitmeans import Study, VerticalKMeans
from splitmeans.errors import ProtocolError
from splitmeans.forecasting.noise import noise_levels
from splitmeans.plan.facts import certificate_of
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.releases import COLUMNS, EVERYONE, releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.plan.views import fellow_party_events, spelled_apart_events
from splitmeans.privacy.events import CountGaussianEvent, Relation, ShiftEvent
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.privacy.pld import epsilon_for, flatten
from splitmeans.result.node_codes import to_codes
from splitmeans.server.column_tables import problem_of_columns
from splitmeans.server.combine import check_release, combine
from splitmeans.study.features import GRID_UNITS

N = 12_000


def study(**changes):
    numbers = {
        "bank": ["income", "age"],
        "shop": ["visits"],
    }
    mapping = {
        "name": "tables",
        "parties": [
            {
                "name": name,
                "columns": [{"name": column, "low": 0, "high": 1} for column in columns],
            }
            for name, columns in numbers.items()
        ],
        "n_clusters": 2,
        "budget": {"epsilon": 2.0, "delta": 1e-6},
        "expected_users": N,
        "detail": {},
        **changes,
    }
    return Study.from_mapping(mapping)


@pytest.fixture(scope="module")
def plan():
    return make_plan(study())


def test_tables_share_the_memberships_part_and_all_of_it_keeps_the_budget(plan) -> None:
    assert [table.place for table in plan.columns.tables] == [(0, 1, 0, 0), (0, 1, 1, 0)]
    # Two tables have half of what the one table of clusters and they have together.
    assert plan.columns.law.sigma == pytest.approx(2**0.5 * plan.membership.sigma, rel=1e-6)
    assert epsilon_for(flatten(plan.events), 1e-6) <= 2.0
    bare = make_plan(replace(study(), detail=None))
    assert bare.columns is None
    assert bare.membership.sigma == pytest.approx(plan.membership.sigma / 2**0.5, rel=0.02)
    assert plan.fingerprint != replace(plan, columns=None).fingerprint


def test_they_are_one_release_of_all_parties_with_its_noise(plan) -> None:
    (listed,) = [release for release in releases_of(plan) if release.what == COLUMNS]
    assert (listed.party, listed.event) == (EVERYONE, plan.columns.event)
    parts = [part for release in releases_of(plan) for part in flatten((release.event,))]
    assert sorted(map(repr, parts)) == sorted(map(repr, flatten(plan.events)))
    lines = [line for line in noise_levels(plan, users=N) if line.release == COLUMNS]
    assert [line.what for line in lines] == [
        "decoys in each cell of two columns",
        "the server's noise on each of them",
    ]
    made = certificate_of(plan)
    assert made["server_noise"]["columns"]["tables"] == [[0, 1, 0, 0], [0, 1, 1, 0]]
    sha = {part.get("table_sha256") for part in made["releases"][-1]["parts"]}
    assert sha == {plan.columns.law.table_hash}


def test_other_onlookers_see_every_table(plan) -> None:
    (first, _) = fellow_party_events(plan, Relation.REPLACE)
    scales = [event.scale for event in first if isinstance(event, CountGaussianEvent)]
    assert scales.count(plan.columns.law.server_sigma) == 4
    apart = flatten(spelled_apart_events(plan))
    shifts = [event for event in apart if isinstance(event, ShiftEvent)]
    assert shifts.count(plan.columns.law.event) == 4


def test_a_bound_towards_parties_is_kept() -> None:
    budget = {"epsilon": 2.0, "delta": 1e-6, "party_epsilon": 1.0}
    bound = make_plan(study(budget=budget))
    views = fellow_party_events(bound, Relation.REPLACE)
    assert max(epsilon_for(view, 1e-6) for view in views) <= 1.0
    assert bound.columns is not None


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(5)
    age = rng.random(N)
    # Visits follow age in steps that no two clusters can tell, and income not at all.
    visits = (np.floor(age * 8) % 2) * 0.5 + 0.5 * rng.random(N)
    bank = np.column_stack([rng.random(N), age])
    model = VerticalKMeans(noise=InsecureSeededNoise(1), random_state=1)
    ids = [np.arange(N)] * 2
    model.fit_study(study(budget={"epsilon": 4.0, "delta": 1e-6}), [bank, visits[:, None]], ids=ids)
    return model, bank, visits


def test_columns_of_two_parties_go_together_as_in_the_rows(model) -> None:
    fitted, bank, visits = model
    rows = fitted.synopsis_.sample(N, random_state=0).to_pandas()
    truth, found = (
        np.histogram2d(age, seen, bins=[8, 2], range=[[0, 1], [0, 1]])[0] / N
        for age, seen in ((bank[:, 1], visits), (rows["bank: age"], rows["shop: visits"]))
    )
    apart = np.abs(np.outer(truth.sum(axis=1), truth.sum(axis=0)) - truth).sum() / 2
    assert apart > 0.45
    assert np.abs(found - truth).sum() / 2 < 0.25
    assert "columns together" in fitted.privacy_.statement()
    weights = fitted.synopsis_.weights
    assert weights.max() == pytest.approx(weights.min())


def test_messages_are_as_large_as_the_plan_says(model) -> None:
    fitted, *_ = model
    sizes = message_sizes(fitted.result_.plan, users=N)
    without = message_sizes(replace(fitted.result_.plan, columns=None), users=N)
    assert sizes.releases["shop"] > without.releases["shop"] + 2 * N // 2


def test_parts_that_do_not_fit_the_plan_are_refused(model) -> None:
    result = model[0].result_
    plan, release = result.plan, result.server.releases["shop"]
    check_release(plan, "shop", release)
    cases = {
        "lengths of 1 tables": {
            "columns": replace(release.columns, lengths=release.columns.lengths[:1])
        },
        "edges of columns, expected 11": {"column_edges": release.column_edges[:-1]},
        "do not ascend": {"column_edges": release.column_edges[::-1].copy()},
    }
    for words, changes in cases.items():
        with pytest.raises(ProtocolError, match=f"party 'shop' sent .*{words}"):
            check_release(plan, "shop", replace(release, **changes))
    bare = replace(plan, columns=None)
    assert "the plan does not have" in problem_of_columns(bare, 1, release)


def test_columns_of_a_cluster_without_points_are_published_too() -> None:
    n = 600
    rng = np.random.default_rng(2)
    parties = [
        {
            "name": "bank",
            "columns": [
                {"name": "income", "low": 0, "high": 1, "weight": 9},  # so clusters have all jobs
                {"name": "job", "categories": ["a", "b", "c"]},
            ],
        },
        {"name": "shop", "columns": [{"name": "visits", "low": 0, "high": 1}]},
    ]
    agreed = study(
        parties=parties,
        n_local_clusters=4,
        expected_users=n,
        budget={"epsilon": 8.0, "delta": 1e-6},
    )
    jobs = rng.integers(3, size=n)
    bank = pa.table({"income": rng.random(n), "job": np.array(["a", "b", "c"])[jobs]})
    visits = (jobs + rng.random(n)) / 3
    model = VerticalKMeans(noise=InsecureSeededNoise(1), random_state=1)
    model.fit_study(agreed, [bank, visits[:, None]], ids=[np.arange(n)] * 2)
    done = model.result_.server
    releases = [done.releases[name] for name in agreed.party_names]
    # All points at the place of one: users of the other clusters are at centres, with shares.
    points = np.repeat(releases[0].points[:1], len(releases[0].points), axis=0)
    releases[0] = replace(releases[0], points=points)
    made = combine(done.plan, releases, noise=InsecureSeededNoise(2), rng=rng).synopsis
    on_grid = np.rint(made.scaled_nodes * GRID_UNITS).astype(np.int64)
    codes = to_codes(done.plan.parties, on_grid, made.labels, [own.centres for own in releases])
    assert set(codes[:, 1]) <= {0, 1, 2}
    assert len(set(codes[:, 1])) > 1
