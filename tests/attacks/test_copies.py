"""Two copies of one participant: a home copied while it waits, a home put back, and failing reads.

The carrier is a folder, as most studies have it; every mailbox has the same contract
(`tests/contracts/test_mailboxes.py`).
"""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from splitmeans.errors import JournalError, MailboxError, Retryable
from splitmeans.mailbox import local_folder
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.local_folder import LocalFolder
from splitmeans.mailbox.open import MessagePath
from splitmeans.wire.messages import PartyRelease
from splitmeans.wire.slot import SERVER

from .harness import World, copy_home, restore_home

N_TRIALS = 12


@pytest.fixture
def shared(stage: Callable[..., World], tmp_path: Path) -> World:
    """A world over a folder in which both parties have the plan and release next."""
    world = stage("approved")
    folder = tmp_path / "shared"
    folder.mkdir()
    world.mailbox = FileMailbox(str(folder))
    for name in (SERVER, *("bank", "shop") * 3, SERVER):
        world.visit(name)
    assert [world.stage_of(name) for name in ("bank", "shop")] == ["Prepared", "Prepared"]
    return world


def stored(world: World, tmp_path: Path) -> Path:
    return tmp_path / "shared" / world.path("bank", SERVER, PartyRelease)


def both(first: Callable[[], object], second: Callable[[], object]) -> list[str]:
    """Run two acts at once; return the word of each that failed."""

    def outcome(act: Callable[[], object]) -> str:
        try:
            act()
        except JournalError as problem:
            return str(problem)
        return ""

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(outcome, (first, second)))


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two copies find the place of their release empty before either of them fills it."""
    create, start = LocalFolder.create, threading.Barrier(2, timeout=60)
    waited: list[LocalFolder] = []

    def late(self: LocalFolder, path: MessagePath, data: bytes) -> bool:
        if path.kind == "partyrelease" and self not in waited:
            waited.append(self)
            start.wait()
        return create(self, path, data)

    monkeypatch.setattr(LocalFolder, "create", late)


def race(world: World, tmp_path: Path, *, trial: int) -> tuple[list[str], set[bytes], World]:
    """Start a home and its copy at once; return what they say and all releases of the folder."""
    root = tmp_path / f"trial-{trial}"
    shutil.copytree(world.root, root / "world", symlinks=True)
    shutil.copytree(tmp_path / "shared", root / "shared", symlinks=True)
    copied = World(world.study, root / "world")
    twin = copy_home(copied, "bank", to=root / "twin")
    seen: set[bytes] = set()

    class Watched(FileMailbox):
        def put(self, path: str, data: bytes, **how: object) -> None:
            super().put(path, data, **how)  # type: ignore[arg-type]
            if "/partyrelease." in path:
                seen.add((root / "shared" / path).read_bytes())

    def visit(home: Path) -> object:
        return copied.visit("bank", home=home, mailbox=Watched(str(root / "shared")))

    words = both(lambda: visit(copied.home("bank")), lambda: visit(twin))
    seen.add(stored(world, root).read_bytes())
    return words, seen, copied


def test_home_copied_while_it_waits_and_started_twice(shared, tmp_path, together):
    """A home is copied while the party waits, and both copies answer the plan at the same moment.

    Gain: two releases under one run key; their difference shows which labels changed by noise.
    Fails: a slot is filled by one exclusive act. The loser is told of the second copy and its run
    ends; both ledgers have the charge.
    """
    for trial in range(N_TRIALS):
        words, seen, copied = race(shared, tmp_path, trial=trial)
        assert sorted(bool(word) for word in words) == [False, True]
        assert "a second copy of this home takes part in the run" in max(words)
        assert len(seen) == 1
        assert copied.charged("bank") == 4
    shared.unchecked["confirmed"] = shared.unchecked["charged"] = "the folder has no log"


def test_twin_that_replaces_releases_twice(shared, tmp_path, together, monkeypatch):
    """The exclusive act is needed: a rename that replaces lets both releases through."""

    def replacing(scratch: Path, target: Path) -> bool:
        os.rename(scratch, target)
        return True

    monkeypatch.setattr(local_folder, "_give_name", replacing)
    words, _, _ = race(shared, tmp_path, trial=0)
    assert words == ["", ""]
    shared.is_twin = True


def test_junk_in_the_slot_of_two_copies(shared, tmp_path, together):
    """As above, and someone has put junk in the place of the release.

    Gain: both copies take the junk away, and one of them the other's release with it.
    Fails: what is moved away is looked at again, and a release goes back to its place.
    """
    target = stored(shared, tmp_path)
    target.write_bytes(b"SMSE\x01 junk")
    for trial in range(N_TRIALS):
        words, seen, _ = race(shared, tmp_path, trial=trial)
        assert sorted(bool(word) for word in words) == [False, True]
        assert len(seen) == 1
        assert b"junk" not in seen.pop()
    shared.unchecked["confirmed"] = shared.unchecked["charged"] = "the folder has no log"


@pytest.mark.parametrize("fault", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EACCES, "gone"])
def test_home_restored_and_a_mailbox_that_fails(shared, tmp_path, monkeypatch, fault):
    """A home is put back as it was before its release, and the look at the mailbox fails.

    Gain: the failure is taken for an empty place, and a second release is made and charged once.
    Fails: only the mailbox's own "not there" means so; everything else stops before a release. When
    the mailbox answers again, the release is found and the run ends.
    """
    backup = copy_home(shared, "bank", to=tmp_path / "backup")
    assert not shared.visit("bank")
    target = stored(shared, tmp_path)
    first = target.read_bytes()
    restore_home(shared, "bank", backup=backup)
    lstat, away = os.lstat, tmp_path / "away"

    def failing(path: Path) -> os.stat_result:
        if Path(path) == target:
            if fault != "gone":
                raise OSError(fault, os.strerror(fault), str(path))
            if not away.exists():  # the share goes away, once the party has begun
                (tmp_path / "shared").rename(away)
        return lstat(path)

    with monkeypatch.context() as broken:
        broken.setattr(local_folder.os, "lstat", failing)
        with pytest.raises(MailboxError) as found:
            shared.visit("bank")
    if away.exists():
        away.rename(tmp_path / "shared")
    assert isinstance(found.value, Retryable) == (fault != errno.EACCES)
    assert target.read_bytes() == first
    assert shared.charged("bank") == 0
    assert shared.stage_of("bank") == "Prepared"
    with pytest.raises(JournalError, match="this home is older than the mailbox"):
        shared.visit("bank")
    assert target.read_bytes() == first
    assert shared.charged("bank") == 4
    shared.unchecked["confirmed"] = shared.unchecked["charged"] = "the folder has no log"
