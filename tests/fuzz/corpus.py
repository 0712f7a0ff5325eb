"""Valid examples of everything that the fuzz targets read; made here, never stored.

`seeds(target)` returns them in the form that the target of this name takes.
"""

import functools
import io
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans.mailbox.request_signature import EMPTY_HASH, sign_request
from splitmeans.party import node as party_node
from splitmeans.party.saved_state import dump_state
from splitmeans.party.states import PartyState
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.server import node as server_node
from splitmeans.study import (
    Budget,
    Column,
    DecoyOptions,
    DetailOptions,
    PartySpec,
    SketchOptions,
    Study,
)
from splitmeans.table.prepare import prepare_table
from splitmeans.wire.codec import encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import PartyRelease, PublishedResult, kind_of
from splitmeans.wire.saved_result import dump_result
from splitmeans.wire.sealed import seal
from splitmeans.wire.slot import SERVER, Slot
from tests.scene import make_study

# Every way for a server to read memberships, as small as it goes.
CASES: dict[str, dict[str, Any]] = {
    "decoy": {"membership": "decoy"},
    "decoy presence": {"membership": "decoy", "n_parties": 3},
    "decoy many": {"membership": "decoy", "grid": "many"},
    "decoy collusion": {
        "membership": "decoy",
        "n_local_clusters": 3,
        "decoy": DecoyOptions(max_users=1000, collusion_epsilon=2.0),
        "expected_users": 1500,
        "budget": Budget(epsilon=8, delta=5e-4),
    },
    # The release has the columns' labels too; as many tables as there are pairs of columns.
    "decoy detail": {
        "membership": "decoy",
        "detail": DetailOptions(),
        "expected_users": 20_000,
        "budget": Budget(epsilon=8, delta=1e-6),
    },
    "sketch": {"membership": "sketch"},
    "sketch wide": {"membership": "sketch", "n_local_clusters": 3},
    "counted": {"n_local_clusters": "auto"},
    "counted sketch": {"membership": "sketch", "n_local_clusters": "auto"},
}
# Cases that parties are stepped through: with a count of users and without.
STEPPED = ("decoy presence", "counted", "sketch")

COLUMNS = (
    Column(name="x", low=0, high=100, missing="midpoint"),
    Column(name="c", categories=("a", "b", "é")),
)


@functools.cache
def study_of(case: str) -> Study:
    defaults: dict[str, Any] = {
        "columns": COLUMNS,
        "budget": Budget(epsilon=8, delta=1e-3),
        "n_local_clusters": 2,
        "expected_users": 40,
        "sketch": SketchOptions(repetitions=16),
    }
    return make_study(**defaults | CASES[case])


def table_of(party: PartySpec, *, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "id": [f"user-{number}" for number in range(40)],
        "x": rng.uniform(-5, 105, 40),
        "c": rng.choice(["a", "b", "é"], 40).tolist(),
    }


@dataclass(kw_only=True)
class Played:
    """An honest run: every state that a participant was in, and every message."""

    study: Study
    plan: Plan
    party_states: list[PartyState] = field(default_factory=list)
    server_states: list[server_node.ServerState] = field(default_factory=list)
    sent: list[Envelope] = field(default_factory=list)

    @property
    def releases(self) -> dict[str, PartyRelease]:
        return {
            item.sender: item.message
            for item in self.sent
            if isinstance(item.message, PartyRelease)
        }

    @property
    def result(self) -> PublishedResult:
        return next(item.message for item in self.sent if isinstance(item.message, PublishedResult))

    @property
    def messages(self) -> list[bytes]:
        """One message of each kind, as bytes."""
        return list({type(item.message): encode(item.message) for item in self.sent}.values())


