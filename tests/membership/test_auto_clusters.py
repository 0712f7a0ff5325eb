"""The paper's rule for k', by hand.

With n users, cell n/k^2, M = 4096 and eps2 = 0.98 eps/(2S), delta2 = 1/(nS), the deviation is
0.649 (n - n/k^2)/64 + 4 * 0.649 * 2 (k-1) sqrt(ln(1/delta2)) / eps2.
"""

import pytest

from splitmeans.membership.sketch_paper.auto_clusters import cell_deviation, paper_local_clusters


def rule(n: int, eps: float, parties: int, k: int = 5) -> int:
    return paper_local_clusters(
        noisy_count=n,
        n_clusters=k,
        n_parties=parties,
        repetitions=4096,
        epsilon=0.98 * eps / (2 * parties),
        delta=1 / (n * parties),
    )


def test_deviation_by_hand() -> None:
    # n = 20000, k = 5: 0.649 * 19200 / 64 = 194.7; 4*0.649*2*4*sqrt(ln 40000)/0.245 = 275.9
    deviation = cell_deviation(
        n_users=20_000,
        cell_users=800,
        n_local_clusters=5,
        repetitions=4096,
        epsilon=0.245,
        delta=1 / 40_000,
    )
    assert deviation == pytest.approx(194.7 + 275.9, abs=0.1)


@pytest.mark.parametrize(
    ("n", "eps", "parties", "expected"),
    [
        # 2 x 397.1 < 1250 at k' = 4, 2 x 470.6 >= 800 at k' = 5
        (20_000, 1.0, 2, 5),
        # 2 x 263.7 < 800 at 5, 2 x 283.4 >= 555.6 at 6
        (20_000, 4.0, 2, 6),
        # eps2 = 0.1225: 2 x 617.4 < 1250 at 4, 2 x 764.3 >= 800 at 5
        (20_000, 1.0, 4, 5),
        # n = 100000: 2 x 1356.1 < 2777.8 at 6, 2 x 1437.6 >= 2040.8 at 7
        (100_000, 1.0, 2, 7),
    ],
)
def test_rule_by_hand(n: int, eps: float, parties: int, expected: int) -> None:
    assert rule(n, eps, parties) == expected


def test_grid_always_has_enough_nodes() -> None:
    assert rule(100, 0.1, 2, k=50) == 8
    assert rule(100, 0.1, 4, k=50) == 3


def test_more_budget_never_gives_fewer_clusters() -> None:
    values = [rule(20_000, eps, 2) for eps in (0.1, 0.5, 1, 2, 4, 8)]
    assert values == sorted(values)
