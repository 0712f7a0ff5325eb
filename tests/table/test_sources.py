"""Every kind of source gives the same table, streamed, and errors that show no value."""

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from splitmeans import VerticalKMeans
from splitmeans._types import NO_VALUE
from splitmeans.errors import DataError
from splitmeans.study import Budget, Column, IdRules, PartySpec, Study
from splitmeans.table.batches import joined
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.table.sources.open import open_source, read_batches
from splitmeans.table.walk import stream
from splitmeans.table.walk.stored import StoredTable

N = 3000
SECRET = "hunter2"
SPEC = PartySpec(
    name="bank",
    columns=(
        Column(name="x", low=-2, high=2, missing="midpoint"),
        Column(name="kind", categories=["1", "02"]),
        Column(name="visits", low=0, high=9),
    ),
    id_column="customer",
)
INTEGER = IdRules(type="integer")


def make_rows(n: int = N) -> pa.Table:
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    return pa.table(
        {
            "customer": [f"{number:05d}" for number in rng.permutation(n)],
            "unused": pa.array(["text"] * n),
            "x": pa.array(np.where(x > 1.5, np.nan, x), mask=x > 1.5),
            "kind": rng.choice(["1", "02"], n),
            "visits": rng.integers(0, 12, n),
        }
    )


ROWS = make_rows()
ALL = "select customer, x, kind, visits from customers"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The same rows in every kind of file and database."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, "t.parquet")
    pyarrow.csv.write_csv(ROWS, "t.csv")
    for name, part in (("part-1", ROWS.slice(0, 1000)), ("part-2", ROWS.slice(1000))):
        place = Path("parts") / "day=1" / f"{name}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, place)
    Path("parts/_SUCCESS").touch()
    Path("parts/.part-1.parquet.crc").touch()
    with pa.OSFile("t.arrow", "wb") as file, pa.ipc.new_file(file, ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=700)
    with pa.OSFile("t.arrows", "wb") as file, pa.ipc.new_stream(file, ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=700)
    frame = ROWS.to_pandas()
    with sqlite3.connect("t.sqlite") as base:
        frame.to_sql("customers", base, index=False)
    base.close()
    with duckdb.connect("t.duckdb") as base:
        base.register("frame", frame)
        base.execute("create table customers as select * from frame")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/a/t.parquet", Path("t.parquet").read_bytes())
    store.pipe("/bucket/b/t.csv", Path("t.csv").read_bytes())
    store.pipe("/bucket/b/_SUCCESS", b"")
    return tmp_path


SOURCES = {
    "parquet file": ("t.parquet", None),
    "parquet folder": ("parts", None),
    "parquet pattern": ("parts/*/part-*.parquet", None),
    "csv": ("t.csv", None),
    "arrow file": ("t.arrow", None),
    "arrow stream": ("t.arrows", None),
    "sqlite file": ("t.sqlite", ALL),
    "sqlite url": ("sqlite:///t.sqlite", ALL),
    "duckdb file": ("t.duckdb", ALL),
    "duckdb url": ("duckdb:///t.duckdb", "from customers"),
    "duckdb on files": ("duckdb://", "from 't.parquet'"),
    "store file": ("memory://bucket/a/t.parquet", None),
    "store folder": ("memory://bucket/b", None),
    "store pattern": ("memory://bucket/b/*.csv", None),
}
TABLES = {
    "arrow": lambda: ROWS,
    "arrow batch": lambda: ROWS.combine_chunks().to_batches()[0],
    "arrow reader": lambda: ROWS.to_reader(max_chunksize=500),
    "pandas": lambda: ROWS.to_pandas(),
    "polars": lambda: pl.from_arrow(ROWS),
    "duckdb relation": lambda: duckdb.from_arrow(ROWS),
    "arrow c stream": lambda: OnlyAStream(),
}


