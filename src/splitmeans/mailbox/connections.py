"""Requests to a relay over HTTPS, with what Python brings along: one answer for each request.

A library for HTTP takes longer to load than a run takes to make its requests. What is here is what
a relay's client needs: connections that are used again, answers that are read piece by piece, and
proxies that let a connection through.
"""

import base64
import contextlib
import http.client
import select
import ssl
from collections.abc import Iterator, Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from splitmeans.errors import ParameterError


class LineError(Exception):
    """A request had no answer, or half of one."""


class NoConnection(LineError):
    """Nobody was reached."""


class NoConnectionInTime(NoConnection):
    """Nobody was reached before the time was over."""


class NoAnswerInTime(LineError):
    """Who was reached does not answer."""


class ConnectionBroke(LineError):
    """The connection ended before the answer did."""


class Answer(Protocol):
    """An answer whose body was not read yet."""

    @property
    def status(self) -> int:
        """HTTP's number of it."""
        ...

    def header(self, name: str) -> str:
        """Return a header, or an empty text."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raises `LineError`."""
        ...

    def close(self) -> None:
        """Read no more; called once for every answer."""
        ...


class Transport(Protocol):
    """How requests travel."""

    def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None
    ) -> Answer:
        """Send a request and return the answer to it, whatever it says; raises `LineError`."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class Connections:
    """Connections to one relay, each used by one request at a time and kept for the next.

    Args:
        url: The relay's.
        trusted: Whose certificates are believed.
        timeout: Seconds to wait for a connection and for each part of an answer.
        use_proxy: Go through the proxy that the environment names.
    """

    def __init__(
        self, url: str, *, trusted: ssl.SSLContext, timeout: float, use_proxy: bool
    ) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._trusted = trusted
        self._timeout = timeout
        self._proxy = _proxy_for(self._host) if use_proxy and self._is_secure else None
        self._idle: list[http.client.HTTPConnection] = []

    def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None
    ) -> "Reply":
        """Send a request; see `Transport`."""
        connection = self._connection()
        try:
            response = _exchange(connection, method, _target(url), headers, data)
        except TimeoutError as problem:
            connection.close()
            raise NoAnswerInTime(str(problem)) from problem
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            raise ConnectionBroke(str(problem)) from problem
        except BaseException:
            connection.close()
            raise
        return Reply(connection, response, idle=self._idle)

    def close(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self) -> http.client.HTTPConnection:
        while self._idle:
            kept = self._idle.pop()
            if not _is_over(kept):
                return kept
            kept.close()
        made = self._new_connection()
        try:
            made.connect()
        except TimeoutError as problem:
            made.close()
            raise NoConnectionInTime(str(problem)) from problem
        except (OSError, http.client.HTTPException) as problem:
            made.close()
            raise NoConnection(str(problem)) from problem
        return made

    def _new_connection(self) -> http.client.HTTPConnection:
        if not self._is_secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        host, port = (self._host, self._port) if self._proxy is None else self._proxy[:2]
        made = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._trusted)
        if self._proxy is not None:
            made.set_tunnel(self._host, self._port or 443, headers=self._proxy[2])
        return made


class Reply:
    """An answer on a connection, which is free for the next request once all of it was read."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        *,
        idle: list[http.client.HTTPConnection],
    ) -> None:
        self._connection = connection
        self._response = response
        self._idle = idle

    @property
    def status(self) -> int:
        """HTTP's number of it."""
        return self._response.status

    def header(self, name: str) -> str:
        """Return a header, or an empty text."""
        return self._response.headers.get(name, "")

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        response, is_empty = self._response, True
        try:
            # What has arrived is taken at once; waiting for more of it has no end where somebody
            # sends a byte a minute.
            while response.length != 0 and (piece := response.read(len(response.peek()) or 1)):
                is_empty = False
                yield piece
        except TimeoutError as problem:
            raise NoAnswerInTime(str(problem)) from problem
        except (OSError, http.client.HTTPException) as problem:
            raise ConnectionBroke(str(problem)) from problem
        # An answer of no length that says nothing may have been cut among its headers.
        if response.length or (is_empty and response.length is None and not response.chunked):
            raise ConnectionBroke("the answer ends before its length")

    def close(self) -> None:
        """Read no more; keep the connection if nothing is left to read."""
        is_read = self._response.length == 0 or self._response.isclosed()
        if is_read and not self._response.will_close:
            self._response.close()
            self._idle.append(self._connection)
        else:
            self._connection.close()


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    data: bytes | None,
) -> http.client.HTTPResponse:
    # Who refuses a message may answer before all of it was sent, and then listen no more.
    with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
        connection.request(method, target, body=data, headers=dict(headers))
    return connection.getresponse()


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether a connection without a request has something to say: that it was closed."""
    if connection.sock is None:
        return True
    readable, _, _ = select.select([connection.sock], [], [], 0)
    return bool(readable)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return parts.path or "/"


def _proxy_for(host: str) -> tuple[str, int, dict[str, str]] | None:
    """Return address and headers of the proxy to a host, if the environment names one."""
    from urllib.request import getproxies, proxy_bypass

    named = getproxies()
    proxy = named.get("https") or named.get("all")
    if not proxy or proxy_bypass(host):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise ParameterError(
            "--use-proxy takes a proxy of the form http://host:port, and HTTPS_PROXY names "
            f"{parts.scheme}://{parts.hostname or ''}"
        )
    headers = {}
    if parts.username is not None:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(known).decode()}"
    return parts.hostname, parts.port or 80, headers
