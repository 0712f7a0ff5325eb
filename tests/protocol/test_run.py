"""Whole runs in one process, for every membership method."""

import dataclasses
import functools
import gc
import types
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from splitmeans import protocol
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.publish import read_published
from splitmeans.server import node as server_node
from splitmeans.study import PartySpec, SketchOptions, Study
from splitmeans.study.features import GRID_UNITS
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.wire.codec import encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.slot import SERVER
from tests.scene import make_study, numbers

N_USERS = 600
IDS = np.array([f"customer-{number:05d}@mail.example" for number in range(N_USERS)])

# membership, who is at the first party, number of parties
CASES = [
    ("decoy", "all", 2),
    ("decoy", "all", 3),
    ("decoy", "some", 2),
    ("decoy", "some", 3),
    ("sketch", "all", 2),
    ("sketch", "some", 2),
]
NAMES = ["-".join(map(str, case)) for case in CASES]


@functools.cache
def pooled() -> np.ndarray:
    """Three clear groups in six columns, values in (0, 100), no two alike."""
    rng = np.random.default_rng(11)
    centres = rng.uniform(20, 80, size=(3, 6))
    return centres[rng.integers(3, size=N_USERS)] + rng.normal(0, 4, size=(N_USERS, 6))


def study_of(membership: str, n_parties: int) -> Study:
    """The six columns of `pooled`, dealt out to the parties."""
    parts = np.array_split([f"c{number}" for number in range(6)], n_parties)
    parties = tuple(
        PartySpec(name=f"org{position}", columns=numbers(*part.tolist()))
        for position, part in enumerate(parts)
    )
    return make_study(
        membership,
        parties=parties,
        expected_users=500,
        sketch=SketchOptions(repetitions=128),
    )


def tables_of(study: Study, who: str, *, shuffled: bool = False) -> list[PartyTable]:
    """Tables of one study; with "some" every seventh user is not at the first party."""
    rng = np.random.default_rng(5)
    tables, start = [], 0
    for position, party in enumerate(study.parties):
        columns = slice(start, start + len(party.columns))
        start = columns.stop
        kept = np.arange(N_USERS)
        if who == "some" and position == 0:
            kept = kept[kept % 7 != 0]
        if shuffled:
            kept = rng.permutation(kept)
        tables.append(prepare_table(party, pooled()[kept, columns], ids=IDS[kept]))
    return tables


def run(study: Study, tables: list[PartyTable], *, seed: int = 3, **options: Any) -> Any:
    return protocol.run(
        study,
        tables,
        noise=InsecureSeededNoise(seed),
        rng=np.random.default_rng(seed),
        **options,
    )


@functools.cache
def finished(case: tuple[str, str, int]) -> Any:
    membership, who, n_parties = case
    study = study_of(membership, n_parties)
    return run(study, tables_of(study, who))


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.server.synopsis.weights, other.server.synopsis.weights)
    np.testing.assert_array_equal(one.server.clustering.centres, other.server.clustering.centres)
    for party in one.plan.study.party_names:
        ours, theirs = one.server.releases[party], other.server.releases[party]
        assert encode(ours) == encode(theirs)


# ---- runs ----


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_run_gives_centres_and_weights_of_the_users(case):
    result = finished(case)
    centres = result.server.clustering.centres
    assert centres.shape == (3, 6)
    assert (centres >= 0).all()
    assert (centres <= 100).all()
    weights = result.server.synopsis.weights
    assert (weights >= 0).all()
    assert result.server.synopsis.nodes.shape[1] == 6
    # Noise at epsilon 4 is far smaller than the number of users, which every method estimates.
    assert N_USERS / 2 < weights.sum() < 2 * N_USERS


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_run_repeats_with_the_same_seeds(case):
    study, who = study_of(case[0], case[2]), case[1]
    assert_same(run(study, tables_of(study, who)), finished(case))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_other_noise_gives_other_releases(case):
    study, who = study_of(case[0], case[2]), case[1]
    other = run(study, tables_of(study, who), seed=4)
    releases = finished(case).server.releases
    for party, release in releases.items():
        assert encode(release) != encode(other.server.releases[party])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_order_of_rows_and_tables_has_no_influence(case):
    study, who = study_of(case[0], case[2]), case[1]
    shuffled = run(study, tables_of(study, who, shuffled=True)[::-1])
    assert_same(shuffled, finished(case))


