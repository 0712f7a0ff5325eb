"""What only a simulation can say: by hand on four users, and through the command."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from splitmeans import Result
from splitmeans.cli import app
from splitmeans.simulate.yardsticks import measure
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis
from splitmeans.synopsis.clustering import Clustering
from splitmeans.table.prepare import prepare_table
from tests.scene import keyed_study

LEFT = PartySpec(name="left", columns=(Column(name="x", low=-1, high=1),))
RIGHT = PartySpec(name="right", columns=(Column(name="y", low=-1, high=1),))


def test_by_hand():
    """Four users at the corners of a rectangle; segments part them by x, which is the long side."""
    x, y = [-0.5, -0.5, 0.5, 0.5], [-0.25, 0.25, -0.25, 0.25]
    tables = [
        prepare_table(LEFT, {"x": x}),
        # In another order, which ids tell.
        prepare_table(RIGHT, {"y": y[::-1]}, ids=[3, 2, 1, 0]),
    ]
    half, quarter = GRID_UNITS // 2, GRID_UNITS // 4
    centres = [np.array([[-half], [half]]), np.array([[-quarter], [quarter]])]
    synopsis = build_synopsis(np.ones((2, 2)), centres, [LEFT, RIGHT])
    segments = np.array([[-0.5, 0.0], [0.5, 0.0]])
    clustering = Clustering(
        centres=segments, scaled_centres=segments, sizes=np.array([2.0, 2.0]), loss=0.0
    )
    found = measure(tables, synopsis, clustering)
    assert found.users == 4
    assert found.loss == pytest.approx(1 / 16)
    assert found.ratio == pytest.approx(1)
    # Variance is 1/4 in x and 1/16 in y; segments explain that in x.
    assert found.explained == found.pooled_explained == pytest.approx(0.8)
    left, right = found.parties
    assert (left.labels_right, left.alone_right) == (1, 1)
    assert left.alone_explains == pytest.approx(0.8)
    assert right.alone_explains == pytest.approx(0.2)
    assert (right.labels_right, right.alone_right) == (0.5, 0.5)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(2)
    rows = rng.uniform(0, 100, (300, 4))
    rows[:150] /= 4
    order = rng.permutation(300)
    bank = pa.table({"id": np.arange(300), "x": rows[:, 0], "y": rows[:, 1]})
    shop = pa.table({"id": order, "x": rows[order, 2], "y": rows[order, 3]})
    pq.write_table(bank, tmp_path / "bank.parquet")
    pyarrow.csv.write_csv(shop, tmp_path / "shop.csv")
    (tmp_path / "study.toml").write_text(keyed_study().to_toml())
    return tmp_path


def simulate(folder, *data):
    given = [part for one in data for part in ("--data", one)]
    written = ["-o", str(folder / "result"), "--json", str(folder / "figures.json")]
    return CliRunner().invoke(app, ["simulate", str(folder / "study.toml"), *given, *written])


def test_a_whole_study_by_the_command(folder):
    done = simulate(folder, f"shop={folder / 'shop.csv'}", f"bank={folder / 'bank.parquet'}")
    assert done.exit_code == 0, done.output
    assert "only a simulation can say" in done.stdout
    read = Result.read(folder / "result")
    assert "simulation, not signed" in read.origin
    figures = json.loads((folder / "figures.json").read_text())
    assert figures["users"] == 300
    assert figures["ratio"] > 0.9
    assert [one["party"] for one in figures["parties"]] == ["bank", "shop"]
    # Nothing that is not private is in the folder.
    assert "labels_right" not in (folder / "result" / "result.json").read_text()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["bank=x.csv"], "--data is missing for shop"),
        (["bank"], "must be NAME=SOURCE"),
        (["bank=a", "bank=b"], "'bank' twice"),
        (["bnak=a"], "has no party 'bnak'"),
    ],
)
def test_every_party_has_one_table(folder, data, message):
    done = simulate(folder, *data)
    assert message in str(done.exception)
    assert not (folder / "result").exists()


def test_figures_that_are_not_private_stay_out_of_the_folder(folder):
    (folder / "result").mkdir()
    inside = ["-o", str(folder / "result"), "--json", str(folder / "result" / "figures.json")]
    done = CliRunner().invoke(
        app, ["simulate", str(folder / "study.toml"), "--data", "x=y", *inside]
    )
    assert "must not be in the result folder" in str(done.exception)
