"""A relay of our own, on this machine only; the SFTP server is in the conftest of all tests."""

from collections.abc import Iterator

import pytest

from benchmarks.local_relay import LocalRelay, local_relay
from splitmeans.wire.identity import Identity

STUDY = "c0ffee" + "0" * 58
KEYS = {name: Identity.new() for name in ("alice", "bob", "server")}


@pytest.fixture(scope="session")
def keys() -> dict[str, Identity]:
    return KEYS


@pytest.fixture(scope="session")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRelay]:
    """A relay for the study `STUDY` with three participants."""
    roster = {name: key.public for name, key in KEYS.items()}
    with local_relay({STUDY: roster}, tmp_path_factory.mktemp("relay")) as running:
        yield running
