"""Commands as processes: a run over a relay with TLS, and what a user can do wrong.

In one file, so that one worker of a parallel test run makes the organisations once.
"""

import json
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from splitmeans.run.notes import EVENTS
from tests.e2e.checks import check_charges, check_ends, check_no_rows
from tests.e2e.conftest import Relay
from tests.e2e.world import DATA, N_USERS, PARTIES, World, read_data


def test_a_run_with_late_starts_and_a_stop(world: World, relay: Relay) -> None:
    """Nobody waits for anybody: one gives up, one is stopped, one comes late, the server last."""
    gave_up = world.take_part("bank", *relay.options, "--timeout", "0.5")
    shop = world.take_part("shop", *relay.options)
    ended = gave_up.done()
    assert ended.code == 3
    assert "nothing came from clinic" in ended.err
    assert "the same command takes the run up again" in ended.err

    shop.until("waiting for")
    stopped = shop.stop()
    assert stopped.code == 128 + signal.SIGTERM
    assert "the same command goes on" in stopped.err

    commands = {who: world.take_part(who, *relay.options) for who in ("bank", "clinic")}
    commands["shop"] = world.take_part("shop", *relay.options, "--log-format", "json")
    commands["clinic"].until("waiting for server")
    commands["server"] = world.take_part("server", *relay.options, "--log-format", "json")
    ends = {who: command.done() for who, command in commands.items()}
    assert "taking run '1' up again" in ends["bank"].err
    check_events(ends["shop"].err, "shop", began="resumed")
    check_events(ends["server"].err, "server", began="joined")

    check_ends(world, ends)
    check_charges(world)
    check_no_rows(world)
    # A healthy run is no cause for alarm: nobody asks for what is not theirs.
    assert "refused" not in relay.command.said
    assert "WARNING" not in relay.command.said
    assert "stored partyrelease of shop for server, run 1 of study" in relay.command.said
    assert "from 127.0.0.1" in relay.command.said


def check_events(log: str, who: str, *, began: str) -> None:
    """Every line is an event of this run, and what people are told of the table is not there."""
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["event"] for line in lines} <= set(EVENTS)
    assert {(line["run"], line["participant"]) for line in lines} == {("1", who)}
    assert len({line["study"] for line in lines}) == 1
    events = [line["event"] for line in lines]
    assert events[0] == "started"
    assert events[-2:] == ["result_written", "finished"]
    assert began in events
    (last,) = (line["stage"] for line in lines if line["event"] == "finished")
    assert last == ("Done" if who == "server" else "Finished")
    assert str(N_USERS) not in log
    assert f"{N_USERS:,}" not in log
    assert DATA["shop"] not in log


def test_the_study_is_not_approved(world: World, folder_mailbox: tuple[str, str]) -> None:
    home = world.home("bank")
    for path in home.glob("*"):
        if path.name != "key.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    ended = world.take_part("bank", *folder_mailbox).done()
    assert ended.code == 2
    assert "is not approved" in ended.err
    assert "splitmeans study approve" in ended.err


@pytest.mark.slow
def test_the_study_was_changed_after_the_approval(
    world: World, folder_mailbox: tuple[str, str]
) -> None:
    file = world.folder / "bank" / "study.toml"
    text = file.read_text()
    assert "epsilon = 2.0" in text
    file.write_text(text.replace("epsilon = 2.0", "epsilon = 3.0"))
    ended = world.take_part("bank", *folder_mailbox).done()
    assert ended.code == 2
    assert "is not approved" in ended.err


def test_the_key_is_another_ones(world: World, folder_mailbox: tuple[str, str]) -> None:
    shutil.copy(world.home("shop") / "key.json", world.home("bank") / "key.json")
    ended = world.take_part("bank", *folder_mailbox).done()
    assert ended.code == 2
    assert "the key file is not the one that study" in ended.err


@pytest.mark.slow
def test_the_party_is_unknown(world: World, folder_mailbox: tuple[str, str]) -> None:
    options = ("study.toml", "--party", "Bank", "--data", DATA["bank"], *folder_mailbox)
    ended = world.run("bank", "party", "run", *options)
    assert ended.code == 2
    assert "no party 'Bank'; its parties are bank, shop, clinic" in ended.err


def test_the_mailbox_is_not_there(world: World, tmp_path: Path) -> None:
    ended = world.take_part("bank", "--mailbox", str(tmp_path / "unmounted")).done()
    assert ended.code == 4
    assert "there is no such folder; make it first" in ended.err
    assert "try the same command again later" in ended.err


def test_a_column_is_missing(world: World, folder_mailbox: tuple[str, str]) -> None:
    path = world.folder / "bank" / DATA["bank"]
    pyarrow.csv.write_csv(read_data(world.folder, "bank").drop_columns(["bank_b"]), path)
    ended = world.take_part("bank", *folder_mailbox).done()
    assert ended.code == 2
    assert DATA["bank"] in ended.err
    assert "'bank_b'" in ended.err
    assert not list(Path(folder_mailbox[1]).iterdir()), "nobody may see that the data was checked"


def test_the_limit_is_reached(world: World, folder_mailbox: tuple[str, str]) -> None:
    limit = ("ledger", "limit", DATA["bank"], "--epsilon", "1.5", "--delta", "1e-3")
    assert world.run("bank", *limit).code == 0
    ended = world.take_part("bank", *folder_mailbox).done()
    assert ended.code == 1
    assert "limit" in ended.err
    assert not list(Path(folder_mailbox[1]).iterdir()), "nothing may be sent"
    assert [entry["kind"] for entry in world.ledger("bank")["entries"]] == ["limit"]


@pytest.mark.slow
def test_parties_have_different_users(world: World, folder_mailbox: tuple[str, str]) -> None:
    path = world.folder / "bank" / DATA["bank"]
    table = read_data(world.folder, "bank")
    ids = ["person-1", *table["id"].to_pylist()[1:]]
    pyarrow.csv.write_csv(table.set_column(0, "id", pa.array(ids)), path)
    commands = {who: world.take_part(who, *folder_mailbox, "--timeout", "20") for who in PARTIES}
    ends = {who: command.done() for who, command in commands.items()}
    assert {end.code for end in ends.values()} == {1}
    for end in ends.values():
        assert "hold different users" in end.err
        assert "person-" not in end.err
    for who in PARTIES:
        assert not world.ledger(who)["entries"]
    again = world.take_part("bank", *folder_mailbox).done()
    assert again.code == 1
    assert "has failed" in again.err
    assert "new name with --run" in again.err