class OnlyAStream:
    """What a library offers that knows Arrow and nothing else of ours."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ROWS.to_reader(max_chunksize=500).__arrow_c_stream__(requested_schema)


@pytest.fixture(params=["in memory", "on disk"])
def expected_kind(request, monkeypatch) -> type:
    if request.param == "in memory":
        return PartyTable
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 100)
    monkeypatch.setattr(stream, "BLOCK_ROWS", 400)
    return StoredTable


def check_equal(table, kind: type) -> None:
    whole = prepare_table(SPEC, ROWS, rules=INTEGER)
    assert type(table) is kind
    assert (table.rows.gather() == whole.raw_rows).all()
    ids = [text for block in table.users.each(_ids) for text in block.to_pylist()]
    assert ids == whole.ids.to_pylist()


def _ids(block):
    return block.ids


@pytest.mark.parametrize(("data", "query"), SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_table(data, query, folder, expected_kind):
    facts = []
    options = SourceOptions(rules=INTEGER, notice=facts.append, workers=1, spool=folder)
    with open_source(SPEC, data, query=query, options=options) as table:
        check_equal(table, expected_kind)
    (fact,) = facts
    leading = sum(text.startswith("0") for text in ROWS["customer"].to_pylist())
    assert (fact.ids.rows, fact.ids.odd) == (N, {"leading zeros": leading})
    x, visits = ROWS["x"].drop_null().to_numpy(), ROWS["visits"].to_numpy()
    assert [(column.column, column.outside, column.values) for column in fact.bounds] == [
        ("x", (abs(x) > 2).sum(), len(x)),
        ("visits", (visits > 9).sum(), N),
    ]
    assert not list(folder.glob("splitmeans-*"))  # blocks go with the table


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_of_other_libraries(make, expected_kind):
    with open_source(SPEC, make(), options=SourceOptions(rules=INTEGER, workers=1)) as table:
        check_equal(table, expected_kind)
    in_memory = prepare_table(SPEC, make(), rules=INTEGER)
    check_equal(in_memory, PartyTable)


@pytest.mark.filterwarnings("ignore:party .* become the bound:UserWarning")
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_the_estimator_takes_them(make):
    other = pd.DataFrame({"id": range(N), "y": np.linspace(0, 1, N)})
    study = Study(
        name="test",
        parties=(SPEC, PartySpec(name="shop", columns=(Column(name="y", low=0, high=1),))),
        n_clusters=2,
        budget=Budget(epsilon=2, delta=1e-4),
        expected_users=N,
        ids=INTEGER,
    )
    model = VerticalKMeans(random_state=1).fit_study(study, [make(), other])
    assert model.cluster_centers_.shape == (2, 5)


def test_the_estimator_names_columns_of_a_stream():
    bank = ROWS.select(["x", "visits"]).drop_columns("x")
    model = VerticalKMeans(2, bounds=(0, 12), random_state=1)
    model.fit([bank.to_reader(), duckdb.from_arrow(bank)])
    assert model.synopsis_.feature_names == ("party1: visits", "party2: visits")
    # Without its id column a named stream is refused, as a table is.
    study = model.study_
    with pytest.raises(DataError, match="must have the id column 'id'"):
        VerticalKMeans().fit_study(study, [bank.to_reader(), bank])


# ---- streams ----


def test_batches_are_joined_and_cut_to_blocks():
    batches = ROWS.to_batches(max_chunksize=70)
    tables = list(joined(batches, rows=400))
    assert sum(len(table) for table in tables) == N
    assert all(300 < len(table) <= 400 for table in tables[:-1])
    (large,) = ROWS.combine_chunks().to_batches()
    assert [len(table) for table in joined([large], rows=1024)] == [1024, 1024, 952]
    small = [len(table) for table in joined([large], rows=N, size=large.nbytes // 10)]
    assert len(small) >= 10
    assert sum(small) == N
    # A change of types begins a new table.
    changed = [pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})]
    assert [table.schema.field("a").type for table in joined(changed, rows=10)] == [
        pa.int64(),
        pa.string(),
    ]


def test_one_batch_larger_than_memory_allows_is_stored_too(monkeypatch):
    monkeypatch.setattr(stream, "BYTES_IN_MEMORY", 1000)
    with open_source(
        SPEC, ROWS.combine_chunks(), options=SourceOptions(rules=INTEGER, workers=1)
    ) as table:
        check_equal(table, StoredTable)


def test_a_repeated_id_after_normalisation_is_found_on_disk(folder, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 100)
    query = f"{ALL} union all select '0' || customer, x, kind, visits from customers where x > 1.4"
    with pytest.raises(DataError, match=r"compared as whole numbers.*same id as row numbers 3000"):
        open_source(
            SPEC,
            "t.sqlite",
            query=query,
            options=SourceOptions(rules=INTEGER, workers=1, spool=folder),
        )
    assert not list(folder.glob("splitmeans-*"))


def test_progress_of_a_stream_whose_length_nobody_knows(folder, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 100)
    seen = []

    def note(stage, *, rows, of):
        seen.append((stage, rows, of))

    with open_source(
        SPEC, "t.duckdb", query=ALL, options=SourceOptions(rules=INTEGER, workers=1, progress=note)
    ):
        reads = [(rows, of) for stage, rows, of in seen if stage == "read"]
    assert sum(rows for rows, _ in reads) == N
    assert {of for _, of in reads} == {None}


# ---- csv ----


def csv(*lines: str) -> str:
    Path("own.csv").write_text("\n".join(("customer,x,kind,visits", *lines)) + "\n")
    return "own.csv"


def test_types_of_a_csv_file_do_not_depend_on_its_first_lines(tmp_path, monkeypatch):
    """Whole numbers at first and others later; ids and categories that look like numbers."""
    monkeypatch.chdir(tmp_path)
    many = [f"{i},1,02,3" for i in range(10, 400_000)]  # several blocks
    with open_source(SPEC, csv(*many, "007,1.5,1,3.5"), options=SourceOptions(workers=1)) as table:
        last = table.rows.gather()[-1]
        ids = [block.to_pylist()[-1] for block in table.users.each(_ids)]
    assert ids[-1] == "007"
    assert (
        last.tolist()
        == prepare_table(SPEC, {"customer": ["007"], "x": [1.5], "kind": ["1"], "visits": [3.5]})
        .raw_rows[0]
        .tolist()
    )


LISTED, OPEN = {"categories": ["north", "NA"]}, {"categories": "open"}


@pytest.mark.parametrize("kind", [LISTED, OPEN], ids=["listed", "open"])
@pytest.mark.parametrize("number", ["1", "NA", "1 EUR"])
def test_an_empty_category_in_a_csv_file_is_missing(kind, number, tmp_path, monkeypatch):
    """Where numbers are read as numbers, and where as text to say what is wrong with them."""
    monkeypatch.chdir(tmp_path)
    spec = PartySpec(
        name="bank",
        columns=(Column(name="kind", **kind), Column(name="x", low=0, high=1, missing="midpoint")),
        id_column="customer",
    )
    path = csv("NA,1,north,1", f"2,{number},,1", "3,1,NA,1", '4,1,"",1')
    with pytest.raises(
        DataError, match="'kind' must not have missing values; see row numbers 1, 3"
    ):
        open_source(spec, path, options=SourceOptions(workers=1))


def test_the_rule_for_missing_values_holds_for_empty_categories_of_a_csv_file(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = csv("1,1,north,1", "2,1,,1", "3,1,south,1")
    for kinds, missing, level in [
        (["north", "south"], "level", 2),
        (["north", "(other)"], "level", 2),
        (["north", "south"], "skip", NO_VALUE),
        (["north", "", "south"], "error", 1),
    ]:
        column = Column(name="kind", categories=kinds, missing=missing)
        age = Column(name="x", low=0, high=1)
        spec = PartySpec(name="bank", columns=(column, age), id_column="customer")
        with open_source(spec, path, options=SourceOptions(workers=1)) as table:
            assert table.rows.gather()[1, 0] == level


def test_an_empty_id_in_a_csv_file_is_an_empty_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="ids must not be empty text; see row number 1 "):
        open_source(SPEC, csv("1,1,1,1", ",1,1,1"), options=SourceOptions(workers=1))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,2,1,hunter2"], "column 'visits' must hold numbers, found text .*row number 0 "),
        (
            [*["1,2,1,3"] * 600_000, "1,2,1,hunter2"],
            "column 'visits' must hold numbers.*row number 600000 ",
        ),
        (["1,2,1,3", "1,2,1,3,hunter2"], "has more or fewer values"),
        (["1,2,hunter2,3"], "column 'kind' must hold only categories.*row number 0 "),
        ([], "at least one row"),
    ],
    ids=["text", "text later", "ragged", "category", "empty"],
)
def test_errors_of_csv_files_show_no_value(lines, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        open_source(SPEC, csv(*lines), options=SourceOptions(workers=1))
    assert str(caught.value).startswith("own.csv: ")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("customer;x;kind;visits\nhunter2;1.5;1;3\n", "semicolons"),
        ("customer;x;kind;visits\n7;0;1;3\n8;1,5;1;hunter2\n", "semicolons"),
        ('"customer";"x";"kind";"visits"\r\n"7";"1,5";"1";"3"\r\n', "semicolons"),
        ("customer\tx\tkind\tvisits\n7\t1.5\t1\thunter2\n", "tabs"),
    ],
    ids=["semicolons", "decimal commas", "quoted", "tabs"],
)
def test_other_separators_are_named_and_a_query_reads_them(text, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text(text, newline="")
    with pytest.raises(DataError, match=f"own.csv: .*seems to be separated by {name};") as caught:
        open_source(SPEC, "own.csv", options=SourceOptions(workers=1))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    Path("own.csv").write_text(text.replace(SECRET, "9"), newline="")
    # As in the guide.
    query = "from read_csv('own.csv', decimal_separator=',', types={'customer': 'varchar'})"
    if "," not in text:
        query = query.replace("','", "'.'")
    with open_source(SPEC, "duckdb://", query=query, options=SourceOptions(workers=1)) as table:
        assert table.rows.gather().shape[1] == 3


@pytest.mark.parametrize("line", ["Zoë,1,1,3", "7,1,Zoë,3"], ids=["id", "category"])
def test_a_csv_file_is_in_utf_8(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text(f"customer,x,kind,visits\n1,1,1,3\n{line}\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"own\.csv: has text that is not in UTF-8"):
        open_source(SPEC, "own.csv", options=SourceOptions(workers=1))


def test_a_header_with_commas_and_semicolons_has_commas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("customer,x;kind,visits\n1,2,3\n")
    with pytest.raises(DataError, match="the file has no column of this name"):
        open_source(SPEC, "own.csv", options=SourceOptions(workers=1))


# ---- errors ----


@pytest.mark.parametrize(
    ("data", "query", "message"),
    [
        ("none.parquet", None, "none.parquet: there is no such file"),
        ("none/*.csv", None, "there is no such file"),
        ("notes.txt", None, r"notes.txt: the data must be a file that ends in .parquet, .csv"),
        ("mixed", None, "or several of one kind"),
        ("t.csv", "select 1", "t.csv: a query is for databases"),
        ("t.sqlite", None, "t.sqlite: a database needs a query"),
        ("t.sqlite", "  ", "a database needs a query"),
        ("none.sqlite", ALL, "none.sqlite: there is no such file"),
        ("notes.sqlite", ALL, "no SQLite database|cannot be opened"),
        ("t.sqlite", "select hunter2 from customers", "a column that does not exist"),
        ("t.sqlite", "select * from hunter2", "a table that does not exist"),
        ("t.sqlite", "selec 'hunter2'", "not valid SQL"),
        ("t.sqlite", "delete from customers", "must only read"),
        ("t.sqlite", "select customer, x from customers", "must have the column 'kind' of the stu"),
        (
            "t.sqlite",
            "select x, kind, visits from customers",
            "the id column 'customer' of the stu",
        ),
        (
            "t.sqlite",
            "select customer, x, x, kind, visits from customers",
            "query's result must have column 'x' once",
        ),
        ("t.duckdb", 'select "hunter2" from customers', "a column that does not exist"),
        ("t.duckdb", "select * from hunter2", "a table that does not exist"),
        ("t.duckdb", "selec 'hunter2'", "not valid SQL"),
        ("t.duckdb", "delete from customers", "must only read"),
        ("t.duckdb", "select 'hunter2'::int as customer, * from customers", "cannot convert"),
        ("notes.duckdb", ALL, "cannot be opened"),
        ("memory://bucket/none.parquet", None, "memory://bucket/none.parquet: there is no such"),
        ("nostore://bucket/t.parquet", None, "fsspec knows no store of this kind"),
        ("broken.parquet", None, "broken.parquet: cannot be read as a parquet file"),
        ("broken.arrow", None, "broken.arrow: cannot be read as an Arrow file"),
    ],
)
def test_errors_name_the_source_and_show_nothing_of_it(data, query, message, folder):
    Path("notes.txt").write_text(SECRET)
    for name in ("notes.sqlite", "notes.duckdb", "broken.parquet", "broken.arrow"):
        Path(name).write_text(SECRET * 1000)
    Path("mixed").mkdir()
    Path("mixed/a.csv").write_text("customer\n")
    Path("mixed/b.parquet").touch()
    with pytest.raises(DataError, match=message) as caught:
        open_source(SPEC, data, query=query, options=SourceOptions(workers=1))
    assert SECRET not in str(caught.value)
    problem: BaseException | None = caught.value
    assert problem.__cause__ is None  # a traceback would show what the driver said
    assert problem.__suppress_context__ or problem.__context__ is None
    with sqlite3.connect("t.sqlite") as base:
        assert base.execute("select count(*) from customers").fetchone() == (N,)
    base.close()


@pytest.mark.parametrize(
    "data",
    [object(), 5, [1, 2], pa.chunked_array([[1]])],
    ids=["object", "number", "list", "column"],
)
def test_what_is_no_table(data):
    with pytest.raises(DataError, match=r"must be a path|must be a table"):
        open_source(SPEC, data)


def test_a_store_that_fails_shows_no_credential(monkeypatch):
    """Drivers put addresses and keys into their errors."""
    store = fsspec.get_filesystem_class("memory")

    def fail(self, path, *rest, **more):
        raise OSError(f"403 for key={SECRET}")

    monkeypatch.setattr(store, "isdir", fail)
    with pytest.raises(DataError, match=r"the store cannot be read \(OSError\)") as caught:
        open_source(SPEC, "memory://bucket/a/t.parquet")
    assert SECRET not in str(caught.value)


def test_missing_packages_are_named(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError, match=r"pip install 'splitmeans\[sql\]'"):
        open_source(SPEC, "t.duckdb", query=ALL)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DataError, match=r"pip install 'splitmeans\[storage\]'"):
        open_source(SPEC, "memory://bucket/a/t.parquet")


def test_a_stream_is_closed_when_its_reader_stops_early(folder):
    with read_batches(SPEC, "t.sqlite", query=ALL) as batches:
        assert next(batches.stream).num_rows > 0
    with sqlite3.connect("t.sqlite") as base:  # nobody holds it any more
        base.execute("drop table customers")
    base.close()


def test_a_large_parquet_folder_is_read_by_workers(folder, expected_kind):
    whole = SourceOptions(rules=INTEGER, spool=folder, workers=1)
    with open_source(SPEC, "parts", options=whole) as table:
        check_equal(table, expected_kind)
    bad = ROWS.slice(1000).set_column(0, "customer", pa.array(["x"] * 2000))
    pq.write_table(bad, "parts/day=1/part-2.parquet")
    with pytest.raises(DataError, match=r"row numbers 1000, 1001"):
        open_source(SPEC, "parts", options=whole)


# ---- in a run the study decides where a table goes ----


@pytest.mark.parametrize("rows", [90, 99, 100, 101, 399, 400])
@pytest.mark.parametrize(("expected", "kind"), [(100, PartyTable), (101, StoredTable)])
@pytest.mark.parametrize("source", ["t.parquet", "t.csv", "memory"])
def test_expected_users_decide_between_memory_and_disk(
    rows, expected, kind, source, tmp_path, monkeypatch
):
    """Not the rows: whoever sees how long a party takes would learn on which side they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 100)
    data: Any = ROWS.slice(0, rows)
    if source == "t.parquet":
        pq.write_table(data, source)
    elif source == "t.csv":
        pyarrow.csv.write_csv(data, source)
    chosen = data if source == "memory" else source
    with open_source(
        SPEC, chosen, options=SourceOptions(rules=INTEGER, expected_users=expected, workers=1)
    ) as table:
        assert type(table) is kind
        assert len(table) == rows


