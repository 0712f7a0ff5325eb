"""A party's table in a real PostgreSQL server: streamed, and every failure clear and free."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.cli import main
from splitmeans.errors import DataError
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import run as run_protocol
from splitmeans.study import Budget, Column, IdRules, PartySpec, Study
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import prepare_table
from splitmeans.table.sources.open import open_source, read_batches
from splitmeans.table.walk import stream
from splitmeans.table.walk.stored import StoredTable
from splitmeans.wire.codec import encode
from tests.result.small_result import write_small_result

from .conftest import PASSWORD

N = 5000
MILLION = 1_000_000
WIDE = 30
SPEC = PartySpec(
    name="bank",
    columns=(
        Column(name="income", low=0, high=9000),
        Column(name="savings", low=0, high=50_000, missing="midpoint"),
        Column(name="region", categories=["north", "south"]),
    ),
)
UUIDS = IdRules(type="uuid")


@pytest.fixture(scope="module")
def customers(server):
    """A table with a UUID, a padded text, a numeric, a missing value and another column."""
    server.run(
        "drop table if exists customers",
        f"""create table customers as
            select md5(i::text)::uuid as id, lpad(i::text, 8, '0')::char(10) as number,
                   ((i * 37) % 9000)::numeric(10, 2) as income,
                   case when i % 7 = 0 then null else (i * 11) % 50000 end::float8 as savings,
                   case when i % 3 = 0 then 'north' else 'south' end as region,
                   now() as changed
            from generate_series(1, {N}) i""",
    )
    return server


def expected(spec: PartySpec = SPEC, *, ids: str = "uuid"):
    """The same rows, computed here."""
    import hashlib
    import uuid

    i = np.arange(1, N + 1)
    savings = np.where(i % 7 == 0, np.nan, (i * 11) % 50_000)
    values = {
        "income": (i * 37) % 9000,
        "savings": savings,
        "region": np.where(i % 3 == 0, "north", "south"),
    }
    if ids == "uuid":
        own = [str(uuid.UUID(hashlib.md5(str(n).encode()).hexdigest())) for n in i.tolist()]
    else:
        own = [str(n) for n in i.tolist()]
    return prepare_table(spec, values, ids=own)


# ---- the table ----


@pytest.mark.parametrize("limit", [2_000_000, 500], ids=["in memory", "on disk"])
def test_a_querys_rows_are_the_table(limit, customers, url, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", limit)
    facts = []
    with open_source(
        SPEC,
        url,
        query="select * from customers",
        options=SourceOptions(rules=UUIDS, notice=facts.append, workers=1),
    ) as table:
        assert isinstance(table, StoredTable) == (limit < N)
        assert (table.rows.gather() == expected().raw_rows).all()
        ids = [text for block in table.users.each(_ids) for text in block.to_pylist()]
    assert ids == expected().ids.to_pylist()
    assert (facts[0].ids.rows, facts[0].ids.kind, facts[0].ids.n_odd) == (N, "UUIDs", 0)


def test_padded_text_ids_meet_whole_numbers_elsewhere(customers, url):
    """char(10) comes with blanks at its end, and the column has leading zeros."""
    query = "select number as id, income, savings, region from customers"
    facts = []
    options = SourceOptions(rules=IdRules(type="integer"), notice=facts.append, workers=1)
    with open_source(SPEC, url, query=query, options=options) as table:
        assert table.ids.to_pylist() == expected(ids="number").ids.to_pylist()
    assert facts[0].ids.odd == {"blanks at the ends": N, "leading zeros": N}
    numeric = "select i::numeric as id, 1 as income, 2 as savings, 'north' as region " + (
        "from generate_series(1, 3) i"
    )
    with open_source(SPEC, url, query=numeric, options=SourceOptions(workers=1)) as table:
        assert table.ids.to_pylist() == ["1", "2", "3"]


def _ids(block):
    return block.ids


def test_messages_are_those_of_the_table_in_memory(customers, url, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 500)
    shop = PartySpec(name="shop", columns=(Column(name="visits", low=0, high=9),))
    study = Study(
        name="test",
        parties=(SPEC, shop),
        n_clusters=3,
        budget=Budget(epsilon=2, delta=1e-4),
        n_local_clusters=4,
        expected_users=N,
        ids=UUIDS,
    )
    visits = {"id": expected().ids.to_pylist(), "visits": np.arange(N) % 10}
    other = prepare_table(shop, visits, rules=UUIDS)

    def releases(bank):
        rng = np.random.default_rng(5)
        done = run_protocol(study, [bank, other], noise=InsecureSeededNoise(3), rng=rng).server
        return [encode(done.releases[name]) for name in study.party_names]

    with open_source(
        SPEC,
        url,
        query="select * from customers order by id",
        options=SourceOptions(rules=UUIDS, workers=1),
    ) as table:
        assert isinstance(table, StoredTable)
        assert releases(table) == releases(expected())


# ---- a million rows ----


@pytest.mark.slow  # about half a minute: the server makes the rows, and they are read twice
def test_a_million_rows_in_bounded_memory(server, url):
    """The stated bound: 128 MiB above a process that has read one row, for a table of 256 MB.

    In memory the rows would take that as Arrow and 240 MB more on the grid.
    """
    columns = ", ".join(
        f"((i::bigint * {7919 + 2 * at}) % 100003) / 100003.0::float8 as x{at}"
        for at in range(WIDE)
    )
    server.run(
        "drop table if exists big",
        f"create unlogged table big as select md5(i::text)::uuid as id, {columns} "
        f"from generate_series(1, {MILLION}) i",
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.servers.stream_rows", url, "select * from big", str(WIDE)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["rows"] == MILLION
    assert measured["kind"] == "StoredTable"
    assert measured["arrow_bytes"] > 250_000_000
    assert measured["growth"] < 128 * 2**20
    # And they are the rows: sums of the grid are exact.
    i = np.arange(1, MILLION + 1)
    for at in (0, WIDE - 1):
        part = {"x": (i * (7919 + 2 * at)) % 100_003 / 100_003.0}
        own = PartySpec(name="one", columns=(Column(name="x", low=0, high=1),))
        assert measured["sums"][at] == int(prepare_table(own, part).raw_rows.sum())
    server.run("drop table big")


# ---- failures ----


def check_clean(problem: BaseException, *secrets: str) -> None:
    for secret in (PASSWORD, *secrets):
        assert secret not in str(problem)
    assert problem.__cause__ is None  # a traceback would show what the driver said
    assert problem.__suppress_context__ or problem.__context__ is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select id, income, savings from customers", "the column 'region' of the study; the que"),
        ("select income, savings, region from customers", "the id column 'id' of the study"),
        ('select "Smith" from customers', "a column that does not exist"),
        ("select * from smith.Smith", "a table that does not exist"),
        ("selec 'Smith'", "not valid SQL"),
        ("select 'Smith'::int as id, * from customers", "cannot convert"),
        ("select *, (income / (income - 37))::text from customers", "cannot convert or compute"),
        ("delete from customers where number = 'Smith'", "must only read"),
        ("select * from customers where id is null", "at least one row"),
    ],
)
def test_queries_that_fail(query, message, customers, url):
    with pytest.raises(DataError, match=message) as caught:
        open_source(SPEC, url, query=query, options=SourceOptions(rules=UUIDS, workers=1))
    check_clean(caught.value, "Smith", query)
    assert str(caught.value).startswith(f"postgresql://127.0.0.1:{customers.port}/postgres: ")
    assert customers.run("select count(*) from customers") == [(N,)]


def test_a_wrong_password_and_no_server(customers, url, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hunter3")
    with pytest.raises(DataError, match="refuses the login; the password comes from PGPASS") as a:
        open_source(SPEC, url, query="select 1")
    check_clean(a.value, "hunter3")
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    with pytest.raises(DataError, match="refuses the login") as b:
        open_source(SPEC, url, query="select 1")
    check_clean(b.value)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(DataError, match="no such database") as c:
        open_source(SPEC, url.replace("/postgres", "/other"), query="select 1")
    check_clean(c.value)
    with pytest.raises(DataError, match="cannot be reached") as d:
        open_source(SPEC, "postgresql://party@127.0.0.1:1/postgres", query="select 1")
    check_clean(d.value)


def test_the_password_may_come_from_a_file(customers, url, monkeypatch, tmp_path):
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "passwords"
    file.write_text(f"127.0.0.1:{customers.port}:*:party:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    service = tmp_path / "services"
    service.write_text(
        f"[crm]\nhost=127.0.0.1\nport={customers.port}\nuser=party\ndbname=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    for place in (url, "postgresql://?service=crm"):
        with open_source(
            SPEC, place, query="select * from customers", options=SourceOptions(rules=UUIDS)
        ) as table:
            assert len(table) == N


def test_a_connection_that_is_dropped_in_the_middle(customers, url, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 500)
    query = _slow_query("dropped")
    ender = threading.Thread(target=_end_connection, args=(customers, "dropped"))
    ender.start()
    with pytest.raises(DataError, match="connection was lost while rows were read") as caught:
        open_source(SPEC, url, query=query, options=SourceOptions(workers=1, spool=tmp_path))
    ender.join()
    check_clean(caught.value)
    assert list(tmp_path.iterdir()) == []  # the blocks so far are gone


def _slow_query(name: str) -> str:
    """Rows that come at once, and then ever slower ones."""
    return (
        f"select /* {name} */ i as id, 1.0::float8 as income, 2 as savings, 'north' as region, "
        "case when i > 200000 then pg_sleep(0.05) end from generate_series(1, 1000000) i"
    )


def _end_connection(server, name: str) -> None:
    for _ in range(200):
        ended = server.run(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            f"where query like '%/* {name} */%' and pid <> pg_backend_pid() "
            "and wait_event = 'PgSleep'"
        )
        if ended:
            return
        time.sleep(0.05)


def test_a_stream_that_is_left_early_frees_the_connection(customers, url):
    with read_batches(SPEC, url, query=_slow_query("left")) as batches:
        assert next(batches.stream).num_rows > 0
    for _ in range(100):
        if not customers.run(
            "select 1 from pg_stat_activity where query like '%/* left */%' "
            "and pid <> pg_backend_pid()"
        ):
            return
        time.sleep(0.05)
    pytest.fail("the connection is still there")


# ---- the whole command: nothing is sent, nothing is spent ----


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.delenv("SPLITMEANS_HOME", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["splitmeans", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    for who in ("bank", "shop", "server"):
        Path(f"{who}.pub").write_text(call("keys", "new", "--home", who)[1])
    Path("shared").mkdir()
    code, digits, said = call(
        *("study", "new", "--party", "bank=bank.pub", "--party", "shop=shop.pub"),
        *("--column", "bank:income:0:9000", "--column", "bank:savings:0:50000"),
        *("--column", "bank:region:north|south", "--column", "shop:visits:0:9"),
        *("--server-key", "server.pub", "--id-type", "as-is", "--users", str(N)),
    )
    assert code == 0, said
    assert call("study", "approve", "study.toml", "--home", "bank", "--digits", digits)[0] == 0
    return call


@pytest.mark.parametrize(
    ("password", "query", "message"),
    [
        ("hunter3", "select * from customers", "refuses the login"),
        (PASSWORD, "select id, income, region from customers", "the column 'savings' of the study"),
        (PASSWORD, _slow_query("command"), "connection was lost"),
        (PASSWORD, "select 'hunter3'::int as id, * from customers", "cannot convert"),
        (
            PASSWORD,
            "select 'hunter3' as id, income, 1 as savings, region from customers",
            "same id as",
        ),
    ],
    ids=["wrong password", "missing column", "dropped connection", "bad value", "repeated id"],
)
def test_a_failure_spends_nothing(password, query, message, customers, url, command, monkeypatch):
    monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 500)
    command("ledger", "limit", "crm", "--epsilon", "5", "--delta", "1e-4", "--home", "bank")
    before = command("ledger", "show", "--home", "bank", "--json")[1]
    monkeypatch.setenv("PGPASSWORD", password)
    Path("query.sql").write_text(query)
    ender = threading.Thread(target=_end_connection, args=(customers, "command"))
    if "command" in query:
        ender.start()
    where = ("--party", "bank", "--data", url, "--query-file", "query.sql")
    code, out, said = command(
        *("party", "run", "study.toml", *where, "--home", "bank", "--source", "crm"),
        *("--mailbox", "shared", "--timeout", "1"),
    )
    if "command" in query:
        ender.join()
    assert (code, out) == (2, "")
    assert message in said
    for secret in (PASSWORD, "hunter3", "Traceback"):
        assert secret not in said
    assert command("ledger", "show", "--home", "bank", "--json")[1] == before
    assert list(Path("shared").iterdir()) == []
    _check_home(PASSWORD, "hunter3", "select")


def _check_home(*secrets: str) -> None:
    """Nothing of credential, query or values is anywhere in the party's own files."""
    for path in Path("bank").rglob("*"):
        if path.is_file():
            stored = path.read_bytes()
            assert not any(secret.encode() in stored for secret in secrets), path


