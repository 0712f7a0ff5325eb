"""Pictures, tables, findings, the page and the command of `python -m benchmarks paper`."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.commands.paper import paper
from benchmarks.data_files import DataFile
from benchmarks.paper import run
from benchmarks.paper.cell import Cell
from benchmarks.paper.claims import OURS, findings
from benchmarks.paper.figure import Figure
from benchmarks.paper.figures import FIGURES
from benchmarks.paper.judges import NO, NOT_MEASURED, PARTLY, YES, by_share
from benchmarks.paper.measure import Measures
from benchmarks.paper.page import RunFacts, render
from benchmarks.paper.plots import STYLES, draw
from benchmarks.paper.points import Mean, Point, Points, collect
from benchmarks.paper.report import collect_all, write_report
from benchmarks.paper.store import CellStore
from benchmarks.paper.tables import figure_markdown, to_json
from splitmeans.errors import ParameterError, SplitmeansError

FACTS = RunFacts(
    seeds=2,
    quick=True,
    cells=10,
    wall_seconds=600,
    processor_seconds=900,
    noted_cells=10,
    jobs=2,
    processor="some processor",
    files=(
        DataFile(
            data="taxi",
            name="taxi.parquet",
            rows_read=100_000,
            rows_used=98_000,
            period=("2016-03-01", "2016-03-10"),
            digest="t",
        ),
        DataFile(
            data="loan",
            name="loan.parquet",
            rows_read=50_000,
            rows_used=50_000,
            period=None,
            digest="l",
        ),
    ),
    left_out=("letter (no file)",),
)

# How good methods are made to be, so that the paper's statements come out.
RANK = {
    "central": 0.1,
    "exact": 0.11,
    "vertical-plain": 0.11,
    "decoy": 0.12,
    "sketch": 0.13,
    "central-dplsf": 0.2,
    "central-diffprivlib": 0.25,
    "dplsf-exact-weights": 0.28,
    "plain-sketch-paper": 0.2,
    "sketch-paper": 0.3,
    "sketch-paper-basic": 0.5,
    "independent": 0.6,
    "ldp": 0.9,
}


def made_up(cell: Cell, data_dir: Path | None = None) -> Measures:
    if "silhouette" in cell.method:
        return {"silhouette": 1 / (1 + abs(cell.n_clusters - 5))}
    factor = (1 + 0.01 * cell.seed) * (1 + 0.1 * cell.n_parties)
    if cell.method == "ldp" and cell.epsilon is not None:
        factor /= cell.epsilon
    value = RANK[cell.method] * factor
    return {
        "loss": value,
        "loss_ratio": value / 0.1,
        "v_measure": max(0.0, 1 - value),
        "weight_error": value,
        "weight_total": 1.0,
        "weight_empty": 0.5 * value,
        "pair_error": 0.2 * value,
        "bytes_per_party": 1e6 * value,
        "server_seconds": value,
        "n_local_clusters": cell.n_local_clusters or 5,
        "seconds": 0.1,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CellStore:
    folder = tmp_path_factory.mktemp("cells")
    filled = CellStore(folder)
    for figure in FIGURES.values():
        for cell in figure.cells(seeds=2, quick=True, have={}):
            filled.measures[cell.key({})] = made_up(cell)
    return filled


@pytest.fixture(scope="module")
def all_points(store: CellStore) -> list[Points]:
    return collect_all(store, seeds=2, quick=True, data_digests={})


def points_of(all_points: list[Points], name: str) -> Points:
    return next(points for points in all_points if points.figure.name == name)


def changed(points: Points, series: str, factor: float) -> Points:
    """Return the points with one line's values multiplied."""
    new = []
    for point in points:
        measures = point.measures
        if point.series == series:
            measures = {
                name: dataclasses.replace(mean, value=mean.value * factor)
                for name, mean in measures.items()
            }
        new.append(dataclasses.replace(point, measures=measures))
    return Points(figure=points.figure, points=tuple(new))


