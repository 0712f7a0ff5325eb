"""How budgets are divided, by hand."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.privacy.split import paper_split, split_precision
from splitmeans.study import Budget
from splitmeans.study.id_rules import IdRules
from splitmeans.study.methods import MEMBERSHIPS, TIGHT
from tests.scene import make_study


def test_the_paper_s_shares_with_a_count():
    shares = paper_split(Budget(epsilon=1, delta=5e-5), n_parties=2, needs_count=True)
    assert shares.count_epsilon == 0.02
    # 0.98 / (2 x 2)
    assert shares.local_epsilon == pytest.approx(0.245, rel=1e-15)
    assert shares.membership_epsilon == pytest.approx(0.245, rel=1e-15)
    assert shares.membership_delta == 2.5e-5


def test_the_paper_s_shares_without_a_count():
    shares = paper_split(Budget(epsilon=4, delta=1e-4), n_parties=4, needs_count=False)
    assert shares.count_epsilon == 0
    # 4 / (2 x 4)
    assert shares.local_epsilon == 0.5
    assert shares.membership_epsilon == 0.5
    assert shares.membership_delta == 2.5e-5


@settings(max_examples=50, deadline=None)
@given(
    epsilon=st.floats(1e-3, 100),
    delta=st.floats(1e-12, 0.5),
    n_parties=st.integers(2, 64),
    needs_count=st.booleans(),
)
def test_the_paper_s_shares_add_up(epsilon, delta, n_parties, needs_count):
    budget = Budget(epsilon=epsilon, delta=delta)
    shares = paper_split(budget, n_parties=n_parties, needs_count=needs_count)
    per_party = shares.local_epsilon + shares.membership_epsilon
    assert shares.count_epsilon + n_parties * per_party == pytest.approx(epsilon, rel=1e-12)
    assert n_parties * shares.membership_delta == pytest.approx(delta, rel=1e-12)
    assert min(shares.local_epsilon, shares.membership_epsilon) > 0


def test_squared_precisions_by_hand():
    # Decoys take a half; each of two parties half of the rest.
    precisions = split_precision(make_study("decoy", 2), n_groups=1, n_sizes=0, scale=2.0)
    assert precisions.size == 0
    assert precisions.membership == pytest.approx(2 * 0.5**0.5)
    assert precisions.local == pytest.approx(2 * 0.25**0.5)


def test_squared_precisions_of_many_parties_by_hand():
    # 70 % to 15 pairs of six parties; a sixth of the rest to each.
    precisions = split_precision(make_study("decoy", 6), n_groups=15, n_sizes=0, scale=1.0)
    assert precisions.membership == pytest.approx((0.7 / 15) ** 0.5)
    assert precisions.local == pytest.approx(0.05**0.5)


def test_squared_precisions_of_partial_user_sets_by_hand():
    # A quarter of two parties, so that neither learns more than the server about who is where.
    ids = IdRules(type="integer")
    two, three = (
        dataclasses.replace(make_study("decoy", n), user_sets="partial", ids=ids) for n in (2, 3)
    )
    precisions = split_precision(two, n_groups=1, n_sizes=0, scale=1.0)
    assert precisions.membership == pytest.approx(0.25**0.5)
    assert precisions.local == pytest.approx(0.375**0.5)
    precisions = split_precision(three, n_groups=3, n_sizes=0, scale=1.0)
    assert precisions.membership == pytest.approx((0.5 / 3) ** 0.5)
    assert precisions.local == pytest.approx((0.5 / 3) ** 0.5)


def test_squared_precisions_with_a_count_by_hand():
    # 2 % to the count, 20 % of what is left to three histograms.
    study = make_study("independent", 3)
    precisions = split_precision(study, n_groups=3, n_sizes=1, scale=1.0)
    assert precisions.size == pytest.approx(0.02**0.5)
    assert precisions.membership == pytest.approx((0.196 / 3) ** 0.5)
    assert precisions.local == pytest.approx((0.784 / 3) ** 0.5)


def test_squared_precisions_with_sizes_for_k_by_hand():
    # 0.5 % to the sizes of both parties, half of what is left to the decoys.
    precisions = split_precision(make_study("decoy", 2), n_groups=1, n_sizes=2, scale=1.0)
    assert precisions.size == pytest.approx(0.0025**0.5)
    assert precisions.membership == pytest.approx(0.4975**0.5)
    assert precisions.local == pytest.approx((0.4975 / 2) ** 0.5)


@pytest.mark.parametrize(
    "membership", [one.name for one in MEMBERSHIPS.values() if TIGHT in one.accountings]
)
@pytest.mark.parametrize(("n_parties", "n_groups"), [(2, 1), (4, 6), (8, 28)])
@pytest.mark.parametrize("n_sizes", [0, 1, 2])
def test_squared_precisions_add_up(membership, n_parties, n_groups, n_sizes):
    study = make_study(membership, n_parties)
    precisions = split_precision(study, n_groups=n_groups, n_sizes=n_sizes, scale=3.0)
    total = (
        n_sizes * precisions.size**2
        + n_parties * precisions.local**2
        + n_groups * precisions.membership**2
    )
    assert total == pytest.approx(9.0, rel=1e-12)


def test_every_tight_method_has_a_share():
    for facts in MEMBERSHIPS.values():
        assert (facts.budget_share is not None) == (TIGHT in facts.accountings)
        assert facts.budget_share is None or 0 < facts.budget_share < 1
