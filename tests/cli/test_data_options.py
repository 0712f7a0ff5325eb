"""`--data`, `--query` and `party check`: what people type, what they are told, what is kept."""

import io
import json
import sqlite3
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.cli import main

SECRET = "hunter2"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run commands in an empty folder, with a study of a bank and a shop that the bank approved."""
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
    code, digits, said = call(*STUDY_NEW)
    assert code == 0, said
    assert call("study", "approve", "study.toml", "--home", "bank", "--digits", digits)[0] == 0
    ids = ["007", "8", " 9", "1.0"]
    pq.write_table(pa.table({"id": ids, "income": [1.0, 2, 3, 4]}), "bank.parquet")
    with sqlite3.connect("crm.sqlite") as base:
        base.execute("create table customers (id text, income real)")
        base.executemany("insert into customers values (?, 5)", [(name,) for name in ids])
    base.close()
    return call


STUDY_NEW = (
    *("study", "new", "--party", "bank=bank.pub", "--party", "shop=shop.pub"),
    *("--column", "bank:income:0:9000", "--column", "shop:visits:0:9"),
    *("--server-key", "server.pub", "--id-type", "integer"),
)
BANK = ("study.toml", "--party", "bank")
ODD = {"blanks at the ends": 1, "leading zeros": 1, "looks like a decimal number": 1}


def test_a_study_says_how_ids_are_written(run):
    assert "ids       integer" in run("study", "show", "study.toml")[1]
    assert 'type = "integer"' in Path("study.toml").read_text()
    code, _, said = run(*STUDY_NEW[:-1], "numbers", "-o", "other.toml")
    assert code == 2
    assert "ids.type must be one of 'as-is', 'text', 'caseless', 'integer', 'uuid', " in said
    assert "'email', 'phone', got 'numbers'" in said
    text = (
        Path("study.toml")
        .read_text()
        .replace('type = "integer"', 'type = "integer"\npattern = "[0-9]{1,3}"')
    )
    Path("more.toml").write_text(text)
    shown = run("study", "show", "more.toml")[1]
    assert "integer, all like [0-9]{1,3}" in shown


@pytest.mark.parametrize(
    "data",
    [
        ("--data", "bank.parquet"),
        ("--data", "crm.sqlite", "--query", "select id, income from customers"),
        ("--data", "sqlite:///crm.sqlite", "--query-file", "query.sql"),
        ("--data", "duckdb://", "--query", "from 'bank.parquet'"),
    ],
    ids=["file", "query", "query file", "duckdb"],
)
def test_check_tells_rows_and_odd_ids_and_leaves_nothing(data, run):
    Path("query.sql").write_text("select id, income\nfrom customers")
    before = sorted(Path().rglob("*"))
    code, out, said = run("party", "check", *BANK, *data, "--json")
    assert code == 0, said
    facts = json.loads(out)
    assert (facts["party"], facts["rows"]) == ("bank", 4)
    assert facts["ids"] == {"kind": "text", "type": "integer", "n_odd": 3, "odd": ODD}
    assert facts["outside_bounds"] == []
    assert len(facts["study_hash"]) == 64
    code, out, said = run("party", "check", *BANK, *data)
    assert code == 0
    assert out.startswith("4 rows; ids are text, 3 look odd (blanks at the ends: 1; leading zeros")
    assert "takes ids as 'integer'; all checks passed" in out
    assert "nothing was sent, nothing was spent" in said
    assert sorted(Path().rglob("*")) == before


def test_check_needs_neither_keys_nor_approval(run):
    text = Path("study.toml").read_text().replace('name = "study"', 'name = "another"')
    Path("other.toml").write_text(text)
    where = ("--party", "bank", "--data", "bank.parquet")
    assert run("party", "check", "other.toml", *where)[0] == 0


def test_check_refuses_what_a_run_would_refuse(run):
    pq.write_table(pa.table({"id": ["7", "007"], "income": [1.0, 2]}), "twice.parquet")
    code, out, said = run("party", "check", *BANK, "--data", "twice.parquet")
    assert (code, out) == (2, "")
    assert "twice.parquet: party 'bank': ids must be different (compared as whole numbers" in said
    assert "same id as row number 1 (counting from 0)" in said


RUN = ("party", "run", *BANK, "--home", "bank", "--mailbox", "shared", "--timeout", "0.01")


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (("--data", "bank.parquet"), "bank.parquet"),
        (("--data", "./bank*.parquet"), "the folder's own"),
        (("--data", "crm.sqlite", "--query", "select * from customers"), "crm.sqlite"),
        (("--data", "duckdb://", "--query", "from 'bank.parquet'", "--source", "crm"), "crm"),
    ],
    ids=["file", "pattern", "database", "given"],
)
def test_a_run_says_what_it_saw_before_it_joins(data, source, run):
    code, _, said = run(*RUN, *data)
    assert code == 3, said  # waits for the shop
    seen = said.index("checked the data: 4 rows; ids are text, 3 look odd")
    assert seen < said.index("joined run '1'")
    expected = Path().resolve().name if source == "the folder's own" else source
    assert source_of_run() == expected
    stored = b"".join(path.read_bytes() for path in Path("bank").rglob("*") if path.is_file())
    assert b"select * from" not in stored


def test_a_name_that_cannot_be_printed_is_known_before_joining(run):
    """A no-break space in a file's name once failed at the charge only, after the others paid."""
    odd = Path("bank\u00a02026.parquet")
    odd.write_bytes(Path("bank.parquet").read_bytes())
    code, out, said = run("party", "check", *BANK, "--data", str(odd), "--json")
    assert (code, json.loads(out)["source"]) == (0, "bank 2026.parquet")
    assert (
        "a run would be charged to 'bank 2026.parquet'"
        in run("party", "check", *BANK, "--data", str(odd))[2]
    )
    for command in (("party", "check", *BANK), RUN):
        code, out, said = run(*command, "--data", "bank.parquet", "--source", "my\u00a0data")
        assert (code, out) == (2, "")
        assert "source must be printable text" in said
        assert "character 3 of 'my data' is not (U+00A0)" in said
    assert list(Path("shared").iterdir()) == []
    code, _, said = run(*RUN, "--data", str(odd))
    assert code == 3, said
    assert source_of_run() == "bank 2026.parquet"
    code, _, said = run(*RUN, "--data", str(odd), "--source", "customers")
    assert code == 3, said
    assert "source 'customers' takes the place of 'bank 2026.parquet'" in said
    assert source_of_run() == "customers"


