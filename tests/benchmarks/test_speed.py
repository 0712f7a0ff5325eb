"""The speed benchmark: arithmetic of growth, ratios and claims; every task runs; peers may lack."""

import contextlib
import importlib
import json
import math
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.commands import speed as command
from benchmarks.peer_libraries import import_diffprivlib
from benchmarks.speed import peers as speed_peers
from benchmarks.speed import run as speed_run
from benchmarks.speed import sketch_peers
from benchmarks.speed import stages as speed_stages
from benchmarks.speed import start as speed_start
from benchmarks.speed.inputs import Inputs, hexadecimal_ids
from benchmarks.speed.join import join_files, measure_join, write_records
from benchmarks.speed.measure import (
    ChildError,
    growth_by_size,
    growth_exponent,
    in_child,
    measure,
)
from benchmarks.speed.peers import PEERS
from benchmarks.speed.published import published_sketch
from benchmarks.speed.results import (
    CLAIM_USERS,
    STREAM_ROWS,
    Row,
    claims,
    ratios,
    to_mapping,
    with_growth,
)
from benchmarks.speed.run import environment, jobs, measure_here, run_speed
from benchmarks.speed.stage import GROUPS, Peer, Stage
from benchmarks.speed.stages import STAGES
from benchmarks.speed.start import FIRST_FIT, FIT, WHOLE_RUN
from benchmarks.speed.stream import Streamed, measure_release, stream_study, write_rows
from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.paper.dpfm import SketchParameters


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    small = Inputs(folder=tmp_path_factory.mktemp("speed"), n=1_000)
    small.write()
    return small


def row(name: str, n: int = CLAIM_USERS, *, seconds: float | None = 1.0, **values: object) -> Row:
    status = "not installed" if seconds is None else "measured"
    given = {"group": "encode", "peer": name in PEERS, "status": status, "cores": 1.0} | values
    return Row(name=name, n=n, seconds=seconds, **given)  # type: ignore[arg-type]


def stream(rows: int, *, seconds: float, peak_bytes: int = 2**30) -> Streamed:
    return Streamed(
        rows=rows,
        workers=2,
        seconds=seconds,
        bytes_sent=1,
        peak_bytes=peak_bytes,
        own_peak_bytes=1,
    )


class TestMeasure:
    def test_ten_times_the_users_give_the_logarithm_to_base_ten(self) -> None:
        assert growth_exponent((1_000, 2.0), (10_000, 20.0)) == pytest.approx(1)
        assert growth_exponent((1_000, 2.0), (10_000, 200.0)) == pytest.approx(2)
        assert growth_exponent((1_000, 2.0), (10_000, 6.0)) == pytest.approx(math.log10(3))

    def test_other_steps_use_their_own_base(self) -> None:
        assert growth_exponent((20_000, 1.0), (100_000, 5.0)) == pytest.approx(1)

    def test_growth_is_to_the_next_larger_size(self) -> None:
        found = growth_by_size([(100, 1.0), (10_000, 1.0), (1_000, 10.0)])
        assert found == {1_000: pytest.approx(1), 10_000: pytest.approx(-1)}

    def test_shortest_run_counts(self) -> None:
        sizes = iter([3, 2, 1])
        found = measure(lambda: next(sizes), repeat=3)
        assert len(found.runs) == 3
        assert found.seconds == min(found.runs)
        assert found.bytes_sent == 1
        assert found.peak_bytes > 0

    def test_no_further_run_after_the_time_limit(self) -> None:
        assert len(measure(lambda: None, repeat=5, most_seconds=0.0).runs) == 1

    def test_memory_of_a_run_is_seen(self) -> None:
        found = measure(lambda: int(np.ones(20_000_000).sum()), repeat=1)
        # 160 MB; the system may count pages a little late.
        assert found.working_bytes is None or found.working_bytes > 100e6

    def test_a_child_returns_its_result_and_a_killed_one_is_named(self) -> None:
        assert in_child(math.sqrt, 4.0, cores=1) == 2
        with pytest.raises(ChildError, match="killed"):
            in_child(os._exit, 1, cores=1)


