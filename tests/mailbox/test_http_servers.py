"""The relay's client against servers that are real, and behave in every way that servers can."""

import base64
import contextlib
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.local_relay import write_certificate
from splitmeans.errors import MailboxError, MessageRefused, ParameterError
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.retries import Retries
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot

OK = b"HTTP/1.1 200 OK\r\n"
KEY = Identity.new()
PATH = Slot(study_hash="ab" * 32, run="run-1", sender="alice", receiver="bob", kind="Letter").path


class Wire:
    """A server that hands each connection to a function, and counts them."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.n_connections = 0
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.n_connections += 1
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            self._serve(connection)

    def close(self) -> None:
        self._socket.close()


def box_at(url: str, **settings: object) -> HttpMailbox:
    """A mailbox that asks once."""
    once = Retries(seconds=0)
    return HttpMailbox(url, participant="bob", signer=KEY, retries=once, **settings)  # type: ignore[arg-type]


@contextlib.contextmanager
def asking(
    serve: Callable[[socket.socket], None], *, timeout: float = 5.0
) -> Iterator[tuple[Wire, HttpMailbox]]:
    wire = Wire(serve)
    box = box_at(wire.url, timeout=timeout)
    try:
        yield wire, box
    finally:
        box.close()
        wire.close()


def request_of(connection: socket.socket) -> bytes:
    """Read one request without a body; empty where the client has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    return data


def answering(*answers: bytes) -> Callable[[socket.socket], None]:
    """Give these answers in turn on every connection, then close it."""

    def serve(connection: socket.socket) -> None:
        for answer in answers:
            if request_of(connection):
                connection.sendall(answer)

    return serve


def fetch(box: HttpMailbox) -> bytes | None:
    return box.get(PATH, max_bytes=1000)


def test_a_connection_is_used_again_for_answers_of_every_kind() -> None:
    answers = (
        OK + b"content-length: 5\r\n\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        OK + b"content-length: 0\r\n\r\n",
    )
    with asking(answering(*answers)) as (wire, box):
        assert [fetch(box) for _ in answers] == [b"hello", b"abcde", b""]
        assert wire.n_connections == 1


@pytest.mark.parametrize("status", [b"201 Created\r\ncontent-length: 0", b"204 No Content"])
def test_uploads_use_a_connection_again(status: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        while head := request_of(connection):
            _, _, body = head.partition(b"\r\n\r\n")
            while len(body) < 200_000:
                body += connection.recv(65536)
            assert b"content-length: 200000" in head.lower()
            connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")

    with asking(serve) as (wire, box):
        for _ in range(3):
            box.put(PATH, bytes(200_000))
        assert wire.n_connections == 1


def test_an_answer_that_was_not_read_is_not_taken_for_the_next() -> None:
    with asking(answering(OK + b"content-length: 5000\r\n\r\n" + bytes(5000))) as (wire, box):
        for _ in range(2):
            with pytest.raises(MessageRefused, match="more than 1000 bytes"):
                fetch(box)
        assert wire.n_connections == 2


def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    with asking(answering(OK + b"content-length: 2\r\n\r\nhi")) as (wire, box):
        for expected in (1, 2):
            assert fetch(box) == b"hi"
            time.sleep(0.1)
            assert wire.n_connections == expected


def test_redirects_are_not_followed_and_cookies_not_kept() -> None:
    heads = []

    def serve(connection: socket.socket) -> None:
        while head := request_of(connection):
            heads.append(head.lower())
            connection.sendall(
                b"HTTP/1.1 308 Moved\r\nlocation: /other\r\nset-cookie: a=b\r\n"
                b"content-length: 0\r\n\r\n"
            )

    with asking(serve) as (_, box):
        for _ in range(2):
            with pytest.raises(MailboxError, match="it redirects to another place"):
                fetch(box)
    assert len(heads) == 2
    assert all(f"/v1/messages/{PATH}".encode() in head for head in heads)
    assert all(b"cookie" not in head for head in heads)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"content-length: 9\r\n\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n9\r\nhello",
        OK,
        b"",
        b"HTTP/1.1 200",
        b"\x00\x01 no HTTP\r\n\r\n",
    ],
)
def test_half_an_answer_is_none(answer: bytes) -> None:
    with (
        asking(answering(answer)) as (_, box),
        pytest.raises(MailboxError, match="the connection broke"),
    ):
        fetch(box)


