"""A folder that different users share: whoever made it has said who may use it."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitmeans.mailbox.files import FileMailbox
from splitmeans.wire.slot import Slot

STUDY = "ab" * 32
GROUP, ALICE, BOB, EVE = 64_242, 65_534, 65_533, 65_532  # no user or group needs to have a name


def path(sender: str, receiver: str) -> str:
    return Slot(study_hash=STUDY, run="1", sender=sender, receiver=receiver, kind="Letter").path


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(
    ("given", "file_mode"),
    [(0o2770, 0o660), (0o770, 0o660), (0o755, 0o644), (0o700, 0o600), (0o1777, 0o666)],
)
def test_rights_are_those_of_the_folder(
    given: int, file_mode: int, mask: int, tmp_path: Path, umask: Callable[[int], int]
) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(given)
    umask(mask)
    FileMailbox(str(place)).put(path("alice", "bob"), b"sealed")
    file = place / path("alice", "bob")
    assert [mode_of(folder) for folder in (file.parent.parent, file.parent)] == [given, given]
    assert mode_of(file) == file_mode
    assert sorted(place.rglob(".*")) == []


def as_user(user: int, *, group: int, groups: list[int], umask: int, do: Callable[[], str]) -> str:
    """Do something in a process of another user; return what it returns, or its error."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setgroups(groups)
            os.setgid(group)
            os.setuid(user)
            os.umask(umask)
            said = do()
        except BaseException as problem:
            said = f"{type(problem).__name__}: {problem}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(process, 0)
    return said


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of a group that two users are in; pytest's own folders are closed to others."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as other users")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        place = Path(name) / "shared"
        place.mkdir()
        os.chown(place, 0, GROUP)
        place.chmod(0o2770)
        yield place


def alice(do: Callable[[], str], umask: int = 0o022) -> str:
    return as_user(ALICE, group=ALICE, groups=[GROUP], umask=umask, do=do)


def bob(do: Callable[[], str], umask: int = 0o022) -> str:
    return as_user(BOB, group=BOB, groups=[GROUP], umask=umask, do=do)


def use(place: Path, *, put: str, get: str) -> Callable[[], str]:
    def do() -> str:
        box = FileMailbox(str(place))
        box.limits(STUDY)
        box.put(put, b"sealed " + put.encode(), is_junk=lambda found: found == b"poison")
        return str(box.get(get, max_bytes=1000))

    return do


@pytest.mark.parametrize("mask", [0o022, 0o077])
@pytest.mark.parametrize("given", [0o2770, 0o770])
def test_two_users_of_one_group(shared: Path, mask: int, given: int) -> None:
    shared.chmod(given)
    to_bob, to_alice = path("alice", "bob"), path("bob", "alice")
    assert alice(use(shared, put=to_bob, get=to_alice), mask) == "None"
    assert bob(use(shared, put=to_alice, get=to_bob), mask) == repr(b"sealed " + to_bob.encode())
    again = alice(use(shared, put=to_bob, get=to_alice), mask)
    assert again == repr(b"sealed " + to_alice.encode())
    # Whoever may write can put other bytes into a slot; the sender puts its own back.
    (shared / to_bob).write_bytes(b"poison")
    assert alice(use(shared, put=to_bob, get=to_alice), mask) == again
    assert (shared / to_bob).read_bytes().startswith(b"sealed")


def test_a_folder_that_is_closed_is_named(shared: Path) -> None:
    """As a participant leaves it who made it by hand, under an ordinary umask."""
    study = shared / STUDY[:32]

    def by_hand() -> str:
        (study / "1").mkdir(parents=True)
        return ""

    assert alice(by_hand) == ""
    to_alice = path("bob", "alice")
    for do in (
        lambda: str(FileMailbox(str(shared)).limits(STUDY)),
        lambda: str(FileMailbox(str(shared)).put(to_alice, b"sealed")),
    ):
        said = bob(do)
        assert said.startswith(f"MailboxError: mailbox {shared}: access to {study}")
        assert "mode 2755)" in said
        assert "chmod -R g+rwX" in said


def test_a_message_that_is_closed_is_named(shared: Path) -> None:
    to_bob = path("alice", "bob")
    alice(use(shared, put=to_bob, get=to_bob))
    (shared / to_bob).chmod(0o600)
    said = bob(lambda: str(FileMailbox(str(shared)).get(to_bob, max_bytes=100)))
    assert said.startswith(f"MailboxError: mailbox {shared}: access to {shared / to_bob} denied")


def test_a_user_outside_the_group_is_told(shared: Path) -> None:
    def eve(do: Callable[[], str]) -> str:
        return as_user(EVE, group=EVE, groups=[], umask=0o022, do=do)

    inside = path("eve", "alice")
    for do in (use(shared, put=inside, get=inside), use(shared / "deeper", put=inside, get=inside)):
        assert eve(do).startswith(f"MailboxError: mailbox {shared}")
    shared.chmod(0o2777)  # now everybody is let in, and Eve's group gains nothing by that
    assert eve(use(shared, put=inside, get=inside)) == repr(b"sealed " + inside.encode())
    assert alice(use(shared, put=path("alice", "eve"), get=inside)).startswith("b'sealed")


def test_errors_do_not_leave_anything(shared: Path) -> None:
    shared.chmod(0o2750)
    said = bob(use(shared, put=path("bob", "alice"), get=path("alice", "bob")))
    assert said.startswith(f"MailboxError: mailbox {shared}: access to {shared} denied")
    assert list(shared.iterdir()) == []
