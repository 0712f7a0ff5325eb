import asyncio
import builtins
import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any

import fsspec
import fsspec.asyn
import paramiko
import pytest

from splitmeans.errors import (
    MailboxError,
    MailboxUnavailable,
    MessageExists,
    MessageRefused,
    ParameterError,
    Retryable,
)
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.local_folder import LocalFolder
from splitmeans.mailbox.open import MessagePath, open_mailbox, public_url
from splitmeans.mailbox.retries import Retries
from splitmeans.wire.slot import Slot

SLOT = Slot(study_hash="ab" * 32, run="run-1", sender="alice", receiver="bob", kind="Letter")
PATH = SLOT.path


@pytest.fixture
def box(tmp_path: Path) -> FileMailbox:
    return FileMailbox(str(tmp_path))


def place(tmp_path: Path) -> Path:
    """Where the message's file belongs; its folder is made."""
    target = tmp_path / PATH
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def test_a_message_is_one_plain_file(box: FileMailbox, tmp_path: Path) -> None:
    box.put(PATH, b"sealed")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files == [tmp_path / PATH]
    assert files[0].read_bytes() == b"sealed"


@pytest.mark.parametrize("depth", [0, 1])
def test_a_folder_that_another_takes_the_place_of_is_made_again(
    box: FileMailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """As when two participants make it: the other's, renamed, leaves ours without a name."""
    really_open, lost = os.open, []

    def open_once_lost(path: Any, *options: Any) -> int:
        if str(path).endswith(".part") and not lost:
            lost.append(path)
            Path(path).parent.rmdir()
            if depth:
                Path(path).parent.parent.rmdir()
        return really_open(path, *options)

    monkeypatch.setattr(os, "open", open_once_lost)
    box.put(PATH, b"sealed")
    assert len(lost) == 1
    assert (tmp_path / PATH).read_bytes() == b"sealed"


def test_a_folder_that_is_lost_every_time_is_told(
    box: FileMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(path: Any, *options: Any) -> int:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    monkeypatch.setattr(os, "open", nowhere)
    with pytest.raises(MailboxError, match="No such file or directory"):
        box.put(PATH, b"sealed")


def poisoned(found: bytes | None) -> bool:
    """What a sender says of bytes that it did not sign."""
    return found is None or found.startswith(b"poison")


def test_junk_is_replaced_and_equal_bytes_left(box: FileMailbox, tmp_path: Path) -> None:
    place(tmp_path).write_bytes(b"poison, longer than the message")
    box.put(PATH, b"sealed", is_junk=poisoned)
    assert [file.name for file in place(tmp_path).parent.iterdir()] == [place(tmp_path).name]
    assert box.get(PATH, max_bytes=6) == b"sealed"
    before = place(tmp_path).stat()
    box.put(PATH, b"sealed")
    after = place(tmp_path).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("links", [True, False])
def test_what_became_a_message_meanwhile_goes_back(
    box: FileMailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Another copy of the sender has replaced the junk after this one had seen it."""
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    box.put(PATH, b"sealed by the other copy")
    LocalFolder(tmp_path).remove_junk(MessagePath.parse(PATH), poisoned, max_bytes=100)
    assert box.get(PATH, max_bytes=100) == b"sealed by the other copy"
    assert [file.name for file in place(tmp_path).parent.iterdir()] == [place(tmp_path).name]


def _no_links(*_: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


def test_exclusive_without_hard_links(
    box: FileMailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network shares have none; then a lock file makes the act exclusive."""
    monkeypatch.setattr(os, "link", _no_links)
    lock = place(tmp_path).with_name(f".{place(tmp_path).name}.lock")
    lock.touch()
    with pytest.raises(MailboxUnavailable, match="another process writes this message"):
        box.put(PATH, b"sealed")
    lock.unlink()
    box.put(PATH, b"sealed")
    with pytest.raises(MessageExists):
        box.put(PATH, b"other")
    assert not LocalFolder(tmp_path).create(MessagePath.parse(PATH), b"other")
    assert [file.name for file in place(tmp_path).parent.iterdir()] == [place(tmp_path).name]
    assert box.get(PATH, max_bytes=100) == b"sealed"


def test_a_share_that_went_away_is_not_an_empty_slot(box: FileMailbox, tmp_path: Path) -> None:
    box.put(PATH, b"sealed")
    away = tmp_path.with_name("away")
    tmp_path.rename(away)
    for act in (lambda: box.get(PATH, max_bytes=9), lambda: box.put(PATH, b"other")):
        with pytest.raises(MailboxUnavailable, match="no longer there"):
            act()
    away.rename(tmp_path)
    assert box.get(PATH, max_bytes=9) == b"sealed"


def test_links_are_not_followed(box: FileMailbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"of no concern")
    place(tmp_path).symlink_to(outside)
    with pytest.raises(MessageRefused, match="no plain file"):
        box.get(PATH, max_bytes=100)
    box.put(PATH, b"sealed", is_junk=poisoned)
    assert outside.read_bytes() == b"of no concern"
    assert not place(tmp_path).is_symlink()
    assert box.get(PATH, max_bytes=100) == b"sealed"


def test_a_linked_folder_is_refused(box: FileMailbox, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / SLOT.study_hash[:32]).symlink_to(tmp_path / "elsewhere")
    for action in (lambda: box.put(PATH, b"x"), lambda: box.get(PATH, max_bytes=1)):
        with pytest.raises(MailboxError, match="is a symbolic link; remove it"):
            action()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_special_files_are_refused_and_replaced(
    box: FileMailbox, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = place(tmp_path)
    if kind == "pipe":
        os.mkfifo(target)
    else:
        monkeypatch.chdir(target.parent)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as special:
            special.bind(target.name)
    with pytest.raises(MessageRefused, match="no plain file"):
        box.get(PATH, max_bytes=100)
    box.put(PATH, b"sealed", is_junk=poisoned)
    assert box.get(PATH, max_bytes=100) == b"sealed"


def test_a_folder_in_the_slot(box: FileMailbox, tmp_path: Path) -> None:
    place(tmp_path).mkdir()
    with pytest.raises(MessageRefused, match="no plain file"):
        box.get(PATH, max_bytes=100)
    with pytest.raises(MessageExists):
        box.put(PATH, b"sealed")
    box.put(PATH, b"sealed", is_junk=poisoned)
    assert box.get(PATH, max_bytes=100) == b"sealed"


def test_on_disk_before_it_has_its_name(
    box: FileMailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def watched_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_link(old: Path, new: Path) -> None:
        steps.append("name")
        link(old, new)

    place(tmp_path)
    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "link", watched_link)
    box.put(PATH, b"sealed")
    assert steps == ["file", "name", "folder"]


def test_a_failed_write_leaves_nothing(
    box: FileMailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(MailboxError, match="No space left on device"):
        box.put(PATH, b"sealed")
    monkeypatch.undo()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    assert box.get(PATH, max_bytes=100) is None


def test_remains_of_a_crash_are_ignored(box: FileMailbox, tmp_path: Path) -> None:
    target = place(tmp_path)
    target.with_name(f".{target.name}.0123.part").write_bytes(b"seal")
    assert box.get(PATH, max_bytes=100) is None
    box.put(PATH, b"sealed")
    assert box.get(PATH, max_bytes=100) == b"sealed"


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(MailboxError, match="there is no such folder; make it first"):
        FileMailbox(str(tmp_path / "unmounted"))
    with pytest.raises(ParameterError, match="has the form file:///folder"):
        FileMailbox("file://share/folder")


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "zip://x.zip", "simplecache::s3://bucket/x", "smb://me:pw@host/x"]
)
def test_places_without_whole_writes_are_refused(url: str) -> None:
    with pytest.raises(ParameterError, match="a mailbox is a folder, an https:// relay") as found:
        open_mailbox(url)
    assert "pw" not in str(found.value)


def test_a_relay_needs_a_signer() -> None:
    with pytest.raises(ParameterError, match="participant and signer are needed"):
        open_mailbox("https://relay.example")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sftp://me:pw@host:2222/box", "sftp://host:2222/box"),
        ("sftp://me:p@ss@host/box", "sftp://host/box"),
        ("s3://bucket/box?token=pw#pw", "s3://bucket/box"),
        ("messages/of@us", "messages/of@us"),
    ],
)
def test_public_url(url: str, shown: str) -> None:
    assert public_url(url) == shown


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without(name: str, *args: Any, **keywords: Any) -> Any:
        if name in ("paramiko", "splitmeans.mailbox.sftp_folder"):
            raise ImportError(name)
        return real_import(name, *args, **keywords)

    def no_driver(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MailboxError, match=r'pip install "splitmeans\[sftp\]"'):
        FileMailbox("sftp://me:pw@host/box").get(PATH, max_bytes=1)
    monkeypatch.setattr(fsspec, "get_filesystem_class", no_driver)
    with pytest.raises(MailboxError, match=r"driver is not installed .Install s3fs"):
        FileMailbox("s3://bucket/box").get(PATH, max_bytes=1)


class FakeStore(fsspec.asyn.AsyncFileSystem):
    """An object store that works, or shows its secrets in errors, or never answers."""

    protocol = "s3"
    behaviour = "fail"

    def __init__(self, secret: str = "", **keywords: Any) -> None:
        super().__init__(**keywords)
        self.secret = secret
        self.objects: dict[str, bytes] = {}

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        if self.behaviour == "hang":
            await asyncio.sleep(60)
        if self.behaviour == "fail":
            raise RuntimeError(f"denied: key {self.secret} at s3://user:word@bucket/{path}")
        if path == "bucket":
            return {"name": path, "size": None, "type": "directory"}
        if path not in self.objects:
            raise FileNotFoundError(path)
        # The object grows between the look at its size and the reading.
        size = 1 if self.behaviour == "lie" else len(self.objects[path])
        return {"name": path, "size": size, "type": "file"}

    async def _cat_file(self, path: str, start: int, end: int, **_: Any) -> bytes:
        assert self.objects[path], "real stores refuse a range of nothing"
        return self.objects[path][start:end]

    async def _pipe_file(self, path: str, value: bytes, mode: str = "", **_: Any) -> None:
        if mode == "create" and self.behaviour != "replace" and path in self.objects:
            raise FileExistsError(path)
        self.objects[path] = value

    async def _rm_file(self, path: str, **_: Any) -> None:
        del self.objects[path]


@pytest.fixture
def fake_store(monkeypatch: pytest.MonkeyPatch) -> type[FakeStore]:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda _: FakeStore)
    return FakeStore


