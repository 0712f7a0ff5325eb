"""Which connections a relay keeps open before they have carried a signed request.

Anyone can open a connection and then say nothing, in TLS, in the head of a request or in a body
that the relay does not want. Such connections are few and short: where one is too many the oldest
is closed, never one that a participant has signed on. They are counted where they are accepted,
because uvicorn learns of a connection only after TLS.
"""

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.requests import Request

from splitmeans.relay.limits import ConnectionLimits

SIGNED = "splitmeans.signed"  # in a request's scope: what to call if it is a participant's
_LOOK_SECONDS = 1.0  # how often connections that are open too long are looked for


def keep_open(request: Request) -> None:
    """Say of a request that a participant has signed it; its connection may stay."""
    request.scope.get(SIGNED, lambda: None)()


class _Waiting(NamedTuple):
    connection: socket.socket
    origin: str
    since: float


class Gate:
    """The connections without a signed request, by the address of their other end, oldest first.

    Proxies are addresses that many clients share, so that only the overall limit is theirs.
    """

    def __init__(self, limits: ConnectionLimits, *, proxies: Sequence[str] = ()) -> None:
        self._limits = limits
        self._proxies = frozenset(proxies)
        self._waiting: dict[Any, _Waiting] = {}
        self._is_looking = False

    def opened(self, connection: socket.socket, address: Any) -> None:
        """Count a new connection; close the oldest one if there are too many."""
        self._forget_closed()
        origin = _origin(address[0])
        own = [key for key, one in self._waiting.items() if one.origin == origin]
        is_shared = address[0] in self._proxies
        if not is_shared and len(own) >= self._limits.unsigned_per_address:
            self._close(own[0])
        elif len(self._waiting) >= self._limits.unsigned:
            self._close(next(iter(self._waiting)))
        self._waiting[address] = _Waiting(connection, origin, time.monotonic())
        self._look_later()

    def signed(self, address: Any) -> None:
        """Keep a connection from now on: it has carried a signed request."""
        self._waiting.pop(address, None)

    def _close(self, address: Any) -> None:
        # The event loop owns the socket: it finds the end of the stream and closes it.
        with contextlib.suppress(OSError):
            self._waiting.pop(address).connection.shutdown(socket.SHUT_RDWR)

    def _forget_closed(self) -> None:
        for address in [key for key, one in self._waiting.items() if one.connection.fileno() < 0]:
            del self._waiting[address]

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._forget_closed()
        latest = time.monotonic() - self._limits.unsigned_seconds
        for address in [key for key, one in self._waiting.items() if one.since <= latest]:
            self._close(address)
        if self._waiting:
            self._look_later()


class GatedListener(socket.socket):
    """A listening socket whose connections pass a gate."""

    gate: Gate

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and count it."""
        connection, address = super().accept()
        self.gate.opened(connection, address)
        return connection, address


def _origin(host: str) -> str:
    """Return what is counted as one address: of IPv6 the network that one customer has."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address), 64), strict=False))
