"""Connections that never become a participant's do not keep participants out."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.half_open import ask, half_open
from benchmarks.local_relay import LocalRelay
from splitmeans.relay import gate as module
from splitmeans.relay.gate import Gate
from splitmeans.relay.limits import ConnectionLimits
from splitmeans.wire.identity import Identity

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
        end = time.monotonic() + SLOW_MACHINE
        while held.n_open() > most and time.monotonic() < end:
            time.sleep(0.1)
        assert held.n_open() <= most
        ask(relay, "alice", keys["alice"], run="held-last", study=STUDY)


class Ends:
    """Connections from made-up addresses to a gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.near: dict[tuple[str, int], socket.socket] = {}
        self.far: dict[tuple[str, int], socket.socket] = {}

    def open(self, host: str, count: int = 1) -> None:
        for _ in range(count):
            address = (host, len(self.near))
            self.near[address], self.far[address] = socket.socketpair()
            self.gate.opened(self.near[address], address)

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
    limits = ConnectionLimits(unsigned=4, unsigned_per_address=2, unsigned_seconds=seconds)
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


def test_signed_and_closed_connections_are_not_counted() -> None:
    async def scene() -> None:
        with ends() as connections:
            connections.open("10.0.0.1", 2)
            connections.gate.signed(("10.0.0.1", 0))
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
            connections.gate.signed(("10.0.0.1", 1))
            while connections.still_open != [1]:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert connections.still_open == [1]

    asyncio.run(scene())
