"""The SFTP mailbox against a server in this process: what sshd does, and what others lack."""

import contextlib
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from splitmeans.errors import MailboxError, MailboxUnavailable, MessageExists
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.open import MessagePath
from splitmeans.mailbox.retries import Retries
from splitmeans.mailbox.sftp_folder import SftpFolder
from splitmeans.wire.slot import Slot

from .sftp_scene import Files, ReplacingFiles, WithRoom, serve_sftp

STUDY = "ab" * 32
PATH = Slot(study_hash=STUDY, run="1", sender="alice", receiver="bob", kind="Letter").path


@contextlib.contextmanager
def sftp_server(
    place: Path, known_hosts: Path, kind: type, *, files: type[Files] = Files
) -> Iterator[FileMailbox]:
    with serve_sftp(known_hosts, kind=kind, files=files) as port:
        options = {"known_hosts": str(known_hosts), "password": "any"}
        url = f"sftp://alice@127.0.0.1:{port}{place}"
        box = FileMailbox(url, timeout=20, options=options, retries=Retries(seconds=0))
        with contextlib.closing(box):
            yield box


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


def test_a_client_that_goes_away_does_not_end_the_scene_s_server(tmp_path: Path) -> None:
    known_hosts = tmp_path / "known_hosts"
    with serve_sftp(known_hosts) as port:
        socket.create_connection(("127.0.0.1", port)).close()
        with paramiko.SSHClient() as client:
            client.load_host_keys(str(known_hosts))
            client.connect(
                "127.0.0.1", port, "alice", "any", allow_agent=False, look_for_keys=False
            )
            assert client.open_sftp().stat(str(known_hosts)).st_size == known_hosts.stat().st_size


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


def test_a_server_that_replaces_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies of a participant would both succeed there, and release twice."""
    place = tmp_path / "mail"
    place.mkdir()
    files = {"files": ReplacingFiles}
    with sftp_server(place, tmp_path / "known_hosts", WithRoom, **files) as box:
        for _ in range(2):  # a refusal is not forgotten
            with pytest.raises(MailboxError, match="this SFTP server replaces a file"):
                box.limits(STUDY)
            with pytest.raises(MailboxError, match="this SFTP server replaces a file"):
                box.put(PATH, b"sealed")
        assert [file for file in place.rglob("*") if file.is_file()] == []
        # What happens without the try: both copies find the slot empty, and both fill it.
        monkeypatch.setattr(SftpFolder, "_check_exclusive", lambda *_: None)
        box.limits(STUDY)
        folder = box._files
        assert folder is not None
        assert [folder.create(MessagePath.parse(PATH), data) for data in (b"a", b"b")] == [True] * 2
