"""One set of organisations, made by real commands and copied for every test, and a relay."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.local_relay import write_certificate
from tests.e2e.world import Command, World, agree


class Relay(NamedTuple):
    """A running relay: its folder, the options with which it is reached, and its process."""

    folder: Path
    options: tuple[str, ...]
    command: Command


@pytest.fixture(scope="session")
def agreed_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Everyone has keys and data and has approved the study; nothing has been run."""
    world = World(folder=tmp_path_factory.mktemp("agreed"))
    try:
        agree(world)
    finally:
        world.end()
    return world


@pytest.fixture
def world(agreed_world: World, tmp_path: Path) -> Iterator[World]:
    world = agreed_world.copy(tmp_path / "world")
    yield world
    world.end()


@pytest.fixture
def folder_mailbox(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "shared").mkdir()
    return "--mailbox", str(tmp_path / "shared")


@pytest.fixture
def relay(world: World) -> Iterator[Relay]:
    with serve_relay(world) as running:
        yield running


@contextmanager
def serve_relay(world: World, *options: str, port: int = 0) -> Iterator[Relay]:
    """A relay with TLS, run by somebody who has the study file and nothing else."""
    folder = world.folder / "operator"
    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    if not folder.exists():
        folder.mkdir()
        (folder / "study.toml").write_bytes((world.folder / "bank" / "study.toml").read_bytes())
        write_certificate(ca=ca, cert=cert, key=key)
    place = ("--study", "study.toml", "--folder", "messages", "--port", str(port))
    tls = ("--tls-cert", cert.name, "--tls-key", key.name)
    command = world.start("operator", "relay", "serve", *place, *tls, *options)
    try:
        url = command.until("relay at https://").split("relay at ")[1].split()[0]
        yield Relay(folder, ("--mailbox", url, "--ca", str(ca)), command)
    finally:
        ended = command.stop()
    assert ended.code == 0, ended.err
