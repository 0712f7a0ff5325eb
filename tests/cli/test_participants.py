"""The commands of a participant, as a newcomer types them: what they say and how they end."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans import Study
from splitmeans.cli import main
from splitmeans.plan.facts import PrivacyFacts


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
    done = run(
        "study", "new", *_PARTIES, *_COLUMNS, "--id-type", "as-is", "--server-key", "server.pub"
    )
    assert done.code == 0, done.err
    pq.write_table(pa.table({"id": ["a", "b"], "income": [1.0, 2.0]}), tmp_path / "bank.parquet")
    (tmp_path / "shared").mkdir()
    return done.out


_PARTIES = ("--party", "bank=bank.pub", "--party", "shop=shop.pub")
_COLUMNS = ("--column", "bank:income:0:9000", "--column", "shop:region:north|south")
_PARTY_RUN = ("party", "run", "study.toml", "--party", "bank", "--home", "bank")
_BOX = ("--mailbox", "shared", "--timeout", "0.01")


def test_the_public_key_is_shown_without_the_passphrase(run, monkeypatch):
    monkeypatch.setenv("SPLITMEANS_PASSPHRASE", "word")
    made = run("keys", "new", "--home", "bank", "--passphrase")
    monkeypatch.delenv("SPLITMEANS_PASSPHRASE")
    shown = run("keys", "show", "--home", "bank")
    assert (shown.code, shown.out) == (0, made.out)
    assert shown.err.splitlines()[-1] == made.err.splitlines()[-1]


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
        *(*_PARTIES, *_COLUMNS, "--id-type", "as-is", "--server-key", "server.pub"),
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
    assert "number not said" in done.out
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
    # Another name does not pass it by accident: where there is a limit a new name is declared.
    renamed = run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "old")
    assert renamed.code == 2
    assert "'old' is a new name, and this home has limits" in renamed.err
    declared = ("ledger", "source", "old", "--people", "former customers", "--home", "bank")
    assert run(*declared).code == 0
    assert run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "old").code == 3


def test_a_limit_towards_a_party_stops_a_run_as_well(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    stated = PrivacyFacts.for_study(Study.read("study.toml")).towards_party
    assert stated is not None
    options = ("--epsilon", "9", "--delta", "1e-3", "--home", "bank")
    for most, code in ((stated[1].epsilon * 0.99, 1), (stated[1].epsilon, 3)):
        limited = run("ledger", "limit", "crm", *options, "--party-epsilon", repr(most))
        assert f"towards a party {most:g}; spent so far" in limited.err
        done = run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "crm")
        assert done.code == code
        assert ("epsilon towards a party" in done.err) == (code == 1)
        assert bool(list(Path("shared").iterdir())) == (code == 3)


def test_an_empty_ledger(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    done = run("ledger", "show", "--home", "bank")
    assert (done.code, done.out) == (0, "")
    assert "nothing was spent" in done.err
    assert run("ledger", "verify", "--home", "bank").out.startswith("0 entries, sound")


def test_a_forgotten_charge_can_be_added(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    said = ("--party", "bank", "--reason", "restored: [red] of 3 May", "--home", "bank")
    of_crm = ("ledger", "recover", "--source", "crm", "--study", "study.toml")
    added = run(*of_crm, "--run", "7", *said)
    assert added.code == 0, added.err
    assert "added epsilon 1, delta 1e-05 to crm; spent so far: epsilon 1" in added.err
    again = run(*of_crm, "--run", "7", *said)
    assert again.code == 1
    assert "has been charged already, by entry 1" in again.err
    assert run(*of_crm, "--run", "8", *said).code == 0
    shown = json.loads(run("ledger", "show", "--home", "bank", "--json").out)
    assert shown["sources"]["crm"]["epsilon"] == 2
    stated = PrivacyFacts.for_study(Study.read("study.toml")).towards_party
    assert stated is not None
    assert shown["entries"][0]["party_epsilon"] == stated[1].epsilon
    assert [entry["kind"] for entry in shown["entries"]] == ["added", "added"]
    assert shown["entries"][0]["what"] == "restored: [red] of 3 May"
    assert "restored: [red] of 3 May" in run("ledger", "show", "--home", "bank").out
    assert run("ledger", "verify", "--home", "bank").code == 0
    # The runs that were added are not charged a second time, and limits count them.
    run("ledger", "limit", "crm", "--epsilon", "2", "--delta", "1e-3", "--home", "bank")
    refused = run(*_PARTY_RUN, *_BOX, "--data", "bank.parquet", "--source", "crm", "--run", "9")
    assert refused.code == 1
    assert "its limit is epsilon 2" in refused.err


def test_a_restored_home_charges_again_once_it_is_complete(run, digits):
    run("study", "approve", "study.toml", "--home", "bank", "--digits", digits)
    assert run("home", "backup", "-o", "bank.zip", "--home", "bank").code == 0
    restored = run("home", "restore", "bank.zip", "--home", "again")
    assert "--complete --reason WHY" in restored.err
    again = (*_PARTY_RUN[:-1], "again")
    refused = run(*again, *_BOX, "--data", "bank.parquet")
    assert refused.code == 1
    assert "splitmeans ledger recover --complete --reason WHY" in refused.err
    complete = ("ledger", "recover", "--complete", "--home", "again")
    unsaid = run(*complete)
    assert (unsaid.code, "need --reason" in unsaid.err) == (2, True)
    done = run(*complete, "--reason", "nothing was run since")
    assert (done.code, "nothing is missing (nothing was run since)" in done.err) == (0, True)
    assert run(*complete, "--reason", "once more").code == 2
    assert run(*again, *_BOX, "--data", "bank.parquet").code == 3


def test_what_people_a_name_stands_for(run):
    home = ("--home", "bank")
    done = run("ledger", "source", "customers", "--people", "retail customers", *home)
    assert "data set customers: retail customers; spent so far: epsilon 0" in done.err
    done = run("ledger", "source", "customers", "--also", "crm", *home)
    assert "retail customers, also called crm; spent so far" in done.err
    said = ("--apart", "customers", "--reason", "test ids")
    assert "other people than customers" in run("ledger", "source", "fresh", *said, *home).err
    shown = run("ledger", "show", *home).out
    assert "crm is part of customers\nfresh and customers are other people\n" in shown
    assert "customers (test ids)" in shown
    assert run("ledger", "source", "other", *home).code == 2
    assert run("ledger", "source", "other", "--apart", "customers", *home).code == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--study": "nowhere.toml"}, "nowhere.toml"),
        ({"--party": "Bank"}, "no party 'Bank'"),
        ({"--run": "Run 1"}, "run"),
        ({"--reason": ""}, "what of a ledger entry must be printable text"),
        ({"--reason": None}, "--complete and --study need --reason"),
        ({"--run": None}, "--study, --run and --party go together"),
        ({"--source": None}, "--source must name the data set"),
    ],
)
def test_what_cannot_be_added(change, words, run, digits):
    options = {"--source": "crm", "--study": "study.toml", "--run": "7", "--party": "bank"}
    options |= {"--reason": "why"} | change
    given = [word for pair in options.items() if pair[1] is not None for word in pair]
    done = run("ledger", "recover", *given, "--home", "bank")
    assert done.code == 2
    assert words in done.err


@pytest.mark.parametrize("command", ["party check", "party run", "server run"])
@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--use-proxy",), "--use-proxy is for relays (https://), not for shared"),
        (("--ssh-key", "key"), "are for mailboxes of sftp://, not for shared"),
        (("--known-hosts", "hosts"), "are for mailboxes of sftp://, not for shared"),
    ],
    ids=["proxy", "key", "hosts"],
)
def test_mailbox_options_reach_the_mailbox(run, digits, command, option, words):
    who = "server" if command == "server run" else "bank"
    own = () if who == "server" else ("--party", "bank", "--data", "bank.parquet")
    at = ("--mailbox", "shared", "--home", who)
    done = run(*command.split(), "study.toml", *own, *at, *option)
    assert done.code == 2, done.err
    assert words in " ".join(done.err.split())
