"""Columns of different parties that go together: by hand on four nodes, and in a real run."""

import dataclasses
import math

import numpy as np
import pytest

from splitmeans.estimator import VerticalKMeans
from splitmeans.insights import two_columns as module
from splitmeans.insights.two_columns import pair_table, two_columns
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.queries.answers import CrossTable


def cross(users, half):
    users = np.array(users, dtype=float)
    names = tuple(tuple(f"bin {at}" for at in range(n)) for n in users.shape)
    low = np.clip(users - half, 0, None)
    return CrossTable(
        columns=("bank: a", "shop: b"),
        bins=names,
        edges=((), ()),
        users=users,
        low=low,
        high=users + half,
    )


def test_a_table_by_hand():
    """Margins are 50 each, so independence has 25 in each cell, and V without noise is 0.6."""
    found = pair_table(cross([[40, 10], [10, 40]], half=1.96))
    assert found.total == 100
    assert [cell.independent for row in found.cells for cell in row] == [25.0] * 4
    # chi squared is 4 * (15^2 - 1) / 25, over 100 users.
    assert found.dependence == pytest.approx(math.sqrt(4 * (225 - 1) / 25 / 100))
    assert all(cell.told for row in found.cells for cell in row)
    assert found.cells[0][1].low == pytest.approx(10 - 1.96)


def test_what_noise_explains_is_no_dependence():
    found = pair_table(cross([[40, 10], [10, 40]], half=1.96 * 15))
    assert found.dependence == 0
    assert not any(cell.told for row in found.cells for cell in row)


def test_one_bin_depends_on_nothing():
    assert pair_table(cross([[40, 10]], half=0.0)).dependence == 0
    assert pair_table(cross([[0, 0], [0, 0]], half=0.0)).dependence == 0
    assert pair_table(cross([[50, 0], [0, 50]], half=0.0)).dependence == 1


def synopsis_without_replicates(n_levels=2):
    levels = tuple(f"level {at}" for at in range(n_levels))
    parties = (
        PartySpec(name="bank", columns=(Column(name="kind", categories=levels),)),
        PartySpec(name="shop", columns=(Column(name="visits", low=0, high=10),)),
    )
    nodes = np.zeros((2, n_levels + 1), dtype=np.int64)
    nodes[:, -1] = (-GRID_UNITS, GRID_UNITS)
    return build_synopsis_from_points(
        np.zeros((2, 2), dtype=np.int64),
        np.array([10.0, 20.0]),
        [np.zeros((1, n_levels), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)],
        parties,
        nodes=nodes,
    )


def test_without_intervals_there_is_a_reason_and_no_table():
    found = two_columns(synopsis_without_replicates())
    assert found is not None
    assert found.tables == ()
    assert "is not known for this run" in found.withheld
    assert found.left_out == 0


def test_columns_of_many_categories_are_counted():
    found = two_columns(synopsis_without_replicates(n_levels=module.MOST_LEVELS + 1))
    assert found is not None
    assert found.left_out == 1


def test_nobody_has_no_table():
    synopsis = synopsis_without_replicates()
    assert two_columns(dataclasses.replace(synopsis, weights=np.zeros(2))) is None


@pytest.fixture(scope="module")
def synopsis():
    """Of 4 and 4 columns, the second of each party hang together and the rest are noise."""
    rng = np.random.default_rng(5)
    group = np.array([-0.6, 0.6])[rng.integers(2, size=6_000)]
    parts = [rng.uniform(-0.1, 0.1, (6_000, 4)) for _ in range(2)]
    for part in parts:
        part[:, 1] += group
    model = VerticalKMeans(
        2,
        epsilon=4,
        delta=1e-6,
        bounds=(-1, 1),
        n_local_clusters=4,
        noise=InsecureSeededNoise(1),
        random_state=1,
    ).fit({"my bank": parts[0], "shop": parts[1]})
    return model.synopsis_


def test_the_pair_that_goes_together_is_first(synopsis):
    found = two_columns(synopsis)
    assert found is not None
    assert found.withheld == ""
    names = synopsis.feature_names
    first = found.tables[0]
    assert first.columns == (names[1], names[5])
    assert len(found.tables) <= 3
    assert [one.dependence for one in found.tables] == sorted(
        (one.dependence for one in found.tables), reverse=True
    )
    asked = synopsis.table(*first.columns, bins=3)
    assert [[cell.users for cell in row] for row in first.cells] == asked.users.tolist()
    assert [[cell.high for cell in row] for row in first.cells] == asked.high.tolist()


def test_correlations_alone_choose_which_tables_are_made(synopsis, monkeypatch):
    """However many columns there are, few tables are computed."""
    asked = []
    table = type(synopsis).table
    monkeypatch.setattr(
        type(synopsis), "table", lambda self, *a, **k: asked.append(a) or table(self, *a, **k)
    )
    two_columns(synopsis)
    assert len(asked) == module._TRIED
    assert all(one.split(":")[0] != other.split(":")[0] for one, other in asked)


def test_columns_that_have_nothing_to_do_with_each_other(synopsis, monkeypatch):
    monkeypatch.setattr(
        module, "_likely", lambda *_: [(synopsis.feature_names[0], synopsis.feature_names[6])]
    )
    found = two_columns(synopsis)
    assert found is not None
    assert found.tables == ()
    assert "than noise would make it seem" in found.withheld
