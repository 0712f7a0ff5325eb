"""Connections to a relay on which nothing happens, and what requests take meanwhile."""

import contextlib
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.local_relay import LocalRelay, local_relay
from splitmeans.errors import MailboxError
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.open import study_folder
from splitmeans.mailbox.request_signature import EMPTY_HASH, sign_request
from splitmeans.mailbox.retries import Retries
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER, Slot

_STUDY = "5a" * 32
_PARTIES = 3
_TRICKLE_SECONDS = 1.0
_HEAD = b"PUT /v1/messages/x HTTP/1.1\r\nHost: relay\r\nContent-Length: 1000000\r\n\r\n"


SILENT, AFTER_TLS, TRICKLING = KINDS = ("silent", "silent after TLS", "body byte by byte")
SIGNED = "silent after one signed request"  # of a participant, so no stranger can open one


@dataclass(frozen=True, kw_only=True)
class Participant:
    """Who signs the requests of connections that are silent afterwards."""

    name: str
    key: Identity
    study: str = _STUDY

    def request(self) -> bytes:
        """Return a request for the participant's limits, signed now."""
        path = f"{study_folder(self.study)}/limits"
        signed = sign_request(
            "GET",
            path,
            body_hash=EMPTY_HASH,
            participant=self.name,
            signer=self.key,
            time=int(time.time()),
        )
        lines = [f"GET /v1/studies/{path} HTTP/1.1", "Host: relay"]
        lines += [f"{name}: {value}" for name, value in signed.items()]
        return "\r\n".join([*lines, "", ""]).encode()


class HalfOpen:
    """Connections of some kinds, in turn, on which no signed request comes, or only a first one."""

    def __init__(self, relay: LocalRelay, participant: Participant | None) -> None:
        self._participant = participant
        address = urlsplit(relay.url)
        self._address = (address.hostname or "", address.port or 0)
        self._context = ssl.create_default_context(cafile=relay.ca)
        self._sockets: list[socket.socket] = []
        self._trickling: list[socket.socket] = []
        self.all_opened = threading.Event()

    def open(self, kind: str) -> None:
        """Open one more; what the relay closes meanwhile counts as closed."""
        plain = socket.create_connection(self._address, timeout=20)
        self._sockets.append(plain)
        if kind == SILENT:
            return
        with contextlib.suppress(OSError):
            secured = self._context.wrap_socket(plain, server_hostname=self._address[0])
            self._sockets[-1] = secured
            if kind == SIGNED:
                assert self._participant is not None
                secured.sendall(self._participant.request())
                secured.recv(4096)  # the relay has replied: the connection is idle
            if kind == TRICKLING:
                secured.sendall(_HEAD)
                self._trickling.append(secured)

    def trickle(self) -> None:
        """Send one byte of each body."""
        for one in self._trickling:
            with contextlib.suppress(OSError):
                one.sendall(b"x")

    def n_open(self) -> int:
        """Return how many the relay has not closed."""
        return sum(map(_is_open, self._sockets))

    def close(self) -> None:
        """Close all."""
        for one in self._sockets:
            one.close()


def _is_open(connection: socket.socket) -> bool:
    if connection.fileno() < 0:  # TLS never came about
        return False
    connection.settimeout(0)
    try:
        while connection.recv(4096):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        pass
    return False


@contextmanager
def half_open(
    relay: LocalRelay,
    count: int,
    kinds: Sequence[str] = KINDS,
    *,
    participant: Participant | None = None,
) -> Iterator[HalfOpen]:
    """Open connections to a relay and keep them, in a thread of its own.

    `participant` is whose those of the kind `SIGNED` are.
    """
    held, stop = HalfOpen(relay, participant), threading.Event()

    def keep() -> None:
        for number in range(count):
            if stop.is_set():
                return
            held.open(kinds[number % len(kinds)])
        held.all_opened.set()
        while not stop.wait(_TRICKLE_SECONDS):
            held.trickle()

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield held
    finally:
        stop.set()
        thread.join()
        held.close()


def run_half_open(
    count: int = 700, requests: int = 300, kinds: Sequence[str] = KINDS
) -> dict[str, float]:
    """Measure requests of participants, each on a new connection, beside half-open connections.

    Args:
        count: Half-open connections.
        requests: Requests of all participants together.
        kinds: Kinds of half-open connections; those of the kind `SIGNED` are another participant's.

    Returns:
        Median and 99th percentile of a request's seconds, how many failed, and how many of the
        half-open connections were open at the end.
    """
    keys = {name: Identity.new() for name in (*(f"party-{n}" for n in range(_PARTIES)), SERVER)}
    rosters = {_STUDY: {name: key.public for name, key in keys.items()}}
    seconds: list[float] = []
    failures = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        local_relay(rosters, Path(folder)) as relay,
        half_open(
            relay, count, kinds, participant=Participant(name=SERVER, key=keys[SERVER])
        ) as held,
    ):
        held.all_opened.wait()
        for number in range(requests):
            name = f"party-{number % _PARTIES}"
            began = time.perf_counter()
            try:
                ask(relay, name, keys[name], run=str(number))
            except MailboxError:
                failures += 1
            seconds.append(time.perf_counter() - began)
        still_open = held.n_open()
    return {
        "half_open": count,
        "requests": requests,
        "median_seconds": float(np.median(seconds)),
        "p99_seconds": float(np.percentile(seconds, 99)),
        "failures": failures,
        "still_open": still_open,
    }


def ask(
    relay: LocalRelay,
    name: str,
    key: Identity,
    *,
    run: str,
    study: str = _STUDY,
    retries: Retries | None = None,
) -> None:
    """Store a small message on a connection of its own."""
    slot = Slot(study_hash=study, run=run, sender=name, receiver=SERVER, kind="PartyRelease")
    box = HttpMailbox(relay.url, participant=name, signer=key, ca=relay.ca, retries=retries)
    try:
        box.put(slot.path, b"message")
    finally:
        box.close()
