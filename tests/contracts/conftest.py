"""The keys and the relay of `tests/mailbox`, and an SFTP server that needs no sshd."""

from collections.abc import Iterator

import paramiko
import pytest

from tests.conftest import SftpServer
from tests.mailbox.conftest import keys, relay
from tests.mailbox.sftp_scene import serve_sftp

__all__ = ["keys", "relay"]


@pytest.fixture(scope="session")
def sftp_of_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    place = tmp_path_factory.mktemp("sftp")
    (place / "mail").mkdir()
    known_hosts = place / "known_hosts"
    with serve_sftp(known_hosts, kind=paramiko.SFTPServer) as port:
        yield SftpServer(
            url=f"sftp://alice@127.0.0.1:{port}{place}/mail",
            folder=place / "mail",
            options={"known_hosts": str(known_hosts), "password": "any"},
        )
