"""A stage on which the participants are stepped one message at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.party import node as party_node
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.signed import Stamp
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.table.prepare import PartyTable
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import kind_of
from splitmeans.wire.slot import SERVER
from tests.scene import make_study, make_tables


class Stage:
    """All participants of a run; each message goes through bytes, and anyone may interfere.

    A participant who refuses a message takes no more; `errors` has what it said.
    """

    def __init__(
        self,
        study: Study,
        *,
        tables: Sequence[PartyTable] | None = None,
        runs: Mapping[str, str] | None = None,
        alter: Callable[[Envelope], Envelope] = lambda envelope: envelope,
        stamp: Stamp = server_node.UNSIGNED,
    ) -> None:
        self.study = study
        self.alter = alter
        self.stamp = stamp
        self.server: Any = server_node.start(study)
        self.states: dict[str, Any] = {}
        self.mail: list[Envelope] = []
        self.sent: list[Envelope] = []
        self.errors: dict[str, str] = {}
        for table in tables or make_tables(study):
            name = table.party
            run = (runs or {}).get(name, "1")
            self.states[name], sent = party_node.join(
                study, table, run=run, noise=self.noise_of(name)
            )
            self._post(sent)

    @staticmethod
    def noise_of(name: str) -> InsecureSeededNoise:
        return InsecureSeededNoise(1).spawn(name)

    def play(self, *, until: type | None = None) -> "Stage":
        """Deliver what can be delivered, or stop when every party is in the state `until`."""
        while True:
            if until and all(type(state) is until for state in self.states.values()):
                return self
            position = self._next(stop_at=until)
            if position is None:
                assert until is None or self.errors, "the parties never came to that state"
                return self
            self._deliver(self.mail.pop(position))

    def message(self, sender: str, receiver: str, kind: type) -> Any:
        """What was sent from one to another, as it arrives."""
        (found,) = (
            envelope.message
            for envelope in self.sent
            if (envelope.sender, envelope.receiver) == (sender, receiver)
            and type(envelope.message) is kind
        )
        return decode(encode(found))

    def kinds_from(self, sender: str, *, to: str) -> list[str]:
        return [
            type(envelope.message).__name__
            for envelope in self.sent
            if (envelope.sender, envelope.receiver) == (sender, to)
        ]

    def _post(self, sent: list[Envelope]) -> None:
        self.sent += sent
        self.mail += sent

    def _next(self, *, stop_at: type | None) -> int | None:
        for position, envelope in enumerate(self.mail):
            name = envelope.receiver
            if name in self.errors or (name != SERVER and type(self.states[name]) is stop_at):
                continue
            expected = (
                server_node.expects(self.server)
                if name == SERVER
                else party_node.expects(self.states[name])
            )
            if (envelope.sender, kind_of(envelope.message)) in expected:
                return position
        return None

    def _deliver(self, envelope: Envelope) -> None:
        altered = self.alter(envelope)
        name = envelope.receiver
        arrived = Envelope(
            sender=altered.sender, receiver=name, message=decode(encode(altered.message))
        )
        options: dict[str, Any] = {
            "noise": self.noise_of(name),
            "rng": np.random.default_rng(1),
        }
        try:
            if name == SERVER:
                self.server, sent = server_node.step(
                    self.server, arrived, stamp=self.stamp, **options
                )
            else:
                self.states[name], sent = party_node.step(self.states[name], arrived, **options)
        except ProtocolError as problem:
            self.errors[name] = str(problem)
            return
        self._post(sent)


@pytest.fixture(scope="session")
def small_study() -> Callable[..., Study]:
    """A small study of a method; "counted" before or as it leaves k' open, for a stage."""

    def of(method: str = "decoy", n_parties: int = 2, **changes: Any) -> Study:
        if not method.startswith("counted"):
            return make_study(method, n_parties, **changes)
        membership = method.removeprefix("counted").strip() or "decoy"
        return make_study(membership, n_parties, **{"n_local_clusters": "auto", **changes})

    return of


@pytest.fixture(scope="session")
def small_tables() -> Callable[..., list[PartyTable]]:
    return make_tables


@pytest.fixture(scope="session")
def stage() -> type[Stage]:
    return Stage
