"""The rules for labels and local clusters of three or more parties, by hand."""

import dataclasses

import pytest

from splitmeans.membership.decoy.auto_clusters import decoy_clusters, decoy_labels
from splitmeans.membership.methods import method_of
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.study import Budget, DecoyOptions, IdRules
from tests.plan.test_plan import open_study


def _study(n_parties, k, **more):
    return open_study(n_parties=n_parties, n_clusters=k, **more)


@pytest.mark.parametrize(
    ("n_parties", "k", "labels", "expected"),
    [
        # Three tables of 28 x 28 cells are 2,352, more than 30 for each of 50 segments.
        (4, 50, 28, 55),
        # Two tables of 27 x 27 cells are 1,458: fewer than 1,500.
        (3, 50, 27, 27),
        # Labels for three quarters of the segments are enough.
        (4, 50, 37, 55),
        (4, 50, 38, 38),
        # No more than two clusters to a label, and labels for a quarter of the segments.
        (16, 50, 13, 26),
        (16, 50, 12, 12),
        (16, 20, 13, 22),
        # One table tells nothing apart.
        (2, 50, 30, 30),
    ],
)
def test_clusters_of_labels(n_parties, k, labels, expected):
    assert decoy_clusters(_study(n_parties, k), labels) == expected


@pytest.mark.parametrize(
    "more",
    [
        {"decoy": DecoyOptions(collusion_epsilon=2.0)},
        {"grid": "many"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_where_tables_are_not_of_every_user_s_cluster_each_cluster_is_a_label(more):
    study = _study(4, 50)
    assert decoy_clusters(study, 28) == 55
    assert decoy_clusters(dataclasses.replace(study, **more), 28) == 28
    partial = _study(4, 50, user_sets="partial")
    assert decoy_clusters(partial, 28) == 28


@pytest.mark.parametrize("n_parties", [3, 4, 6, 8, 16])
@pytest.mark.parametrize("k", [2, 5, 20, 50])
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("users", [20_000, 1_000_000])
def test_tables_of_three_or_more_parties_have_fewer_than_two_decoys_a_user(
    n_parties, k, epsilon, users
):
    study = _study(n_parties, k, budget=Budget(epsilon=epsilon, delta=1e-6))
    labels = decoy_labels(study, users)
    if labels == method_of(study).clusters_of(study, labels) <= max(4, k ** (1 / n_parties) + 1):
        return  # the fewest that a grid needs
    plan = plan_for(study, users=users)
    assert plan.membership.mean * plan.n_labels[0] ** 2 < 2 * users


def test_noise_is_the_same_however_many_clusters_a_label_stands_for():
    study = _study(4, 50, budget=Budget(epsilon=0.25, delta=1e-5))
    first, later = make_plan(study), plan_for(study, users=100_000)
    assert later.n_labels == (28,) * 4
    assert later.n_local_clusters == (55,) * 4
    assert later.grid_method == "many"
    assert later.events == first.events


@pytest.mark.parametrize(
    ("k", "users", "expected"),
    [
        # Of noise alone, where few segments are wanted.
        (5, 20_000, 8),
        # One more than segments, also above 16.
        (20, 100_000, 21),
        (50, 100_000, 51),
        # Not where most cells would be noise.
        (50, 20_000, 28),
        (50, 2_000, 16),
    ],
)
def test_partial_sets_have_a_cluster_more_than_segments_where_noise_allows(k, users, expected):
    study = _study(4, k, user_sets="partial", ids=IdRules(type="text"))
    assert decoy_labels(study, users) == expected
