"""The pages' commands are run as they are pasted."""

import csv
import json
import re
import shutil
import socket
from pathlib import Path

import pytest

from .blocks import ROOT, remark
from .shell import make_folder, paste

GUIDES = ROOT / "docs" / "guides"

# Pages that need nothing else, by how long they take.
QUICK = (
    "README.md",
    "docs/guides/scaling.md",
    "docs/guides/other-models.md",
    "docs/reference/python.md",
    "docs/concepts/certificate.md",
    "docs/decide/evaluation.md",
    "docs/intervals.md",
)
# Left to `make guides`.
LONG = (
    "docs/guides/big-tables.md",
    "docs/guides/comparing.md",
    "docs/guides/data-sources.md",
    "docs/guides/using-segments.md",
    "docs/guides/keys.md",
    "docs/guides/renewal.md",
    "docs/guides/counts-alone.md",
    "docs/reference/ledger.md",
)
AFTER_TUTORIAL = (
    "docs/guides/choosing-k.md",
    "docs/guides/asking.md",
)
RUN_HERE = {
    *QUICK,
    *LONG,
    *AFTER_TUTORIAL,
    "docs/tutorial.md",
    "docs/guides/partial-overlap.md",
    "docs/guides/two-companies.md",
    "docs/guides/https.md",
}

# The segments of the invented customers of two-companies.md: income, savings, visits, basket.
TYPICAL = [[2000, 3000, 2, 20], [3500, 30000, 12, 35], [5000, 25000, 20, 60], [6500, 12000, 4, 120]]
BOUNDS = [9000, 50000, 30, 200]


@pytest.mark.parametrize(
    "page", [*QUICK, *(pytest.param(page, marks=pytest.mark.slow) for page in LONG)]
)
def test_short_pages(page, tmp_path):
    shown = paste(ROOT / page, make_folder(tmp_path))
    if page in QUICK:  # a first example shows how it is done, without a warning
        assert "Warning" not in shown


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory) -> tuple[Path, str]:
    """The folder of the tutorial after its last command, and what was shown."""
    folder = make_folder(tmp_path_factory.mktemp("tutorial"))
    shown = paste(ROOT / "docs" / "tutorial.md", folder)
    return folder / "tutorial", shown


@pytest.mark.slow
def test_the_tutorial(tutorial):
    folder, shown = tutorial
    results = [
        json.loads((folder / f"{who}-result" / "result.json").read_text())
        for who in ("insurer", "gym")
    ]
    assert results[0]["result_hash"] == results[1]["result_hash"]
    # The three kinds of its customers, the largest first. Noise moves a centre by far less.
    typical = [[27, 400, 11, 75], [44, 1000, 2, 40], [68, 1400, 7, 55]]
    widths = [72, 2000, 20, 120]
    for centre, expected in zip(results[0]["centres"], typical, strict=True):
        for value, wanted, width in zip(centre, expected, widths, strict=True):
            assert abs(value - wanted) < 0.05 * width
    assert "charged epsilon 1, delta 1e-06 to source 'gym.csv'" in shown
    assert "age: 12 of 8,000 values lie outside 18 to 90 and become the bound" in shown
    assert "3 segments, as published" in shown
    assert re.search(r"^gym.csv +server, outsiders +1 +1e-06 +none", shown, flags=re.MULTILINE)
    assert "young and active" in (folder / "report.html").read_text()
    with (folder / "gym-labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8000
    assert set(rows[0]) == {"id", "segment", "probability", "segment A", "segment B", "segment C"}


@pytest.mark.slow
@pytest.mark.parametrize("page", AFTER_TUTORIAL)
def test_pages_that_go_on_after_the_tutorial(page, tutorial, tmp_path):
    assert remark(ROOT / page, "after") == "tutorial.md"
    place = make_folder(tmp_path)
    shutil.copytree(tutorial[0], place, dirs_exist_ok=True)
    paste(ROOT / page, place)


@pytest.mark.slow
def test_partial_overlap(tmp_path):
    folder = make_folder(tmp_path)
    (folder / "study.toml").write_text("the study of another page")
    shown = paste(GUIDES / "partial-overlap.md", folder)
    assert (folder / "study.toml").read_text() == "the study of another page"
    # The fewer users are shared, the worse; the page shows just these lines.
    ratios = re.findall(r"^loss ratio .*$", shown, flags=re.MULTILINE)
    assert len(ratios) == 3
    assert "\n".join(ratios) in (GUIDES / "partial-overlap.md").read_text()
    assert ratios == sorted(ratios)
    found = re.search(r"^shared users, estimated: (\d+)$", shown, flags=re.MULTILINE)
    assert found is not None
    # 6,000 of them; the noise of a cell has a deviation of about 20 users at epsilon 2, and about
    # a hundred cells count.
    assert abs(int(found[1]) - 6000) < 1000


@pytest.fixture(scope="module")
def companies(tmp_path_factory) -> tuple[Path, str]:
    folder = make_folder(tmp_path_factory.mktemp("companies"))
    return folder, paste(GUIDES / "two-companies.md", folder)


@pytest.mark.slow
def test_two_companies(companies):
    folder, shown = companies
    _check_results(folder, "bank-result", "shop-result")
    # What the guide says about the mailbox and the ledger.
    assert list((folder / "shared").iterdir())
    assert re.search(
        r"^bank-customers +server, outsiders +1 +1e-06 +3, 1e-05", shown, flags=re.MULTILINE
    )
    assert re.search(r"^3 entries, sound; head [0-9a-f]{64}$", shown, flags=re.MULTILINE)


@pytest.mark.slow
def test_https(companies):
    if shutil.which("openssl") is None:
        pytest.skip("openssl, with which the guide makes its certificates, is not installed")
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package)
    folder, _ = companies
    shown = paste(GUIDES / "https.md", folder, replace=("8443", str(_free_port())))
    _check_results(folder, "bank-result-2", "shop-result-2")
    assert "relay.pem: OK" in shown
    assert re.search(
        r"^shop-customers +server, outsiders +2 +2e-06 +3, 1e-05", shown, flags=re.MULTILINE
    )
    assert "relay at https://127.0.0.1:" in (folder / "relay.log").read_text()


def _check_results(folder: Path, *names: str) -> None:
    results = [json.loads((folder / name / "result.json").read_text()) for name in names]
    assert results[0]["result_hash"] == results[1]["result_hash"]
    with (folder / names[0] / "centres.csv").open() as file:
        rows = sorted([float(value) for value in row[2:]] for row in list(csv.reader(file))[1:])
    for row, typical in zip(rows, TYPICAL, strict=True):
        # The noise of a run moves a centre by less than a hundredth of a column's range; the
        # segments themselves are a fifth apart.
        for value, expected, bound in zip(row, typical, BOUNDS, strict=True):
            assert abs(value - expected) < 0.05 * bound


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
