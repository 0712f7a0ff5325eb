"""No text in a csv file is a formula, and every text can be had back."""

import csv
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import splitmeans
from splitmeans.analysis.result import Result
from splitmeans.cli import app
from splitmeans.csv_cells import also_restored, safe_row, safe_table, safe_text
from splitmeans.study import Column, PartySpec
from tests.result.small_result import small_study, write_small_result

TEXTS = st.one_of(
    st.text(max_size=6),
    st.text(alphabet="=-'5;a", max_size=6),
    st.tuples(st.sampled_from("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20"), st.text(max_size=5)).map(
        "".join
    ),
)


@pytest.mark.parametrize("first", "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
def test_formulas_get_a_quote(first):
    assert safe_text(f"{first}cmd|' /C calc'!A0") == f"'{first}cmd|' /C calc'!A0"


@pytest.mark.parametrize("first", "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
def test_formulas_after_a_semicolon_get_a_quote(first):
    assert safe_text(f"north;{first}1;{first}2") == f"north;'{first}1;'{first}2"
    column = safe_table(pa.table({"x": [f"north;{first}1"]})).column(0)
    assert column.to_pylist() == [f"north;'{first}1"]


@pytest.mark.parametrize("text", ["-5", "+49170123", "-1.5e-3", ".5", "007", "a-b", "", "north"])
def test_numbers_and_other_texts_stay(text):
    assert safe_text(text) == text
    assert safe_row([text, 5, None, -0.5]) == [text, 5, None, -0.5]


@pytest.mark.parametrize("text", ["-5\n", "-5+cmd|1", "--5", "+", "-", "-5e", "-\u0665"])
def test_what_only_begins_like_a_number_gets_a_quote(text):
    assert safe_text(text) == f"'{text}"


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1))
def test_a_quote_taken_away_restores_every_text(texts):
    safe = [safe_text(text) for text in texts]
    table = safe_table(pa.table({"=id": pa.array(texts), "n": range(len(texts))}))
    assert table.column_names == ["'=id", "n"]
    assert table.column(0).to_pylist() == safe
    assert table.column(1).to_pylist() == list(range(len(texts)))
    after_semicolons = [part[:1] for own in safe for part in own.split(";")[1:]]
    assert not {*after_semicolons} & {*"=+-@\t\r\n"}
    assert len(set(safe)) == len(set(texts))
    again = also_restored(safe_table(pa.table({"=id": pa.array(texts)})))
    assert again.column_names == ["=id"]
    assert again.column(0).to_pylist()[len(texts) :] == texts


def test_arrow_types_of_text_and_missing_values():
    values = ["=a", None, "b"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        table = safe_table(pa.table({"x": pa.array(values, pa.string()).cast(kind)}))
        assert table.column(0).to_pylist() == ["'=a", None, "b"]


def test_a_file_is_read_back_by_the_standard_library():
    file = io.BytesIO()
    pyarrow.csv.write_csv(safe_table(pa.table({"@x": ["=1+1", "-5"]})), file)
    assert list(csv.reader(io.StringIO(file.getvalue().decode()))) == [["'@x"], ["'=1+1"], ["-5"]]


def test_every_writer_of_csv_files_goes_through_here():
    root = Path(splitmeans.__file__).parent
    writers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"csv\.writer\(|write_csv\(|CSVWriter|to_csv\(", path.read_text())
    }
    assert len(writers) == 5
    for name in writers:
        assert "from splitmeans.csv_cells import" in (root / name).read_text(), name


@pytest.fixture(scope="module")
def risky(tmp_path_factory):
    """A folder of a study whose names are formulas, and the bank's table."""
    folder = tmp_path_factory.mktemp("risky")
    bank, insurer = small_study().parties
    columns = (
        Column(name="+cmd|x", low=0, high=8000),
        Column(name="@region", categories=("=north", "+south;=x")),
    )
    bank = PartySpec(name="@bank", columns=columns, id_column="=customer")
    write_small_result(folder / "result", study=small_study(parties=(bank, insurer)))
    Result.read(folder / "result").rename({"A": "=rich"}).save(folder / "result")
    ids = ["=1+1", "-5", "007", "@me", "=2", "+3-1", "-x", "a"]
    table = {"=customer": ids, "+cmd|x": [2000.0, 6000] * 4, "@region": ["=north", "+south;=x"] * 4}
    pq.write_table(pa.table(table), folder / "t.parquet")
    return folder


def run(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["result", words[0], str(folder / "result"), *words[1:]])
    assert done.exit_code == 0, done.output
    return done.stdout


def rows_of(text: str) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text)))
    for cell in (part for row in rows for text in row for part in text.split(";")):
        assert safe_text(cell) == cell or cell[0] == "'"
    return rows


def test_files_and_answers_have_no_formula(risky):
    rows = rows_of((risky / "result" / "centres.csv").read_text())
    assert rows[0][3] == "'@bank: +cmd|x"
    assert rows[1][1] == "'=rich"
    own = ["--party", "@bank", "--data", str(risky / "t.parquet"), "-o"]
    run(risky, "label", *own, str(risky / "labels.csv"))
    rows = rows_of((risky / "labels.csv").read_text())
    assert rows[0][0] == "'=customer"
    assert [row[0] for row in rows[1:]] == [
        *("'=1+1", "-5", "007", "'@me", "'=2", "'+3-1", "'-x", "a")
    ]
    run(risky, "audience", "--segments", "A", *own, str(risky / "audience.csv"))
    assert rows_of((risky / "audience.csv").read_text())[1][0] == "'=1+1"
    run(risky, "explore", "--synthetic", "20", "-o", str(risky / "synthetic.csv"))
    assert rows_of((risky / "synthetic.csv").read_text())[0][1] == "'@bank: @region"
    rows = rows_of(run(risky, "table", "@bank: @region", "--csv"))
    assert {row[0] for row in rows[1:]} == {"'=north", "'+south;'=x"}


def test_a_file_of_ours_can_be_a_seed(risky):
    """Ids with a quote in front are found in the table that they came from."""
    (risky / "seed.csv").write_text("'=customer\n'=1+1\n-5\n'=2\n'+3-1\n'-x\na\n")
    own = ["--party", "@bank", "--data", str(risky / "t.parquet"), "-o", str(risky / "like.csv")]
    run(risky, "similar", "--seed", str(risky / "seed.csv"), *own)
    rows = rows_of((risky / "like.csv").read_text())
    assert {row[0] for row in rows[1:]} == {"007", "'@me"}
