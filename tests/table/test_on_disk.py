"""The table on disk against the table in memory: the same bits for the same noise."""

import functools
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import DataError, ParameterError, SplitmeansError
from splitmeans.kernels.assign import nearest
from splitmeans.party.own_users import users_digest
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import run
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.prepare import prepare_table
from splitmeans.table.sources.open import open_source
from splitmeans.table.walk import runs, stream
from splitmeans.table.walk.workers import Workers
from splitmeans.wire.codec import encode
from tests.disk import on_disk

N = 3000
COLUMNS = (
    Column(name="y", low=0, high=1),
    Column(name="kind", categories=["a", "b", "c"]),
)


def spec(name: str, *, missing: str = "midpoint") -> PartySpec:
    first = Column(name="x", low=-2, high=2, missing=missing)
    return PartySpec(name=name, columns=(first, *COLUMNS), id_column="customer")


def rows_of(seed: int, n: int = N) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[rng.random(n) < 0.05] = np.nan
    ids = np.random.default_rng(9).permutation(n) if n == N else np.arange(n)
    return pa.table(
        {
            "customer": pa.array([f"customer {i}" for i in ids]),
            "unused": pa.array(["text"] * n),
            "y": rng.random(n),
            "x": x,
            "kind": rng.choice(["a", "b", "c"], n),
        }
    )


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks and buckets small enough that 3,000 rows are many of both."""
    monkeypatch.setattr(stream, "BLOCK_ROWS", 256)
    monkeypatch.setattr(runs, "BUCKET_RECORDS", 300)


def written(table: pa.Table, folder, *, row_group_size: int = 100):
    path = folder / "table.parquet"
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


METHODS = {
    "decoy": {},
    "decoy, values skipped": {"missing": "skip"},
    "decoy with tags": {},
    "decoy sampled": {"decoy": DecoyOptions(max_users=1000)},
    "decoy against collusion": {"decoy": DecoyOptions(collusion_epsilon=2.0)},
    "sketch": {"membership": "sketch"},
}


@pytest.mark.parametrize("options", METHODS.values(), ids=METHODS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_messages_equal_those_of_the_table_in_memory(options, tmp_path, small_blocks):
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
        ids=AS_IS,
        **{name: value for name, value in options.items() if name != "missing"},
    )
    bank, shop = rows_of(1), rows_of(2)
    in_memory = [prepare_table(bank_spec, bank), prepare_table(shop_spec, shop)]

    def releases(tables):
        rng = np.random.default_rng(5)
        done = run(study, tables, noise=InsecureSeededNoise(3), rng=rng).server
        return [encode(done.releases[name]) for name in study.party_names]

    path = written(bank, tmp_path)
    with open_source(bank_spec, path, options=on_disk(workers=1, spool=tmp_path)) as stored:
        assert len(stored) == N
        assert releases([stored, in_memory[1]]) == releases(in_memory)


def test_worker_processes_give_the_same(tmp_path, small_blocks):
    path = written(rows_of(1), tmp_path)
    centres = np.zeros((2, 3), dtype=np.int64)
    centres[1] = 2**19
    label = functools.partial(nearest, centres=centres)
    whole = prepare_table(spec("bank"), rows_of(1))
    with open_source(spec("bank"), path, options=on_disk(workers=2)) as table:
        assert table.rows.total(_column_sums).tolist() == whole.raw_rows.sum(axis=0).tolist()
        pieces = list(table.labelled(label).each(_labels))
    assert np.concatenate(pieces).tolist() == label(whole.raw_rows).tolist()
    assert len(pieces) > 5


def test_the_digest_of_the_users_is_the_same_in_memory_on_disk_and_in_any_order(
    tmp_path, small_blocks
):
    bank = spec("bank")
    rows = rows_of(1)
    expected = users_digest(prepare_table(bank, rows), key=bytes(16))
    reversed_rows = rows.take(pa.array(range(N - 1, -1, -1)))
    for workers, data in ((1, rows), (2, reversed_rows)):
        with open_source(
            bank,
            written(data, tmp_path),
            options=on_disk(workers=workers),
        ) as table:
            assert users_digest(table, key=bytes(16)) == expected
    with open_source(bank, written(rows[1:], tmp_path), options=on_disk(workers=1)) as table:
        assert users_digest(table, key=bytes(16)) != expected


def _column_sums(rows):
    return rows.sum(axis=0)


def _labels(block):
    return block.labels


@pytest.mark.parametrize("row_group_size", [7, 256, 1000, 5000])
def test_row_groups_of_any_size_become_blocks_of_bounded_size(
    row_group_size, tmp_path, small_blocks
):
    path = written(rows_of(1), tmp_path, row_group_size=row_group_size)
    with open_source(spec("bank"), path, options=on_disk(workers=1)) as table:
        sizes = [block.n_rows for block in table._blocks]
        gathered = table.rows.gather()
    assert sum(sizes) == N
    assert max(sizes) <= 256
    # Even row groups of 7 rows are joined to blocks, not one file each.
    assert len(sizes) <= 2 * N // 128
    assert (gathered == prepare_table(spec("bank"), rows_of(1)).raw_rows).all()


def test_spooled_rows_are_private_and_go_with_the_table(tmp_path):
    path = written(rows_of(1), tmp_path)
    spool = tmp_path / "spool"
    spool.mkdir()
    before = os.umask(0)
    try:
        with open_source(
            spec("bank"),
            path,
            options=on_disk(workers=1, spool=spool),
        ) as table:
            users = table.labelled(_no_label).relabelled(_same)
            pieces = users.in_tag_order(_numbered, finish=_same)
            next(pieces)  # runs are on disk now as well
            kinds: dict[str, set[int]] = {"folder": set(), "file": set()}
            for found in spool.rglob("*"):
                kinds["folder" if found.is_dir() else "file"].add(found.stat().st_mode & 0o777)
            assert kinds == {"folder": {0o700}, "file": {0o600}}
            assert sum(found.is_dir() for found in spool.rglob("*")) == 2
            pieces.close()
    finally:
        os.umask(before)
    assert list(spool.iterdir()) == []


def _no_label(rows):
    return np.zeros(len(rows), dtype=np.int32)


def _same(given):
    return given


def _numbered(block):
    tags = np.arange(len(block.ids), dtype=np.uint64)
    return tags, np.zeros(len(block.ids), dtype=np.uint8)


def test_progress_counts_every_row_of_every_stage(tmp_path, small_blocks):
    seen: dict[str, int] = {}

    def note(stage, *, rows, of):
        assert of == N
        seen[stage] = seen.get(stage, 0) + rows

    path = written(rows_of(1), tmp_path)
    with open_source(spec("bank"), path, options=on_disk(workers=1, progress=note)) as table:
        table.rows.total(_column_sums)
    assert seen == {"read": N, "sort": N, "cluster": N}


def test_a_repeated_id_is_found_across_blocks_and_named_by_row(tmp_path, small_blocks):
    table = rows_of(1)
    ids = table["customer"].to_pylist()
    ids[2900] = ids[17]
    ids[2999] = ids[17]
    path = written(table.set_column(0, "customer", pa.array(ids)), tmp_path)
    with pytest.raises(DataError, match=r"same id as row numbers 2900, 2999 \(counting") as caught:
        open_source(
            spec("bank"),
            path,
            options=on_disk(workers=1, spool=tmp_path),
        )
    assert "customer" not in str(caught.value).split("table.parquet")[1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.parquet"]


def with_column(name: str, values) -> pa.Table:
    table = rows_of(1)
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (rows_of(1).drop_columns(["y"]), "must have the column 'y' of the study; the file has no"),
        (rows_of(1).drop_columns(["customer"]), "the id column 'customer' of the study; the file"),
        (with_column("y", [0.5] * 1500 + [None] + [0.5] * 1499), "row number 1500 "),
        (with_column("kind", ["a"] * 2999 + ["z"]), "row number 2999 "),
        (
            with_column("customer", ["id"] * 2999 + [None]),
            "ids must not be missing; see row .* 2999",
        ),
        (with_column("customer", [0.5] * N), "ids must be text or whole numbers"),
        (rows_of(1).slice(0, 0), "at least one row"),
    ],
    ids=["column", "id column", "missing", "category", "missing id", "float id", "empty"],
)
def test_errors_name_file_rule_and_row(table, message, tmp_path, small_blocks):
    path = written(table, tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        open_source(
            spec("bank"),
            path,
            options=on_disk(workers=1, spool=tmp_path),
        )
    assert str(caught.value).startswith(str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.parquet"]


def test_what_is_no_parquet_file_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match="cannot be read as a parquet file"):
        open_source(spec("bank"), path, options=on_disk())


def test_a_missing_spool_folder_is_named(tmp_path):
    path = written(rows_of(1), tmp_path)
    with pytest.raises(DataError, match=r"spool folder .*nowhere: cannot be used"):
        open_source(
            spec("bank"),
            path,
            options=on_disk(spool=tmp_path / "nowhere"),
        )


def test_workers_keep_order_and_are_counted():
    with pytest.raises(ParameterError, match="workers must be >= 1"):
        Workers(0)
    workers = Workers(2)
    try:
        assert list(workers.map(abs, range(-20, 0))) == list(range(20, 0, -1))
        with pytest.raises(SplitmeansError, match="a worker process ended early"):
            list(workers.map(_end, [1]))
    finally:
        workers.close()


def _end(code):
    import os

    os._exit(code)