class TestFindings:
    def test_every_figure_with_cells_is_judged(self, all_points: list[Points]) -> None:
        for points in all_points:
            found = findings(points)
            assert bool(found) == bool(points.figure.panels), points.figure.name
            assert all(finding.claim and finding.measured for finding in found)

    def test_without_points_there_are_none(self) -> None:
        empty = Points(figure=FIGURES["loss"], points=())
        assert findings(empty) == []

    def test_two_party_fit_against_basic(self, all_points: list[Points]) -> None:
        points = points_of(all_points, "loss")
        finding = findings(points)[1]
        assert finding.agrees == YES
        # Three epsilons on four data sets.
        assert finding.measured == "below DPFMPS-BasicEst in 12 of 12 (0.6 times on average)"
        worse = findings(changed(points, "DPFMPS-2PEst", 2.0))[1]
        assert worse.agrees == NO

    def test_ldp_at_large_epsilon(self, all_points: list[Points]) -> None:
        points = points_of(all_points, "loss")
        finding = findings(points)[3]
        # 0.9 / 0.5 over 0.3 is 6, 0.9 / 4 over 0.3 is 0.75.
        assert finding.measured.startswith("6 times DPFMPS-2PEst at 0.5, 0.75 times at 4")
        assert finding.agrees == YES
        assert findings(changed(points, "LDP-AGG-2PEst", 5.0))[3].agrees == PARTLY

    def test_missing_lines_are_not_measured(self, store: CellStore) -> None:
        filled = {
            cell.key({}): made_up(cell)
            for cell in FIGURES["loss"].cells(seeds=1, quick=True, have={})
            if cell.method not in ("independent", "central-dplsf") and cell.data != "letter"
        }
        partial = CellStore(store.path.parent)
        partial.measures = filled
        points = collect(FIGURES["loss"], partial, seeds=1, quick=True, data_digests={})
        agrees = [finding.agrees for finding in findings(points)]
        assert agrees == [YES, YES, NOT_MEASURED, YES, NOT_MEASURED, NOT_MEASURED, OURS, OURS]

    def test_reasons_are_shown_where_it_differs(self, all_points: list[Points]) -> None:
        points = changed(points_of(all_points, "weights"), "DPFMPS-2PEst", 10.0)
        basic = findings(points)[1]
        assert basic.agrees == NO
        page = render([points], FACTS)
        assert basic.why in page
        assert basic.why not in render([points_of(all_points, "weights")], FACTS)

    def test_shares(self) -> None:
        assert [by_share(hits, 10) for hits in (8, 6, 5)] == [YES, PARTLY, NO]
        assert by_share(0, 0) == NOT_MEASURED


DOCS = Path(__file__).parents[2] / "docs"


def stored_points(figure: Figure) -> Points:
    """Read back the points that the page of the documentation was written from."""
    path = DOCS / "reproduction" / f"{figure.name}.json"
    record = json.loads(path.read_text()) if path.exists() else {"points": []}

    def value(given: object) -> object:
        return tuple(given) if isinstance(given, list) else given

    points = tuple(
        Point(
            panel=point["panel"],
            series=point["series"],
            x=value(point["x"]),
            cell=Cell(**{name: value(given) for name, given in point["config"].items()}),
            measures={
                name: Mean(value=mean, error=error, seeds=seeds)
                for name, (mean, error, seeds) in point["measures"].items()
            },
        )
        for point in record["points"]
    )
    return Points(figure=figure, points=points)


