"""Columns that count the same: by hand, in everything that measures distances, and in a folder."""

import dataclasses
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from splitmeans import (
    InsecureSeededNoise,
    ParameterError,
    Result,
    Study,
    StudyError,
    VerticalKMeans,
)
from splitmeans.forecasting.column_shares import column_shares
from splitmeans.report.build import build_report
from splitmeans.study import Column
from splitmeans.study.features import features_of_columns
from splitmeans.synopsis.scaling import LEAST_OF_CATEGORIES, LEAST_OF_NUMBERS, equal_stretch
from tests.result.small_result import small_study, write_small_result
from tests.scene import make_study

EQUAL = small_study(scaling="equal")


@pytest.fixture
def result(tmp_path) -> Result:
    return Result.read(write_small_result(tmp_path / "small", study=EQUAL))


def test_the_default_has_the_hash_of_what_is_left_out():
    assert small_study(scaling="bounds") == small_study()
    assert "scaling" not in small_study().to_toml()
    assert EQUAL.hash != small_study().hash
    assert Study.from_toml(EQUAL.to_toml()) == EQUAL
    with pytest.raises(StudyError, match="scaling must be one of"):
        small_study(scaling="standard")


def test_stretch_by_hand(result):
    """600 users are at one end of income and region, 300 at the other; ages are 400 and 500."""
    pair = math.sqrt(2 / 9)
    # Ends are at a distance of 1 in income, of sqrt 2 in each category, of 1 in age.
    expected = [1 / pair, 1 / (2 * pair), 1 / (2 * pair), 1 / math.sqrt(20 / 81)]
    np.testing.assert_allclose(result.synopsis.stretch, expected, rtol=1e-5)


def test_a_column_without_differences_is_not_blown_up(result):
    same = np.zeros_like(result.synopsis.scaled_nodes)
    flat = dataclasses.replace(result.synopsis, scaled_nodes=same, centres=None)
    numbers, categories = 1 / LEAST_OF_NUMBERS, 1 / LEAST_OF_CATEGORIES
    expected = [numbers, categories, categories, numbers]
    np.testing.assert_allclose(equal_stretch(flat), expected)
    nobody = dataclasses.replace(flat, weights=np.zeros(4))
    np.testing.assert_array_equal(equal_stretch(nobody), 1)


def test_a_weight_still_counts(result):
    """Twice the weight is twice as far in every column, stretched or not."""
    synopsis = result.synopsis
    columns = tuple(
        tuple(dataclasses.replace(column, weight=2.0) for column in group)
        for group in synopsis.columns
    )
    doubled = dataclasses.replace(
        synopsis,
        columns=columns,
        features=tuple(features_of_columns(group) for group in columns),
        scaled_nodes=2 * synopsis.scaled_nodes,
        centres=None,
    )
    np.testing.assert_allclose(equal_stretch(doubled), synopsis.stretch)


def test_everything_measures_stretched_distances(result):
    """A naive twin: the grid itself stretched, and no stretch."""
    synopsis = result.synopsis
    by = synopsis.stretch
    centres = synopsis.cluster(2, random_state=0)
    seen = synopsis.scaled_nodes * by
    distances = np.square(seen[:, np.newaxis] - centres.scaled_centres * by).sum(axis=2)
    loss = float(synopsis.weights @ distances.min(axis=1)) / synopsis.total
    assert centres.loss == pytest.approx(loss)
    assert synopsis.estimated_loss(centres).value == pytest.approx(loss)
    assert synopsis.fit_of(centres.scaled_centres)[0] == pytest.approx(loss)
    assert result.segments(3).loss == pytest.approx(result.compare_k([3]).losses[0])
    np.testing.assert_array_equal(
        result.published.of_node,
        np.square(seen[:, np.newaxis] - result.published_centres * by).sum(axis=2).argmin(axis=1),
    )


def test_the_folder_has_it_and_a_changed_one_is_refused(result, tmp_path):
    assert Result.read(result.save(tmp_path / "copy")).synopsis.stretch is not None
    wrong = dataclasses.replace(result.synopsis, stretch=result.synopsis.stretch * 2)
    other = dataclasses.replace(result, synopsis=wrong)
    with pytest.raises(ParameterError, match=r"synopsis\.parquet: its columns or how they count"):
        Result.read(other.save(tmp_path / "wrong"))
    none = dataclasses.replace(result, synopsis=dataclasses.replace(wrong, stretch=None))
    with pytest.raises(ParameterError, match=r"synopsis\.parquet: its columns or how they count"):
        Result.read(none.save(tmp_path / "none"))
    assert (
        b"stretch"
        in pq.read_schema(tmp_path / "wrong" / "synopsis.parquet").metadata[b"splitmeans synopsis"]
    )


@pytest.mark.parametrize("stretch", [[1.0], [0.0, 1, 1, 1], [np.nan, 1, 1, 1]])
def test_a_stretch_is_a_number_for_each_feature(result, stretch):
    with pytest.raises(ParameterError, match="stretch must be 4 numbers above 0"):
        dataclasses.replace(result.synopsis, stretch=np.array(stretch))


def test_groups_that_categories_drown_are_found():
    """Two groups differ clearly in numbers that fill a tenth of their bounds; regions are chance.

    Through the bounds, k-means finds the regions. Not a matter of luck: the groups are eight
    standard deviations apart in each number.
    """
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=2000)
    region = rng.choice(["north", "south"], size=2000)
    numbers = 45 + 8 * group[:, np.newaxis] + rng.normal(0, 1, (2000, 4))
    bank = {"region": region, "a": numbers[:, 0], "b": numbers[:, 1]}
    shop = {"c": numbers[:, 2], "d": numbers[:, 3]}
    agreement = {}
    for scaling in ("bounds", "equal"):
        model = VerticalKMeans(
            2,
            epsilon=4.0,
            bounds=(0, 100),
            categories={"region": ["north", "south"]},
            scaling=scaling,
            noise=InsecureSeededNoise(1),
            random_state=1,
        ).fit([bank, shop])
        right = float((model.labels_ == group).mean())
        agreement[scaling] = max(right, 1 - right)
        assert model.score([bank, shop]) < 0
    assert agreement["bounds"] < 0.6
    assert agreement["equal"] > 0.95


def test_shares_before_there_is_data():
    columns = (
        Column(name="x", low=0, high=1),
        Column(name="region", categories=tuple("abcd")),
        Column(name="heavy", low=0, high=1, weight=2),
    )
    shares = {one.column: one.share for one in column_shares(make_study(columns=columns))}
    # Variances 1/3, 2 (1 - 1/4) and 4/3, at each of two parties.
    total = 2 * (1 / 3 + 1.5 + 4 / 3)
    assert shares == pytest.approx(
        {"x": 1 / 3 / total, "region": 1.5 / total, "heavy": 4 / 3 / total}
    )
    equal = column_shares(make_study(columns=columns, scaling="equal"))
    assert {one.column: one.share for one in equal} == pytest.approx(
        {"x": 1 / 12, "region": 1 / 12, "heavy": 4 / 12}
    )


def test_report_and_study_show_say_it(result, tmp_path):
    from typer.testing import CliRunner

    from splitmeans.cli import app

    facts = dict(build_report(result, ks=[2]).facts)
    assert facts["Columns count"] == "each the same in distances, times its weight"
    (tmp_path / "study.toml").write_text(EQUAL.to_toml())
    done = CliRunner().invoke(app, ["study", "show", str(tmp_path / "study.toml")])
    assert "each counts the same" in done.stdout
