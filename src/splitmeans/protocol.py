"""The whole protocol on one page, in one process.

    0  agree and key   every party sends a contribution to the run key to every other party, then a
                       confirmation, over a channel that the server cannot read or change
    1  stages          none, or a few: parties that the study names release whole numbers with noise
                       (how many users there are), everyone computes the next plan from the same
                       values (k' follows), and all parties confirm it to each other
    2  local clusters  each party clusters its own columns, privately
    3  memberships     each party encodes which user is in which of its clusters, privately
    4  weights         the server estimates how many users are in each combination of clusters
    5  centres         the server runs k-means on the weighted grid and publishes it

The noise of every release is fixed before the first of them, whatever a stage finds. 2 and 3 are
one message of each party, and with no stage the only one that costs anything.

The same steps (`party.node.step`, `server.node.step`) run between organisations; only the carrying
differs. Messages are bytes on the way here too, so nothing passes that the wire would not carry.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.figures import users
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource, SecureNoise
from splitmeans.result.previous import Previous
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import kind_of
from splitmeans.wire.slot import SERVER
from splitmeans.wire.tags import tag_of


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run produced, seen by a simulation that plays all parts.

    Publishable: the synopsis and clustering in `server`, and `privacy`. Private to the
    server: `server.releases`, from which a party could remove the decoys, and `traffic`, whose
    sizes grow with the number of users.
    """

    server: server_node.Done
    secure_noise: bool
    traffic: Mapping[tuple[str, str], int]
    """Bytes sent, by sender and tag of the message."""

    @functools.cached_property
    def privacy(self) -> PrivacyFacts:
        """What the run released and what it cost; computed when it is first asked for."""
        return PrivacyFacts.of(self.plan, secure_noise=self.secure_noise)

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        return self.server.plan

    def __repr__(self) -> str:
        found = self.server.synopsis
        return (
            f"<RunResult {len(self.server.clustering.sizes)} segments of about "
            f"{users(found.total)} users, {', '.join(found.party_names)}>"
        )

    def bytes_from(self, sender: str) -> int:
        """All bytes that one participant sent."""
        return sum(size for (who, _), size in self.traffic.items() if who == sender)


def run(
    study: Study,
    tables: Sequence[Table],
    *,
    noise: NoiseSource | None = None,
    rng: np.random.Generator | None = None,
    on_message: Callable[[Envelope, int], None] | None = None,
    previous: Previous | None = None,
) -> RunResult:
    """Run every participant of a study in this process and return what the server published.

    Privacy noise comes from the operating system unless a test gives another source; `rng` draws
    starting points and is never used for privacy. `on_message` gets each envelope and its size in
    bytes; `previous` is the result that this run of a series follows.
    """
    number = 1 if previous is None else previous.number + 1
    if number > study.n_runs:
        raise ParameterError(
            f"all {study.n_runs} runs that the budget of study {study.name!r} is for are done; "
            "another needs a new study, with a budget of its own"
        )
    run_name = str(number)
    noise = noise or SecureNoise()
    rng = rng or np.random.default_rng()
    by_name = _tables_by_party(study, tables)
    # Each participant has randomness of its own, as it would on its own machine.
    party_noise = {name: noise.spawn(f"party {name}") for name in study.party_names}
    party_rng = dict(zip(study.party_names, rng.spawn(len(by_name)), strict=True))
    server_noise = noise.spawn("server")

    server = server_node.start(study, run=run_name, previous=previous)
    parties: dict[str, party_states.PartyState] = {}
    mail: list[Envelope] = []
    traffic: dict[tuple[str, str], int] = {}
    for name in study.party_names:
        parties[name], sent = party_node.join(
            study,
            by_name[name],
            run=run_name,
            noise=party_noise[name],
            simulated=True,
            previous=previous,
        )
        mail.extend(sent)

    while (envelope := _next_expected(mail, server, parties)) is not None:
        mail.remove(envelope)
        data = encode(envelope.message)
        record = (envelope.sender, tag_of(type(envelope.message)))
        traffic[record] = traffic.get(record, 0) + len(data)
        if on_message is not None:
            on_message(envelope, len(data))
        arrived = Envelope(sender=envelope.sender, receiver=envelope.receiver, message=decode(data))
        name = envelope.receiver
        if name == SERVER:
            server, sent = server_node.step(server, arrived, noise=server_noise, rng=rng)
        else:
            parties[name], sent = party_node.step(
                parties[name], arrived, noise=party_noise[name], rng=party_rng[name]
            )
        mail.extend(sent)

    if not isinstance(server, server_node.Done):
        raise ProtocolError(f"the run stopped with the server in state {type(server).__name__}")
    return RunResult(server=server, secure_noise=noise.secure, traffic=traffic)


def _next_expected(
    mail: Sequence[Envelope],
    server: server_node.ServerState,
    parties: Mapping[str, party_states.PartyState],
) -> Envelope | None:
    """Return the first message that its receiver can take now; others wait, as in a mailbox."""
    expected = {name: party_node.expects(state) for name, state in parties.items()}
    expected[SERVER] = server_node.expects(server)
    for envelope in mail:
        if (envelope.sender, kind_of(envelope.message)) in expected[envelope.receiver]:
            return envelope
    return None


def _tables_by_party(study: Study, tables: Sequence[Table]) -> dict[str, Table]:
    by_name = {table.party: table for table in tables}
    if len(by_name) != len(tables) or set(by_name) != set(study.party_names):
        raise ParameterError(
            f"tables must be one for each party of the study ({', '.join(study.party_names)}), "
            f"got {', '.join(table.party for table in tables) or 'none'}"
        )
    return by_name