class TestStoredRun:
    """The page in docs/ has the verdicts and tables that follow from the stored figures."""

    def test_the_summary_is_up_to_date(self) -> None:
        page = (DOCS / "reproduction.md").read_text()
        rendered = render([stored_points(figure) for figure in FIGURES.values()], FACTS)
        heading = "## Findings\n"
        summaries = [text.split(heading)[1].split("\n## ")[0] for text in (page, rendered)]
        assert summaries[0] == summaries[1]
        assert "25 of 33 statements of the paper came out." in page

    @pytest.mark.parametrize("name", ["cost", "uneven", "mixed-gaussian"])
    def test_tables_are_up_to_date(self, name: str) -> None:
        stored = (DOCS / "reproduction" / f"{name}.md").read_text()
        shown = figure_markdown(stored_points(FIGURES[name]))
        number = r"\d+\.\d+"
        assert re.sub(number, "", shown) == re.sub(number, "", stored)
        # JSON has six digits, so a rounded last digit may differ.
        for ours, theirs in zip(re.findall(number, shown), re.findall(number, stored), strict=True):
            assert float(ours) == pytest.approx(float(theirs), abs=0.0101)

    def test_every_claim_is_decided(self) -> None:
        for figure in FIGURES.values():
            found = findings(stored_points(figure))
            assert all(finding.agrees != NOT_MEASURED for finding in found)


class TestPage:
    def test_has_every_figure_and_every_statement(self, all_points: list[Points]) -> None:
        page = render(all_points, FACTS)
        for points in all_points:
            assert f"## {points.figure.title}\n" in page
            assert points.figure.paper in page
            for finding in findings(points):
                assert finding.claim in page
        assert "python -m benchmarks paper --all --data-dir DIR --seeds 2 --quick" in page
        assert "10 runs in 10 minutes on 2 processes" in page

    def test_says_where_data_differ(self, all_points: list[Points]) -> None:
        page = render(all_points, FACTS)
        assert "50,000 rows where the paper has 60,000" in page
        assert "2,000 trips outside the city or over two hours left out" in page
        assert "pickups from 2016-03-01 to 2016-03-10" in page
        assert "Not run: letter (no file)." in page

    def test_a_killed_run_is_told(self, all_points: list[Points]) -> None:
        page = render(all_points[:1], dataclasses.replace(FACTS, cells=20))
        assert "20 runs in at least 10 minutes" in page

    def test_headings_match_the_links_of_the_summary(self, all_points: list[Points]) -> None:
        page = render(all_points, FACTS)
        headings = {
            re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-")
            for line in page.splitlines()
            if line.startswith("## ")
        }
        assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings

    def test_tables_have_the_paper_s_numbers(self, all_points: list[Points]) -> None:
        page = render(all_points, FACTS)
        # Loss and V-score of the paper's own method at epsilon 1, and its cost.
        row = next(line for line in page.splitlines() if line.startswith("| 1 | DPFMPS-2PEst |"))
        assert "0.7193 | 1.1502" in row
        assert "0.9441 | 0.8771" in row
        assert "0.362 ± 0.002 | 0.422 ± 0.002" in row
        cost = next(line for line in page.splitlines() if "M = 4096 |" in line and "| 8 |" in line)
        assert cost.endswith("| 260 | 0.362 | 11.95 | 0.422 | 101.14 |")


class TestTables:
    def test_markdown_has_a_table_for_each_panel(self, all_points: list[Points]) -> None:
        text = figure_markdown(points_of(all_points, "uneven"))
        assert "| columns of the two parties | 4:4 | 3:5 | 2:6 |" in text
        assert "| columns of the two parties | 8:8 | 6:10 | 4:12 |" in text
        assert text.count("| IND-LAP |") == 2

    def test_json_has_config_version_and_seeds(self, all_points: list[Points]) -> None:
        record = json.loads(to_json(points_of(all_points, "repetitions"), facts={"seeds": [0, 1]}))
        assert record["figure"] == "repetitions"
        assert record["splitmeans"]
        assert record["seeds"] == [0, 1]
        point = record["points"][0]
        assert point["config"]["repetitions"] == point["x"] == 512
        assert "seed" not in point["config"]
        assert point["measures"]["weight_error"] == [0.3618, 0.0018, 2]


