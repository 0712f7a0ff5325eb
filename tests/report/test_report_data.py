"""What the report says, against values worked out by hand on the small result."""

import dataclasses
import json
import math

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.report.build import build_report
from splitmeans.report.projection import fit_plane
from splitmeans.result.result import Result
from tests.result.small_result import small_study, write_small_result


def test_columns_in_own_units(data):
    assert [column.label for column in data.columns] == [
        "income",
        "region: north",
        "region: south",
        "age",
    ]
    assert [column.party for column in data.columns] == ["bank", "bank", "bank", "insurer"]
    # 600 users at 2,000 and 300 at 6,000; 400 users of 36 and 500 of 72.
    means = [column.mean for column in data.columns]
    assert means == pytest.approx([10_000 / 3, 2 / 3, 1 / 3, 56])
    spreads = [column.spread for column in data.columns]
    third = math.sqrt(2) / 3
    assert spreads == pytest.approx(
        [4000 * third, third, third, math.sqrt((400 * 20**2 + 500 * 16**2) / 900)], rel=1e-5
    )


def test_segments_against_the_mean(data):
    a, b = data.published.segments
    assert (a.letter, a.size, a.share) == ("A", 600, pytest.approx(2 / 3))
    assert (b.letter, b.size, b.share) == ("B", 300, pytest.approx(1 / 3))
    assert (a.name, b.name) == ("saving <north>", None)
    assert a.centre == pytest.approx((2000, 1, 0, 48), abs=1e-6)
    # A third of the users are in the other group: 1/sqrt(2) spreads off on one side, twice as far
    # on the other.
    assert a.difference[0] == pytest.approx(-1 / math.sqrt(2))
    assert b.difference[0] == pytest.approx(math.sqrt(2))
    assert a.difference[3] == pytest.approx(-8 / data.columns[3].spread)
    # Age is what A differs in least.
    assert a.standing_out[-1] == 3
    assert data.users == 900


def test_more_segments_than_cells_with_users_are_not_offered(data):
    assert [item.k for item in data.segmentations] == [2, 3]
    assert data.suggested_k in (2, 3)


def test_the_map_has_the_cells_with_users(data):
    assert data.map.users == (400, 300, 200)
    assert data.map.users_shown == 1
    assert sum(data.map.explained) == pytest.approx(1)
    # Nodes and centres are on the same plane: B is the cell with 300 users.
    b = data.published.segments[1]
    assert (b.x, b.y) == pytest.approx((data.map.x[1], data.map.y[1]))
    assert data.published.of_node == (0, 1, 0)


def test_the_map_of_pseudo_users_stands_for_all(result):
    """Of 3,000 pseudo-users 400 are drawn, evenly by weight: 2/3 of them in the first segment."""
    rng = np.random.default_rng(1)
    labels = np.array([[0, 0]] * 2000 + [[1, 1]] * 1000, dtype=np.int32)
    steps = rng.uniform(-0.05, 0.05, (3000, 1)) * [1, 0, 0, 1]
    first, last = result.synopsis.scaled_nodes[[0, 3]]
    nodes = np.where(labels[:, :1] == 0, first, last) + steps
    synopsis = dataclasses.replace(
        result.synopsis, scaled_nodes=nodes, weights=np.full(3000, 0.3), labels=labels
    )
    users = dataclasses.replace(result, synopsis=synopsis)
    built = build_report(users, ks=[2])
    assert built.map.pseudo_users
    assert built.map.users == pytest.approx((900 / 400,) * 400)
    assert built.map.users_shown == pytest.approx(1)
    assert np.bincount(built.published.of_node).tolist() == pytest.approx([267, 133], abs=1)
    assert dict(built.facts)["Points of the grid"] == "3,000, made up to lie as users do"
    assert dict(built.facts)["Grid cells with users"] == "2"


