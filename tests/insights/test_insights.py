"""Why segments, what parties add, how well they label: by hand on small grids, and against rows."""

import math

import numpy as np
import pytest

from splitmeans import InsecureSeededNoise, Result, VerticalKMeans
from splitmeans.insights.own_labels import own_labels
from splitmeans.insights.partners import partners
from splitmeans.insights.why import reasons
from tests.result.small_result import write_small_result


@pytest.fixture
def result(tmp_path) -> Result:
    return Result.read(write_small_result(tmp_path / "small"))


def test_reasons_by_hand(result):
    """600 of 900 users are north with income 2,000; ages are 48 on average there, 56 in all."""
    first, second = reasons(result.synopsis, result.published)
    assert [reason.column for reason in first] == ["income", "region", "age"]
    income, region, age = first
    # A share of 2/3 against 1: ((1/3)^2 / (2/3) + (1/3)^2 / (1/3))^(1/2), as for two values.
    assert region.effect == pytest.approx(math.sqrt(1 / 6 + 1 / 3), abs=1e-5)
    assert income.effect == pytest.approx(region.effect, abs=1e-5)
    # Ages are 36 for 400 of 900 and 72 for 500.
    deviation = 36 * math.sqrt(4 / 9 * 5 / 9)
    assert age.effect == pytest.approx(8 / deviation, abs=1e-5)
    assert (region.category, region.value, region.mean) == ("north", 1, pytest.approx(2 / 3))
    assert str(region) == "region: north 100% (all 67%)"
    assert str(income).startswith("income 2,000 (all 3,333)")
    assert second[0].category in (None, "south")


def test_parts_by_hand(result):
    """Between segments: income and region differ whole, age by 24 of its 72 years."""
    found = partners(result.synopsis, result.published)
    # In distance units: variances of income and of both categories are those of ends at a distance
    # of 1, sqrt(2) and sqrt(2); of all users 1/3 and 2/3 are at the ends.
    pair = 2 / 9
    income, region = pair * 1.0, pair * (2 + 2)
    age_total, age_between = 20 / 81, pair * (24 / 36) ** 2
    between = income + region + age_between
    assert found.explained == pytest.approx(between / (income + region + age_total), abs=1e-4)
    shares = {part.column: part.separation for part in found.columns}
    assert shares["income"] == pytest.approx(income / between, abs=1e-4)
    assert shares["region"] == pytest.approx(region / between, abs=1e-4)
    bank, insurer = found.parties
    assert bank.separation + insurer.separation == pytest.approx(1)
    # The bank alone finds both segments; the insurer parts 400 from 500, of whom 300 are B.
    assert bank.same == pytest.approx(1)
    assert bank.alone == pytest.approx(found.explained, abs=1e-6)
    assert insurer.same == pytest.approx(7 / 9)
    assert "bank: carries" in str(found)


def test_cells_do_not_tell_how_well_labels_work(result):
    assert own_labels(result.synopsis, result.published) == ()


def blended_rows(n: int) -> np.ndarray:
    """Four groups: the first party tells two pairs apart, the second the two within each pair.

    Each sees one group in ten in the wrong place.
    """
    rng = np.random.default_rng(7)
    group = rng.integers(4, size=n)
    signs = np.column_stack([group // 2, group % 2]) * 2 - 1
    signs *= np.where(rng.random((n, 2)) < 0.1, -1, 1)
    return np.repeat(signs * 0.6, 2, axis=1) + rng.normal(0, 0.05, (n, 4))


def test_what_is_said_of_labels_is_true_of_rows():
    """Either party tells a pair of segments and guesses within it: about half of labels are right.

    The bound is wide: two per cent of 2,000 tries, and noise of epsilon 4.
    """
    rows = blended_rows(4000)
    model = VerticalKMeans(
        4,
        epsilon=4.0,
        bounds=(-1, 1),
        n_local_clusters=4,
        noise=InsecureSeededNoise(3),
        random_state=3,
    ).fit({"left": rows[:, :2], "right": rows[:, 2:]})
    truth = np.array(model.segment_names_)[model.labels_]
    for one, block in zip(model.published_.own_labels(), (rows[:, :2], rows[:, 2:]), strict=True):
        labels = model.label(block, party=one.party)["segment"].to_numpy(zero_copy_only=False)
        assert one.right == pytest.approx((labels == truth).mean(), abs=0.06)
        assert one.said == pytest.approx(one.right, abs=0.06)
        assert sum(part.users for part in one.bins) == pytest.approx(1)
        assert 0.4 < one.right < 0.62
        assert one.party in str(one)
    assert set(model.published_.why()) == {"A", "B", "C", "D"}
    parts = model.published_.partners()
    assert all(0.3 < one.separation < 0.7 for one in parts.parties)
    assert all(one.alone < parts.explained for one in parts.parties)
