"""Reading a result folder: hand-computed segments, and every way in which a folder can be wrong."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.result.result import Result
from splitmeans.result.signed import rounded_hash
from splitmeans.synopsis.segments import letter


def rewrite(folder: Path, change) -> None:
    path = folder / "result.json"
    value = json.loads(path.read_text())
    change(value)
    # As the folder is written: what differs is the change alone.
    path.write_text(json.dumps(value, indent=1) + "\n")


def rehash(folder: Path, name: str) -> None:
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    rewrite(folder, lambda value: value["files"].update({name: digest}))


def test_published_segments_are_largest_first(result):
    item = result.published
    assert item.letters == ("A", "B")
    assert item.sizes.tolist() == [600, 300]
    np.testing.assert_allclose(item.centres, [[2000, 1, 0, 48], [6000, 0, 1, 72]], atol=1e-9)
    assert item.of_node.tolist()[:2] == [0, 0]
    assert item.of_node[3] == 1
    # Squared distances in the age column alone: 400 users 12 years off, 200 users 24 years off,
    # and a year is 2 / 72 of a unit.
    assert item.loss == pytest.approx((400 * 12**2 + 200 * 24**2) * (2 / 72) ** 2 / 900)


def test_the_published_k_is_the_published_segmentation(result):
    assert result.segments(2) is result.published
    assert result.segments() is result.published


def test_other_k_keeps_letters(result):
    item = result.segments(3)
    assert not item.published
    assert item.letters == ("A", "B", "C")
    # A keeps the larger part of A, what was split off is new.
    assert item.sizes.tolist() == [400, 300, 200]
    np.testing.assert_allclose(item.centres[:, 3], [36, 72, 72])
    assert item.loss == pytest.approx(0, abs=1e-12)


def test_segments_are_the_same_at_every_call(result):
    first, second = result.segments(3), result.segments(3)
    assert np.array_equal(first.scaled_centres, second.scaled_centres)


def test_compare_k_measures_the_shown_segments(result):
    curve = result.compare_k([3, 2])
    assert curve.ks == (2, 3)
    assert curve.losses[0] == result.published.loss
    assert curve.losses[1] == pytest.approx(0, abs=1e-12)


def test_k_below_two_is_refused(result):
    with pytest.raises(ParameterError, match="k must be a whole number >= 2, got 1"):
        result.segments(1)


def test_more_segments_than_cells_with_users_are_refused(result):
    cells = int((result.synopsis.weights > 0).sum())
    with pytest.raises(
        ParameterError, match=f"k must be at most {cells}, the number of different places"
    ):
        result.segments(cells + 1)


def test_clustering_has_the_same_order(result):
    assert result.published.clustering.sizes.tolist() == [600, 300]


@pytest.mark.parametrize(
    ("rank", "expected"), [(0, "A"), (25, "Z"), (26, "AA"), (27, "AB"), (51, "AZ"), (702, "AAA")]
)
def test_letters(rank, expected):
    assert letter(rank) == expected


# ---- folders that are wrong ----


def test_no_such_folder(tmp_path):
    with pytest.raises(ParameterError, match=r"nowhere/result\.json: there is no such file"):
        Result.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name",
    [
        "centres.csv",
        "certificate.json",
        "statement.txt",
        "study.toml",
        "synopsis.parquet",
        "transcript.json",
    ],
)
def test_every_file_must_be_there_and_unchanged(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ParameterError, match=f"{name}: not the file that result.json describes"):
        Result.read(folder)
    path.unlink()
    with pytest.raises(ParameterError, match=f"{name}: cannot be read"):
        Result.read(folder)


def test_other_format(folder):
    rewrite(folder, lambda value: value.update(format=1))
    with pytest.raises(ParameterError, match=r"result\.json: format must be 6, got 1; older"):
        Result.read(folder)


@pytest.mark.parametrize("text", ["{", "[1]", "null", "\ufeff"])
def test_not_an_object(folder, text):
    (folder / "result.json").write_text(text)
    with pytest.raises(ParameterError, match=r"result\.json: (not JSON|must be a JSON object)"):
        Result.read(folder)


@pytest.mark.parametrize(
    "key",
    [
        *("files", "result_hash", "participant", "written_at", "signed", "signature", "columns"),
        *("segments", "centres", "users", "scaled_centres", "sizes"),
    ],
)
def test_missing_entries_are_named(folder, key):
    rewrite(folder, lambda value: value.pop(key))
    with pytest.raises(ParameterError, match=rf"result\.json: (must have )?'{key}'"):
        Result.read(folder)


@pytest.mark.parametrize("key", ["observers", "releases", "budget", "assumptions", "secure_noise"])
def test_missing_parts_of_the_statement_are_named(folder, key):
    """Also where nothing is signed and all hashes were made to fit."""
    path = folder / "certificate.json"
    value = json.loads(path.read_text())
    del value[key]
    path.write_text(json.dumps(value, indent=1) + "\n")
    rehash(folder, "certificate.json")
    rewrite(folder, lambda head: head["signed"].update(privacy=rounded_hash(value)))
    with pytest.raises(ParameterError, match=rf"certificate\.json: its privacy facts .*'{key}'"):
        Result.read(folder)


def test_another_study(folder):
    path = folder / "study.toml"
    path.write_text(path.read_text().replace("8000.0", "9000.0"))
    rehash(folder, "study.toml")
    with pytest.raises(ParameterError, match=r"study\.toml: not the study"):
        Result.read(folder)


def test_another_grid(folder):
    rewrite(folder, lambda value: value.update(columns=["a", "b"]))
    with pytest.raises(ParameterError, match=r"'columns' does not follow from what the run"):
        Result.read(folder)


def test_a_file_that_is_no_synopsis(folder):
    shutil.copy(folder / "study.toml", folder / "synopsis.parquet")
    rehash(folder, "synopsis.parquet")
    with pytest.raises(ParameterError, match=r"synopsis\.parquet: not a splitmeans synopsis"):
        Result.read(folder)


@pytest.mark.parametrize(
    ("centres", "message"),
    [
        ([[0.0]], r"of shape \(up to 2, 4\), got shape \(1, 1\)"),
        ([[0.0], [0.0, 1.0]], "must be rows of numbers"),
        ([["a"]], "must be rows of numbers"),
        ([[float("nan")] * 4] * 2, "must be finite numbers"),
    ],
    ids=["shape", "ragged", "text", "nan"],
)
def test_centres_must_fit(folder, centres, message):
    rewrite(folder, lambda value: value.update(scaled_centres=centres))
    with pytest.raises(ParameterError, match=message):
        Result.read(folder)