def test_noise_makes_sizes_uncertain(data):
    for item in data.segmentations:
        for segment in item.segments:
            assert segment.interval is not None
            assert 0 <= segment.interval[0] < segment.interval[1] < segment.size + 600
    assert data.users_interval is not None
    assert data.users_interval[0] < data.users < data.users_interval[1]
    assert "for the number of users who are nearer to the segment's centre" in data.uncertainty


def test_unknown_noise_is_said(tmp_path):
    study = small_study(membership="sketch")
    read = Result.read(write_small_result(tmp_path / "r", study=study))
    other = build_report(read, ks=[2])
    assert all(segment.interval is None for segment in other.published.segments)
    assert other.users_interval is None
    assert "not known for this run" in other.uncertainty
    assert "'sketch'" in other.uncertainty


def test_another_plan_has_no_intervals(result):
    facts = {**result.facts, "plan": "0" * 64}
    fields = {name: getattr(result, name) for name in type(result).__dataclass_fields__}
    other = build_report(Result(**{**fields, "facts": facts}), ks=[2])
    assert "another version of splitmeans" in other.uncertainty


def test_privacy_is_that_of_the_result(result, data):
    """But for columns, which may be thousands and which the page does not list."""
    assert data.privacy == dataclasses.replace(result.privacy, columns=(), extra=None)
    assert result.privacy.columns
    assert data.statement == result.statement


def test_facts(data):
    facts = dict(data.facts)
    assert facts["Study"] == "bank and insurer"
    assert facts["Grid cells with users"] == "3"
    assert facts["Points of the grid"] == "4, one for each cell"
    assert facts["Local clusters"] == "2 at bank, 2 at insurer"
    assert facts["Messages in the transcript"] == "1 (not signed)"


def test_a_name_needs_a_segment(result):
    with pytest.raises(ParameterError, match="no segment 'Z' to name; there are A, B"):
        build_report(result, ks=[2], names={"Z": "nobody"})


def test_json_is_the_data(data):
    read = json.loads(data.to_json())
    assert read["users"] == 900
    assert read["segmentations"][0]["segments"][0]["letter"] == "A"
    assert read["columns"][0]["mean"] == 3333.33
    assert json.loads(data.to_json(indent=1)) == read


def test_fewer_columns(data):
    few = data.with_columns([0, 3])
    assert [column.name for column in few.columns] == ["income", "age"]
    assert few.columns_left_out == 2
    a = few.published.segments[0]
    assert a.centre == pytest.approx((2000, 48), abs=1e-6)
    assert a.standing_out == (0, 1)
    assert {at for grows, falls in few.map.towards for at in (*grows, *falls)} <= {0, 1}


# ---- the plane ----


def test_plane_of_points_on_a_line():
    points = np.array([[0.0, 0.0], [3.0, 4.0], [9.0, 12.0]])
    plane = fit_plane(points, np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(plane.mean, [1.5, 2.0])
    np.testing.assert_allclose(plane.axes[0], [0.6, 0.8])
    np.testing.assert_allclose(plane.explained, [1, 0], atol=1e-12)
    np.testing.assert_allclose(plane.place(points)[:, 0], [-2.5, 2.5, 12.5])


def test_plane_weighs_points():
    # Variances 4 w and 1 (1 - w) along the axes: weights decide which one comes first.
    points = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    plane = fit_plane(points, np.array([1.0, 1.0, 10.0, 10.0]))
    np.testing.assert_allclose(plane.axes, [[0, 1], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(plane.explained, [20 / 28, 8 / 28])


def test_plane_of_one_column_or_one_point():
    line = fit_plane(np.array([[1.0], [3.0]]), np.ones(2))
    np.testing.assert_allclose(line.place(np.array([[3.0]])), [[1.0, 0.0]])
    point = fit_plane(np.ones((2, 3)), np.ones(2))
    np.testing.assert_allclose(point.explained, [0, 0])
    np.testing.assert_allclose(point.place(np.ones((1, 3))), [[0, 0]])