def test_a_run_without_seeds_uses_secure_noise():
    study = study_of("decoy", 2)
    tables = tables_of(study, "all")
    first, second = protocol.run(study, tables), protocol.run(study, tables)
    assert first.privacy.secure_noise
    assert encode(first.server.releases["org0"]) != encode(second.server.releases["org0"])


def test_traffic_adds_up_what_was_sent():
    study = dataclasses.replace(study_of("decoy", 3), n_local_clusters="auto")
    seen: list[tuple[Envelope, int]] = []
    result = run(
        study,
        tables_of(study, "all"),
        on_message=lambda envelope, size: seen.append((envelope, size)),
    )
    expected: dict[tuple[str, str], int] = {}
    for envelope, size in seen:
        assert size == len(encode(envelope.message))
        key = envelope.sender, envelope.message.TAG
        expected[key] = expected.get(key, 0) + size
    assert result.traffic == expected
    for party in study.party_names:
        assert result.bytes_from(party) == sum(
            size for envelope, size in seen if envelope.sender == party
        )
    kinds = [type(envelope.message) for envelope, _ in seen]
    counts = {kind.TAG: kinds.count(kind) for kind in set(kinds)}
    assert counts == {
        "KeyContribution": 6,  # every party to every other
        "Confirmation": 6,
        "StageRelease": 9,  # every party to the server and to every other
        "PlanConfirmation": 6,
        "Ready": 3,
        "RunPlan": 3,
        "PartyRelease": 3,
        "PublishedResult": 3,
    }
    assert result.bytes_from(SERVER) > 0
    assert result.bytes_from("nobody") == 0


def test_every_party_gets_the_published_result(monkeypatch):
    states: dict[str, Any] = {}
    step = party_node.step

    def recording(state: Any, envelope: Envelope, **options: Any) -> Any:
        next_state, sent = step(state, envelope, **options)
        states[envelope.receiver] = next_state
        return next_state, sent

    monkeypatch.setattr(party_node, "step", recording)
    study = study_of("decoy", 2)
    result = run(study, tables_of(study, "all"))
    for party in study.party_names:
        assert isinstance(states[party], party_states.Finished)
        published = states[party].result
        np.testing.assert_array_equal(published.weights, result.server.synopsis.weights)
        np.testing.assert_array_equal(published.centres, result.server.clustering.scaled_centres)
        np.testing.assert_array_equal(
            read_published(result.plan, published).scaled_nodes,
            result.server.synopsis.scaled_nodes,
        )


@pytest.mark.parametrize("wrong", ["missing", "twice", "stranger"])
def test_tables_must_be_those_of_the_study(wrong):
    study = study_of("decoy", 2)
    tables = tables_of(study, "all")
    chosen = {
        "missing": tables[:1],
        "twice": [tables[0], tables[0]],
        "stranger": [tables[0], dataclasses.replace(tables[1], party="org9")],
    }[wrong]
    with pytest.raises(ParameterError, match=r"one for each party of the study \(org0, org1\)"):
        run(study, chosen)


def test_a_run_that_stops_early_says_where(monkeypatch):
    join = party_node.join
    monkeypatch.setattr(party_node, "join", lambda *a, **k: (join(*a, **k)[0], []))
    study = study_of("decoy", 2)
    with pytest.raises(ProtocolError, match="stopped with the server in state Gathering"):
        run(study, tables_of(study, "all"))


