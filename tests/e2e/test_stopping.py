"""Ctrl-C is 130 everywhere, and says that the same command goes on where it does."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.checks import check_charges, check_ends
from tests.e2e.conftest import serve_relay
from tests.e2e.world import EVERYONE, Command, Done, World

GOES_ON = "stopped; nothing is lost: the same command goes on"


def interrupt(command: Command, number: int = signal.SIGINT) -> Done:
    command.process.send_signal(number)
    return command.done()


@pytest.mark.parametrize(
    ("who", "number", "code"),
    [
        ("bank", signal.SIGINT, 130),
        ("bank", signal.SIGTERM, 143),
        ("bank", signal.SIGHUP, 129),
        ("server", signal.SIGINT, 130),
        # What the server does with a signal is what a party does.
        pytest.param("server", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("server", signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_waits(
    world: World, folder_mailbox: tuple[str, str], who: str, number: int, code: int
) -> None:
    command = world.take_part(who, *folder_mailbox)
    command.until("waiting for")
    ended = interrupt(command, number)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.splitlines()[-1] == GOES_ON
    assert "terminal" not in ended.err
    assert "Traceback" not in ended.err


def test_a_run_that_waits_for_its_home(world: World, folder_mailbox: tuple[str, str]) -> None:
    """The same run in a second process can be tried again; another run goes on beside it."""
    first = world.take_part("bank", *folder_mailbox)
    first.until("waiting for")
    same = world.take_part("bank", *folder_mailbox).done()
    assert same.code == 4
    assert "is in use by another splitmeans process" in same.err
    beside = world.take_part("bank", *folder_mailbox, "--run", "2")
    beside.until("waiting for")
    assert world.run("bank", "ledger", "limit", "x", "--epsilon", "1", "--delta", "0").code == 0
    assert interrupt(beside).code == 130
    assert interrupt(first).code == 130


@pytest.mark.slow
def test_two_runs_at_the_same_time_from_the_same_homes(
    world: World, folder_mailbox: tuple[str, str]
) -> None:
    runs = {
        run: {who: world.take_part(who, *folder_mailbox, "--run", run) for who in EVERYONE}
        for run in ("1", "2")
    }
    for commands in runs.values():
        check_ends(world, {who: command.done() for who, command in commands.items()})
    check_charges(world, runs=2)


def test_a_question(world: World) -> None:
    """The end of the input is no Ctrl-C: it says how to do without the question."""
    shutil.rmtree(world.home("bank"))
    for stop, code in ((True, 130), (False, 2)):
        reader, writer = os.pipe()
        command = world.start("bank", "study", "approve", "study.toml", stdin=reader)
        os.close(reader)
        command.until("Do all participants have the same digits?")
        time.sleep(0.2)  # until it reads
        if stop:
            ended = interrupt(command)
            os.close(writer)
        else:
            os.close(writer)
            ended = command.done()
        assert ended.code == code
        assert ("--digits" in ended.err) != stop
        assert "terminal" not in ended.err
        assert not list(Path(world.home("bank")).glob("*.sqlite"))


def test_a_relay(world: World) -> None:
    with serve_relay(world) as relay:
        ended = interrupt(relay.command)
        assert ended.code == 130
        assert ended.err.splitlines()[-1] == "stopped"
        relay.command.process.returncode = 0  # what the fixture expects of SIGTERM
