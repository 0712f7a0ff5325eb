"""`Result` in Python, after a fit and from a folder: files, names, tables, labels, plots."""

import csv
import functools
import json
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import NotFittedError

from splitmeans import DataError, InsecureSeededNoise, ParameterError, Result, VerticalKMeans
from splitmeans.party.label_file import write_labels
from tests.result.small_result import write_small_result
from tests.scene import keyed_study

mpl.use("agg")

BANK = pd.DataFrame(
    {"customer": ["007", "8"], "income": [2000, 6000], "region": ["north", "south"]},
    index=["first", "second"],
)


@pytest.fixture
def result(tmp_path) -> Result:
    return Result.read(write_small_result(tmp_path / "small"))


@functools.cache
def fitted() -> VerticalKMeans:
    rng = np.random.default_rng(5)
    kind = rng.integers(2, size=300)[:, np.newaxis]
    rows = np.where(kind, 0.6, -0.6) + rng.normal(0, 0.05, (300, 4))
    model = VerticalKMeans(
        2,
        epsilon=8.0,
        bounds=(-1, 1),
        n_local_clusters=3,
        noise=InsecureSeededNoise(1),
        random_state=1,
    )
    return model.fit({"bank": rows[:, :2], "shop": rows[:, 2:]})


# ---- a folder, from a fit or from a run ----


def test_a_fit_is_saved_as_a_simulation_and_read_back(tmp_path):
    model = fitted()
    read = Result.read(model.save(tmp_path / "result"))
    np.testing.assert_array_equal(read.published_centres, model.published_.published_centres)
    np.testing.assert_array_equal(read.synopsis.scaled_nodes, model.synopsis_.scaled_nodes)
    assert not read.signed
    assert "simulation, not signed" in read.origin
    assert (read.facts["run"], read.facts["participant"]) == ("simulation", "simulation")
    assert read.statement == model.published_.statement
    assert "INSECURE TEST NOISE" in read.statement


def test_a_study_with_keys_is_simulated_without_them(tmp_path):
    study = keyed_study()
    rows = np.random.default_rng(1).uniform(0, 100, (300, 4))
    model = VerticalKMeans(noise=InsecureSeededNoise(1)).fit_study(
        study, [rows[:, :2], rows[:, 2:]]
    )
    assert model.study_.server_key is None
    assert "simulation, not signed" in Result.read(model.save(tmp_path / "result")).origin


def test_a_result_that_is_saved_again_is_the_same(result, tmp_path):
    copy = result.save(tmp_path / "copy")
    for path in result.folder.iterdir():
        assert (copy / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_folder_with_other_things_is_not_replaced(result, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").touch()
    with pytest.raises(ParameterError, match="holds something else than a result"):
        result.save(tmp_path / "thesis")


def test_before_a_fit_there_is_no_report():
    with pytest.raises(NotFittedError):
        VerticalKMeans().report()


# ---- names ----


def test_files_tables_labels_and_report_follow_a_name(result, tmp_path):
    named = result.rename({"A": "young families"})
    assert result.names == {}  # a result is a value
    folder = named.save(tmp_path / "named")
    read = Result.read(folder)
    assert read.names == {"A": "young families"}
    assert json.loads((folder / "result.json").read_text())["names"] == read.names
    rows = list(csv.DictReader((folder / "centres.csv").read_text().splitlines()))
    assert [row["name"] for row in rows] == ["young families", ""]
    assert read.to_pandas()["name"].fillna("").tolist() == ["young families", ""]
    assert read.label(BANK)["name"].tolist() == ["young families", "B"]
    assert "young families" in read.report(ks=[2]).html
    pq.write_table(pa.Table.from_pandas(BANK, preserve_index=False), tmp_path / "bank.parquet")
    write_labels(
        read,
        tmp_path / "bank.parquet",
        tmp_path / "labels.parquet",
        party="bank",
        segments=read.published,
        progress=lambda *_, **__: None,
    )
    assert pq.read_table(tmp_path / "labels.parquet")["name"].to_pylist() == ["young families", "B"]
    # Other numbers of segments are other segments.
    assert "name" not in read.label(BANK, k=3).columns
    assert read.rename({"A": ""}).names == {}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"Z": "nobody"}, "no segment 'Z' to name; there are A, B"),
        ({"A": 3}, "name of segment 'A' must be 1 to 80 printable"),
        ({"A": " spaces "}, "without spaces"),
        ({"A": "two\nlines"}, "printable"),
    ],
)
def test_a_name_is_a_short_text_of_a_segment(result, names, message):
    with pytest.raises(ParameterError, match=message):
        result.rename(names)


