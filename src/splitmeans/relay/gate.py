"""Which connections a relay keeps open.

Anyone can open a connection and then say nothing, in TLS, in the head of a request or in a body
that the relay does not want. Such connections are few and short: where one is too many the oldest
is closed, never one that a participant has signed on. They are counted where they are accepted,
because uvicorn learns of a connection only after TLS.

A participant may sign on many connections and then say nothing on them. So signed connections are
counted for each participant. Where it has too many, those are closed on which it has signed
nothing for longest, never one whose signed request is in progress.
"""

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request

from splitmeans.relay.limits import ConnectionLimits

SIGNED = "splitmeans.signed"  # in a request's scope: what to call with the participant's key
_LOOK_SECONDS = 1.0  # how often connections that are open too long are looked for


def keep_open(request: Request, caller: tuple[str, str]) -> None:
    """Say of a request that a participant (`Caller.key`) has signed it; its connection may stay."""
    request.scope.get(SIGNED, lambda _: None)(caller)


class _Waiting(NamedTuple):
    connection: socket.socket
    origin: str
    since: float


class _Signed(NamedTuple):
    connection: socket.socket
    caller: tuple[str, str]
    is_idle: Callable[[], bool]


class Gate:
    """The open connections, by the address of their other end.

    Those without a signed request are in the order in which they were opened, the others in that of
    their last signed request. Proxies are addresses that many clients share, so that only the
    overall limit is theirs.
    """

    def __init__(self, limits: ConnectionLimits, *, proxies: Sequence[str] = ()) -> None:
        self._limits = limits
        self._proxies = frozenset(proxies)
        self._waiting: dict[Any, _Waiting] = {}
        self._signed: dict[Any, _Signed] = {}
        self._is_looking = False

    def opened(self, connection: socket.socket, address: Any) -> None:
        """Count a new connection; close the oldest unsigned one if there are too many."""
        self._forget_closed()
        origin = _origin(address[0])
        own = [key for key, one in self._waiting.items() if one.origin == origin]
        is_shared = address[0] in self._proxies
        if not is_shared and len(own) >= self._limits.unsigned_per_address:
            _close(self._waiting.pop(own[0]))
        elif len(self._waiting) >= self._limits.unsigned:
            _close(self._waiting.pop(next(iter(self._waiting))))
        self._waiting[address] = _Waiting(connection, origin, time.monotonic())
        self._look_later()

    def signed(self, address: Any, caller: tuple[str, str], *, is_idle: Callable[[], bool]) -> None:
        """Keep a connection from now on: it carries a participant's signed request.

        `is_idle` tells whether that request has its reply. If there are too many of these
        connections, idle ones are closed.
        """
        self._forget_closed()
        known = self._waiting.pop(address, None) or self._signed.pop(address, None)
        if known is None:  # it is being closed
            return
        self._signed[address] = _Signed(known.connection, caller, is_idle)
        own = [key for key, one in self._signed.items() if one.caller == caller]
        self._close_idle(own, len(own) - self._limits.signed_per_participant)
        if len(self._signed) > self._limits.total:
            # Many participants together, or one organisation in many studies: who holds most loses.
            held = Counter(one.caller for one in self._signed.values())
            everyone = sorted(self._signed, key=lambda key: -held[self._signed[key].caller])
            self._close_idle(everyone, len(everyone) - self._limits.total)

    def _close_idle(self, addresses: Sequence[Any], count: int) -> None:
        if count <= 0:
            return
        idle = [key for key in addresses if self._signed[key].is_idle()]
        for address in idle[:count]:
            _close(self._signed.pop(address))

    def _forget_closed(self) -> None:
        for held in (self._waiting, self._signed):
            for address in [key for key, one in held.items() if one.connection.fileno() < 0]:
                del held[address]

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._forget_closed()
        latest = time.monotonic() - self._limits.unsigned_seconds
        for address in [key for key, one in self._waiting.items() if one.since <= latest]:
            _close(self._waiting.pop(address))
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


def _close(one: _Waiting | _Signed) -> None:
    # The event loop owns the socket: it finds the end of the stream and closes it. It does not wait
    # until the last bytes of a reply are read: who never reads them would keep the connection.
    with contextlib.suppress(OSError):
        one.connection.shutdown(socket.SHUT_RDWR)


def _origin(host: str) -> str:
    """Return what is counted as one address: of IPv6 the network that one customer has."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address), 64), strict=False))
