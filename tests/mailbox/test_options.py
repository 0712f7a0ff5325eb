"""What the commands' options for a mailbox do: proxies of a relay, keys and hosts of SFTP."""

import contextlib
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives import serialization

from splitmeans.cli.run_options import SSH_PASSWORD, open_chosen
from splitmeans.errors import MailboxError, ParameterError
from splitmeans.mailbox.open import Mailbox
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot

from .conftest import STUDY, LocalRelay
from .sftp_scene import serve_sftp

WORD = b"hunter2"


def chosen(url: str, keys: dict[str, Identity], **options: Any) -> Mailbox:
    settings: dict[str, Any] = {"ca": None, "use_proxy": False, "ssh_key": None}
    settings |= {"known_hosts": None, "patience": 0.0} | options
    return open_chosen(url, participant="alice", identity=keys["alice"], **settings)


def own_path() -> str:
    run = secrets.token_hex(8)
    return Slot(
        study_hash=STUDY, run=run, sender="alice", receiver="server", kind="PartyRelease"
    ).path


class Proxy:
    """A proxy that tunnels, and remembers where to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                threading.Thread(target=self._tunnel, args=(inside,), daemon=True).start()

    def _tunnel(self, inside: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += inside.recv(4096)
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        self.asked.append(f"{method} {target}")
        host, _, port = target.rpartition(":")
        with inside, socket.create_connection((host, int(port))) as outside:
            inside.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_pump, args=(outside, inside), daemon=True)
            back.start()
            _pump(inside, outside)
            back.join(20)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with contextlib.closing(Proxy()) as running:
        for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, running.url)
        yield running


@pytest.mark.parametrize("use_proxy", [False, True])
def test_a_relay_is_reached_through_a_proxy_only_when_asked(
    relay: LocalRelay, keys: dict[str, Identity], proxy: Proxy, use_proxy: bool
) -> None:
    path = own_path()
    with contextlib.closing(chosen(relay.url, keys, ca=relay.ca, use_proxy=use_proxy)) as box:
        box.put(path, b"sealed")
        assert box.get(path, max_bytes=6) == b"sealed"
    tunnel = "CONNECT " + relay.url.removeprefix("https://")
    assert set(proxy.asked) == ({tunnel} if use_proxy else set())


def test_no_proxy_for_hosts_that_the_environment_excepts(
    relay: LocalRelay, keys: dict[str, Identity], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with contextlib.closing(chosen(relay.url, keys, ca=relay.ca, use_proxy=True)) as box:
        assert box.get(own_path(), max_bytes=6) is None
    assert proxy.asked == []


def write_key(file: Path, key: paramiko.PKey, password: bytes | None) -> None:
    lock = serialization.BestAvailableEncryption(password) if password else None
    text = key.signing_key.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        lock or serialization.NoEncryption(),
    )
    file.write_bytes(text)


@pytest.mark.parametrize("password", [None, WORD], ids=["bare", "with a password"])
def test_sftp_with_a_key_file(
    tmp_path: Path,
    keys: dict[str, Identity],
    password: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server lets in the first key that it is shown, so no other one may be tried before."""
    key, other = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    (tmp_path / ".ssh").mkdir()
    write_key(tmp_path / ".ssh" / "id_ecdsa", other, None)
    monkeypatch.setenv("HOME", str(tmp_path))
    write_key(tmp_path / "own_key", key, password)
    if password:
        monkeypatch.setenv(SSH_PASSWORD, password.decode())
    (tmp_path / "mail").mkdir()
    hosts, path = tmp_path / "hosts", own_path()
    with serve_sftp(hosts, key=key) as port:
        url = f"sftp://alice@127.0.0.1:{port}{tmp_path}/mail"
        files = {"ssh_key": Path("~/own_key"), "known_hosts": Path("~/hosts")}
        with contextlib.closing(chosen(url, keys, **files)) as box:
            box.put(path, b"sealed")
            assert box.get(path, max_bytes=6) == b"sealed"
        assert (tmp_path / "mail" / path).read_bytes() == b"sealed"
        for wrong in ({"ssh_key": None}, {"ssh_key": tmp_path / ".ssh" / "id_ecdsa"}):
            with (
                contextlib.closing(chosen(url, keys, **(files | wrong))) as box,
                pytest.raises(MailboxError) as found,
            ):
                box.get(path, max_bytes=6)
            assert WORD.decode() not in str(found.value)


def test_sftp_by_a_password_of_the_environment(
    tmp_path: Path, keys: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(SSH_PASSWORD, WORD.decode())
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "mail").mkdir()
    path = own_path()
    with serve_sftp(tmp_path / "hosts") as port:
        url = f"sftp://alice@127.0.0.1:{port}{tmp_path}/mail"
        with contextlib.closing(chosen(url, keys, known_hosts=tmp_path / "hosts")) as box:
            box.put(path, b"sealed")
        monkeypatch.delenv(SSH_PASSWORD)
        with (
            contextlib.closing(chosen(url, keys, known_hosts=tmp_path / "hosts")) as box,
            pytest.raises(MailboxError),
        ):
            box.get(path, max_bytes=6)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("shared", {"use_proxy": True}, "--use-proxy is for relays"),
        ("sftp://u:hunter2@host/mail", {"use_proxy": True}, "--use-proxy is for relays"),
        ("shared", {"ssh_key": Path("key")}, "--ssh-key and --known-hosts are for mailboxes of"),
        ("https://relay.example", {"known_hosts": Path("hosts")}, "--ssh-key and --known-hosts"),
    ],
)
def test_options_of_another_kind_of_mailbox(
    keys: dict[str, Identity], url: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words) as found:
        chosen(url, keys, **options)
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize("option", ["ssh_key", "known_hosts"])
def test_a_file_that_is_not_there(tmp_path: Path, keys: dict[str, Identity], option: str) -> None:
    absent = tmp_path / "absent"
    with (
        contextlib.closing(
            chosen("sftp://alice@127.0.0.1:1/mail", keys, **{option: absent})
        ) as box,
        pytest.raises(ParameterError, match="absent: no such file"),
    ):
        box.get(own_path(), max_bytes=6)
