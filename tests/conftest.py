"""What many suites share: signals as a terminal has them, and an SFTP server on this machine."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519


def pytest_configure() -> None:
    """Let programs that tests start be stopped by Ctrl-C and a hang-up.

    Whoever starts the tests in the background (`&`, nohup) hands both down ignored, and programs
    then rightly go on ignoring them.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


@dataclass(frozen=True, kw_only=True)
class SftpServer:
    url: str
    folder: Path
    options: dict[str, object]


@pytest.fixture(scope="session")
def sftp_server() -> Iterator[SftpServer]:
    """An sshd on a high port of the loopback, as an ordinary user, with keys of its own."""
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    if program is None:
        pytest.skip("sshd is not installed (Debian: apt-get install openssh-server)")
    # sshd as root wants a folder of the system; as nobody it wants nothing.
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        (place / "mail").mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        host_key = write_key(place / "host_key")
        (place / "authorized_keys").write_text(write_key(place / "client_key") + "\n")
        (place / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
        (place / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {place}/authorized_keys\nStrictModes no\nUsePAM yes\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "Subsystem sftp internal-sftp\n"
        )
        if os.geteuid() == 0:
            for file in (place, *place.iterdir()):
                os.chown(file, user.pw_uid, user.pw_gid)
        command = [program, "-D", "-e", "-f", str(place / "config")]
        identity = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, **identity)
        try:
            if not wait_for_port(port, process):
                pytest.skip(f"sshd does not start: {(place / 'log').read_text()[-300:]}")
            yield SftpServer(
                url=f"sftp://{user.pw_name}@127.0.0.1:{port}{place}/mail",
                folder=place / "mail",
                options={
                    "key_filename": str(place / "client_key"),
                    "known_hosts": str(place / "known_hosts"),
                },
            )
        finally:
            process.terminate()
            process.wait(10)


def write_key(file: Path) -> str:
    """Write a private key as OpenSSH does; return the public half as its line of text."""
    key = ed25519.Ed25519PrivateKey.generate()
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
    )
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )


def wait_for_port(port: int, process: "subprocess.Popen[bytes]") -> bool:
    for _ in range(200):
        if process.poll() is not None:
            return False
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False
