"""The SFTP mailbox against a server in this process: what sshd does, and what others lack."""

import contextlib
import os
import shutil
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
from paramiko.sftp import CMD_EXTENDED, CMD_EXTENDED_REPLY

from splitmeans.errors import MailboxError, MailboxUnavailable, MessageExists
from splitmeans.run.file_mailbox import FileMailbox
from splitmeans.run.mailbox import MessagePath
from splitmeans.wire.slot import Slot

STUDY = "ab" * 32
PATH = Slot(study_hash=STUDY, run="1", sender="alice", receiver="bob", kind="Letter").path


class Door(paramiko.ServerInterface):
    def check_channel_request(self, kind: str, _: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "password"


class Handle(paramiko.SFTPHandle):
    def stat(self) -> Any:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))


class Files(paramiko.SFTPServerInterface):
    """The files of this machine, under a umask that lets nobody else in."""

    umask = 0o077

    def _try(self, action: Any) -> Any:
        try:
            return action()
        except OSError as problem:
            return paramiko.SFTPServer.convert_errno(problem.errno)

    def _done(self, action: Any) -> Any:
        return self._try(lambda: (action(), paramiko.SFTP_OK)[1])

    def stat(self, path: str) -> Any:
        return self._try(lambda: paramiko.SFTPAttributes.from_stat(os.stat(path)))

    def lstat(self, path: str) -> Any:
        return self._try(lambda: paramiko.SFTPAttributes.from_stat(os.lstat(path)))

    def mkdir(self, path: str, attr: Any) -> Any:
        return self._done(lambda: os.mkdir(path, 0o777 & ~self.umask))

    def remove(self, path: str) -> Any:
        return self._done(lambda: os.remove(path))

    def rename(self, oldpath: str, newpath: str) -> Any:
        # As OpenSSH does it: a hard link, which fails if the new name is taken.
        def renamed() -> None:
            os.link(oldpath, newpath, follow_symlinks=False)
            os.unlink(oldpath)

        return self._done(renamed)

    def posix_rename(self, oldpath: str, newpath: str) -> Any:
        return self._done(lambda: os.replace(oldpath, newpath))

    def chattr(self, path: str, attr: Any) -> Any:
        return self._done(lambda: paramiko.SFTPServer.set_file_attr(path, attr))

    def open(self, path: str, flags: int, attr: Any) -> Any:
        def opened() -> Handle:
            handle = Handle(flags)
            mode = "rb" if flags & 3 == os.O_RDONLY else "wb"
            file = os.fdopen(os.open(path, flags, 0o666 & ~self.umask), mode)
            handle.readfile = handle.writefile = file
            return handle

        return self._try(opened)


class WithRoom(paramiko.SFTPServer):
    """A server that has OpenSSH's extension, with figures that are easy to know again."""

    def _process(self, kind: int, number: int, message: Any) -> None:
        if kind == CMD_EXTENDED:
            start = message.packet.tell()
            if message.get_text() == "statvfs@openssh.com":
                # Block and fragment size; blocks, free, available; inodes three times; the rest.
                figures = (4096, 512, 1000, 400, 300, 9, 9, 9, 0, 0, 255)
                answer = paramiko.Message()
                answer.add_int(number)
                for figure in figures:
                    answer.add_int64(figure)
                self._send_packet(CMD_EXTENDED_REPLY, answer)
                return
            message.packet.seek(start)
        super()._process(kind, number, message)


@contextlib.contextmanager
def sftp_server(place: Path, known_hosts: Path, kind: type) -> Iterator[FileMailbox]:
    key = paramiko.ECDSAKey.generate()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    known_hosts.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    transports = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                transport = paramiko.Transport(connection)
                transports.append(transport)
                transport.add_server_key(key)
                transport.set_subsystem_handler("sftp", kind, Files)
                transport.start_server(server=Door())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    options = {"known_hosts": str(known_hosts), "password": "any"}
    box = FileMailbox(f"sftp://alice@127.0.0.1:{port}{place}", timeout=20, options=options)
    try:
        yield box
    finally:
        box.close()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)
        for transport in transports:
            transport.close()


@pytest.fixture(params=[WithRoom, paramiko.SFTPServer], ids=["statvfs", "no statvfs"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def box(tmp_path: Path, kind: type) -> Iterator[FileMailbox]:
    (tmp_path / "mail").mkdir()
    with sftp_server(tmp_path / "mail", tmp_path / "known_hosts", kind) as box:
        yield box


def test_room_is_told_where_the_server_can(box: FileMailbox, tmp_path: Path, kind: type) -> None:
    for _ in range(2):  # before the study has a folder, and after
        told = box.limits(STUDY)
        assert told.free_bytes == (512 * 300 if kind is WithRoom else None)
        assert (told.max_message_bytes, told.clock_offset) == (None, None)
        box.put(PATH, b"sealed")
    assert [file.name for file in (tmp_path / "mail").rglob("*") if file.is_file()] == [
        Path(PATH).name
    ]


@pytest.mark.parametrize(("given", "file_mode"), [(0o2770, 0o660), (0o755, 0o644), (0o700, 0o600)])
def test_rights_are_those_of_the_folder(
    box: FileMailbox, tmp_path: Path, given: int, file_mode: int
) -> None:
    (tmp_path / "mail").chmod(given)
    box.put(PATH, b"sealed")
    file = tmp_path / "mail" / PATH
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (file.parent.parent, file.parent)]
    # A server may keep the bit that hands a group down; sshd does not.
    assert [mode & 0o777 for mode in modes] == [given & 0o777] * 2
    assert stat.S_IMODE(file.stat().st_mode) == file_mode
    assert box.get(PATH, max_bytes=10) == b"sealed"


def test_a_folder_that_cannot_be_written_says_so(box: FileMailbox, tmp_path: Path) -> None:
    box.limits(STUDY)
    (tmp_path / "mail" / STUDY[:32]).write_bytes(b"no folder")
    with pytest.raises(MailboxError):
        box.limits(STUDY)


def test_a_folder_that_is_gone_says_so(box: FileMailbox, tmp_path: Path) -> None:
    box.limits(STUDY)
    shutil.rmtree(tmp_path / "mail")
    with pytest.raises(MailboxError, match=r"there is no such folder on the server|No such file"):
        box.limits(STUDY)


def test_a_name_is_given_once(box: FileMailbox, tmp_path: Path) -> None:
    box.put(PATH, b"sealed")
    with pytest.raises(MessageExists):
        box.put(PATH, b"other", is_junk=lambda found: found != b"sealed")
    folder, place = box._files, MessagePath.parse(PATH)
    assert folder is not None
    assert not folder.create(place, b"other")  # as if it had found the slot empty before
    folder.remove_junk(place, lambda found: found != b"sealed", max_bytes=100)
    assert box.get(PATH, max_bytes=10) == b"sealed"
    assert [file.name for file in (tmp_path / "mail" / PATH).parent.iterdir()] == [Path(PATH).name]
    folder.remove_junk(place, lambda found: True, max_bytes=100)
    assert box.get(PATH, max_bytes=10) is None


def test_a_folder_that_went_away_is_not_an_empty_slot(box: FileMailbox, tmp_path: Path) -> None:
    box.put(PATH, b"sealed")
    (tmp_path / "mail").rename(tmp_path / "away")
    with pytest.raises(MailboxUnavailable, match="no longer there"):
        box.get(PATH, max_bytes=10)
