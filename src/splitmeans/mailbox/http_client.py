"""The HTTPS client for a relay: certificates, proxies, bodies in parts and limits of answers."""

import contextlib
import ssl
import time
from collections.abc import Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from splitmeans._version import __version__
from splitmeans.errors import MailboxError, MailboxUnavailable, MessageRefused, ParameterError
from splitmeans.mailbox.open import public_url
from splitmeans.mailbox.retries import TRANSFER_SECONDS

_SENT_AT_ONCE = 2**16  # bytes
_HEADERS = {
    "user-agent": f"splitmeans/{__version__}",
    "accept-encoding": "identity",  # sealed bytes do not shrink
}


def check_url(url: str) -> None:
    """Raise ParameterError for a URL that cannot be a relay's."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password or parts.query or parts.fragment:
        raise ParameterError(
            f"{public_url(url)}: the URL of a relay has the form https://host:port, without user "
            "name, password and query"
        )
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not is_here:
        raise ParameterError(f"{public_url(url)}: a relay on another machine needs https://")


def _trusted(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as problem:
        raise ParameterError(f"{ca}: no certificates in PEM form ({problem})") from problem


def new_client(
    *,
    ca: Path | None,
    timeout: float,
    use_proxy: bool,
    transport: httpx.BaseTransport | None,
) -> httpx.Client:
    """Return a client that keeps connections, stores no cookies and follows no redirects.

    Args:
        ca: File with the authority's certificates, PEM, that are trusted instead of the system's.
        timeout: Seconds to wait for a connection and for each part of a request or an answer.
        use_proxy: Go through the proxy that the environment names; nothing else is read from it.
        transport: How requests travel; for tests.
    """
    trusted = _trusted(ca)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    try:
        return httpx.Client(
            headers=_HEADERS,
            cookies=no_cookies,
            verify=trusted,
            timeout=timeout,
            trust_env=use_proxy,
            limits=httpx.Limits(keepalive_expiry=None),
            transport=transport,
        )
    except (ImportError, ValueError):  # a scheme without a driver, or an unknown one
        raise ParameterError(
            "--use-proxy takes a proxy of the form http://host:port, and HTTPS_PROXY or ALL_PROXY "
            "has another form"
        ) from None


def parts(data: bytes) -> Iterator[bytes]:
    """Yield a body in parts, so that the timeout is for each and not for all of it."""
    for start in range(0, len(data), _SENT_AT_ONCE):
        yield data[start : start + _SENT_AT_ONCE]


def download(answer: httpx.Response, *, max_bytes: int, shown_url: str) -> bytes:
    """Read the body, and stop as soon as it is longer than allowed."""
    too_large = MessageRefused(f"relay {shown_url} sends more than {max_bytes} bytes")
    length = answer.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise too_large
    if answer.headers.get("content-encoding", "") not in ("", "identity"):
        raise MailboxError(f"relay {shown_url}: a proxy changes messages on their way")
    deadline = time.monotonic() + TRANSFER_SECONDS
    data = bytearray()
    for piece in answer.iter_raw():
        data += piece
        if len(data) > max_bytes:
            raise too_large
        if time.monotonic() > deadline:
            raise MailboxUnavailable(f"relay {shown_url}: a download took too long")
    return bytes(data)


def finish(answer: httpx.Response) -> None:
    """Read the end of an answer without a body, so that its connection is kept."""
    with contextlib.suppress(MailboxError, MessageRefused):
        download(answer, max_bytes=0, shown_url="")