def test_a_table_far_larger_than_expected_goes_to_disk_after_all(monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 100)
    with open_source(
        SPEC, ROWS.slice(0, 401), options=SourceOptions(rules=INTEGER, expected_users=10)
    ) as table:
        assert type(table) is StoredTable


def test_wide_tables_count_by_what_their_columns_take():
    """16 bytes for an id or a category, 8 for a number: 16 + 8 + 16 + 8 a user here."""
    most = stream.BYTES_IN_MEMORY // 48
    assert stream.room_for(SPEC, expected_users=most).rows == 4 * stream.ROWS_IN_MEMORY
    assert stream.room_for(SPEC, expected_users=most + 1) == stream.Room(rows=0, size=0)


@pytest.mark.parametrize("column", [{"categories": "open"}, {"categories": ("1", "2", "(other)")}])
def test_a_row_does_not_change_what_other_rows_categories_are(tmp_path, column):
    party = PartySpec(
        name="p",
        columns=(
            Column(name="c", missing="level", **column),
            Column(name="x", low=0, high=1),
        ),
    )
    # Most tables write whole numbers with gaps as 1.0; the last row is another user's.
    rows = []
    for last in ("2.0", "other", "", "1e3", "+5"):
        path = tmp_path / "table.csv"
        values = ("1.0", "", "2", "1.0", last)
        path.write_text("id,c,x\n" + "".join(f"u{at},{v},0.5\n" for at, v in enumerate(values)))
        with open_source(party, path) as table:
            rows.append(table.raw_rows[:4].tolist())
    assert all(own == rows[0] for own in rows)


