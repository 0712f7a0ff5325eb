"""The table in Spark against the tables in memory and on disk: the same bits for the same noise."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import DataError, EngineError, ParameterError
from splitmeans.kernels.assign import nearest
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import run
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, Study
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import prepare_table
from splitmeans.table.sources.open import open_source
from splitmeans.table.spark import frozen, open_spark, session, users, walk
from splitmeans.table.walk import runs
from splitmeans.wire.codec import encode
from tests.disk import on_disk

N = 3000
COLUMNS = (
    Column(name="y", low=0, high=1),
    Column(name="kind", categories=["a", "b", "c"]),
)
NAMES = ("customer", "unused", "y", "x.1", "kind")


def spec(name: str, *, missing: str = "midpoint") -> PartySpec:
    first = Column(name="x.1", low=-2, high=2, missing=missing)
    return PartySpec(name=name, columns=(first, *COLUMNS), id_column="customer")


def rows_of(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    missing = rng.random(N) < 0.05
    ids = np.random.default_rng(9).permutation(N)
    return pa.table(
        {
            "customer": pa.array([f"customer {i}" for i in ids]),
            "unused": pa.array(["text"] * N),
            "y": rng.random(N),
            "x.1": pa.array(x, mask=missing),
            "kind": rng.choice(["a", "b", "c"], N),
        }
    )


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks, buckets and reads so small that 3,000 rows are many of each."""
    monkeypatch.setattr(frozen, "BLOCK_ROWS", 200)
    monkeypatch.setattr(runs, "BUCKET_RECORDS", 800)
    monkeypatch.setattr(walk, "AT_ONCE", 10_000)
    monkeypatch.setattr(users, "_LABEL_BYTES", 1_000)


def in_spark(spark, rows: pa.Table, folder: Path, *, cuts: tuple[int, ...] = (0, 700, 700, N)):
    """The rows as a DataFrame whose partitions end at these rows; one of them is empty."""
    frames = []
    for start, end in itertools.pairwise(cuts):
        path = folder / f"rows-{len(frames)}.parquet"
        pq.write_table(rows.slice(start, end - start), path)
        frames.append(spark.read.parquet(str(path)))
    return functools.reduce(lambda one, other: one.union(other), frames)


METHODS = {
    "decoy": {"missing": "skip"},
    "sketch": {"membership": "sketch"},
    "decoy with tags": {"ids": AS_IS},
    "decoy sampled": {"decoy": DecoyOptions(max_users=1000)},
    "decoy against collusion": {"decoy": DecoyOptions(collusion_epsilon=2.0)},
}


# Some seconds each; the default method says most of what the others say.
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=() if name == "decoy" else pytest.mark.slow)
        for name, options in METHODS.items()
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_messages_equal_those_of_memory_and_of_row_groups(options, spark, tmp_path, small_blocks):
    bank_spec, shop_spec = (
        spec(name, missing=options.get("missing", "midpoint")) for name in ("bank", "shop")
    )
    study = Study(
        name="test",
        parties=(bank_spec, shop_spec),
        n_clusters=3,
        budget=Budget(epsilon=2.0, delta=1e-4),
        n_local_clusters=4,
        expected_users=N,
        **{name: value for name, value in options.items() if name != "missing"},
    )
    bank, shop = rows_of(1), rows_of(2)
    in_memory = [prepare_table(bank_spec, bank), prepare_table(shop_spec, shop)]

    def releases(first):
        rng = np.random.default_rng(5)
        done = run(study, [first, in_memory[1]], noise=InsecureSeededNoise(3), rng=rng).server
        return [encode(done.releases[name]) for name in study.party_names]

    expected = releases(in_memory[0])
    path = tmp_path / "bank.parquet"
    pq.write_table(bank, path, row_group_size=500)
    with open_source(bank_spec, path, options=on_disk(workers=1, spool=tmp_path)) as stored:
        assert releases(stored) == expected
    spool = tmp_path / "spool"
    spool.mkdir()
    with open_spark(bank_spec, in_spark(spark, bank, tmp_path), spool=str(spool)) as shared:
        assert len(shared) == N
        assert releases(shared) == expected
        # Only the frozen rows, and labels that were changed, are left of all that was written.
        (folder,) = spool.iterdir()
        left = {entry.name.split("-")[0] for entry in folder.iterdir()}
        assert left - {".blocks"} <= {"blocks", "labels"}
    assert list(spool.iterdir()) == []