@functools.cache
def played(case: str) -> Played:
    """Run a case without mishaps."""
    study = study_of(case)
    states: dict[str, Any] = {SERVER: server_node.start(study)}
    mail: list[Envelope] = []
    run = Played(study=study, plan=make_plan(study), server_states=[states[SERVER]])
    for seed, party in enumerate(study.parties):
        noise = InsecureSeededNoise(seed)
        table = prepare_table(party, table_of(party, seed=seed))
        states[party.name], sent = party_node.join(study, table, noise=noise)
        run.party_states.append(states[party.name])
        mail += sent
    run.sent += mail
    while mail:
        envelope = next(item for item in mail if _is_expected(item, states[item.receiver]))
        mail.remove(envelope)
        for_server = envelope.receiver == SERVER
        seen: list[Any] = run.server_states if for_server else run.party_states
        module: Any = server_node if for_server else party_node
        states[envelope.receiver], sent = module.step(
            states[envelope.receiver],
            envelope,
            noise=InsecureSeededNoise(len(run.sent)),
            rng=np.random.default_rng(1),
        )
        seen.append(states[envelope.receiver])
        run.sent += sent
        mail += sent
    done = states[SERVER]
    assert isinstance(done, server_node.Done)
    run.plan = done.plan
    return run


def _is_expected(envelope: Envelope, state: Any) -> bool:
    module: Any = server_node if envelope.receiver == SERVER else party_node
    return (envelope.sender, kind_of(envelope.message)) in module.expects(state)


@functools.cache
def identity(name: str) -> Identity:
    seed = name.encode().ljust(32, b"\0")
    return Identity(signing=seed, sealing=seed)


SLOT = Slot(study_hash="5a" * 32, run="1", sender="org0", receiver="org1", kind="Ready")
NOW = 1_700_000_000


def _indexed(*parts: list[bytes]) -> list[bytes]:
    """Put the number of each list before its entries, for targets that have several modes."""
    return [bytes([mode]) + item for mode, items in enumerate(parts) for item in items]


def _message_seeds() -> list[bytes]:
    # One case of each kind of membership message; the others have the same messages.
    cases = ("decoy presence", "decoy detail", "sketch", "counted")
    return list({message for case in cases for message in played(case).messages})


def _release_seeds() -> list[bytes]:
    return [
        bytes([number, place]) + encode(release)
        for number, case in enumerate(CASES)
        for place, release in enumerate(played(case).releases.values())
    ]


def _result_seeds() -> list[bytes]:
    return [bytes([number, 0]) + encode(played(case).result) for number, case in enumerate(CASES)]


def _step_seeds(states: str) -> list[bytes]:
    found = []
    for number, case in enumerate(STEPPED):
        run = played(case)
        senders = [*run.study.party_names, SERVER]
        for place in range(len(getattr(run, states))):
            for kind in {type(item.message): item for item in run.sent}.values():
                head = bytes([number, place, senders.index(kind.sender)])
                found.append(head + encode(kind.message))
    return found


def _sealed_seeds() -> list[bytes]:
    receiver = identity("org1").public
    to = receiver.sealing_key
    sealed = seal(b"payload", slot=SLOT, sender=identity("org0"), receiver=receiver, to=to)
    header = len(sealed) - 1136 - 64 - len(b"payload")
    return _indexed([sealed], [sealed[header:-64]])


def _identity_seeds() -> list[bytes]:
    public = identity("org0").public
    return _indexed([public.to_text().encode()], [public.signing + public.sealing])


def _key_file_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        identity("org0").save(path)
        plain = path.read_bytes()
    document = json.loads(plain)
    document |= {"scrypt": {"n": 2**15, "salt": "00" * 32}, "secret": "00" * 92}
    return [plain, json.dumps(document).encode()]


def _saved_result_seeds() -> list[bytes]:
    return [
        dump_result(count, played("decoy").result)
        for count in ((), (((-3,),),), (((2**40,), (5,)), ((),)))
    ]


def saved_stages() -> list[str]:
    return ["Joined", "Keyed", "Surveying", "Agreeing", "Prepared", "Released", "Finished"]


def _saved_state_seeds() -> list[bytes]:
    run = played("counted")
    own = [state for state in run.party_states if state.session.party == "org0"]
    return [bytes([saved_stages().index(state.TAG)]) + dump_state(state) for state in own]


def _studies() -> list[Study]:
    keyed = study_of("decoy").to_mapping() | {"server_key": identity("server").public.to_text()}
    for party in keyed["parties"]:
        party["public_key"] = identity(party["name"]).public.to_text()
    return [*(study_of(case) for case in CASES), Study.from_mapping(keyed)]


