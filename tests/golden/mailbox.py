"""A golden study over a folder mailbox: homes, journals, keys, seals, signatures.

Identities are the fixed ones of the tests and all draws are seeded. What is sealed differs in every
run, so of messages the lengths are compared, and of the result everything that the server signed
but its date.
"""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans import InsecureSeededNoise, Result, Study, prepare_table
from splitmeans.privacy.noise import SecureNoise
from splitmeans.run import server as server_module
from splitmeans.wire.slot import short_name
from tests.crash.crew import Crew, drop_pauses
from tests.crash.rules import EVERYONE, MAILBOX, SERVER
from tests.golden.published import Parts, pinned_run_key, result_parts
from tests.golden.studies import Case
from tests.scene import KEYS

_SEED = 1


def mailbox_parts(case: Case) -> Parts:
    """Run a study with every participant's own driver and return what is compared."""
    study = _with_keys(case)
    (tables,) = case.runs

    @functools.cache
    def table_of(study: Study, party: str) -> Any:
        return prepare_table(study.party(party), tables[party])

    memory = Path("/dev/shm")  # a home waits for its disk some hundred times
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as name, _seeded_server(), pinned_run_key():
        crew = _SeededCrew(folder=Path(name), study=study, table_of=table_of)
        crew.approve()
        crew.go_on()
        results = [result_parts(Result.read(crew.result_of(who))) for who in EVERYONE]
        lengths = _lengths(crew.folder / MAILBOX)
    for other in results[1:]:
        np.testing.assert_equal(other, results[0])
    return results[0] | {"lengths": lengths, "releases": {}, "labels": {}}


@dataclass(frozen=True, kw_only=True)
class _SeededCrew(Crew):
    """Participants whose draws depend on their name and on what is drawn."""

    def turn(self, who: str, **how: Any) -> bool:
        with _seeded(who):
            return super().turn(who, **how)


@contextlib.contextmanager
def _seeded(who: str) -> Iterator[None]:
    drawn = np.random.default_rng

    def spawn(self: SecureNoise, label: str) -> InsecureSeededNoise:
        return InsecureSeededNoise(_SEED, (who, label))

    def seeded_rng(seed: Any = None) -> np.random.Generator:
        return drawn([_SEED, *who.encode()] if seed is None else seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecureNoise, "spawn", spawn)
        patch.setattr(np.random, "default_rng", seeded_rng)
        yield


@contextlib.contextmanager
def _seeded_server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        drop_pauses(patch)
        patch.setattr(server_module, "draw_key", lambda *_, **__: bytes([_SEED] * 32))
        yield


def _with_keys(case: Case) -> Study:
    parties = [
        party | {"public_key": KEYS[party["name"]].public.to_text()}
        for party in case.settings["parties"]
    ]
    server_key = KEYS[SERVER].public.to_text()
    return Study.from_mapping(case.settings | {"parties": parties, "server_key": server_key})


def _lengths(mailbox: Path) -> dict[str, Any]:
    """Return the bytes of all messages by sender, in the order of their names."""
    files = sorted(path for path in mailbox.rglob("*") if path.is_file())
    return {
        who: np.array(
            [path.stat().st_size for path in files if f".{short_name(who)}." in path.name]
        )
        for who in EVERYONE
    }