def _column_sums(rows):
    return rows.sum(axis=0)


def _starts_and_labels(block):
    return np.array([block.start]), block.labels


def _refuse_block(block):
    raise ParameterError(f"block at {block.start} is refused")


def _fail(block):
    raise ValueError(f"a value of the table: {block.ids[0]}")


def _no_records(block):
    return np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.uint8)


def _size(records):
    return np.array([len(records[0])])


def test_what_a_table_offers(spark, tmp_path, small_blocks):
    """One table for several facts: opening one takes seconds."""
    rows = rows_of(1)
    whole = prepare_table(spec("bank"), rows)
    source, spool = tmp_path / "source", tmp_path / "spool"
    spool.mkdir()
    source.mkdir()
    seen, told = {}, []

    def note(stage, *, rows, of):
        assert of == N
        seen[stage] = seen.get(stage, 0) + rows

    frame = in_spark(spark, rows, source)
    open_it = functools.partial(
        open_spark, spool=str(spool), options=SourceOptions(progress=note, notice=told.append)
    )
    with open_it(spec("bank"), frame) as shared:
        assert repr(shared).startswith("<SparkTable party='bank' rows=3000 blocks=")
        assert seen == {"read": N, "sort": N, "fetch": N}
        (facts,) = told
        assert (facts.ids.rows, facts.ids.kind, facts.ids.n_odd) == (N, "text", 0)
        assert facts == check_rows(spec("bank"), rows).facts
        assert facts.clipped
        # The rows are frozen: what happens to their source has no influence.
        for part in source.iterdir():
            part.unlink()
        source.rmdir()
        assert shared.rows.total(_column_sums).tolist() == whole.raw_rows.sum(axis=0).tolist()
        # They hold raw rows, which nobody else may read.
        (folder,) = spool.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        # Blocks come in row order and cover all rows; rows are counted through the partitions.
        gathered = shared.rows.gather()
        assert (gathered == whole.raw_rows).all()
        label = functools.partial(nearest, centres=whole.raw_rows[:3])
        found = list(shared.labelled(label).each(_starts_and_labels))
        sizes = [len(labels) for _, labels in found]
        assert [start[0] for start, _ in found] == [sum(sizes[:i]) for i in range(len(sizes))]
        assert max(sizes) <= 200
        assert np.concatenate([own for _, own in found]).tolist() == label(gathered).tolist()
        # No record at all is one piece or more, none of them with a record.
        none = list(shared.users.in_tag_order(_no_records, finish=_size))
        assert none
        assert sum(none) == 0
        # A sum over a part of the rows is no result.
        lost = next(folder.glob("blocks/*.parquet"))
        away = lost.rename(tmp_path / "away")
        with pytest.raises(EngineError, match=r"Spark walked [0-9]+ of [0-9]+ parts of the table"):
            shared.rows.total(_column_sums)
        away.rename(lost)
        # What a worker refuses is raised here, as what it was; what fails there says no value.
        with pytest.raises(ParameterError, match=r"block at [0-9]+ is refused"):
            list(shared.users.each(_refuse_block))
        with pytest.raises(ParameterError, match=r"block at [0-9]+ is refused"):
            list(shared.users.in_tag_order(_refuse_block, finish=_size))
        with pytest.raises(EngineError, match="stopped while walking the users") as caught:
            list(shared.users.each(_fail))
        assert "customer" not in str(caught.value)
        assert caught.value.__suppress_context__
    assert list(spool.iterdir()) == []


def with_column(name: str, values) -> pa.Table:
    rows = rows_of(1)
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(values))


