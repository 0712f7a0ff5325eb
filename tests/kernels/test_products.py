"""Products in pieces against the whole product."""

import numpy as np
import pytest

from splitmeans.kernels.products import product_sum, row_products, summed_products


@pytest.mark.parametrize(("n", "d", "q"), [(3, 2, 2), (10_000, 8, 8), (9_001, 5, 7), (600, 60, 60)])
def test_rows_in_pieces_have_the_products_of_the_whole(n: int, d: int, q: int) -> None:
    rng = np.random.default_rng(0)
    rows, matrix = rng.standard_normal((n, d)), rng.standard_normal((d, q))
    # Another order of d terms of size 1 moves a sum by no more than d units of its last place.
    np.testing.assert_allclose(row_products(rows, matrix), rows @ matrix, rtol=0, atol=d * 1e-14)


def test_products_by_hand() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert row_products(rows, np.array([[1.0], [10.0]])).tolist() == [[21.0], [43.0]]
    assert row_products(rows, np.zeros((2, 0))).shape == (2, 0)
    assert row_products(np.zeros((5, 0)), np.zeros((0, 3))).tolist() == [[0.0] * 3] * 5
    assert product_sum(rows[0], rows[1]) == 11.0
    assert product_sum(np.zeros(0), np.zeros(0)) == 0.0


def test_a_sum_of_many_terms_has_all_of_them() -> None:
    # Whole numbers, so any order gives the same sum.
    assert product_sum(np.arange(25_001.0), np.full(25_001, 2.0)) == 25_000 * 25_001


@pytest.mark.parametrize(("n", "p", "q"), [(0, 2, 3), (7, 1, 1), (9_001, 8, 8), (50, 600, 600)])
def test_summed_products_are_those_of_whole_numbers(n: int, p: int, q: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(-9, 9, (n, p)).astype(float), rng.integers(-9, 9, (n, q)) * 1.0
    np.testing.assert_array_equal(summed_products(first, second), first.T @ second)