def _path_seeds() -> list[bytes]:
    return [SLOT.path.encode(), b"../" * 3 + SLOT.path.encode()]


def _request_seeds() -> list[bytes]:
    found = []
    for mode in (0, 1):
        for method, who in (("PUT", "org0"), ("GET", "org1")):
            headers = sign_request(
                method,
                SLOT.path,
                body_hash=EMPTY_HASH,
                participant=who,
                signer=identity(who),
                time=NOW,
            )
            lines = [method, SLOT.path, *(f"{name}: {value}" for name, value in headers.items())]
            found.append(bytes([mode]) + "\n".join(lines).encode())
    return found


def _synopsis_seeds() -> list[bytes]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synopsis.parquet"
        for case in ("decoy", "sketch wide"):
            done = played(case).server_states[-1]
            assert isinstance(done, server_node.Done)
            done.synopsis.to_parquet(path)
            found.append(path.read_bytes())
    return found


def source_table() -> pa.Table:
    return pa.table(table_of(study_of("decoy").parties[0]))


def _csv_seeds() -> list[bytes]:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(source_table().slice(0, 8), sink)
    return [sink.getvalue(), b"id,x,c\n1,2,a\n", "id;x;c\n".encode("utf-16")]


def _tables() -> list[pa.Table]:
    """Tables whose columns have many types, some of them right."""
    plain = source_table()
    numbers = [0, 1, None, 2**20]
    others = [
        pa.array(numbers, kind)
        for kind in (pa.int64(), pa.float32(), pa.uint32(), pa.decimal128(20, 2), pa.timestamp("s"))
    ]
    others += [
        pa.array(["a", "b", None, "é"]).dictionary_encode(),
        pa.array(["a", "b", None, "é"], pa.string_view()),
        pa.array([b"a", b"\xff", None, b"b"]),
        pa.array([[1], [], None, [2, 3]]),
        pa.array([True, False, None, True]),
        pa.nulls(4),
    ]
    ids = pa.array(["1", "2", "3", "é"])
    text = pa.array(["a", "b", "é", "a"])
    odd = [pa.table({"id": ids, "x": other, "c": text}) for other in others]
    odd += [pa.table({"id": ids, "x": [1.0, 2.0, 3.0, 4.0], "c": other}) for other in others]
    odd += [pa.table({"id": other, "x": [1.0, 2.0, 3.0, 4.0], "c": text}) for other in others]
    return [plain, *odd]


def _parquet_seeds() -> list[bytes]:
    found = []
    for number, table in enumerate(_tables()):
        sink = io.BytesIO()
        compression = ("none", "snappy", "zstd", "gzip")[number % 4]
        pq.write_table(table, sink, compression=compression, use_dictionary=number % 3 != 0)
        found.append(sink.getvalue())
    return found


def _arrow_seeds() -> list[bytes]:
    found = []
    for number, table in enumerate(_tables()):
        sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=(None, "lz4", "zstd")[number % 3])
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        found.append(sink.getvalue())
    return found


@functools.cache
def seeds(target: str) -> tuple[bytes, ...]:
    """Return the valid examples of a target."""
    match target:
        case "codec":
            found = _message_seeds()
        case "sealed":
            found = _sealed_seeds()
        case "identity":
            found = _identity_seeds()
        case "key_file":
            found = _key_file_seeds()
        case "saved_result":
            found = _saved_result_seeds()
        case "saved_state":
            found = _saved_state_seeds()
        case "study_toml":
            found = [study.to_toml().encode() for study in _studies()]
        case "study_mapping" | "plan":
            found = [json.dumps(study.to_mapping()).encode() for study in _studies()]
        case "message_path":
            found = _path_seeds()
        case "request":
            found = _request_seeds()
        case "synopsis":
            found = _synopsis_seeds()
        case "release":
            found = _release_seeds()
        case "result":
            found = _result_seeds()
        case "server_step":
            found = _step_seeds("server_states")
        case "party_step":
            found = _step_seeds("party_states")
        case "source_csv":
            found = _csv_seeds()
        case "source_parquet":
            found = _parquet_seeds()
        case "source_arrow":
            found = _arrow_seeds()
        case _:
            raise KeyError(target)
    return tuple(found)
