"""Connections on which nothing happens, of strangers or participants, keep nobody out."""

import asyncio
import contextlib
import hashlib
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.half_open import SIGNED, HalfOpen, Participant, ask, half_open
from benchmarks.local_relay import LocalRelay, local_relay
from splitmeans.mailbox.request_signature import sign_request
from splitmeans.mailbox.retries import Retries
from splitmeans.relay import gate as module
from splitmeans.relay.gate import Gate
from splitmeans.relay.limits import ConnectionLimits
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER, Slot

STUDY = "c0ffee" + "0" * 58
HALF_OPEN = 330  # of three kinds
SLOW_MACHINE = 60.0  # seconds until the relay must have closed what is too much


def test_half_open_connections_do_not_keep_participants_out(
    relay: LocalRelay, keys: dict[str, Identity]
) -> None:
    """All requests succeed while connections are opened and held, and few of those stay open."""
    most = ConnectionLimits().unsigned_per_address
    with half_open(relay, HALF_OPEN) as held, ThreadPoolExecutor(2) as pool:
        waiting = [
            pool.submit(ask, relay, name, keys[name], run=f"held-{number}", study=STUDY)
            for number in range(10)
            for name in ("alice", "bob")
        ]
        for one in waiting:
            one.result()
        assert held.all_opened.wait(SLOW_MACHINE)
        assert comes_down_to(most, held)
        ask(relay, "alice", keys["alice"], run="held-last", study=STUDY)


def comes_down_to(most: int, held: HalfOpen) -> bool:
    end = time.monotonic() + SLOW_MACHINE
    while held.n_open() > most and time.monotonic() < end:
        time.sleep(0.1)
    return held.n_open() <= most


@contextlib.contextmanager
def small_relay(folder: Path, keys: dict[str, Identity]) -> Iterator[LocalRelay]:
    """Run a relay that has room for sixty connections."""
    rosters = {STUDY: {name: key.public for name, key in keys.items()}}
    connections = ConnectionLimits(total=40, unsigned=20)
    with local_relay(rosters, folder, connections=connections) as running:
        yield running


def test_idle_connections_of_a_participant_do_not_keep_others_out(
    tmp_path: Path, keys: dict[str, Identity]
) -> None:
    """A request of another participant succeeds at once, without a second attempt."""
    alice = Participant(name="alice", key=keys["alice"], study=STUDY)
    with (
        small_relay(tmp_path, keys) as relay,
        half_open(relay, 80, [SIGNED], participant=alice) as held,
    ):
        assert held.all_opened.wait(SLOW_MACHINE)
        for name in ("bob", "alice"):
            ask(relay, name, keys[name], run="1", study=STUDY, retries=Retries(seconds=0))
        assert comes_down_to(ConnectionLimits().signed_per_participant, held)


def test_an_upload_goes_on_beside_idle_connections(
    tmp_path: Path, keys: dict[str, Identity]
) -> None:
    """Its connection is the participant's oldest one."""
    alice = Participant(name="alice", key=keys["alice"], study=STUDY)
    body = b"message" * 1000
    slot = Slot(study_hash=STUDY, run="1", sender="alice", receiver=SERVER, kind="PartyRelease")
    signed = sign_request(
        "PUT",
        slot.path,
        body_hash=hashlib.sha256(body).hexdigest(),
        participant="alice",
        signer=keys["alice"],
        time=int(time.time()),
    )
    with small_relay(tmp_path, keys) as relay:
        url = urlsplit(relay.url)
        context = ssl.create_default_context(cafile=relay.ca)
        upload = http.client.HTTPSConnection(url.netloc, context=context, timeout=SLOW_MACHINE)
        with contextlib.closing(upload):
            upload.putrequest("PUT", f"/v1/messages/{slot.path}")
            for name, value in {**signed, "content-length": str(len(body))}.items():
                upload.putheader(name, value)
            upload.endheaders()
            upload.send(body[:1000])
            with half_open(relay, 60, [SIGNED], participant=alice) as held:
                assert held.all_opened.wait(SLOW_MACHINE)
                upload.send(body[1000:])
                assert upload.getresponse().status == 201


