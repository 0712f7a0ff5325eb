"""How budgets are divided, by hand."""

import pytest

from splitmeans.privacy.split import split_precision
from tests.scene import make_study


def test_squared_precisions_by_hand():
    # Decoys take a half; each of two parties half of the rest.
    precisions = split_precision(make_study("decoy", 2), n_groups=1, n_sizes=0, scale=2.0)
    assert precisions.size == 0
    # A quarter of two parties, so that neither learns more than the server about who is where.
    assert precisions.membership == pytest.approx(2 * 0.25**0.5)
    assert precisions.local == pytest.approx(2 * 0.375**0.5)
    precisions = split_precision(make_study("sketch", 2), n_groups=1, n_sizes=0, scale=2.0)
    assert precisions.membership == pytest.approx(2 * 0.5**0.5)


def test_squared_precisions_of_three_and_more_parties_by_hand():
    precisions = split_precision(make_study("decoy", 3), n_groups=3, n_sizes=0, scale=1.0)
    assert precisions.membership == pytest.approx((0.5 / 3) ** 0.5)
    assert precisions.local == pytest.approx((0.5 / 3) ** 0.5)
    precisions = split_precision(make_study("decoy", 6), n_groups=15, n_sizes=0, scale=1.0)
    assert precisions.membership == pytest.approx((0.5 / 15) ** 0.5)
    assert precisions.local == pytest.approx((0.5 / 6) ** 0.5)


def test_squared_precisions_with_sizes_for_k_by_hand():
    # 0.5 % to the sizes of both parties, a quarter of what is left to the decoys.
    precisions = split_precision(make_study("decoy", 2), n_groups=1, n_sizes=2, scale=1.0)
    assert precisions.size == pytest.approx(0.0025**0.5)
    assert precisions.membership == pytest.approx((0.995 / 4) ** 0.5)
    assert precisions.local == pytest.approx((0.995 * 3 / 8) ** 0.5)


@pytest.mark.parametrize(
    ("membership", "n_parties", "n_groups"),
    [("decoy", 2, 1), ("decoy", 4, 6), ("decoy", 8, 28), ("sketch", 2, 1)],
)
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
