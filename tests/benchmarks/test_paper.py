"""Cells, the store and the runner of `python -m benchmarks paper`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.methods import METHODS
from benchmarks.metrics import silhouette
from benchmarks.paper import run
from benchmarks.paper.cell import Cell
from benchmarks.paper.figure import Figure, Panel, Series
from benchmarks.paper.figures import FIGURES
from benchmarks.paper.measure import (
    SILHOUETTES,
    Measures,
    _private_grid,
    measure,
    weight_details,
)
from benchmarks.paper.points import collect, means, x_text
from benchmarks.paper.run import in_order, run_cells
from benchmarks.paper.store import CellStore
from splitmeans.errors import DataError, ParameterError

ROOT = Path(__file__).parents[2]

TINY = Figure(
    name="tiny",
    title="Tiny",
    item="none",
    paper="",
    x="epsilon",
    y="loss",
    xs=(1.0, 2.0),
    quick_xs=(1.0,),
    panels=(
        Panel(name="S = 2", cell={"n_parties": 2}),
        Panel(name="S = 4", cell={"n_parties": 4}),
    ),
    series=(
        Series(name="central", cell={"method": "central"}),
        Series(name="independent", cell={"method": "independent"}),
    ),
    cell={"users": 300},
)


def fake_measure(cell: Cell, data_dir: Path | None) -> Measures:
    return {"loss": cell.seed + (cell.epsilon or 0.0), "nothing": None}


class TestCell:
    def test_a_central_method_has_one_cell_for_any_split_and_epsilon(self) -> None:
        first = Cell(method="central", epsilon=1.0, n_parties=2)
        second = Cell(method="central", epsilon=4.0, n_parties=4, n_local_clusters=5)
        assert first.standard() == second.standard()

    def test_even_sizes_are_the_even_split(self) -> None:
        even = Cell(method="decoy", party_sizes=(4, 4)).standard()
        assert even == Cell(method="decoy").standard()
        assert Cell(method="decoy", party_sizes=(3, 5)).standard() != even

    def test_a_baseline_s_default_clusters_are_the_segments(self) -> None:
        assert Cell(method="ldp").standard() == Cell(method="ldp", n_local_clusters=5).standard()
        assert Cell(method="sketch-paper").standard().n_local_clusters is None

    def test_repetitions_belong_to_sketches_only(self) -> None:
        assert Cell(method="decoy", repetitions=512).standard().repetitions is None
        assert Cell(method="sketch").standard().repetitions == 4096

    def test_key_depends_on_settings_and_on_the_file(self) -> None:
        cell = Cell(method="decoy", data="taxi")
        keys = {
            cell.key({}),
            cell.key({"taxi": "one"}),
            cell.key({"taxi": "two"}),
            Cell(method="decoy", data="taxi", seed=1).key({"taxi": "one"}),
        }
        assert len(keys) == 4
        # Another data set's file does not matter.
        assert cell.key({"taxi": "one", "loan": "x"}) == cell.key({"taxi": "one"})


class TestFigures:
    def test_every_config_makes_cells_that_can_be_run(self) -> None:
        for figure in FIGURES.values():
            for cell in figure.cells(seeds=1, quick=False, have={}):
                assert cell.method in METHODS or cell.method in SILHOUETTES

    def test_quick_cells_need_fewer_points(self) -> None:
        for figure in FIGURES.values():
            sizes = [len(set(figure.cells(seeds=1, quick=q, have={}))) for q in (True, False)]
            assert sizes[0] <= sizes[1]

    def test_figures_share_cells(self) -> None:
        loss, v_score, table = (
            set(FIGURES[name].cells(seeds=2, quick=False, have={}))
            for name in ("loss", "v-score", "mixed-gaussian")
        )
        assert v_score <= loss
        assert table <= loss

    def test_what_is_not_there_is_left_out(self) -> None:
        have = {"taxi": False, "loan": False, "letter": False, "central-diffprivlib": False}
        cells = list(FIGURES["loss"].cells(seeds=1, quick=True, have=have))
        assert {cell.data for cell in cells} == {"mixed-gaussian"}
        assert "central-diffprivlib" not in {cell.method for cell in cells}

    def test_basic_estimate_is_run_for_four_parties_only(self) -> None:
        cells = list(FIGURES["loss"].cells(seeds=1, quick=True, have={}))
        parties = {c.n_parties for c in cells if c.method == "sketch-paper-basic"}
        assert parties == {4}


class TestStore:
    def test_keeps_cells_and_notes(self, tmp_path: Path) -> None:
        store = CellStore(tmp_path)
        store.add("a", Cell(method="central"), {"loss": 0.5, "v_measure": None})
        store.add_run(wall_seconds=2.0, cells=1, jobs=2)
        again = CellStore(tmp_path)
        assert again.measures == {"a": {"loss": 0.5, "v_measure": None}}
        assert again.runs == [{"wall_seconds": 2.0, "cells": 1, "jobs": 2}]

    def test_a_cut_line_is_dropped_and_the_next_one_is_whole(self, tmp_path: Path) -> None:
        store = CellStore(tmp_path)
        store.add("a", Cell(method="central"), {"loss": 0.5})
        with store.path.open("a") as opened:
            opened.write('{"key": "b", "meas')
        again = CellStore(tmp_path)
        assert "b" not in again
        again.add("c", Cell(method="central", seed=1), {"loss": 0.25})
        assert set(CellStore(tmp_path).measures) == {"a", "c"}

    def test_refuses_a_file_that_is_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "cells.jsonl").write_text('{"key": "a"}\n')
        with pytest.raises(DataError, match="line 1 is not a cell"):
            CellStore(tmp_path)


class TestRun:
    def test_runs_each_cell_once_and_never_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ran: list[Cell] = []

        def counted(cell: Cell, data_dir: Path | None) -> Measures:
            ran.append(cell)
            return fake_measure(cell, data_dir)

        monkeypatch.setattr(run, "measure", counted)
        cells = list(TINY.cells(seeds=2, quick=False, have={}))
        # Two seeds: central once each, independent at two epsilons for two and four parties.
        assert len(set(cells)) == 2 * (1 + 4)
        for _ in range(2):
            store = CellStore(tmp_path)
            assert run_cells(cells, store, data_dir=None, data_digests={}, jobs=1) == []
        assert sorted(map(repr, ran)) == sorted(map(repr, set(cells)))
        points = collect(TINY, store, seeds=2, quick=False, data_digests={})
        assert points.get("S = 4", "independent", 2.0) == 2.5
        assert points.get("S = 4", "central", 2.0) == points.get("S = 2", "central", 1.0) == 0.5
        assert points.xs("S = 2") == [1.0, 2.0]

    def test_a_cell_that_fails_is_told_and_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(cell: Cell, data_dir: Path | None) -> Measures:
            if cell.method == "independent":
                raise ValueError("no luck")
            return fake_measure(cell, data_dir)

        cells = list(TINY.cells(seeds=1, quick=True, have={}))
        store = CellStore(tmp_path)
        monkeypatch.setattr(run, "measure", failing)
        failures = run_cells(cells, store, data_dir=None, data_digests={}, jobs=1)
        assert [failure.reason for failure in failures] == ["ValueError: no luck"] * 2
        assert len(store.measures) == 1
        monkeypatch.setattr(run, "measure", fake_measure)
        assert run_cells(cells, store, data_dir=None, data_digests={}, jobs=1) == []
        assert len(store.measures) == 3

    def test_goes_on_after_a_kill(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = tmp_path / "slow.py"
        script.write_text(
            "import time, sys\n"
            "from pathlib import Path\n"
            "from benchmarks.paper import run\n"
            "from benchmarks.paper.cell import Cell\n"
            "from benchmarks.paper.store import CellStore\n"
            "def slow(cell, data_dir):\n"
            "    time.sleep(0.02 if cell.seed < 3 else 60)\n"
            "    return {'loss': float(cell.seed)}\n"
            "run.measure = slow\n"
            "cells = [Cell(method='central', seed=seed) for seed in range(8)]\n"
            "store = CellStore(Path(sys.argv[1]))\n"
            "run.run_cells(cells, store, data_dir=None, data_digests={}, jobs=1)\n"
        )
        folder = tmp_path / "cells"
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        process = subprocess.Popen([sys.executable, str(script), str(folder)], env=env)
        try:
            deadline = time.monotonic() + 60
            file = folder / "cells.jsonl"
            while not file.exists() or len(file.read_text().splitlines()) < 3:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        ran: list[int] = []

        def counted(cell: Cell, data_dir: Path | None) -> Measures:
            ran.append(cell.seed)
            return {"loss": float(cell.seed)}

        monkeypatch.setattr(run, "measure", counted)
        cells = [Cell(method="central", seed=seed) for seed in range(8)]
        store = CellStore(folder)
        assert run_cells(cells, store, data_dir=None, data_digests={}, jobs=1) == []
        assert ran == [3, 4, 5, 6, 7]
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        seeds = [line["cell"]["seed"] for line in lines if "cell" in line]
        assert sorted(seeds) == list(range(8))

    def test_processes_give_what_one_process_gives(self, tmp_path: Path) -> None:
        cells = list(TINY.cells(seeds=1, quick=True, have={}))
        stores = []
        seen: list[float] = []
        before = dict(os.environ)
        for jobs in (1, 2):
            store = CellStore(tmp_path / str(jobs))
            failures = run_cells(
                cells,
                store,
                data_dir=None,
                data_digests={},
                jobs=jobs,
                progress=lambda cell, done, total: seen.append(done / total),
            )
            assert failures == []
            stores.append(store)
        one, two = ({k: m["loss"] for k, m in store.measures.items()} for store in stores)
        assert one == two
        assert seen[2] == pytest.approx(1.0)
        assert stores[1].runs[0]["cells"] == 3
        assert dict(os.environ) == before

    def test_long_cells_come_first_and_seeds_stay_together(self) -> None:
        cells = [
            Cell(method="decoy", data=data, n_parties=parties, seed=seed)
            for seed in range(2)
            for data, parties in (("letter", 2), ("loan", 8), ("taxi", 4))
        ]
        ordered = in_order(cells)
        assert [(c.data, c.seed) for c in ordered] == [
            ("loan", 0),
            ("loan", 1),
            ("taxi", 0),
            ("taxi", 1),
            ("letter", 0),
            ("letter", 1),
        ]


class TestMeasure:
    def test_weights_without_noise_have_no_error(self) -> None:
        found = measure(Cell(method="exact", users=300, timed=True).standard(), None)
        assert found["weight_error"] == found["weight_empty"] == found["pair_error"] == 0.0
        assert found["weight_total"] == 1.0
        assert (found["server_seconds"] or 0.0) > 0.0
        assert (found["loss_ratio"] or 0.0) < 1.5

    def test_uneven_split_and_repetitions_reach_the_method(self) -> None:
        cell = Cell(
            method="sketch-paper",
            users=300,
            party_sizes=(2, 6),
            n_local_clusters=3,
            repetitions=64,
        )
        found = measure(cell.standard(), None)
        assert found["n_local_clusters"] == 3
        # 64 rows of 3 registers of 2 bytes, and 3 centres in 2 or 6 columns of 8 bytes.
        assert found["bytes_per_party"] == 64 * 3 * 2 + 3 * 4 * 8

    def test_silhouette_is_highest_at_the_true_number(self) -> None:
        values = {
            k: measure(Cell(method="silhouette", users=500, n_clusters=k).standard(), None)
            for k in (2, 5, 8)
        }
        scores = {k: found["silhouette"] or 0.0 for k, found in values.items()}
        assert max(scores, key=lambda k: scores[k]) == 5

    def test_grid_silhouette_costs_one_fit_for_all_k(self) -> None:
        before = _private_grid.cache_info().hits
        values = [
            measure(Cell(method="grid-silhouette", users=2000, n_clusters=k).standard(), None)
            for k in (2, 5)
        ]
        assert all(0 <= (found["silhouette"] or -1) <= 1 for found in values)
        assert _private_grid.cache_info().hits > before

    def test_weight_details_by_hand(self) -> None:
        true = np.array([[6, 0], [0, 4]])
        weights = np.array([[5.0, 2.0], [0.0, 4.0]])
        assert weight_details(weights, true) == {
            "weight_total": 1.1,
            "weight_empty": 0.2,
            # With two parties the one pair is the grid: |5-6| + 2 = 3 of 10 users.
            "pair_error": pytest.approx(0.3),
        }

    def test_pair_error_does_not_see_what_pairs_do_not(self) -> None:
        true = np.zeros((2, 2, 2), dtype=np.int64)
        true[0, 0, 0] = true[1, 1, 0] = true[0, 1, 1] = true[1, 0, 1] = 1
        # The other parity has the same sums over every pair of parties.
        details = weight_details(1.0 - true, true)
        assert details["pair_error"] == 0.0
        assert details["weight_empty"] == 1.0


class TestSilhouette:
    ROWS = np.array([[0.0], [1.0], [10.0], [11.0]])

    def test_by_hand(self) -> None:
        # Distances to the own cluster are 1, to the other one 10.5 or 9.5 on average.
        expected = (9.5 / 10.5 + 8.5 / 9.5) / 2
        found = silhouette(self.ROWS, [0, 0, 1, 1], rng=np.random.default_rng(0))
        assert found == pytest.approx(expected)

    def test_a_sample_stands_for_all(self) -> None:
        rows = np.repeat(self.ROWS, 100, axis=0) + np.random.default_rng(0).normal(size=(400, 1))
        labels = np.repeat([0, 0, 1, 1], 100)
        rng = np.random.default_rng(1)
        whole, part = (silhouette(rows, labels, rng=rng, max_rows=m) for m in (400, 100))
        # Single silhouettes are in [0.5, 1], so a mean of 100 is within 5 * 0.25 / 10.
        assert part == pytest.approx(whole, abs=0.125)
        assert part != whole

    def test_one_cluster_has_none(self) -> None:
        with pytest.raises(ParameterError, match="at least two clusters"):
            silhouette(self.ROWS, [0, 0, 0, 0], rng=np.random.default_rng(0))


def test_means_leave_out_what_is_missing() -> None:
    found = means([{"loss": 1.0, "k": None}, {"loss": 3.0}, {"loss": 2.0, "k": 4.0}])
    assert (found["loss"].value, found["loss"].seeds) == (2.0, 3)
    assert found["loss"].error == pytest.approx(1 / np.sqrt(3))
    assert (found["k"].value, found["k"].error) == (4.0, None)
    assert means([]) == {}


def test_axis_texts() -> None:
    assert [x_text(x) for x in (0.25, 4.0, 2048, (3, 5))] == ["0.25", "4", "2048", "3:5"]
