"""Data sets that no constant was chosen on."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import ALL_SETS, Recipe, load
from benchmarks.held_out import FAMILIES, draw
from splitmeans.errors import DataError, ParameterError


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_fill_the_box_and_the_seed_decides_them(name: str) -> None:
    rows = draw(name, n=500, d=7, k=4, seed=1)
    assert rows.shape == (500, 7)
    assert np.abs(rows).max() <= 1
    assert (rows.std(axis=0) > 0).all()
    np.testing.assert_array_equal(rows, draw(name, n=500, d=7, k=4, seed=1))
    assert not np.array_equal(rows, draw(name, n=500, d=7, k=4, seed=2))


def test_families_do_not_share_random_numbers() -> None:
    first = [draw(name, n=50, d=3, k=2, seed=0).ravel() for name in FAMILIES]
    assert len({tuple(rows) for rows in first}) == len(FAMILIES)


def test_counts_are_mostly_zero_where_they_should_be() -> None:
    """A column of sums: at most 0.6 of any kind's users have one."""
    rows = draw("counts-and-zeros", n=2_000, d=6, k=5, seed=3)
    zeros = (rows == rows.min(axis=0)).mean(axis=0)
    assert (zeros[[1, 4]] > 0.4).all()


def test_a_family_is_dealt_out_to_parties_as_mixed_gaussian_data_is() -> None:
    data = load(
        "uneven-clusters", n_parties=3, seed=0, recipe=Recipe(n=100, n_columns=7), data_dir=None
    )
    assert data.labels is None
    assert sorted(np.concatenate(data.party_columns).tolist()) == list(range(7))


def test_the_taxi_sample_needs_its_file(tmp_path: Path) -> None:
    assert "taxi-sample" in ALL_SETS
    with pytest.raises(ParameterError, match="--data-dir"):
        load("taxi-sample", n_parties=2, seed=0, recipe=Recipe(), data_dir=None)
    with pytest.raises(DataError, match=r"has no taxi_kaggle_sample.parquet"):
        load("taxi-sample", n_parties=2, seed=0, recipe=Recipe(), data_dir=tmp_path)