def repeated() -> pa.Table:
    ids = rows_of(1)["customer"].to_pylist()
    ids[2900] = ids[2999] = ids[17]
    return with_column("customer", ids)


BAD = {
    "column": (rows_of(1).drop_columns(["y"]), "must have the column 'y' of the study; the DataF"),
    "id column": (rows_of(1).drop_columns(["customer"]), "the id column 'customer' of the study"),
    "other case": (
        rows_of(1).rename_columns(["customer", "unused", "Y", "x.1", "kind"]),
        "column 'y' of the study; .* it has 'Y', ",
    ),
    "missing": (
        with_column("y", [0.5] * 1500 + [None] + [0.5] * 1499),
        "party 'bank', column 'y' must not .* row number 800 .* of partition 1 of the DataFrame",
    ),
    "category": (
        with_column("kind", ["a"] * 699 + ["z"] + ["a"] * 2300),
        "column 'kind' must hold .* row number 699 .* of partition 0 of the DataFrame",
    ),
    "text": (
        with_column("y", ["secret"] * N),
        "column 'y' must hold numbers, found text that is no",
    ),
    "missing id": (with_column("customer", ["id"] * 2999 + [None]), "ids must not be missing; see"),
    "float id": (with_column("customer", [0.5] * N), "ids must be text or whole numbers"),
    "same id": (repeated(), r"same id as row numbers 2900, 2999 \(.*group it by the id column"),
    "empty": (rows_of(1).slice(0, 0), "at least one row"),
}


@pytest.mark.parametrize(("rows", "message"), BAD.values(), ids=BAD)
def test_bad_data_is_refused_when_it_is_opened(rows, message, spark, tmp_path, small_blocks):
    spool = tmp_path / "spool"
    spool.mkdir()
    cuts = (0, 700, N) if len(rows) else (0, 0)
    frame = in_spark(spark, rows, tmp_path, cuts=cuts)
    with pytest.raises(DataError, match=message) as caught:
        open_spark(spec("bank"), frame, spool=str(spool))
    assert "secret" not in str(caught.value)
    assert list(spool.iterdir()) == []


def test_the_rules_for_ids_are_the_studys(spark, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    rows = with_column("customer", [f"{number:05d}" for number in range(N)])
    integer = IdRules(type="integer")
    with open_spark(
        spec("bank"),
        in_spark(spark, rows, tmp_path),
        spool=str(spool),
        options=SourceOptions(rules=integer),
    ) as shared:
        found = {name.decode() for own in shared.users.each(_ids) for name in own}
    assert found == {str(number) for number in range(N)}


def _ids(block):
    return np.array([name.encode() for name in block.ids.to_pylist()])


def test_errors_of_the_frame_itself_say_no_value(spark, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    frame = in_spark(spark, rows_of(1), tmp_path).selectExpr(
        "customer", "kind", "`x.1`", "cast(raise_error('secret') as double) as y"
    )
    with pytest.raises(EngineError, match="stopped while reading and checking") as caught:
        open_spark(spec("bank"), frame, spool=str(spool))
    assert "secret" not in str(caught.value)
    assert list(spool.iterdir()) == []


def test_a_spool_that_cannot_be_used_is_named(spark, tmp_path):
    frame = in_spark(spark, rows_of(1), tmp_path)
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(DataError, match=f"spool folder .*{name}: must be a folder"):
            open_spark(spec("bank"), frame, spool=str(tmp_path / name))
    with pytest.raises(DataError, match="spool folder unknown://place: must be a folder"):
        open_spark(spec("bank"), frame, spool="unknown://place")


def test_workers_with_another_splitmeans_are_refused(spark, tmp_path, monkeypatch):
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(session, "cache_folder", lambda: tmp_path / "kernels-of-the-driver")
    with pytest.raises(EngineError, match="workers have another splitmeans; install the driver's"):
        open_spark(spec("bank"), in_spark(spark, rows_of(1), tmp_path), spool=str(spool))
    assert list(spool.iterdir()) == []
