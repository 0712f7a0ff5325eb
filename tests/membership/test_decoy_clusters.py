"""The rules for labels of three or more parties, by hand."""

import pytest

from splitmeans.membership.decoy.auto_clusters import decoy_labels
from splitmeans.plan.settle import plan_for
from splitmeans.study import Budget
from tests.plan.test_plan import open_study


def _study(n_parties, k, **more):
    return open_study(n_parties=n_parties, n_clusters=k, **more)


@pytest.mark.parametrize("n_parties", [3, 4, 6, 8, 16])
@pytest.mark.parametrize("k", [2, 5, 20, 50])
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("users", [20_000, 1_000_000])
def test_tables_of_three_or_more_parties_have_fewer_than_two_decoys_a_user(
    n_parties, k, epsilon, users
):
    study = _study(n_parties, k, budget=Budget(epsilon=epsilon, delta=1e-6))
    labels = decoy_labels(study, users)
    if labels <= max(4, k ** (1 / n_parties) + 1):
        return  # the fewest that a grid needs
    plan = plan_for(study, users=users)
    assert plan.membership.mean * labels * (labels + 1) < 2 * users
