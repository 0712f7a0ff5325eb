"""Requests on connections to servers that are real, and behave in every way that servers can."""

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
from splitmeans.errors import ParameterError
from splitmeans.mailbox.connections import (
    ConnectionBroke,
    Connections,
    NoAnswerInTime,
    NoConnection,
    NoConnectionInTime,
)

OK = b"HTTP/1.1 200 OK\r\n"


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


@contextlib.contextmanager
def asking(
    serve: Callable[[socket.socket], None], *, timeout: float = 5.0
) -> Iterator[tuple[Wire, Connections]]:
    wire = Wire(serve)
    line = Connections(
        wire.url, trusted=ssl.create_default_context(), timeout=timeout, use_proxy=False
    )
    try:
        yield wire, line
    finally:
        line.close()
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


def body_of(line: Connections, url: str) -> bytes:
    answer = line.ask("GET", f"{url}/page", headers={}, data=None)
    try:
        return b"".join(answer.pieces())
    finally:
        answer.close()


def answering(*answers: bytes) -> Callable[[socket.socket], None]:
    """Give these answers in turn on every connection, then close it."""

    def serve(connection: socket.socket) -> None:
        for answer in answers:
            if request_of(connection):
                connection.sendall(answer)

    return serve


def test_a_connection_is_used_again_for_answers_of_every_kind() -> None:
    answers = (
        OK + b"content-length: 5\r\n\r\nhello",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        OK + b"content-length: 0\r\n\r\n",
    )
    with asking(answering(*answers)) as (wire, line):
        assert [body_of(line, wire.url) for _ in answers] == [b"hello", b"", b"abcde", b""]
        assert wire.n_connections == 1


def test_an_answer_that_was_not_read_is_not_taken_for_the_next() -> None:
    with asking(answering(OK + b"content-length: 5\r\n\r\nhello")) as (wire, line):
        for _ in range(2):
            answer = line.ask("GET", f"{wire.url}/page", headers={}, data=None)
            assert (answer.status, answer.header("Content-Length")) == (200, "5")
            answer.close()
        assert wire.n_connections == 2


def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    with asking(answering(OK + b"content-length: 2\r\n\r\nhi")) as (wire, line):
        for expected in (1, 2):
            assert body_of(line, wire.url) == b"hi"
            time.sleep(0.1)
            assert wire.n_connections == expected


def test_two_requests_at_once_have_two_connections() -> None:
    def serve(connection: socket.socket) -> None:
        while request_of(connection):
            connection.sendall(OK + b"content-length: 1\r\n\r\nx")

    with asking(serve) as (wire, line):
        first, second = (
            line.ask("GET", f"{wire.url}/page", headers={}, data=None) for _ in range(2)
        )
        assert b"".join(first.pieces()) == b"".join(second.pieces()) == b"x"
        first.close()
        second.close()
        body_of(line, wire.url)
        assert wire.n_connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"content-length: 9\r\n\r\nhello",
        OK + b"transfer-encoding: chunked\r\n\r\n9\r\nhello",
        b"",
        b"HTTP/1.1 200",
        b"\x00\x01 no HTTP\r\n\r\n",
    ],
)
def test_half_an_answer_is_none(answer: bytes) -> None:
    with asking(answering(answer)) as (wire, line), pytest.raises(ConnectionBroke):
        body_of(line, wire.url)


def test_who_does_not_answer_is_not_waited_for_long() -> None:
    def silent(connection: socket.socket) -> None:
        request_of(connection)
        connection.recv(1)

    def stops(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(OK + b"content-length: 9\r\n\r\nhello")
        connection.recv(1)

    for serve in (silent, stops):
        with asking(serve, timeout=0.2) as (wire, line), pytest.raises(NoAnswerInTime):
            body_of(line, wire.url)


def test_bytes_are_handed_on_as_they_arrive() -> None:
    """Who sends a byte now and then cannot keep a participant that looks at its clock."""

    def drips(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(OK + b"content-length: 1000\r\n\r\n")
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)

    with asking(drips) as (wire, line):
        answer = line.ask("GET", f"{wire.url}/page", headers={}, data=None)
        pieces = answer.pieces()
        assert max(len(next(pieces)) for _ in range(3)) < 10
        answer.close()


def test_a_refusal_that_comes_before_all_was_sent_is_read() -> None:
    def refuses(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while connection.recv(2**20):
                pass

    with asking(refuses) as (wire, line):
        answer = line.ask("PUT", f"{wire.url}/page", headers={}, data=bytes(2**23))
        assert (answer.status, b"".join(answer.pieces())) == (413, b"no")
        answer.close()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    trusted = ssl.create_default_context()
    with pytest.raises(NoConnection, match="refused"):
        body_of(Connections(url, trusted=trusted, timeout=5.0, use_proxy=False), url)

    def late(*_: object, **__: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", late)
    with asking(answering()) as (wire, line), pytest.raises(NoConnectionInTime):
        body_of(line, wire.url)


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

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
    trusted = ssl.create_default_context(cafile=ca)
    for host, believed, is_fine in (
        ("127.0.0.1", trusted, True),
        ("127.0.0.2", trusted, False),
        ("127.0.0.1", ssl.create_default_context(), False),
    ):
        url = f"https://{host}:{port}"
        line = Connections(url, trusted=believed, timeout=5.0, use_proxy=False)
        if is_fine:
            assert body_of(line, url) == b"/page"
        else:
            with pytest.raises(NoConnection) as found:
                body_of(line, url)
            assert isinstance(found.value.__cause__, ssl.SSLCertVerificationError)
        line.close()


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
    trusted = ssl.create_default_context(cafile=ca)
    line = Connections(url, trusted=trusted, timeout=5.0, use_proxy=True)
    assert body_of(line, url) == b"/page"
    line.close()
    proxy.close()
    (request,) = seen
    assert request.startswith(f"CONNECT localhost:{port} ".encode())
    assert base64.b64encode(b"me:pass word") in request
    assert b"/page" not in request
    monkeypatch.setenv("NO_PROXY", "localhost")
    line = Connections(url, trusted=trusted, timeout=5.0, use_proxy=True)
    assert body_of(line, url) == b"/page"
    line.close()
    assert len(seen) == 1


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Wire(answering(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"))
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    trusted = ssl.create_default_context()
    url = "https://relay.example"
    line = Connections(url, trusted=trusted, timeout=5.0, use_proxy=True)
    with pytest.raises(NoConnection, match="403 Forbidden"):
        body_of(line, url)
    proxy.close()
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:hunter2@proxy.example:1080")
    with pytest.raises(ParameterError, match="http://host:port") as found:
        Connections(url, trusted=trusted, timeout=5.0, use_proxy=True)
    assert "hunter2" not in str(found.value)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