class Ends:
    """Connections from made-up addresses to a gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.near: dict[tuple[str, int], socket.socket] = {}
        self.far: dict[tuple[str, int], socket.socket] = {}
        self.busy: set[int] = set()

    def open(self, host: str, count: int = 1) -> None:
        for _ in range(count):
            address = (host, len(self.near))
            self.near[address], self.far[address] = socket.socketpair()
            self.gate.opened(self.near[address], address)

    def sign(self, caller: str, *numbers: int) -> None:
        """Ask for something on connections, one after another."""
        for number in numbers:
            is_idle = partial(self._is_idle, number)
            self.gate.signed(("10.0.0.1", number), (STUDY, caller), is_idle=is_idle)

    def _is_idle(self, number: int) -> bool:
        return number not in self.busy

    @property
    def still_open(self) -> list[int]:
        return [number for (_, number), one in self.far.items() if self._is_open(one)]

    @staticmethod
    def _is_open(end: socket.socket) -> bool:
        end.setblocking(False)
        try:
            return bool(end.recv(1))
        except BlockingIOError:
            return True

    def close(self) -> None:
        for one in (*self.near.values(), *self.far.values()):
            one.close()


@contextlib.contextmanager
def ends(*, proxies: tuple[str, ...] = (), seconds: float = 100.0) -> Iterator[Ends]:
    limits = ConnectionLimits(
        total=5,
        signed_per_participant=3,
        unsigned=4,
        unsigned_per_address=2,
        unsigned_seconds=seconds,
    )
    made = Ends(Gate(limits, proxies=proxies))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("hosts", "left"),
    [
        (["10.0.0.1"] * 5, [3, 4]),
        (["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1"], [1, 2, 3]),
        ([f"10.0.0.{number}" for number in range(7)], [3, 4, 5, 6]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3"], [1, 2]),
        (["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"], [0, 1, 2]),
        (["::ffff:10.0.0.1", "::ffff:10.0.0.2", "::ffff:10.0.0.3"], [0, 1, 2]),
        (["10.9.9.9"] * 6, [2, 3, 4, 5]),
    ],
    ids=["one address", "its own oldest", "overall", "network", "networks", "mapped", "proxy"],
)
def test_the_oldest_is_closed(hosts: list[str], left: list[int]) -> None:
    async def scene() -> None:
        with ends(proxies=("10.9.9.9",)) as connections:
            for host in hosts:
                connections.open(host)
            assert connections.still_open == left

    asyncio.run(scene())


def test_signed_and_closed_connections_are_not_counted_as_unsigned() -> None:
    async def scene() -> None:
        with ends() as connections:
            connections.open("10.0.0.1", 2)
            connections.sign("alice", 0)
            connections.open("10.0.0.1")
            assert connections.still_open == [0, 1, 2]
            connections.near["10.0.0.1", 1].close()
            connections.open("10.0.0.1")
            assert connections.still_open == [0, 2, 3]
            connections.open("10.0.0.1", 5)
            assert connections.still_open == [0, 7, 8]

    asyncio.run(scene())


def test_without_a_signed_request_a_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)

    async def scene() -> None:
        with ends(seconds=0.02) as connections:
            connections.open("10.0.0.1", 2)
            connections.sign("alice", 1)
            while connections.still_open != [1]:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert connections.still_open == [1]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("signers", "left"),
    [
        ("aaaaa", [2, 3, 4]),
        ("babaaa", [0, 2, 3, 4, 5]),
        ("abcde", [0, 1, 2, 3, 4]),
        ("abcdef", [1, 2, 3, 4, 5]),
        ("abbcde", [0, 2, 3, 4, 5]),
        ("abbcccd", [0, 2, 4, 5, 6]),
    ],
    ids=["its own oldest", "beside another", "as many", "overall", "of who has most", "twice"],
)
def test_an_idle_connection_of_a_participant_is_closed(signers: str, left: list[int]) -> None:
    async def scene() -> None:
        with ends() as connections:
            for number, caller in enumerate(signers):
                connections.open("10.0.0.1")
                connections.sign(caller, number)
            assert connections.still_open == left

    asyncio.run(scene())


def test_the_oldest_is_that_without_a_request_for_longest() -> None:
    async def scene() -> None:
        with ends() as connections:
            for number in range(3):
                connections.open("10.0.0.1")
                connections.sign("alice", number)
            connections.sign("alice", 0)
            connections.open("10.0.0.1")
            connections.sign("alice", 3)
            assert connections.still_open == [0, 2, 3]

    asyncio.run(scene())


def test_a_request_in_progress_is_never_cut_off() -> None:
    """What is too much is closed with the next request, as soon as it is idle."""

    async def scene() -> None:
        with ends() as connections:
            connections.busy = {0, 1, 2, 3, 4, 5, 6}
            for number in range(7):
                connections.open("10.0.0.1")
                connections.sign("alice", number)
            assert connections.still_open == [0, 1, 2, 3, 4, 5, 6]
            connections.busy = {0, 3, 4}
            connections.sign("alice", 6)
            assert connections.still_open == [0, 3, 4]
            connections.sign("alice", 1)  # has been closed
            assert connections.still_open == [0, 3, 4]

    asyncio.run(scene())


def test_closed_connections_are_not_counted_as_a_participants() -> None:
    async def scene() -> None:
        with ends() as connections:
            for number in range(3):
                connections.open("10.0.0.1")
                connections.sign("alice", number)
            connections.near["10.0.0.1", 1].close()
            connections.open("10.0.0.1")
            connections.sign("alice", 3)
            assert connections.still_open == [0, 2, 3]

    asyncio.run(scene())
