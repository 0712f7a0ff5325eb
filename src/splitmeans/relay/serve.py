"""Running the relay: uvicorn with TLS, bounded connections, and a clean stop on SIGTERM."""

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from splitmeans.errors import MailboxError, MailboxUnavailable, ParameterError
from splitmeans.mailbox.certificates import check_own
from splitmeans.relay.gate import SIGNED, Gate, GatedListener
from splitmeans.relay.limits import ConnectionLimits

_log = logging.getLogger("splitmeans.relay")

_HEADER_BYTES = 16 << 10  # request line and headers; ours have less than 1 kB
_QUIET_SECONDS = 30.0  # a connection without a request in work is closed after one to two of these
_STOP_SECONDS = 15  # transfers in work may take this long when the relay is stopped


def serve(
    app: Starlette,
    *,
    host: str,
    port: int,
    cert: Path | None = None,
    key: Path | None = None,
    insecure: bool = False,
    connections: ConnectionLimits = ConnectionLimits(),  # noqa: B008
    proxies: Sequence[str] = (),
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the relay until SIGTERM or SIGINT; transfers in work are finished first.

    Certificate chain and private key are PEM files; port 0 takes a free one. `insecure` serves
    without TLS: for tests, or behind a proxy that does TLS. Of `proxies` it is believed who asks
    through them, for the log; many clients share such an address, so it has no limit of its own.
    `on_ready` gets the URL once connections are accepted.
    """
    _check_tls(cert, key, insecure=insecure)
    gate = Gate(connections, proxies=proxies)
    config = uvicorn.Config(
        app,
        http=partial(_WatchedProtocol, gate=gate),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,  # the command line sets up logging
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        # uvicorn refuses the request that reaches its limit, not the one after.
        limit_concurrency=connections.total + connections.unsigned + 1,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_STOP_SECONDS,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as problem:
        raise ParameterError(
            f"{cert}, {key}: not a certificate and its private key in PEM form ({problem})"
        ) from problem
    for warning in [] if cert is None else check_own(cert, now=datetime.now(UTC)):
        _log.warning("%s", warning)
    listener = _listen(host, port, gate)
    shown_host = f"[{host}]" if ":" in host else host
    url = f"{'https' if cert else 'http'}://{shown_host}:{listener.getsockname()[1]}"
    if cert is None and not is_loopback(host):
        _log.warning("%s is open to the network without TLS; put a TLS proxy in front", url)
    if on_ready is not None:
        on_ready(url)
    server = uvicorn.Server(config)
    with _signals_end_quietly(server):
        server.run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_tls(cert: Path | None, key: Path | None, *, insecure: bool) -> None:
    if cert is None and key is None:
        if not insecure:
            raise ParameterError(
                "a relay needs a TLS certificate: give --tls-cert and --tls-key, or --insecure "
                "for a test or behind a proxy that does TLS"
            )
        return
    if cert is None or key is None:
        raise ParameterError("--tls-cert and --tls-key are needed together")
    if insecure:
        raise ParameterError("--insecure does not go with --tls-cert and --tls-key")
    for file in (cert, key):
        if not file.is_file():
            raise ParameterError(f"{file}: no such file")


def _listen(host: str, port: int, gate: Gate) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small replies at once instead of after 40 ms (Nagle);
    # `socket.create_server` does not name it.
    listener = GatedListener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.gate = gate
    try:
        if os.name == "posix":  # a restart must not wait for old connections to be forgotten
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        return listener
    except OSError as problem:
        listener.close()
        kind = MailboxUnavailable if problem.errno == errno.EADDRINUSE else MailboxError
        raise kind(
            f"the relay cannot listen on {host}, port {port} ({problem.strerror}); is another "
            "one running?"
        ) from problem


@contextmanager
def _signals_end_quietly(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM end the relay as it should end, and Ctrl-C as it ends every command.

    uvicorn stops on both and then raises them again for the handlers before its own. These also
    stop it: a signal may come before uvicorn handles any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    raised: list[int] = []

    def stop(number: int, _: object) -> None:
        raised.append(number)
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in raised:
        raise KeyboardInterrupt


class _WatchedProtocol(H11Protocol):
    """uvicorn's HTTP connection, closed when it stays without a request in work.

    uvicorn itself waits for ever for the first byte of a request, or for the rest of its headers,
    and goes on reading a body after its reply; with enough such connections anyone could keep the
    participants out.
    """

    _seen: object = None

    def __init__(self, *arguments: Any, gate: Gate, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._gate = gate
        self._whole_app, self.app = self.app, self._with_mark

    async def _with_mark(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the application, which says when a request is a participant's."""
        address, cycle = self.transport.get_extra_info("peername"), self.cycle
        # Of this request alone: later ones without a signature do not keep the connection open.
        signed = partial(self._gate.signed, address, is_idle=lambda: cycle.response_complete)
        await self._whole_app({**scope, SIGNED: signed}, receive, send)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch_later()

    def _watch_later(self) -> None:
        asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._watch)

    def _watch(self) -> None:
        if self.transport.is_closing():
            return
        cycle = self.cycle
        is_quiet = cycle is None or cycle.response_complete
        if is_quiet and (cycle is None or cycle is self._seen):
            self.transport.abort()
            return
        self._seen = cycle
        self._watch_later()