def test_check_says_that_a_place_has_no_name(run):
    where = ("--data", "duckdb://", "--query", "from 'bank.parquet'")
    code, _, said = run("party", "check", *BANK, *where)
    assert code == 0
    assert "a run needs --source" in said
    assert json.loads(run("party", "check", *BANK, *where, "--json")[1])["source"] is None


def source_of_run() -> str:
    with sqlite3.connect("bank/splitmeans.sqlite") as base:
        (details,) = base.execute("select details from runs").fetchone()
    base.close()
    return json.loads(details)["source"]


CENTS = "income: 3 of 4 values lie outside 0 to 9000 and become the bound"


def write_cents() -> None:
    table = pa.table({"id": ["1", "2", "3", "4"], "income": [100000.0, 250000, 4000, 317000]})
    pq.write_table(table, "cents.parquet")


def test_values_in_other_units_are_refused_before_joining_if_asked_for(run):
    write_cents()
    code, out, said = run(*RUN, "--data", "cents.parquet", "--refuse-clipping")
    assert (code, out) == (2, "")
    assert said.index(CENTS) < said.index("column 'income' must have at least half")
    assert "correct the units, or agree on other bounds" in said
    assert "joined" not in said
    # Nothing was sent, and nothing is kept of the run: the corrected table may still join.
    assert list(Path("shared").iterdir()) == []
    code, _, said = run(*RUN, "--data", "bank.parquet")
    assert code == 3
    assert "joined run '1'" in said


def test_values_in_other_units_are_warned_of_and_their_count_stays_at_home(run):
    write_cents()
    code, _, said = run(*RUN, "--data", "cents.parquet")
    assert code == 3, said  # waits for the shop
    assert said.index(CENTS) < said.index("WARNING: most values of 'income' lie outside")
    assert said.index("WARNING: most") < said.index("joined run '1'")
    kept = [path for place in ("shared", "bank") for path in Path(place).rglob("*")]
    assert not any(b"outside" in path.read_bytes() for path in kept if path.is_file())