def test_a_run_that_joins_and_the_check_before_it(customers, url, command):
    """The same facts from `party check` and `party run`; the ledger's name has no credential."""
    query = "select id, income, coalesce(savings, 0) as savings, region from customers"
    where = ("--party", "bank", "--data", url, "--query", query)
    code, out, said = command("party", "check", "study.toml", *where, "--json")
    assert code == 0, said
    assert json.loads(out)["rows"] == N
    assert json.loads(out)["ids"] == {"kind": "UUIDs", "type": "as-is", "n_odd": 0, "odd": {}}
    assert list(Path("shared").iterdir()) == []
    code, out, said = command(
        *("party", "run", "study.toml", *where, "--home", "bank"),
        *("--mailbox", "shared", "--timeout", "0.1"),
    )
    assert code == 3  # waits for the shop
    assert f"checked the data: {N:,} rows; ids are UUIDs, none looks odd" in said
    assert list(Path("shared").iterdir())
    assert PASSWORD not in said
    _check_home(PASSWORD, "select id")
    stored = (Path("bank") / "splitmeans.sqlite").read_bytes()
    assert f"postgresql://127.0.0.1:{customers.port}/postgres".encode() in stored


def test_a_whole_run_with_a_database_at_each_party(customers, url, command):
    """UUIDs in PostgreSQL and, in capitals, in DuckDB: the same users, the same result."""
    import duckdb

    with duckdb.connect("shop.duckdb") as base:
        ids = pa.table({"id": [text.upper() for text in expected().ids.to_pylist()]})
        base.register("own", ids)
        base.execute("create table visits as select id, random() * 9 as visits from own")
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text + '\n[ids]\ntype = "uuid"\n')
    digits = json.loads(command("study", "show", "study.toml", "--json")[1])["digits"]
    for who in ("bank", "shop"):
        assert command("study", "approve", "study.toml", "--home", who, "--digits", digits)[0] == 0
    query = "select id, income, coalesce(savings, 0) as savings, region from customers"
    box = ("--mailbox", "shared", "--timeout", "0.1")
    own = ("party", "run", "study.toml", *box)
    commands = {
        "bank": (*own, "--party", "bank", "--home", "bank", "--data", url, "--query", query),
        "shop": (
            *(*own, "--party", "shop", "--home", "shop"),
            *("--data", "shop.duckdb", "--query", "from visits"),
        ),
        "server": ("server", "run", "study.toml", "--home", "server", *box),
    }
    done: set[str] = set()
    for _ in range(6):  # each goes on until it has to wait for another
        for who in commands.keys() - done:
            code, _, said = command(*commands[who])
            assert code in (0, 3), said
            if code == 0:
                done.add(who)
    assert done == set(commands)
    spent = json.loads(command("ledger", "show", "--home", "bank", "--json")[1])
    assert f"postgresql://127.0.0.1:{customers.port}/postgres" in json.dumps(spent)
    results = [json.loads(path.read_text()) for path in Path().glob("*/results/*/result.json")]
    assert len({result["result_hash"] for result in results}) == 1
    assert len(results) == 3
    for home in ("bank", "shop", "server"):
        for path in Path(home).rglob("*"):
            assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


def test_labels_from_a_query(customers, url, command):
    """`result label` reads the same places."""
    result = write_small_result(Path("result"))
    party = Study.read(result / "study.toml").parties[0]
    columns = ", ".join(
        f"'{column.categories[0]}' as \"{column.name}\""
        if column.categories
        else f'{column.low}::float8 as "{column.name}"'
        for column in party.columns
    )
    query = f'select i as "{party.id_column}", {columns} from generate_series(1, 50) i'
    code, _, said = command(
        *("result", "label", str(result), "--party", party.name, "--data", url),
        *("--query", query, "-o", "labels.parquet"),
    )
    assert code == 0, said
    labels = pq.read_table("labels.parquet")
    assert labels.column(0).to_pylist() == list(range(1, 51))