@pytest.mark.parametrize("name", ["c", "id"])
def test_ids_and_categories_of_several_kinds_are_refused(name):
    party = PartySpec(
        name="p", columns=(Column(name="c", categories="open"), Column(name="x", low=0, high=1))
    )
    frame = pd.DataFrame({"id": ["a", "b", "c"], "c": ["k", "k", "l"], "x": 0.5}).astype(object)
    frame.loc[1, name] = 7
    with pytest.raises(DataError, match=f"column '{name}' must be one list of values of one kind"):
        open_source(party, frame)


@pytest.mark.parametrize("values", [(1.0, 2.0, "x"), ("x", 1.0), (1e9, None, "x")])
def test_sqlite_numbers_beside_text_are_no_categories(tmp_path, values):
    party = PartySpec(
        name="p",
        columns=(
            Column(name="c", categories="open", missing="level"),
            Column(name="x", low=0, high=1),
        ),
    )
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("create table t (id text, c, x real)")
        rows = [(f"u{at}", value) for at, value in enumerate(values)]
        base.executemany("insert into t values (?, ?, 0.5)", rows)
    with pytest.raises(DataError, match="column 'c' must not have text beside numbers"):
        open_source(party, path, query="select * from t")
    whole = "select id, cast(cast(c as integer) as text) as c, x from t where c <> 'x'"
    with open_source(party, path, query=whole) as table:
        assert all("e" not in name for name in table.names["c"])