def test_errors_of_drivers_show_no_secret(fake_store: type[FakeStore]) -> None:
    box = FileMailbox("s3://user:word@bucket/box", options={"secret": "hunter2"})
    with pytest.raises(MailboxError, match=r"mailbox s3://bucket/box: RuntimeError: denied") as e:
        box.get(PATH, max_bytes=1)
    assert "hunter2" not in str(e.value)
    assert "word" not in str(e.value)
    assert e.value.__cause__ is None
    assert e.value.__suppress_context__
    assert "hunter2" not in repr(box)


def test_a_silent_store_does_not_hold_us(
    fake_store: type[FakeStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_store, "behaviour", "hang")
    with pytest.raises(MailboxError, match="no answer in time"):
        FileMailbox("s3://bucket/box", timeout=0.05, retries=Retries(seconds=0)).get(
            PATH, max_bytes=1
        )


def test_an_object_store_works(
    fake_store: type[FakeStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_store, "behaviour", "work")
    box = FileMailbox("s3://bucket/box")
    assert box.get(PATH, max_bytes=10) is None
    for data in (b"", b"poison", b"sealed", b"sealed"):
        box.put(PATH, data, is_junk=lambda found: found in (b"", b"poison"))
        assert box.get(PATH, max_bytes=6) == data
    with pytest.raises(MessageRefused, match="more than 5 bytes"):
        box.get(PATH, max_bytes=5)
    monkeypatch.setattr(fake_store, "behaviour", "lie")
    with pytest.raises(MessageRefused, match="more than 5 bytes"):
        box.get(PATH, max_bytes=5)
    assert list(box._files._driver.objects) == [f"bucket/box/{PATH}"]  # type: ignore[union-attr]


def test_an_object_store_that_replaces_is_refused(
    fake_store: type[FakeStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drivers take the word that asks for exclusive creation, and some do nothing about it."""
    monkeypatch.setattr(fake_store, "behaviour", "replace")
    box = FileMailbox("s3://bucket/box")
    for act in (lambda: box.limits("ab" * 32), lambda: box.put(PATH, b"sealed")):
        with pytest.raises(MailboxError, match="replaces objects although it is told not to"):
            act()
    assert box._files._driver.objects == {}  # type: ignore[union-attr]


def test_memory_boxes_share_their_store() -> None:
    FileMailbox("memory://shared-by-test/box").put(PATH, b"sealed")
    other = FileMailbox("memory://shared-by-test/box")
    assert other.get(PATH, max_bytes=6) == b"sealed"
    with pytest.raises(MessageExists):
        other.put(PATH, b"replaced")
    assert other.get(PATH, max_bytes=8) == b"sealed"


def test_sftp_host_key_must_be_known(sftp_server: Any, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("")
    options = {**sftp_server.options, "known_hosts": str(tmp_path / "known_hosts")}
    with pytest.raises(MailboxError, match="host key is not known; check it and add it"):
        FileMailbox(sftp_server.url, options=options).get(PATH, max_bytes=1)


def test_sftp_connects_again_after_a_loss(sftp_server: Any) -> None:
    box = FileMailbox(sftp_server.url, options=sftp_server.options)
    box.put(PATH, b"sealed")
    box._files._client.close()  # type: ignore[union-attr]
    assert box.get(PATH, max_bytes=6) == b"sealed"
    box._files._client.close()  # type: ignore[union-attr]
    box.put(PATH, b"sealed")
    with pytest.raises(MessageExists):
        box.put(PATH, b"again")
    assert box.get(PATH, max_bytes=6) == b"sealed"
    box.close()
    assert [file.name for file in (sftp_server.folder / PATH).parent.iterdir()] == [
        PATH.rpartition("/")[2]
    ]


def test_sftp_links_are_refused(sftp_server: Any) -> None:
    target = sftp_server.folder / PATH.replace("run-1", "linked")
    box = FileMailbox(sftp_server.url, options=sftp_server.options)
    path = PATH.replace("run-1", "linked")
    box.put(path, b"sealed")
    target.unlink()
    target.symlink_to("/etc/hostname")
    with pytest.raises(MessageRefused, match="no plain file"):
        box.get(path, max_bytes=1000)
    box.close()


def test_sftp_problems_are_told_without_the_password(sftp_server: Any) -> None:
    with_password = sftp_server.url.replace("@", ":hunter2@")
    known_hosts = {"known_hosts": sftp_server.options["known_hosts"]}
    cases = {
        "log-in refused": FileMailbox(with_password, options=known_hosts),
        "no such folder on the server": FileMailbox(
            with_password + "/absent", options=sftp_server.options
        ),
        "Unable to connect": FileMailbox("sftp://me:hunter2@127.0.0.1:1/box"),
    }
    for words, box in cases.items():
        with pytest.raises(MailboxError, match=words) as found:
            box.get(PATH, max_bytes=1)
        assert "hunter2" not in str(found.value)
    with pytest.raises(ParameterError, match="options of an SFTP mailbox are"):
        FileMailbox(sftp_server.url, options={"pkey": 1}).get(PATH, max_bytes=1)
    with pytest.raises(ParameterError, match="has the form sftp://user@host/folder"):
        FileMailbox("sftp://host").get(PATH, max_bytes=1)


@pytest.mark.parametrize(
    ("problem", "may_pass"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EIO, "Input/output error"), True),
        (OSError(errno.ESTALE, "Stale file handle"), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (socket.gaierror(-3, "Temporary failure in name resolution"), True),
        (paramiko.SSHException("Server connection dropped"), True),
        (EOFError(), True),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (FileNotFoundError(errno.ENOENT, "The specified bucket does not exist"), False),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory"), False),
        (paramiko.AuthenticationException("no"), False),
        (paramiko.SSHException("No authentication methods available"), False),
        (paramiko.SSHException("Server 'x' not found in known_hosts"), False),
        (ValueError("who knows"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_pass_is_told_from_what_is_final(
    problem: Exception, may_pass: bool, box: FileMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(LocalFolder, "read", fail)
    with pytest.raises(MailboxError) as found:
        box.get(PATH, max_bytes=10)
    assert isinstance(found.value, Retryable) == may_pass


def test_a_folder_that_is_not_mounted_may_come_back(tmp_path: Path) -> None:
    with pytest.raises(MailboxUnavailable, match="check that the share is mounted"):
        FileMailbox(str(tmp_path / "share"))