class TestInputs:
    def test_ids_are_different_hexadecimal_texts(self) -> None:
        ids = hexadecimal_ids(np.arange(1_000)).to_pylist()
        assert len(set(ids)) == 1_000
        assert ids[1] == f"{0x9E3779B97F4A7C15:016x}"

    def test_parties_have_the_same_users_in_another_order(self, inputs: Inputs) -> None:
        first, second = (inputs.ids(party).to_pylist() for party in range(2))
        assert sorted(first) == sorted(second)
        assert first != second

    def test_labels_belong_to_users(self, inputs: Inputs) -> None:
        by_id = [
            dict(zip(inputs.ids(p).to_pylist(), inputs.labels(p, k=5).tolist(), strict=True))
            for p in range(2)
        ]
        agreeing = np.mean([by_id[0][user] == by_id[1][user] for user in by_id[0]])
        # Nine in ten have the label of their class at each party; 0.84 in expectation.
        assert 0.75 < agreeing < 0.95


class TestPublishedSketch:
    law = SketchParameters(epsilon_2=1.0, delta_2=1e-5, gamma=1.0, repetitions=64)

    def sketch(self, words: np.ndarray, labels: np.ndarray, **options: object) -> np.ndarray:
        keys = np.random.default_rng(1).integers(2**64, size=64, dtype=np.uint64)
        return published_sketch(
            words,
            labels,
            law=self.law,
            n_clusters=3,
            row_keys=keys,
            rng=np.random.default_rng(2),
            **options,  # type: ignore[arg-type]
        )

    def test_maximum_before_the_logarithm_changes_nothing(self) -> None:
        rng = np.random.default_rng(3)
        words = rng.integers(2**64, size=5_000, dtype=np.uint64)
        labels = rng.integers(2, size=5_000).astype(np.int32)  # cluster 2 is empty
        plain, tuned = (self.sketch(words, labels, tuned=tuned) for tuned in (False, True))
        np.testing.assert_array_equal(plain, tuned)
        assert plain.min() >= self.law.floor

    def test_union_is_the_maximum(self) -> None:
        words = np.random.default_rng(4).integers(2**64, size=4_000, dtype=np.uint64)
        labels = np.zeros(4_000, dtype=np.int32)
        halves = [self.sketch(words[part::2], labels[part::2]) for part in range(2)]
        np.testing.assert_array_equal(self.sketch(words, labels), np.maximum(*halves))

    def test_registers_have_the_law_of_the_maximum(self) -> None:
        words = np.random.default_rng(5).integers(2**64, size=3_000, dtype=np.uint64)
        registers = self.sketch(words, np.zeros(3_000, dtype=np.int32))[:, 0]
        # P(register <= 12) = (1 - 2^-12)^(users + phantoms); 64 rows, 5 standard errors.
        expected = (1 - 2.0**-12) ** (3_000 + self.law.phantoms)
        error = math.sqrt(expected * (1 - expected) / 64)
        assert abs((registers <= 12).mean() - expected) < 5 * error