def test_a_changed_name_in_a_folder_is_found(result, tmp_path):
    folder = result.rename({"A": "families"}).save(tmp_path / "named")
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace("families", "nobodies"))
    with pytest.raises(ParameterError, match=r"centres\.csv: does not follow"):
        Result.read(folder)


def test_the_model_has_the_same_methods():
    model = fitted()
    try:
        assert model.rename({"B": "others"}) is model
        assert model.to_pandas()["name"].fillna("").tolist() == ["", "others"]
        labels = model.label(np.full((1, 2), 0.6), party="shop")
        assert labels.column_names == ["segment", "name", "probability", "segment A", "segment B"]
    finally:
        model.rename({"B": ""})


# ---- tables and labels ----


def test_a_row_for_each_segment(result):
    frame = result.to_pandas()
    assert frame.columns[:6].tolist() == [
        *("segment", "name", "users", "share", "users_low", "users_high"),
    ]
    assert frame["segment"].tolist() == ["A", "B"]
    assert frame["users"].tolist() == [600, 300]
    assert frame["share"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert frame["bank: income"].tolist() == pytest.approx([2000, 6000])
    assert frame["bank: region=north"].tolist() == pytest.approx([1, 0])
    assert (frame["users_low"] < frame["users"]).all()
    assert len(result.to_pandas(3)) == 3


def test_a_frame_keeps_its_rows_ids_and_index(result):
    found = result.label(BANK)
    pd.testing.assert_frame_equal(found[BANK.columns], BANK)
    assert found["segment"].tolist() == ["A", "B"]
    np.testing.assert_allclose(found[["segment A", "segment B"]].sum(axis=1), 1)
    assert (found["probability"] == found[["segment A", "segment B"]].max(axis=1)).all()


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda frame: pa.Table.from_pandas(frame)])
def test_other_libraries_get_their_own_kind_back(result, kind):
    data = kind(BANK.reset_index(drop=True))
    found = result.label(data)
    assert type(found) is type(data)
    as_pandas = found.to_pandas()
    assert as_pandas["customer"].tolist() == ["007", "8"]
    assert as_pandas["segment"].tolist() == ["A", "B"]


def test_whose_table_it_is_must_be_clear(result):
    with pytest.raises(
        DataError, match=r"party must be given.*no party's columns.*'bank', 'insurer'"
    ):
        result.label(BANK.rename(columns={"income": "Income"}))
    with pytest.raises(DataError, match="party must be given"):
        result.label(np.zeros((1, 1)))
    assert len(result.label(np.full((1, 1), 36.0), party="insurer")) == 1


def test_labels_are_not_written_over_a_column(result):
    with pytest.raises(DataError, match="must not have a column 'segment' yet"):
        result.label(BANK.assign(segment=1))


def test_a_table_in_other_units_is_refused(result):
    wrong = BANK.assign(income=[2e6, 6e6])
    with pytest.raises(DataError, match="at least half of the values within"):
        result.label(wrong)
    assert result.label(wrong, allow_clipping=True)["segment"].tolist() == ["A", "B"]


# ---- pages and plots ----


def test_the_report_in_a_notebook_is_closed_off(result, tmp_path):
    page = result.report(tmp_path / "report.html", ks=[2])
    assert (tmp_path / "report.html").read_text() == page.html
    shown = page._repr_html_()
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown  # all of it is the text of an attribute
    with pytest.raises(ParameterError, match="cannot be written"):
        page.write(tmp_path / "no" / "report.html")


@pytest.mark.parametrize("what", ["map", "silhouette", "loss"])
def test_a_picture_needs_nothing_else(result, what):
    from xml.etree import ElementTree

    picture = result.picture(what)
    root = ElementTree.fromstring(picture.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"(?:href|src|url\()\s*=?\s*[\"']?https?:", picture.svg)
    assert "<img alt=" in picture._repr_mimebundle_()["text/html"]


def test_there_is_no_other_picture(result):
    with pytest.raises(ParameterError, match="map, silhouette, loss"):
        result.picture("portrait")


def test_plots_are_matplotlib_axes(result):
    from matplotlib import pyplot

    named = result.rename({"A": "families"})
    _, own = pyplot.subplots()
    assert named.plot_map(ax=own) is own
    sizes = named.plot_sizes()
    assert [text.get_text() for text in sizes.get_yticklabels()] == ["A families", "B"]
    assert [bar.get_width() for bar in sizes.patches] == [600, 300]
    columns = named.plot_columns(3)
    assert len(columns.get_yticklabels()) == 4
    assert "silhouette" in named.plot_k(range(2, 4)).get_ylabel()
    pyplot.close("all")