def test_a_server_that_does_not_answer_is_not_waited_for_long() -> None:
    def silent(connection: socket.socket) -> None:
        request_of(connection)
        connection.recv(1)

    def stops(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(OK + b"content-length: 9\r\n\r\nhello")
        connection.recv(1)

    for serve in (silent, stops):
        with (
            asking(serve, timeout=0.2) as (_, box),
            pytest.raises(MailboxError, match="no answer in time"),
        ):
            fetch(box)


def test_a_server_that_sends_a_byte_now_and_then_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def drips(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(OK + b"content-length: 1000\r\n\r\n")
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)

    monkeypatch.setattr("splitmeans.mailbox.http_client.TRANSFER_SECONDS", 0.2)
    with (
        asking(drips) as (_, box),
        pytest.raises(MailboxError, match="a download took too long"),
    ):
        fetch(box)


def test_a_refusal_that_comes_before_all_was_sent_is_read() -> None:
    def refuses(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while connection.recv(2**20):
                pass

    with (
        asking(refuses) as (_, box),
        pytest.raises(MailboxError, match="413: the message is too large for a proxy"),
    ):
        box.put(PATH, bytes(2**23))


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(MailboxError, match=r"no connection \(.*refused\); check address"):
        fetch(box_at(url))

    def late(*_: object, **__: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", late)
    with pytest.raises(MailboxError, match="no connection in time"):
        fetch(box_at(url))


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"sealed")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Port and authority of a server with TLS."""
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key")}
    write_certificate(**files)
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), _Page)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["cert"], files["key"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], files["ca"]
    server.shutdown()
    server.server_close()


def test_certificate_and_name_are_checked(secure: tuple[int, Path]) -> None:
    port, ca = secure
    for host, believed, is_fine in (
        ("127.0.0.1", ca, True),
        ("127.0.0.2", ca, False),
        ("127.0.0.1", None, False),
    ):
        box = box_at(f"https://{host}:{port}", ca=believed)
        if is_fine:
            assert fetch(box) == b"sealed"
        else:
            with pytest.raises(MailboxError, match=r"certificate is not trusted .* --ca"):
                fetch(box)
        box.close()


def test_a_proxy_sees_the_address_alone(
    secure: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, ca = secure
    seen = []

    def tunnel(connection: socket.socket) -> None:
        seen.append(request_of(connection))
        with socket.create_connection(("127.0.0.1", port)) as behind:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(behind, connection), daemon=True)
            back.start()
            _copy(connection, behind)

    proxy = Wire(tunnel)
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("://", "://me:pass%20word@"))
    monkeypatch.setenv("NO_PROXY", "other.example")
    # The name is resolved by the proxy, and the certificate is of that name.
    url = f"https://localhost:{port}"

    def fetch_once(*, use_proxy: bool) -> None:
        box = box_at(url, ca=ca, use_proxy=use_proxy)
        assert fetch(box) == b"sealed"
        box.close()

    fetch_once(use_proxy=True)
    (request,) = seen
    assert request.startswith(f"CONNECT localhost:{port} ".encode())
    assert base64.b64encode(b"me:pass word") in request
    assert b"messages" not in request
    fetch_once(use_proxy=False)
    monkeypatch.setenv("NO_PROXY", "localhost")
    fetch_once(use_proxy=True)
    assert len(seen) == 1
    proxy.close()


def test_certificates_that_the_environment_names_are_not_read(
    secure: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, ca = secure
    other = ca.parent / "other.pem"
    write_certificate(ca=other, cert=ca.parent / "c.pem", key=ca.parent / "k.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))
    box = box_at(f"https://127.0.0.1:{port}", ca=other, use_proxy=True)
    with pytest.raises(MailboxError, match="certificate is not trusted"):
        fetch(box)
    box.close()


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Wire(answering(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"))
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(MailboxError, match=r"no connection \(403 Forbidden\)"):
        fetch(box_at("https://relay.example", use_proxy=True))
    proxy.close()


@pytest.mark.parametrize("scheme", ["socks5", "gopher"])
def test_a_proxy_of_another_kind(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://me:hunter2@proxy.example:1080")
    with pytest.raises(ParameterError, match="http://host:port") as found:
        box_at("https://relay.example", use_proxy=True)
    assert "hunter2" not in str(found.value)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
