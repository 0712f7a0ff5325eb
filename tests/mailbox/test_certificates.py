"""Certificates that are out of date: the relay says so when it starts, the client when it asks."""

import contextlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from benchmarks.local_relay import write_certificate
from splitmeans.errors import MailboxError, ParameterError
from splitmeans.mailbox.certificates import check_own
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.retries import Retries
from splitmeans.relay.serve import serve
from splitmeans.wire.identity import Identity
from tests.mailbox.made_up import MadeUp

STUDY = "c0ffee" + "0" * 58
KEY = Identity.new()


def day(number: float) -> str:
    return (datetime.now(UTC) + timedelta(days=number)).strftime("%Y-%m-%d")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key")}


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ((-9, -2), "cert.pem: the certificate expired on {}, and every participant would refuse"),
        ((2, 30), "cert.pem: the certificate is valid from {} on, and it is {today}; check"),
    ],
    ids=["expired", "not yet valid"],
)
def test_a_relay_does_not_start_with_it(
    files: dict[str, Path], days: tuple[float, float], words: str
) -> None:
    write_certificate(**files, days=days)
    date = day(days[1] if days[1] < 0 else days[0])
    with pytest.raises(ParameterError) as found:
        serve(Starlette(), host="127.0.0.1", port=0, cert=files["cert"], key=files["key"])
    assert words.format(date, today=day(0)) in str(found.value)


def test_a_relay_says_that_it_ends_soon(files: dict[str, Path]) -> None:
    now = datetime.now(UTC)
    write_certificate(**files, days=(-1, 13))
    (warning,) = check_own(files["cert"], now=now)
    assert warning.endswith(
        f"cert.pem: the certificate expires on {day(13)}; get a new one and start the relay again "
        "before"
    )
    for name in files.values():
        name.unlink()
    write_certificate(**files, days=(-1, 15), ca_days=(-9, -2))
    assert check_own(files["cert"], now=now) == []
    chain = files["cert"].read_bytes() + files["ca"].read_bytes()
    files["cert"].write_bytes(chain)
    (warning,) = check_own(files["cert"], now=now)
    assert f"the certificate of an authority in it expired on {day(-2)}" in warning


def test_a_file_without_a_certificate(files: dict[str, Path]) -> None:
    files["cert"].write_text("no certificate")
    with pytest.raises(ParameterError, match=r"cert\.pem: no certificate in PEM form"):
        check_own(files["cert"], now=datetime.now(UTC))


@contextlib.contextmanager
def tls_server(files: dict[str, Path]) -> Iterator[str]:
    """Any server that speaks TLS; no relay of ours starts with such a certificate."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["cert"], files["key"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("days", "ca_days", "words"),
    [
        ((-9, -2), (-9, 9), f"the relay's certificate expired on {day(-2)}; tell its operator"),
        ((2, 9), (-9, 9), f"certificate is not yet valid: it is valid from {day(2)} on; tell"),
        ((-9, 9), (-9, -2), f"the authority's certificate in .*ca.pem expired on {day(-2)}; ask"),
    ],
    ids=["expired", "not yet valid", "authority expired"],
)
def test_the_client_says_what_is_wrong(
    files: dict[str, Path], days: tuple[float, float], ca_days: tuple[float, float], words: str
) -> None:
    write_certificate(**files, days=days, ca_days=ca_days)
    with tls_server(files) as url:
        box = HttpMailbox(
            url, participant="alice", signer=KEY, ca=files["ca"], retries=Retries(sleep=_never)
        )
        with pytest.raises(MailboxError, match=words) as found:
            box.limits(STUDY)
        box.close()
    said = str(found.value)
    assert "--ca" not in said
    assert f"if it is not {day(0)} now, set this machine's clock" in said


def test_a_certificate_that_cannot_be_fetched_again() -> None:
    problem = httpx.ConnectError("certificate verify failed")
    problem.__cause__ = ssl.SSLCertVerificationError()
    problem.__cause__.verify_code = 10
    problem.__cause__.verify_message = "certificate has expired"

    def refuse(_: httpx.Request) -> httpx.Response:
        raise problem

    box = HttpMailbox(
        "https://127.0.0.1:9",  # nothing listens on this port
        participant="alice",
        signer=KEY,
        transport=MadeUp(refuse),
        retries=Retries(sleep=_never),
    )
    with pytest.raises(MailboxError, match=r"an authority between .* has expired; tell the relay"):
        box.limits(STUDY)


def _never(_: float) -> None:
    raise AssertionError("a certificate does not change within seconds")
