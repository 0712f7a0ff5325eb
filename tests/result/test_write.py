"""Where a result may be written, and what is in it."""

import csv
import json

import pytest

from splitmeans.errors import ParameterError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.report.facts import run_facts
from splitmeans.result.result import Result
from splitmeans.result.write import check_place
from tests.result.small_result import small_study, write_small_result


def test_a_folder_with_something_else_is_kept(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "important.txt").write_text("do not lose me")
    with pytest.raises(ParameterError, match="holds something else than a result"):
        check_place(tmp_path / "letters")
    with pytest.raises(ParameterError, match="holds something else than a result"):
        check_place(tmp_path / "letters" / "important.txt")


def test_a_new_an_empty_and_an_older_result_folder_may_be_written(tmp_path):
    check_place(tmp_path / "new")
    check_place(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "centres.csv").write_text("")
    check_place(tmp_path)


def test_segments_are_in_the_order_of_their_letters_in_every_file(tmp_path):
    folder = write_small_result(tmp_path / "result")
    with (folder / "centres.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["segment"], row["size"]) for row in rows] == [("A", "600.0"), ("B", "300.0")]
    assert [row["insurer: age"] for row in rows] == ["48", "72"]
    saved = json.loads((folder / "result.json").read_text())
    assert saved["segments"] == ["A", "B"]
    assert saved["sizes"] == [600, 300]
    assert [centre[3] for centre in saved["centres"]] == pytest.approx([48, 72])
    read = Result.read(folder)
    assert read.published.letters == ("A", "B")
    assert read.published.scaled_centres.tolist() == saved["scaled_centres"]


@pytest.mark.parametrize("secure", [True, False])
def test_the_statement_says_where_the_noise_came_from(tmp_path, secure):
    folder = write_small_result(tmp_path / "result", secure_noise=secure)
    assert json.loads((folder / "certificate.json").read_text())["secure_noise"] is secure
    assert ("INSECURE TEST NOISE" in (folder / "statement.txt").read_text()) is not secure


def test_the_certificate_is_that_of_the_plan(tmp_path):
    folder = write_small_result(tmp_path / "result")
    saved = json.loads((folder / "certificate.json").read_text())
    read = Result.read(folder)
    assert saved == json.loads(json.dumps(PrivacyFacts.for_study(read.study).to_mapping()))
    assert saved["plan"] == read.facts["plan"]


def test_a_released_count_is_kept(tmp_path):
    folder = write_small_result(tmp_path / "a", study=small_study(n_local_clusters="auto"))
    read = Result.read(folder)
    assert read.released == (((900,), (900,)),)
    assert ("Users as released, noisy", "900 at bank, 900 at insurer") in run_facts(read)
    # The plan of the run can be made again from the folder.
    plan = make_plan(read.study, released=read.released)
    assert plan.fingerprint == read.facts["plan"]
    assert Result.read(write_small_result(tmp_path / "b")).released == ()


@pytest.mark.parametrize("wrong", ["900", True, [900], [[["900"]]], [[[1.5]]]])
def test_a_count_must_be_a_whole_number(tmp_path, wrong):
    folder = write_small_result(tmp_path / "result")
    path = folder / "result.json"
    head = json.loads(path.read_text())
    head["signed"]["released"] = wrong
    path.write_text(json.dumps(head))
    with pytest.raises(ParameterError, match="'released' as lists of whole numbers"):
        Result.read(folder)
