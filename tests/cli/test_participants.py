"""The commands of a participant, as a newcomer types them: what they say and how they end."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans import Study
from splitmeans.cli import main


class Finished(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Finished]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.delenv("SPLITMEANS_HOME", raising=False)
    monkeypatch.delenv("SPLITMEANS_PASSPHRASE", raising=False)

    def call(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["splitmeans", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def digits(run, tmp_path) -> str:
    """A study of a bank and a shop with keys; returns its digits."""
    for who in ("bank", "shop", "server"):
        (tmp_path / f"{who}.pub").write_text(run("keys", "new", "--home", who).out)
    done = run("study", "new", *_PARTIES, *_COLUMNS, "--server-key", "server.pub")
    assert done.code == 0, done.err
    pq.write_table(pa.table({"id": ["a", "b"], "income": [1.0, 2.0]}), tmp_path / "bank.parquet")
    (tmp_path / "shared").mkdir()
    return done.out


_PARTIES = ("--party", "bank=bank.pub", "--party", "shop=shop.pub")
_COLUMNS = ("--column", "bank:income:0:9000", "--column", "shop:region:north|south")
_PARTY_RUN = ("party", "run", "study.toml", "--party", "bank", "--home", "bank")
_BOX = ("--mailbox", "shared", "--timeout", "0.01")


def test_a_key_file_is_never_replaced(run):
    first = run("keys", "new", "--home", "bank")
    again = run("keys", "new", "--home", "bank")
    assert again.code == 2
    assert again.out == ""
    assert "`splitmeans keys show` prints its public key" in again.err
    assert run("keys", "show", "--home", "bank").out == first.out


def test_a_study_may_bound_what_parties_learn(run, digits, tmp_path):
    done = run(
        *("study", "new", "-o", "bounded.toml", "--party-epsilon", "0.8"),
        *(*_PARTIES, *_COLUMNS, "--server-key", "server.pub"),
    )
    assert (done.code, done.out != digits) == (0, True)
    assert Study.read(tmp_path / "bounded.toml").budget.party_epsilon == 0.8
    *_, last = run("study", "check", "study.toml").out.split("  total ")[0].splitlines()
    assert "to a party epsilon" in last
    assert "to a party" not in run("study", "check", "bounded.toml").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--name", "customers"), "--party is missing"),
        ((*_PARTIES, "--column", "bank:income:0"), "--column must be PARTY:COLUMN:LOW:HIGH"),
        (("--party", "bank=none.pub"), "none.pub: no public key can be read (No such file"),
    ],
)
def test_a_study_from_wrong_options(run, digits, arguments, message):
    done = run("study", "new", "-o", "other.toml", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not Path("other.toml").exists()


def test_show_says_what_people_agree_to(run, digits):
    done = run("study", "show", "study.toml")
    assert "income, 0 to 9000" in done.out
    assert "region, north | south" in done.out
    assert "about 10000, the same at every party" in done.out
    assert digits.strip() in done.out


def test_approve_takes_digits_as_people_write_them(run, digits):
    assert run("study", "approve", "study.toml", "--home", "bank", "--digits", "123").code == 2
    asked = run("study", "approve", "study.toml", "--home", "bank")
    assert asked.code == 2
    assert "give the digits with --digits" in asked.err
    close = digits.replace(" ", "")
    assert run("study", "approve", "study.toml", "--home", "bank", "--digits", close).code == 0


def test_a_missing_data_file(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    done = run(*_PARTY_RUN, *_BOX, "--data", "other.parquet")
    assert done.code == 2
    assert "other.parquet: there is no such file" in done.err


def test_a_limit_stops_a_run_before_others_spend(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    limited = run("ledger", "limit", "crm", "--epsilon", "0.5", "--delta", "1e-5", "--home", "bank")
    assert limited.code == 0
    assert "spent so far: epsilon 0" in limited.err
    assert "it holds for runs with --source crm" in limited.err
    done = run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "crm")
    assert done.code == 1
    assert "its limit is epsilon 0.5" in done.err
    assert list(Path("shared").iterdir()) == []  # the party did not join
    # Without the limit on this source the run begins, and waits.
    assert run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "old").code == 3


def test_an_empty_ledger(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    done = run("ledger", "show", "--home", "bank")
    assert (done.code, done.out) == (0, "")
    assert "nothing was spent" in done.err
    assert run("ledger", "verify", "--home", "bank").out.startswith("0 entries, sound")