# ---- what the server holds ----


def reachable(start: Any) -> Iterator[Any]:
    """Everything that an object leads to, code left out."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    queue, seen = [start], set()
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, code):
            continue
        seen.add(id(item))
        yield item
        queue.extend(gc.get_referents(item))
        if isinstance(item, np.ndarray) and item.base is not None:
            queue.append(item.base)


def test_the_walk_finds_what_is_hidden_in_a_state():
    table = tables_of(study_of("decoy", 2), "all")[0]
    found = list(reachable({"a": [functools.partial(print, (table,))]}))
    assert any(item is table for item in found)
    assert any(item is table.raw_rows for item in found)


def holds_raw_row(array: np.ndarray, tables: list[PartyTable]) -> bool:
    """Whether some row of some party stands in some row of the array, on the grid or scaled."""
    if array.dtype.kind not in "if":
        return False  # tags, registers and packed labels
    numbers = array if array.dtype.kind == "i" else np.rint(array * GRID_UNITS)
    for table in tables:
        width = table.raw_rows.shape[1]
        raw = {tuple(row) for row in table.raw_rows.tolist()}
        for start in range(array.shape[1] - width + 1):
            part = numbers[:, start : start + width].astype(np.int64)
            if raw & {tuple(row) for row in part.tolist()}:
                return True
    return False


def test_the_search_finds_a_raw_row_in_its_disguises():
    tables = tables_of(study_of("decoy", 2), "all")
    row = tables[1].raw_rows[9]
    hidden = np.zeros((4, 6), dtype=np.int64)
    assert not holds_raw_row(hidden, tables)
    hidden[2, 2:5] = row
    assert holds_raw_row(hidden, tables)
    assert holds_raw_row(hidden / GRID_UNITS, tables)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_no_row_id_or_key_reaches_the_server(case, monkeypatch):
    states: list[Any] = []
    arrived: list[Envelope] = []
    secrets: list[bytes] = []
    step, join = server_node.step, party_node.join

    def recording_step(state: Any, envelope: Envelope, **options: Any) -> Any:
        next_state, sent = step(state, envelope, **options)
        states.append(next_state)
        arrived.append(envelope)
        return next_state, sent

    def recording_join(*arguments: Any, **options: Any) -> Any:
        state, sent = join(*arguments, **options)
        secrets.extend(envelope.message.secret for envelope in sent)
        return state, sent

    monkeypatch.setattr(server_node, "step", recording_step)
    monkeypatch.setattr(party_node, "join", recording_join)
    study, who = study_of(case[0], case[2]), case[1]
    tables = tables_of(study, who)
    run(study, tables)

    forbidden = (
        PartyTable,
        pa.Array,
        pa.ChunkedArray,
        pa.Table,
        *get_args(party_states.PartyState),
    )
    for item in reachable([states, arrived]):
        assert not isinstance(item, forbidden)
        if isinstance(item, np.ndarray) and item.ndim == 2:
            assert not holds_raw_row(item, tables)
    for envelope in arrived:
        data = encode(envelope.message)
        assert b"customer-" not in data
        assert not any(secret in data or secret.hex().encode() in data for secret in secrets)


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_a_party_drops_rows_and_key_with_its_release(membership, stage):
    study = study_of(membership, 2)
    ready = stage(study, tables=tables_of(study, "all")).play(until=party_states.Prepared)
    keys = {state.run_key for state in ready.states.values()}
    (run_key,) = keys
    assert any(isinstance(item, PartyTable) for item in reachable(ready.states["org0"]))
    played = stage(study, tables=tables_of(study, "all"))
    for kind in (party_states.Released, party_states.Finished):
        played.play(until=kind)
        for state in played.states.values():
            found = list(reachable(state))
            assert not any(isinstance(item, PartyTable) for item in found)
            assert run_key not in [item for item in found if isinstance(item, bytes)]