class TestTasks:
    @pytest.mark.parametrize("name", STAGES)
    def test_every_stage_runs(
        self, name: str, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A study that is planned once saves a second a stage.
        monkeypatch.setattr(speed_stages, "_new_study", lambda given, method: given.study(method))
        # Kernels that are found compiled save ten seconds: the folder of none of them stays.
        monkeypatch.setattr(speed_start, "_no_kernels", lambda: contextlib.nullcontext({}))
        # Five processes are run whole by the test of `benchmarks run`.
        monkeypatch.setattr(speed_start, "agree", lambda folder, users: None)
        monkeypatch.setattr(speed_start, "run_five", lambda folder, run: (1.0, 1.0))
        stage = STAGES[name]
        sent = measure(stage.ready(inputs).task, repeat=1).bytes_sent
        assert stage.group in GROUPS
        assert (sent is not None and sent > 0) == (stage.group in ("encode", "fit"))

    def test_runs_do_not_share_a_plan(self, inputs: Inputs) -> None:
        first, second = (speed_stages._new_study(inputs, "decoy") for _ in range(2))
        assert first != second
        assert first.budget.epsilon == pytest.approx(second.budget.epsilon)

    @pytest.mark.parametrize("name", PEERS)
    @pytest.mark.filterwarnings("ignore")  # of other people's libraries
    def test_every_peer_runs_or_is_missing(self, name: str, inputs: Inputs) -> None:
        with contextlib.suppress(ImportError):
            PEERS[name].ready(inputs).task()
        assert set(PEERS[name].against) <= set(STAGES)

    def test_a_stage_is_measured(self, inputs: Inputs) -> None:
        found = measure_here("encode decoy", inputs, inputs, 2)
        assert (found.status, found.reason, found.scaled) == ("measured", "", "")
        assert found.seconds == min(found.runs)
        assert found.bytes_sent is not None
        assert found.bytes_sent > 3 * inputs.n / 8  # 3 bits for one label of five

    def test_a_part_of_the_work_is_scaled_up(
        self, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sketch_peers, "_PUBLISHED_WORK", 32 * inputs.n)
        found = measure_here("published sketch", inputs, inputs, 1)
        assert found.scaled == "from 32 of 4,096 rows"
        assert found.seconds == pytest.approx(128 * found.runs[0])

    def test_a_missing_library_is_a_line_of_its_own(
        self, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(name: str) -> None:
            raise ImportError(f"No module named {name!r}")

        monkeypatch.setattr(speed_peers.importlib, "import_module", refuse)
        found = measure_here("DuckDB join of ids", inputs, inputs, 1)
        assert (found.status, found.seconds) == ("not installed", None)
        assert found.reason == "No module named 'duckdb'"

    def test_a_peer_that_would_take_minutes_is_left_out(self, inputs: Inputs) -> None:
        many = Inputs(folder=inputs.folder, n=10_000_000)
        found = measure_here("diffprivlib KMeans", many, inputs, 1)
        assert (found.status, found.seconds) == ("skipped", None)
        assert "1,000,000 users" in found.reason

    def test_a_failure_is_told(self, inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: Inputs) -> None:
            raise ParameterError("no such thing")

        broken = Stage(name="broken", group="ids", prepare=fail)  # type: ignore[arg-type]
        monkeypatch.setitem(STAGES, "broken", broken)
        found = measure_here("broken", inputs, inputs, 1)
        assert (found.status, found.reason) == ("failed", "no such thing")

    def test_stages_without_users_run_once(self) -> None:
        at_first = jobs(1_000, sizes=(1_000, 2_000), groups=("grid", "ids"), peers=False)
        at_last = jobs(2_000, sizes=(1_000, 2_000), groups=("grid", "ids"), peers=False)
        assert {part.group for part in at_first} == {"ids"}
        assert {part.group for part in at_last} == {"ids", "grid"}

    def test_peers_follow_their_group(self) -> None:
        chosen = jobs(1_000, sizes=(1_000,), groups=("local",), peers=True)
        assert [part.name for part in chosen if isinstance(part, Peer)] == ["diffprivlib KMeans"]


class TestDiffprivlib:
    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A package whose forests cannot be imported, as the real one beside scikit-learn 1.9."""
        for name in [name for name in sys.modules if name.split(".")[0] == "diffprivlib"]:
            monkeypatch.delitem(sys.modules, name)
        models = tmp_path / "diffprivlib" / "models"
        models.mkdir(parents=True)
        (tmp_path / "diffprivlib" / "__init__.py").touch()
        (models / "forest.py").write_text("from sklearn.tree._tree import GONE_FOR_GOOD\n")
        (models / "__init__.py").write_text(
            "from diffprivlib.models.forest import RandomForestClassifier\nKMeans = 'here'\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    def test_forests_are_stood_in_for(self, package: Path) -> None:
        try:
            assert import_diffprivlib().KMeans == "here"
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "diffprivlib"]:
                del sys.modules[name]

    def test_without_the_package_it_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        monkeypatch.setitem(sys.modules, "diffprivlib.models", None)
        with pytest.raises(ImportError, match="diffprivlib"):
            import_diffprivlib()


class TestResults:
    def test_growth_is_by_name(self) -> None:
        rows = [
            row("hash ids", 1_000, seconds=1.0),
            row("label rows", 10_000, seconds=5.0),
            row("hash ids", 10_000, seconds=100.0),
            row("pandas merge", 10_000, seconds=None),
        ]
        assert [found.growth for found in with_growth(rows)] == [
            None,
            None,
            pytest.approx(2),
            None,
        ]

    def test_nanoseconds_are_for_stages_of_users(self) -> None:
        assert row("hash ids", 1_000, seconds=1e-3).ns_per_user == pytest.approx(1_000)
        assert row("grid", 1_000, seconds=1e-3, by_users=False).ns_per_user is None
        assert row("hash ids", 1_000, seconds=None).ns_per_user is None

    def test_ratios_compare_wall_and_processor_time(self) -> None:
        rows = [
            row("pandas merge", 1_000, seconds=6.0, cores=1.0),
            row("combine decoy", 1_000, seconds=2.0, cores=1.5),
            row("combine decoy, tags", 10_000, seconds=2.0),
        ]
        (found,) = ratios(rows, PEERS.values())
        assert (found.peer, found.stage, found.n) == ("pandas merge", "combine decoy", 1_000)
        assert (found.times, found.per_core) == (pytest.approx(3), pytest.approx(2))

    def test_missing_peers_have_no_ratio(self) -> None:
        rows = [row("pandas merge", seconds=None), row("combine decoy")]
        assert ratios(rows, PEERS.values()) == []

    def test_nothing_measured_meets_nothing(self) -> None:
        found = claims([])
        assert {item.met for item in found} == {None}
        assert all(item.met is None for item in claims([row("encode decoy", 1_000)]))

    def test_claims_at_a_million_users(self) -> None:
        rows = [
            row("encode sketch", seconds=0.1),
            row("published sketch, gamma 0.1", seconds=29.0),
            row("encode decoy", seconds=0.5),
            row("combine decoy", seconds=0.2),
            row("DuckDB join of ids", seconds=0.4),
            row("run decoy", seconds=2.0),
            row(FIT, seconds=9.0, processor_seconds=1.5),
            row("scikit-learn KMeans, n_init=1", seconds=1.0, processor_seconds=1.0),
            row("scikit-learn KMeans, n_init=10", seconds=4.0),
            row("combine sketch, S=4, k'=8", seconds=0.6),
        ]
        found = {item.text: item for item in claims(rows)}
        at = "sketch, gamma 0.1, k'=5, M=4096, 1M users"
        assert found[f"{at}: encoding"].measured == pytest.approx(100)
        assert found[f"{at}: encoding"].met is True
        assert found[f"{at}: published way over ours"].measured == pytest.approx(290)
        assert found[f"{at}: published way over ours"].met is False
        assert found["decoy, 1M users: encoding"].met is False
        assert found["decoy, 1M users: server over DuckDB join of ids"].met is True
        whole = "run decoy, 1M users, S=2, 16 columns: over pooled KMeans(n_init=10)"
        assert found[whole].measured == pytest.approx(0.5)
        ours = f"{FIT}, 1M users, S=2, 16 columns: processor time over pooled KMeans"
        assert found[f"{ours}(n_init=1)"].measured == pytest.approx(1.5)
        assert found[f"{ours}(n_init=1)"].met is True
        assert found[f"{ours}(n_init=10)"].met is False  # 1.5 of 4 s
        assert found["server, sketch, S=4, k'=8, 1M users: bytes to weights"].met is False
        assert found["server, decoy, S=4, k'=8, 1M users: bytes to weights"].met is None

    def test_claims_of_starts(self) -> None:
        rows = [
            row(FIRST_FIT, n=20_000, seconds=9.0, processor_seconds=1.1),
            row(WHOLE_RUN, n=20_000, seconds=9.0, processor_seconds=1.1),
        ]
        found = {item.text: item for item in claims(rows)}
        assert found[f"{FIRST_FIT}: processor time"].met is True
        assert found[f"{FIRST_FIT}: processor time"].measured == pytest.approx(1.1)
        assert found[f"{WHOLE_RUN}: wall time"].met is False
        assert found["splitmeans --help: processor time"].met is None

    def test_claims_of_the_stream(self) -> None:
        *_, memory, growth = claims(
            [], [stream(STREAM_ROWS // 10, seconds=10.0), stream(STREAM_ROWS, seconds=100.0)]
        )
        assert (memory.measured, memory.met) == (1024, True)
        assert (growth.measured, growth.met) == (pytest.approx(1), True)

    def test_everything_is_plain_json(self) -> None:
        rows = with_growth([row("hash ids", 1_000), row("hash ids", 10_000)])
        record = json.loads(json.dumps(to_mapping(rows, PEERS.values(), [stream(9, seconds=1.0)])))
        assert set(record) == {"peers", "rows", "ratios", "streams", "claims"}
        assert set(record["peers"]) == set(PEERS)
        names = {"name", "n", "seconds", "ns_per_user", "bytes_sent", "working_bytes", "growth"}
        assert names <= set(record["rows"][0])
        assert set(record["claims"][0]) == {"text", "unit", "measured", "bar", "at_most", "met"}
        assert record["streams"][0]["rows"] == 9
        assert json.dumps(environment(cores=2))


def call_here(function: Callable[..., Any], /, *arguments: Any, cores: int) -> Any:
    """Stand in for `in_child` where starting a process would test nothing more."""
    assert cores >= 1
    return function(*pickle.loads(pickle.dumps(arguments)))


class TestRun:
    @pytest.fixture(autouse=True)
    def one_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(speed_run, "in_child", call_here)

    def test_one_process_for_all(self) -> None:
        rows = list(run_speed(sizes=(1_000,), groups=("ids",), repeat=2, cores=1, isolated=False))
        names = [name for name, stage in STAGES.items() if stage.group == "ids"]
        assert [found.name for found in rows] == names
        assert all(len(found.runs) == 2 and found.working_bytes is None for found in rows)

    def test_a_process_for_each(self, tmp_path: Path) -> None:
        rows = list(run_speed(sizes=(1_000,), groups=("k-means",), repeat=1, folder=tmp_path))
        assert [found.status for found in rows] == ["measured", "measured"]  # ours, and the peer's
        assert all(found.peak_bytes for found in rows)
        assert list(tmp_path.iterdir()) == []

    def test_a_killed_process_is_a_failed_row(
        self, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: Any, cores: int) -> None:
            raise ChildError("the process was killed")

        monkeypatch.setattr(speed_run, "in_child", killed)
        part = STAGES["hash ids"]
        found = speed_run.measure_part(part, inputs, warm=inputs, repeat=1, cores=1)
        assert (found.status, found.reason) == ("failed", "the process was killed")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sizes": (10,)}, "sizes must be a whole number >= 1000"),
            ({"groups": ("none",)}, "stages must be one of"),
            ({"repeat": 0}, "repeat must be a whole number >= 1"),
        ],
    )
    def test_wrong_options_are_refused(self, options: dict, message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            next(run_speed(**{"sizes": (1_000,)} | options))


class TestStream:
    def test_a_file_is_released_and_measured(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.parquet"
        write_rows(path, 3_000)
        found = measure_release(path, 3_000, 1)
        assert (found.rows, found.workers) == (3_000, 1)
        assert found.bytes_sent > 0
        assert found.peak_bytes >= found.own_peak_bytes > 0
        assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]

    def test_the_study_expects_the_rows(self) -> None:
        assert stream_study(7_000).expected_users == 7_000


class TestJoin:
    def test_files_are_joined_and_removed(self, tmp_path: Path) -> None:
        found = measure_join(20_000, tmp_path, cores=1)
        assert found.tags == 20_000
        assert found.disk_bytes == 2 * (2 * 20_000 + (20_000 + 2**18) // 8 + 20_000 * 6 // 8)
        assert 0 < found.own_bytes < 2**31
        assert list(tmp_path.iterdir()) == []

    def test_a_join_that_loses_records_is_told(self, tmp_path: Path) -> None:
        length, shared = write_records(tmp_path, 4_000)
        with pytest.raises(SplitmeansError, match="found 2000 records at both parties"):
            join_files(tmp_path, length, 2 * shared)


class TestCommand:
    def test_sizes_have_units(self) -> None:
        assert command.parse_sizes("sizes", "1M, 20k,500,20000") == [500, 20_000, 1_000_000]

    @pytest.mark.parametrize("text", ["", "ten", "0", "1.5M", "-3", "10G"])
    def test_other_sizes_are_refused(self, text: str) -> None:
        with pytest.raises(ParameterError, match="--sizes must be whole numbers"):
            command.parse_sizes("sizes", text)

    @pytest.mark.parametrize("text", ["", "ids,nothing"])
    def test_unknown_stages_are_refused(self, text: str) -> None:
        with pytest.raises(ParameterError, match="--stages must"):
            command.speed(stages=text)

    def test_tables_and_json(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = [
            row("encode decoy", seconds=0.1, bytes_sent=2_000_000),
            row("combine decoy", seconds=0.2, working_bytes=3_000),
            row("DuckDB join of ids", seconds=0.4, scaled="from 1 of 2 users"),
            row("pandas merge", seconds=None, reason="No module named 'pandas'"),
        ]
        monkeypatch.setattr(speed_run, "run_speed", lambda **_: iter(rows))
        path = tmp_path / "speed.json"
        command.speed(json_file=path, folder=tmp_path / "data")
        record = json.loads(path.read_text())
        assert [found["name"] for found in record["rows"]] == [found.name for found in rows]
        assert record["config"]["sizes"] == [20_000, 100_000, 1_000_000]
        printed = capsys.readouterr().out
        for text in ("2.0 MB", "3.0 kB", "from 1 of 2 users", "not installed", "Claims", "100"):
            assert text in printed