class TestPictures:
    def test_every_line_has_a_style_of_its_own(self) -> None:
        for figure in FIGURES.values():
            if figure.picture:
                styles = [STYLES[series.name] for series in figure.series]
                assert len(set(styles)) == len(styles), figure.name

    @pytest.mark.parametrize("name", ["uneven", "local-clusters"])
    def test_files_are_pictures(self, all_points: list[Points], name: str, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        points = points_of(all_points, name)
        svg, png = draw(points, tmp_path)
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert png.stat().st_size > 10_000
        words = "".join(ET.parse(svg).getroot().itertext())
        for text in (*points.panels, *points.series, points.figure.y_label):
            assert text in words

    def test_tables_have_no_picture(self, all_points: list[Points], tmp_path: Path) -> None:
        assert draw(points_of(all_points, "cost"), tmp_path) == []
        assert draw(Points(figure=FIGURES["loss"], points=()), tmp_path) == []


def test_report_writes_what_the_page_links_to(all_points: list[Points], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    chosen = [points_of(all_points, name) for name in ("uneven", "cost", "mixed-gaussian", "data")]
    files = write_report(chosen, tmp_path, facts=FACTS)
    assert files[0] == tmp_path / "reproduction.md"
    assert all(file.stat().st_size > 0 for file in files)
    links = re.findall(r"\]\((reproduction/[^)]+)\)", files[0].read_text())
    assert {tmp_path / link for link in links} <= set(files)
    assert {file.suffix for file in files} == {".md", ".json", ".svg", ".png"}


class TestCommand:
    @pytest.fixture
    def app(self, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(run, "measure", made_up)
        app = typer.Typer()
        app.command()(paper)
        return app

    def test_runs_a_figure_and_goes_on(self, app: typer.Typer, tmp_path: Path) -> None:
        options = ["--figure", "uneven", "--seeds", "2", "--quick", "--jobs", "1"]
        options += ["--output", str(tmp_path / "out"), "--json", str(tmp_path / "cells.json")]
        for _ in range(2):
            result = CliRunner().invoke(app, options)
            assert result.exit_code == 0, result.output
        assert "left out: taxi" in result.output
        record = json.loads((tmp_path / "cells.json").read_text())
        # Three splits of mixed Gaussian data, seven methods, two seeds.
        assert len(record["cells"]) == 42
        assert record["run"]["cells"] == 42
        lines = (tmp_path / "out" / "cells.jsonl").read_text().splitlines()
        keys = [json.loads(line)["key"] for line in lines if "key" in json.loads(line)]
        assert len(keys) == len(set(keys)) == 42
        assert (tmp_path / "out" / "reproduction" / "uneven.png").stat().st_size > 10_000

    def test_failing_cells_end_with_an_error(
        self, app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(cell: Cell, data_dir: Path | None) -> Measures:
            raise ValueError("no luck")

        monkeypatch.setattr(run, "measure", failing)
        options = ["--figure", "uneven", "--seeds", "1", "--jobs", "1"]
        result = CliRunner().invoke(app, [*options, "--output", str(tmp_path / "out")])
        assert isinstance(result.exception, SplitmeansError)
        assert "21 cells failed, the first with: ValueError: no luck" in str(result.exception)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "give --all or --figure"),
            (["--all", "--figure", "loss"], "give --all or --figure"),
            (["--figure", "lost"], "--figure must be one of .*loss.*got 'lost'"),
            (["--figure", "loss", "--data-dir", "/nowhere"], "--data-dir must be a folder"),
        ],
    )
    def test_says_what_is_wrong(
        self, app: typer.Typer, options: list[str], message: str, tmp_path: Path
    ) -> None:
        result = CliRunner().invoke(app, [*options, "--output", str(tmp_path / "out")])
        assert isinstance(result.exception, ParameterError)
        assert re.search(message, str(result.exception))
