"""The relay as it runs: a process of its own, over TLS on the loopback."""

import asyncio
import contextlib
import gc
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from benchmarks.local_relay import LocalRelay, local_relay, write_certificate
from benchmarks.relay_load import run_load
from splitmeans.errors import MailboxError, ParameterError
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.request_signature import sign_request
from splitmeans.mailbox.retries import Retries
from splitmeans.relay import serve as relay_serve
from splitmeans.relay.gate import Gate
from splitmeans.relay.limits import ConnectionLimits, RelayLimits
from splitmeans.relay.serve import serve
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot

STUDY = "c0ffee" + "0" * 58


def slot_path(run: str, *, sender: str = "server", receiver: str = "bob") -> str:
    slot = Slot(study_hash=STUDY, run=run, sender=sender, receiver=receiver, kind="PublishedResult")
    return slot.path


def box_of(relay: LocalRelay, name: str, key: Identity) -> HttpMailbox:
    return HttpMailbox(
        relay.url, participant=name, signer=key, ca=relay.ca, retries=Retries(sleep=lambda _: None)
    )


@contextlib.contextmanager
def connected(relay: LocalRelay) -> Iterator[ssl.SSLSocket]:
    """A TLS connection for bytes that no HTTP library would send."""
    address = urlsplit(relay.url)
    context = ssl.create_default_context(cafile=relay.ca)
    with (
        socket.create_connection(("127.0.0.1", address.port or 0), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        yield secured


def answer_to(connection: ssl.SSLSocket) -> bytes:
    """Read until the relay closes the connection, or the answer's body is complete."""
    answer = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_an_unknown_authority_is_refused(
    relay: LocalRelay, keys: dict[str, Identity], tmp_path: Path
) -> None:
    write_certificate(ca=tmp_path / "ca.pem", cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    for ca in (tmp_path / "ca.pem", None):
        other = replace(relay, ca=ca)  # type: ignore[arg-type]
        with pytest.raises(MailboxError, match=r"certificate is not trusted .* with --ca"):
            box_of(other, "bob", keys["bob"]).get(slot_path("a"), max_bytes=1)


def test_another_host_name_is_refused(relay: LocalRelay, keys: dict[str, Identity]) -> None:
    other = replace(relay, url=relay.url.replace("127.0.0.1", "127.0.0.2"))
    context = ssl.create_default_context(cafile=relay.ca)
    port = urlsplit(relay.url).port or 0
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        pytest.raises(ssl.SSLCertVerificationError, match=r"127\.0\.0\.2"),
    ):
        context.wrap_socket(plain, server_hostname=urlsplit(other.url).hostname)


def test_a_key_that_is_not_in_the_study(relay: LocalRelay) -> None:
    box = box_of(relay, "server", Identity.new())
    with pytest.raises(MailboxError, match="403: this participant's key is not in the study"):
        box.put(slot_path("b"), b"x" * 300_000)
    box.close()


def test_a_wrong_clock_is_told(relay: LocalRelay, keys: dict[str, Identity]) -> None:
    box = HttpMailbox(
        relay.url, participant="bob", signer=keys["bob"], ca=relay.ca, clock=lambda: 1e9
    )
    with pytest.raises(MailboxError, match=r"2001-09-09 01:46:40 UTC, the relay's .* set this"):
        box.get(slot_path("c"), max_bytes=1)
    box.close()


def test_other_bytes_are_refused(relay: LocalRelay, keys: dict[str, Identity]) -> None:
    box = box_of(relay, "server", keys["server"])
    box.put(slot_path("d"), b"first")
    with pytest.raises(MailboxError, match="holds another message of this participant"):
        box.put(slot_path("d"), b"other")
    box.close()


def test_only_tls_is_spoken_and_little_is_told(relay: LocalRelay) -> None:
    plain = relay.url.replace("https", "http")
    with pytest.raises(httpx.TransportError, match=r"disconnected|reset|closed"):
        httpx.get(plain + "/health", trust_env=False)
    with httpx.Client(
        verify=ssl.create_default_context(cafile=relay.ca), trust_env=False
    ) as client:
        health = client.get(relay.url + "/health")
        assert health.json()["status"] == "ok"
        assert "server" not in health.headers
        assert "Running for<dd>" in client.get(relay.url + "/").text


@pytest.mark.parametrize(
    "target",
    [
        "/v1/messages/../../../../etc/passwd",
        "/v1/messages/%2e%2e/%2e%2e/etc/passwd",
        "/v1/messages/..%2f..%2fetc/passwd",
        "/v1/messages//etc/passwd",
        "/v1/messages/%00",
    ],
)
def test_raw_paths_reach_nothing(relay: LocalRelay, target: str) -> None:
    with connected(relay) as connection:
        request = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = answer_to(connection)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"root:" not in answer


def test_long_headers_are_refused(relay: LocalRelay) -> None:
    with connected(relay) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)
        answer = answer_to(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


def test_a_stranger_is_answered_before_the_body(relay: LocalRelay) -> None:
    head = (
        f"PUT /v1/messages/{slot_path('e')} HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n"
    )
    with connected(relay) as connection:
        connection.sendall(head.encode())  # and none of the body
        assert connection.recv(65536).startswith(b"HTTP/1.1 403 ")


@pytest.fixture(scope="module")
def small_relay(
    tmp_path_factory: pytest.TempPathFactory, keys: dict[str, Identity]
) -> Iterator[LocalRelay]:
    """A relay that takes 1 MB and gives up on a silent upload after a moment."""
    limits = RelayLimits(message_bytes=1_000_000, idle_seconds=0.3, requests_per_minute=30)
    roster = {name: key.public for name, key in keys.items()}
    with local_relay({STUDY: roster}, tmp_path_factory.mktemp("small"), limits=limits) as running:
        yield running


def test_the_reason_reaches_who_sends_too_much(
    small_relay: LocalRelay, keys: dict[str, Identity]
) -> None:
    box = box_of(small_relay, "server", keys["server"])
    with pytest.raises(MailboxError, match="413: a message may have 1000000 bytes, this"):
        box.put(slot_path("a"), b"x" * 8_000_000)
    box.put(slot_path("a"), b"x" * 1_000_000)
    box.close()


def test_too_much_without_a_length(small_relay: LocalRelay, keys: dict[str, Identity]) -> None:
    path = slot_path("b")
    headers = signed("PUT", path, keys)
    head = f"PUT /v1/messages/{path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{headers}"
    block = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with connected(small_relay) as connection:
        connection.sendall(head.encode() + b"\r\n")
        for _ in range(17):  # 17 x 65536 bytes, and no end
            connection.sendall(block)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_silent_upload_ends(small_relay: LocalRelay, keys: dict[str, Identity]) -> None:
    path = slot_path("c")
    headers = signed("PUT", path, keys)
    head = f"PUT /v1/messages/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n{headers}\r\n"
    with connected(small_relay) as connection:
        connection.sendall(head.encode() + b"x" * 10)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")


def test_too_many_requests(small_relay: LocalRelay, keys: dict[str, Identity]) -> None:
    waits: list[float] = []

    def give_up(seconds: float) -> None:
        waits.append(seconds)
        raise InterruptedError

    box = HttpMailbox(
        small_relay.url,
        participant="bob",
        signer=keys["bob"],
        ca=small_relay.ca,
        retries=Retries(sleep=give_up),
    )
    with contextlib.suppress(InterruptedError):  # 30 at once, then one more every two seconds
        for _ in range(200):
            box.get(slot_path("z"), max_bytes=1)
    assert 1 <= waits[0] <= 2
    box.close()


def signed(method: str, path: str, keys: dict[str, Identity]) -> str:
    headers = sign_request(
        method,
        path,
        body_hash="0" * 64,
        participant="server",
        signer=keys["server"],
        time=int(time.time()),
    )
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


# The HTTP library forgets a socket whose handshake the kill cut off.
@pytest.mark.filterwarnings(
    "ignore:unclosed <ssl:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_killed_during_uploads_no_part_is_seen(tmp_path: Path, keys: dict[str, Identity]) -> None:
    roster = {name: key.public for name, key in keys.items()}
    runs = [f"run-{number}" for number in range(8)]
    bodies = {run: bytes([number]) * 3_000_000 for number, run in enumerate(runs)}
    one_is_stored = threading.Event()
    with local_relay({STUDY: roster}, tmp_path) as relay:

        def upload(run: str) -> None:
            box = box_of(relay, "server", keys["server"])
            with contextlib.suppress(MailboxError):
                box.put(slot_path(run), bodies[run])
                one_is_stored.set()
            box.close()

        senders = [threading.Thread(target=upload, args=(run,)) for run in runs]
        for sender in senders:
            sender.start()
        assert one_is_stored.wait(30)
        relay.process.kill()
        for sender in senders:
            sender.join()
        gc.collect()  # while the warning is expected
        assert relay.process.wait(10) == -signal.SIGKILL
    n_found = 0
    for run in runs:
        file = tmp_path / "messages" / "messages" / slot_path(run)
        if file.exists():
            n_found += 1
            assert file.read_bytes() == bodies[run]
    assert n_found >= 1
    with local_relay({STUDY: roster}, tmp_path) as relay:
        sender_box, receiver_box = (box_of(relay, name, keys[name]) for name in ("server", "bob"))
        for run in runs:  # what was lost is sent again, what was kept is confirmed
            sender_box.put(slot_path(run), bodies[run])
            assert receiver_box.get(slot_path(run), max_bytes=3_000_000) == bodies[run]
        sender_box.close()
        receiver_box.close()
        assert list((tmp_path / "messages" / "incoming").iterdir()) == []
        relay.process.send_signal(signal.SIGTERM)
        assert relay.process.wait(20) == 0


def test_serve_wants_tls(tmp_path: Path) -> None:
    app = Starlette()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    with pytest.raises(ParameterError, match="needs a TLS certificate: give --tls-cert"):
        serve(app, host="127.0.0.1", port=0)
    with pytest.raises(ParameterError, match="are needed together"):
        serve(app, host="127.0.0.1", port=0, cert=cert)
    with pytest.raises(ParameterError, match=r"cert\.pem: no such file"):
        serve(app, host="127.0.0.1", port=0, cert=cert, key=key)
    with pytest.raises(ParameterError, match="--insecure does not go with"):
        serve(app, host="127.0.0.1", port=0, cert=cert, key=key, insecure=True)
    cert.write_text("nothing")
    key.write_text("nothing")
    with pytest.raises(ParameterError, match="not a certificate and its private key in PEM form"):
        serve(app, host="127.0.0.1", port=0, cert=cert, key=key)


def test_serve_names_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MailboxError, match=f"cannot listen on 127.0.0.1, port {port}"):
            serve(Starlette(), host="127.0.0.1", port=port, insecure=True)


@pytest.mark.parametrize(
    ("host", "answer"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_is_loopback(host: str, answer: bool) -> None:
    assert relay_serve.is_loopback(host) is answer


@pytest.mark.parametrize(
    "first", [b"", b"GET / HT", b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_connection_without_a_request_is_closed(
    first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_serve, "_QUIET_SECONDS", 0.05)

    async def scene() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            Starlette(),
            http=partial(relay_serve._WatchedProtocol, gate=Gate(ConnectionLimits())),
            ws="none",
            log_config=None,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(first)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), timeout=20)  # ends when the connection does
        writer.close()
        server.should_exit = True
        await serving

    asyncio.run(scene())


def test_load_in_small() -> None:
    figures = run_load(parties=3, megabytes=0.2)
    assert figures["changed_messages"] == 0
    assert figures["upload_seconds"] > 0