def test_one_row_does_not_decide_whether_a_party_joins(run):
    """Two of four values outside and three of five: only what the party reads differs."""
    seen = []
    for name, values in (("half", [1.0, 2, 1e6, 1e6]), ("more", [1.0, 2, 1e6, 1e6, 1e6])):
        ids = [str(number) for number in range(len(values))]
        pq.write_table(pa.table({"id": ids, "income": values}), f"{name}.parquet")
        code, out, said = run(*RUN, "--data", f"{name}.parquet", "--run", name)
        sent = [path for path in Path("shared").rglob("*") if path.is_file() and name in str(path)]
        kinds = sorted((path.name.split(".")[0], path.stat().st_size) for path in sent)
        seen.append((code, out, kinds))
        assert ("WARNING: most values" in said) == (name == "more")
    assert seen[0] == seen[1]
    assert seen[0][2], "the party has joined"


def test_studies_with_keys_need_a_way_to_write_ids(run):
    parts = [*STUDY_NEW[:-2], "-o", "partial.toml"]
    code, _, said = run(*parts)
    assert code == 2
    assert (
        "--server-key needs --id-type (as-is, text, caseless, integer, uuid, email or phone)"
        in said
    )
    assert run(*parts, "--id-type", "as-is")[0] == 0
    assert '[ids]\ntype = "as-is"' in Path("partial.toml").read_text()


@pytest.mark.parametrize("epsilon", ["0.001", "20"])
def test_an_epsilon_beyond_exact_accounting_is_bad_input(epsilon, run):
    rule = f"must be between 0.01 and 12 for exact accounting, got {epsilon}"
    code, _, said = run(*STUDY_NEW, "--epsilon", epsilon, "-o", "other.toml")
    assert (code, said) == (2, f"error: --epsilon {rule}\n")
    assert not Path("other.toml").exists()
    code, _, said = run(*STUDY_NEW, "--party-epsilon", epsilon, "-o", "other.toml")
    assert (code, said) == (2, f"error: --party-epsilon {rule}\n")
    text = Path("study.toml").read_text().replace("epsilon = 1.0", f"epsilon = {epsilon}")
    Path("other.toml").write_text(text)
    code, _, said = run("study", "check", "other.toml")
    assert (code, said) == (2, f"error: other.toml: epsilon {rule}\n")


def test_check_counts_values_outside_the_bounds(run):
    write_cents()
    where = ("party", "check", *BANK, "--data", "cents.parquet")
    code, out, said = run(*where)
    assert code == 2
    assert CENTS in out
    assert "passed" not in out
    assert "cents.parquet: party 'bank', column 'income' must have at least half" in said
    code, out, _ = run(*where, "--allow-clipping")
    assert code == 0
    assert out.splitlines()[1] == CENTS
    assert out.splitlines()[-1] == "the study takes ids as 'integer'; all checks passed"
    expected = {"column": "income", "low": 0.0, "high": 9000.0, "values": 4, "outside": 3}
    for more, code in (((), 2), (("--allow-clipping",), 0)):
        done = run(*where, "--json", *more)
        assert done[0] == code
        assert json.loads(done[1])["outside_bounds"] == [expected]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (("--data", f"postgresql://me:{SECRET}@db/crm", "--query", "select 1"), "PGPASSWORD"),
        (("--data", f"host=db password={SECRET}"), "PGPASSWORD"),
        (("--data", f"s3://key:{SECRET}@bucket/t.parquet"), "must not hold a password, key or tok"),
        (("--data", "duckdb://", "--query", f"from '{SECRET}.parquet'"), "--source is missing"),
        (("--data", "crm.sqlite", "--query", f"select {SECRET}"), "a column that does not exist"),
        (("--data", "crm.sqlite"), "a database needs a query"),
        (("--data", "bank.parquet", "--query", "select 1"), "a query is for databases"),
        (
            ("--data", "crm.sqlite", "--query", "select 1", "--query-file", "query.sql"),
            "--query and --query-file: give one of them",
        ),
        (("--data", "crm.sqlite", "--query-file", "none.sql"), "none.sql: cannot be read (No such"),
    ],
)
def test_what_is_refused_before_joining(data, message, run):
    code, out, said = run(*RUN, *data)
    assert (code, out) == (2, "")
    assert message in said
    assert SECRET not in said
    assert list(Path("shared").iterdir()) == []
    stored = b"".join(path.read_bytes() for path in Path("bank").rglob("*") if path.is_file())
    assert SECRET.encode() not in stored
