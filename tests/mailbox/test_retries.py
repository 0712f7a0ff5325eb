"""One rule for how long a place on a network is tried again."""

import socket
from pathlib import Path
from typing import Any

import fsspec
import fsspec.asyn
import pytest

from splitmeans.errors import MailboxError, MailboxUnavailable, ParameterError
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.open import open_mailbox
from splitmeans.mailbox.retries import DEFAULT_PATIENCE, Retries, TryAgain
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot

PATH = Slot(study_hash="ab" * 32, run="run-1", sender="alice", receiver="bob", kind="Letter").path


class Scene:
    """Attempts that fail until some time has passed, on a clock of our own."""

    def __init__(self, *, well_after: float, seconds: float = DEFAULT_PATIENCE) -> None:
        self.now, self.well_after = 0.0, well_after
        self.waits: list[float] = []
        self.said: list[str] = []
        self.retries = Retries(
            seconds=seconds, say=self.said.append, sleep=self.sleep, clock=lambda: self.now
        )

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def attempt(self) -> str:
        self.now += 0.25  # an attempt takes time, too
        if self.now < self.well_after:
            raise TryAgain(MailboxUnavailable("mailbox x: no connection"))
        return "there"


def test_pauses_double_up_to_half_a_minute_and_are_spread() -> None:
    # With patience to spare: the last pause before its end is cut short.
    scene = Scene(well_after=110, seconds=1000)
    assert scene.retries.run(scene.attempt) == "there"
    longest = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert all(most / 2 <= wait <= most for wait, most in zip(scene.waits, longest, strict=False))
    assert len({round(wait / most, 6) for wait, most in zip(scene.waits, longest)}) > 3  # noqa: B905


def test_it_ends_when_patience_does_and_says_so() -> None:
    scene = Scene(well_after=1000, seconds=10)
    with pytest.raises(MailboxUnavailable, match=r"no connection .tried for 1. seconds; --pat"):
        scene.retries.run(scene.attempt)
    assert 10 <= scene.now < 11  # the last attempt is at the end, not before


def test_people_are_told_once_and_not_of_a_hiccup() -> None:
    scene = Scene(well_after=60)
    scene.retries.run(scene.attempt)
    assert scene.said == ["mailbox x: no connection; trying again for up to 120 seconds"]
    scene = Scene(well_after=0.7)
    scene.retries.run(scene.attempt)
    assert scene.said == []


def test_no_patience_is_one_attempt() -> None:
    scene = Scene(well_after=1, seconds=0)
    with pytest.raises(MailboxUnavailable, match=r"no connection$"):
        scene.retries.run(scene.attempt)
    assert scene.waits == []
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="--patience must be a number of seconds >= 0"):
            Retries(seconds=seconds)


def test_other_errors_pass_through() -> None:
    def refuse() -> None:
        raise MailboxError("refused")

    with pytest.raises(MailboxError, match=r"^refused$"):
        Retries(sleep=lambda _: pytest.fail("waited")).run(refuse)


class Unreachable(fsspec.asyn.AsyncFileSystem):
    """A store whose network is away for some calls."""

    protocol = "s3"
    n_failures = 0

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        type(self).n_failures -= 1
        if type(self).n_failures >= 0:
            raise ConnectionError("Connection refused")
        if "/" not in path:
            return {"name": path, "size": None, "type": "directory"}
        raise FileNotFoundError(path)


def dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("kind", ["relay", "sftp", "store"])
def test_every_mailbox_on_a_network_has_the_same_patience(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits: list[float] = []
    retries = Retries(seconds=7, sleep=waits.append)
    known_hosts = tmp_path / "known_hosts"
    known_hosts.touch()
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda _: Unreachable)
    monkeypatch.setattr(Unreachable, "n_failures", 10**6)
    url = {
        "relay": f"http://127.0.0.1:{dead_port()}",
        "sftp": f"sftp://me@127.0.0.1:{dead_port()}/box",
        "store": "s3://bucket/box",
    }[kind]
    box = open_mailbox(
        url,
        participant="bob",
        signer=Identity.new(),
        options={"known_hosts": str(known_hosts)} if kind == "sftp" else None,
        retries=retries,
    )
    with pytest.raises(MailboxUnavailable, match=r"tried for 7 seconds; --patience allows more"):
        box.get(PATH, max_bytes=10)
    assert 3 <= len(waits) <= 6
    assert sum(waits) == pytest.approx(7, abs=0.7)
    box.close()


def test_a_store_that_comes_back_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda _: Unreachable)
    monkeypatch.setattr(Unreachable, "n_failures", 3)
    box = FileMailbox("s3://bucket/box", retries=Retries(sleep=waits.append))
    assert box.get(PATH, max_bytes=10) is None
    assert len(waits) == 3


def test_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    box = FileMailbox(str(tmp_path), retries=Retries(sleep=lambda _: pytest.fail("waited")))
    tmp_path.rename(tmp_path.with_name("away"))
    with pytest.raises(MailboxUnavailable):
        box.get(PATH, max_bytes=10)
