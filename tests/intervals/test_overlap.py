"""Who is at which parties: hand-computed counts, least squares against a plain twin, coverage."""

import dataclasses
import math

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.intervals.overlap import overlap_of
from splitmeans.membership.decoy.estimate import DecoyEstimator
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, PartySpec, Study
from splitmeans.study.id_rules import IdRules
from splitmeans.synopsis.presence_counts import (
    count_presence,
    patterns_of,
    presence_length,
    presence_tables,
)
from tests.scene import make_study


def counts_study(n_parties=3, **changes):
    facts = {
        "name": "counts",
        "parties": tuple(PartySpec(name=f"org{at}") for at in range(n_parties)),
        "n_clusters": 1,
        "budget": Budget(epsilon=1, delta=1e-6),
        "ids": IdRules(type="text"),
    }
    return Study(**facts | changes)


def counted(plan):
    """The variance of a count of the presence table."""
    return float(plan.presence.variance) + plan.presence.server_sigma**2


def test_patterns_begin_with_all_parties_and_leave_nobody_out():
    assert patterns_of(2).tolist() == [[1, 1], [1, 0], [0, 1]]
    assert len(patterns_of(5)) == 31


def test_a_pair_of_parties_by_hand():
    plan = make_plan(counts_study(2))
    found = overlap_of(plan, np.array([40, 60, 100]))
    half = 1.96 * math.sqrt(counted(plan))
    assert found.at_all.parties == ("org0", "org1")
    assert (found.at_all.users, found.exactly("org1").users) == (40, 100)
    assert found.at_all.low == pytest.approx(40 - half)
    assert found.at_all.high == pytest.approx(40 + half)
    # Sums have the noise of all their counts.
    assert found.parties[0].users == 100
    assert found.parties[0].high == pytest.approx(100 + half * math.sqrt(2))
    assert found.everyone.users == 200
    assert found.shares[0].share == pytest.approx(0.4)
    assert found.shares[0].low < 0.4 < found.shares[0].high
    with pytest.raises(ParameterError, match="two of org0, org1"):
        found.both("org0", "org7")


def test_nobody_is_fewer_than_none():
    plan = make_plan(counts_study(2))
    found = overlap_of(plan, np.array([-500, 0, 5]))
    assert (found.at_all.users, found.at_all.low, found.at_all.high) == (0, 0, 0)
    assert found.shares == ()


def test_pair_tables_and_presence_table_are_fitted_as_a_plain_least_squares_does():
    study = make_study(n_parties=3, budget=Budget(epsilon=1, delta=1e-6))
    plan = make_plan(study)
    rng = np.random.default_rng(3)
    truth = rng.integers(50, 500, size=7)
    patterns = patterns_of(3)
    counts, rows, observed, variances = [], [], [], []
    for group in plan.groups:
        law, width = (plan.presence, 1) if len(group) == 3 else (plan.membership, 4)
        for way in patterns_of(len(group)):
            seen = (patterns[:, group] == way).all(axis=1)
            cells = width ** int(way.sum())
            variance = cells * (float(law.variance) + law.server_sigma**2)
            value = int(seen @ truth + rng.normal(scale=math.sqrt(variance)))
            counts.append(value)
            rows.append(seen / math.sqrt(variance))
            observed.append(value / math.sqrt(variance))
            variances.append(variance)
    assert presence_length(plan) == len(counts)
    found = overlap_of(plan, np.array(counts))
    matrix = np.array(rows)
    inverse = np.linalg.inv(matrix.T @ matrix)
    plain = inverse @ matrix.T @ np.array(observed)
    assert [one.users for one in found.patterns] == pytest.approx(np.maximum(plain, 0).tolist())
    both = patterns[:, 0] * patterns[:, 1]
    half = 1.96 * math.sqrt(both @ inverse @ both)
    assert found.both("org0", "org1").high == pytest.approx(both @ plain + half)


def test_sums_over_clusters_are_those_of_the_noisy_tables():
    study = make_study(n_local_clusters=2)
    plan = make_plan(study)
    law = plan.membership
    table = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 0]]) + law.mean
    estimator = DecoyEstimator(law=law, noisy_tables={(0, 1): table}, n_local_clusters=(2, 2))
    assert count_presence(plan, estimator).tolist() == [12, 9, 15]
    assert presence_tables(plan, np.array([12, 9, 15]))[0, 1].tolist() == [12, 9, 15]


def test_a_sketch_has_no_overlap_to_count():
    plan = make_plan(make_study("sketch"))
    assert presence_length(plan) == 0
    with pytest.raises(ParameterError, match="take membership='decoy'"):
        overlap_of(plan, np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("shared", [0, 5, 40])
def test_intervals_of_small_overlaps_cover(shared):
    """200 draws of the real laws; below 90 % of them right has a probability below 0.002."""
    plan = make_plan(counts_study(2))
    law = plan.membership
    rng = np.random.default_rng(shared)
    truth = np.array([shared, 300, 800])
    weights = np.array(law.weights, dtype=np.float64) / 2.0**64
    right = 0
    for _ in range(200):
        decoys = rng.choice(len(weights), size=3, p=weights / weights.sum()) - law.mean
        server = np.rint(rng.normal(scale=law.server_sigma, size=3)).astype(np.int64)
        found = overlap_of(plan, truth + decoys + server).at_all
        right += found.low <= shared <= found.high
    assert right >= 180


def test_a_sample_adds_its_own_error():
    study = counts_study(2, expected_users=40_000)
    sampled = dataclasses.replace(study, decoy=dataclasses.replace(study.decoy, max_users=20_000))
    plan = make_plan(sampled)
    assert plan.sample_rate == 0.5
    found = overlap_of(plan, np.array([5000, 1000, 1000])).at_all
    assert found.users == 10_000
    assert found.high - found.users == pytest.approx(
        1.96 * math.sqrt(counted(plan) / 0.25 + 10_000)
    )
