"""Whole runs in one process, for every membership method, and messages that must be refused."""

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
from splitmeans.features import GRID_UNITS
from splitmeans.party import node as party_node
from splitmeans.party.release import confirmation
from splitmeans.party.table import PartyTable, prepare_table
from splitmeans.plan import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.server import node as server_node
from splitmeans.study import Budget, Column, PartySpec, SketchOptions, Study
from splitmeans.wire.codec import encode
from splitmeans.wire.envelope import SERVER, Envelope
from splitmeans.wire.messages import (
    Confirmation,
    CountRelease,
    CountRequest,
    HistogramMessage,
    KeyContribution,
    PartyRelease,
    PublishedResult,
    Ready,
    RunPlan,
)

N_USERS = 600
IDS = np.array([f"customer-{number:05d}@mail.example" for number in range(N_USERS)])

# membership, user_sets, accounting, number of parties
CASES = [
    ("decoy", "equal", "tight", 2),
    ("decoy", "equal", "tight", 3),
    ("decoy", "partial", "tight", 2),
    ("decoy", "partial", "tight", 3),
    ("sketch", "equal", "tight", 2),
    ("sketch", "equal", "tight", 3),
    ("sketch", "partial", "tight", 2),
    ("sketch-paper", "equal", "paper", 2),
    ("sketch-paper", "equal", "paper", 3),
    ("ldp", "equal", "paper", 2),
    ("ldp", "equal", "tight", 3),
    ("independent", "equal", "paper", 2),
    ("independent", "equal", "tight", 3),
    ("exact", "equal", "paper", 2),
    ("exact", "equal", "tight", 3),
]
NAMES = ["-".join(map(str, case)) for case in CASES]

pytestmark = pytest.mark.filterwarnings("ignore:.*sketch-paper")


@functools.cache
def pooled() -> np.ndarray:
    """Three clear groups in six columns, values in (0, 100), no two alike."""
    rng = np.random.default_rng(11)
    centres = rng.uniform(20, 80, size=(3, 6))
    return centres[rng.integers(3, size=N_USERS)] + rng.normal(0, 4, size=(N_USERS, 6))


def make_study(membership: str, user_sets: str, accounting: str, n_parties: int) -> Study:
    parts = np.array_split(np.arange(6), n_parties)
    parties = tuple(
        PartySpec(
            name=f"org{position}",
            columns=tuple(Column(name=f"c{number}", low=0, high=100) for number in part),
        )
        for position, part in enumerate(parts)
    )
    return Study(
        name="run",
        parties=parties,
        n_clusters=3,
        budget=Budget(epsilon=4, delta=1e-4),
        membership=membership,
        n_local_clusters=4,
        accounting=accounting,
        user_sets=user_sets,
        expected_users=500,
        sketch=SketchOptions(repetitions=128),
    )


def make_tables(study: Study, *, shuffled: bool = False) -> list[PartyTable]:
    """Tables of one study; a partial one lacks every seventh user at the first party."""
    rng = np.random.default_rng(5)
    tables, start = [], 0
    for position, party in enumerate(study.parties):
        columns = slice(start, start + len(party.columns))
        start = columns.stop
        kept = np.arange(N_USERS)
        if study.user_sets == "partial" and position == 0:
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
def finished(case: tuple[str, str, str, int]) -> Any:
    study = make_study(*case)
    return run(study, make_tables(study))


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
    if case[0] == "exact":
        assert weights.sum() == N_USERS
    else:
        # Noise at epsilon 4 is far smaller than the number of users, which every method estimates.
        assert N_USERS / 2 < weights.sum() < 2 * N_USERS


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_run_repeats_with_the_same_seeds(case):
    study = make_study(*case)
    assert_same(run(study, make_tables(study)), finished(case))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_other_noise_gives_other_releases(case):
    study = make_study(*case)
    other = run(study, make_tables(study), seed=4)
    releases = finished(case).server.releases
    if case[0] == "exact":
        # The order of users is by a secret key, so even plain labels come in another order.
        labels = [result["org0"].membership.labels for result in (releases, other.server.releases)]
        assert not np.array_equal(*labels)
    else:
        for party, release in releases.items():
            assert encode(release) != encode(other.server.releases[party])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_order_of_rows_and_tables_has_no_influence(case):
    study = make_study(*case)
    shuffled = run(study, make_tables(study, shuffled=True)[::-1])
    if case[0] == "exact":
        # Plain k-means draws its starting rows by number, so only the sums are comparable.
        assert shuffled.server.synopsis.total == finished(case).server.synopsis.total
        return
    assert_same(shuffled, finished(case))


def test_a_run_without_seeds_uses_secure_noise():
    study = make_study("independent", "equal", "paper", 2)
    tables = make_tables(study)
    first, second = protocol.run(study, tables), protocol.run(study, tables)
    assert first.privacy.secure_noise
    assert encode(first.server.releases["org0"]) != encode(second.server.releases["org0"])


def test_traffic_adds_up_what_was_sent():
    study = make_study("sketch-paper", "equal", "paper", 3)
    seen: list[tuple[Envelope, int]] = []
    result = run(
        study, make_tables(study), on_message=lambda envelope, size: seen.append((envelope, size))
    )
    expected: dict[tuple[str, str], int] = {}
    for envelope, size in seen:
        assert size == len(encode(envelope.message))
        key = envelope.sender, type(envelope.message).__name__
        expected[key] = expected.get(key, 0) + size
    assert result.traffic == expected
    for party in study.party_names:
        assert result.bytes_from(party) == sum(
            size for envelope, size in seen if envelope.sender == party
        )
    kinds = [type(envelope.message) for envelope, _ in seen]
    counts = {kind.__name__: kinds.count(kind) for kind in set(kinds)}
    assert counts == {
        "KeyContribution": 6,  # every party to every other
        "Confirmation": 6,
        "Ready": 3,
        "CountRequest": 1,
        "CountRelease": 1,
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
    study = make_study("decoy", "equal", "tight", 2)
    result = run(study, make_tables(study))
    for party in study.party_names:
        assert isinstance(states[party], party_node.Finished)
        published = states[party].result
        np.testing.assert_array_equal(published.weights, result.server.synopsis.weights)
        np.testing.assert_array_equal(published.centres, result.server.clustering.scaled_centres)
        np.testing.assert_allclose(
            published.nodes / GRID_UNITS,
            result.server.synopsis.scaled_nodes,
            atol=1 / GRID_UNITS,
        )


@pytest.mark.parametrize("wrong", ["missing", "twice", "stranger"])
def test_tables_must_be_those_of_the_study(wrong):
    study = make_study("independent", "equal", "paper", 2)
    tables = make_tables(study)
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
    study = make_study("independent", "equal", "paper", 2)
    with pytest.raises(ProtocolError, match="stopped with the server in state Gathering"):
        run(study, make_tables(study))


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
    table = make_tables(make_study("exact", "equal", "paper", 2))[0]
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
    tables = make_tables(make_study("exact", "equal", "paper", 2))
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
    study = make_study(*case)
    tables = make_tables(study)
    run(study, tables)

    forbidden = (PartyTable, pa.Array, pa.ChunkedArray, pa.Table, *get_args(party_node.PartyState))
    for item in reachable([states, arrived]):
        assert not isinstance(item, forbidden)
        if isinstance(item, np.ndarray) and item.ndim == 2:
            assert not holds_raw_row(item, tables)
    for envelope in arrived:
        data = encode(envelope.message)
        assert b"customer-" not in data
        assert not any(secret in data or secret.hex().encode() in data for secret in secrets)


def test_a_party_drops_rows_and_key_with_its_release():
    study = make_study("decoy", "equal", "tight", 2)
    states = prepared(study, make_tables(study))
    released, _ = step_party(states["org0"], SERVER, proposal_of(study))
    assert isinstance(released, party_node.Released)
    assert not any(isinstance(item, PartyTable) for item in reachable(released))
    assert states["org0"].run_key not in [
        item for item in reachable(released) if isinstance(item, bytes)
    ]


# ---- user sets ----


@pytest.mark.parametrize("membership", ["decoy", "sketch", "sketch-paper", "exact"])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_different_users_end_the_run_before_anything_is_released(membership, n_parties):
    accounting = "paper" if membership == "sketch-paper" else "tight"
    study = make_study(membership, "equal", accounting, n_parties)
    tables = make_tables(study)
    other = IDS.copy()
    other[17] = "customer-99999@mail.example"
    tables[-1] = dataclasses.replace(tables[-1], ids=pa.array(other, pa.large_string()))
    sent: list[Any] = []
    with pytest.raises(ProtocolError, match="hold different users") as failure:
        run(study, tables, on_message=lambda envelope, _: sent.append(envelope.message))
    text = str(failure.value)
    assert "keep the ids that all parties have, written the same way, and run again" in text
    assert f"membership={membership!r}" in text
    assert "customer" not in text
    assert {type(message) for message in sent} == {KeyContribution, Confirmation}


def test_partial_user_sets_may_differ():
    result = finished(("decoy", "partial", "tight", 2))
    sizes = [len(table) for table in make_tables(result.plan.study)]
    assert sizes[0] < sizes[1]


# ---- a party refuses ----


def step_party(state: Any, sender: str, message: Any) -> Any:
    envelope = Envelope(sender=sender, receiver="org0", message=message)
    return party_node.step(
        state, envelope, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1)
    )


def joined(study: Study) -> tuple[Any, list[Envelope]]:
    return party_node.join(study, make_tables(study)[0], noise=InsecureSeededNoise(1))


def prepared(study: Study, tables: list[PartyTable]) -> dict[str, Any]:
    """Bring all parties to the state in which they wait for the server."""
    states, mail = {}, []
    for table in tables:
        noise = InsecureSeededNoise(1).spawn(table.party)
        states[table.party], sent = party_node.join(study, table, noise=noise)
        mail += sent
    while mail:
        envelope = mail.pop(0)
        if envelope.receiver == SERVER:
            assert envelope.message == Ready(study_hash=study.hash)
            continue
        states[envelope.receiver], sent = party_node.step(
            states[envelope.receiver],
            envelope,
            noise=InsecureSeededNoise(1),
            rng=np.random.default_rng(1),
        )
        mail += sent
    assert all(isinstance(state, party_node.Prepared) for state in states.values())
    return states


def proposal_of(study: Study, *, noisy_count: int | None = None, **changes: Any) -> RunPlan:
    plan = make_plan(study, noisy_count=noisy_count)
    honest = RunPlan(
        n_local_clusters=np.array(plan.n_local_clusters),
        noisy_count=noisy_count,
        fingerprint=plan.fingerprint,
    )
    return dataclasses.replace(honest, **changes)


DECOY = make_study("decoy", "equal", "tight", 2)
COUNTED = make_study("sketch-paper", "equal", "paper", 2)


def test_a_second_key_contribution_is_refused():
    study = make_study("decoy", "equal", "tight", 3)
    state, _ = joined(study)
    state, _ = step_party(state, "org1", KeyContribution(secret=bytes(32)))
    with pytest.raises(ProtocolError, match="party 'org1' sent a second key contribution"):
        step_party(state, "org1", KeyContribution(secret=bytes(range(32))))


def test_a_short_key_contribution_is_refused():
    state, _ = joined(DECOY)
    with pytest.raises(ProtocolError, match=r"contribution of 'org1' must be 32 bytes, got 8"):
        step_party(state, "org1", KeyContribution(secret=bytes(8)))


def test_a_second_digest_is_refused_early_and_late():
    study = make_study("decoy", "partial", "tight", 3)
    early, _ = joined(study)
    alone, _ = step_party(early, "org1", KeyContribution(secret=bytes(32)))
    alone, _ = step_party(alone, "org2", KeyContribution(secret=bytes(32)))
    assert isinstance(alone, party_node.Keyed)
    word = confirmation(study, "org1", b"", run_key=alone.run_key)
    early, _ = step_party(early, "org1", word)
    assert isinstance(early, party_node.Joined)
    with pytest.raises(ProtocolError, match="party 'org1' sent a second confirmation"):
        step_party(early, "org1", word)
    keyed, _ = step_party(early, "org1", KeyContribution(secret=bytes(32)))
    keyed, _ = step_party(keyed, "org2", KeyContribution(secret=bytes(32)))
    assert isinstance(keyed, party_node.Keyed)
    with pytest.raises(ProtocolError, match="party 'org1' sent a second confirmation"):
        step_party(keyed, "org1", word)


@pytest.mark.parametrize("user_sets", ["equal", "partial"])
def test_own_words_sent_back_are_not_taken_for_anothers(user_sets):
    state, _ = joined(make_study("decoy", user_sets, "tight", 2))
    state, sent = step_party(state, "org1", KeyContribution(secret=bytes(32)))
    with pytest.raises(ProtocolError, match="different run keys or studies"):
        step_party(state, "org1", sent[0].message)


def test_confirmations_say_nothing_about_users_where_sets_may_differ():
    """A fellow party has the key: a digest of the ids would let it test guesses."""
    study = make_study("decoy", "partial", "tight", 2)
    words = set()
    for n in (50, 51):
        rows = np.zeros((n, len(study.parties[0].columns)))
        table = prepare_table(study.parties[0], rows, ids=np.arange(n))
        state, _ = party_node.join(study, table, noise=InsecureSeededNoise(1))
        _, sent = step_party(state, "org1", KeyContribution(secret=bytes(32)))
        words.add((sent[0].message.key_check, sent[0].message.user_check))
    assert len(words) == 1


def test_another_run_key_is_noticed_also_with_partial_user_sets():
    state, _ = joined(make_study("decoy", "partial", "tight", 3))
    state, _ = step_party(state, "org1", KeyContribution(secret=bytes(32)))
    state, _ = step_party(state, "org2", KeyContribution(secret=bytes(32)))
    with pytest.raises(ProtocolError, match="different run keys or studies"):
        step_party(state, "org1", Confirmation(key_check=b"y", user_check=b"x"))


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        ("org0", KeyContribution(secret=bytes(32))),  # itself
        (SERVER, KeyContribution(secret=bytes(32))),
        ("stranger", KeyContribution(secret=bytes(32))),
        (SERVER, Confirmation(key_check=b"y", user_check=b"x")),
        ("org1", CountRequest()),
        ("org1", proposal_of(DECOY)),
    ],
)
def test_a_sender_who_may_not_send_is_refused(sender, message):
    state, _ = joined(DECOY)
    kind = type(message).__name__
    with pytest.raises(ProtocolError, match=f"got {kind} from '{sender}', who may not send it"):
        step_party(state, sender, message)


def test_a_message_in_the_wrong_state_names_both():
    state, _ = joined(DECOY)
    with pytest.raises(
        ProtocolError, match="party 'org0' in state Joined cannot take RunPlan from 'server'"
    ):
        step_party(state, SERVER, proposal_of(DECOY))
    ready = prepared(DECOY, make_tables(DECOY))["org0"]
    with pytest.raises(
        ProtocolError, match="in state Prepared cannot take KeyContribution from 'org1'"
    ):
        step_party(ready, "org1", KeyContribution(secret=bytes(32)))
    released, _ = step_party(ready, SERVER, proposal_of(DECOY))
    with pytest.raises(ProtocolError, match="in state Released cannot take RunPlan from 'server'"):
        step_party(released, SERVER, proposal_of(DECOY))
    result = PublishedResult(nodes=np.zeros((1, 6)), weights=np.ones(1), centres=np.zeros((3, 6)))
    done, sent = step_party(released, SERVER, result)
    assert sent == []
    with pytest.raises(
        ProtocolError, match="in state Finished cannot take PublishedResult from 'server'"
    ):
        step_party(done, SERVER, result)


def test_a_message_for_the_server_is_refused_by_a_party():
    ready = prepared(DECOY, make_tables(DECOY))["org0"]
    with pytest.raises(ProtocolError, match="in state Prepared cannot take Ready from 'server'"):
        step_party(ready, SERVER, Ready(study_hash=DECOY.hash))


def test_only_the_counting_party_gives_a_count_and_only_once():
    states = prepared(COUNTED, make_tables(COUNTED))
    with pytest.raises(ProtocolError, match="party 'org1' was asked for a user count that the"):
        step_party(states["org1"], SERVER, CountRequest())
    counted, sent = step_party(states["org0"], SERVER, CountRequest())
    assert [type(envelope.message) for envelope in sent] == [CountRelease]
    with pytest.raises(ProtocolError, match="in state Prepared cannot take CountRequest"):
        step_party(counted, SERVER, CountRequest())


def test_a_study_without_a_count_gives_none():
    ready = prepared(DECOY, make_tables(DECOY))["org0"]
    with pytest.raises(ProtocolError, match="asked for a user count that the study excludes"):
        step_party(ready, SERVER, CountRequest())


def test_a_plan_with_another_count_than_was_released_is_refused():
    states = prepared(COUNTED, make_tables(COUNTED))
    counted, sent = step_party(states["org0"], SERVER, CountRequest())
    released = sent[0].message.noisy_count
    with pytest.raises(ProtocolError, match="another user count than was released"):
        step_party(counted, SERVER, proposal_of(COUNTED, noisy_count=released + 1))
    next_state, _ = step_party(counted, SERVER, proposal_of(COUNTED, noisy_count=released))
    assert isinstance(next_state, party_node.Released)


@pytest.mark.parametrize("study", [DECOY, COUNTED], ids=["needless", "lacking"])
def test_a_plan_with_a_needless_or_lacking_count_is_refused(study):
    ready = prepared(study, make_tables(study))["org0"]
    count = 600 if study is DECOY else None
    with pytest.raises(ProtocolError, match="a user count where the study has none, or lacks it"):
        step_party(ready, SERVER, proposal_of(study, noisy_count=count))


@pytest.mark.parametrize("clusters", [(4, 5), (4,), (2, 2)])
def test_a_plan_with_other_local_clusters_is_refused(clusters):
    ready = prepared(DECOY, make_tables(DECOY))["org0"]
    with pytest.raises(ProtocolError, match=r"plan has n_local_clusters=.*the study gives \(4, 4"):
        step_party(ready, SERVER, proposal_of(DECOY, n_local_clusters=np.array(clusters)))


def test_a_plan_with_another_fingerprint_is_refused():
    ready = prepared(DECOY, make_tables(DECOY))["org0"]
    cheaper = dataclasses.replace(DECOY, budget=Budget(epsilon=8, delta=1e-4))
    with pytest.raises(ProtocolError, match="do both run the same version of splitmeans"):
        step_party(ready, SERVER, proposal_of(DECOY, fingerprint=make_plan(cheaper).fingerprint))


def test_a_table_of_a_stranger_cannot_join():
    table = dataclasses.replace(make_tables(DECOY)[0], party="org9")
    with pytest.raises(ParameterError, match="has no party 'org9'"):
        party_node.join(DECOY, table, noise=InsecureSeededNoise(1))


# ---- the server refuses ----


def step_server(state: Any, sender: str, message: Any) -> Any:
    envelope = Envelope(sender=sender, receiver=SERVER, message=message)
    return server_node.step(
        state, envelope, noise=InsecureSeededNoise(2), rng=np.random.default_rng(2)
    )


def gathered(study: Study) -> tuple[Any, list[Envelope]]:
    state, sent = server_node.start(study), []
    for party in study.party_names:
        state, sent = step_server(state, party, Ready(study_hash=study.hash))
    return state, sent


def test_the_server_waits_for_every_party_even_if_one_repeats_itself():
    state = server_node.start(DECOY)
    for _ in range(3):
        state, sent = step_server(state, "org0", Ready(study_hash=DECOY.hash))
        assert isinstance(state, server_node.Gathering)
        assert sent == []
    state, sent = step_server(state, "org1", Ready(study_hash=DECOY.hash))
    assert isinstance(state, server_node.Collecting)
    assert [envelope.receiver for envelope in sent] == ["org0", "org1"]
    assert {type(envelope.message) for envelope in sent} == {RunPlan}


def test_another_study_is_refused():
    other = make_study("sketch", "equal", "tight", 2)
    with pytest.raises(ProtocolError, match=f"'org0' runs another study .hash {other.hash[:12]}"):
        step_server(server_node.start(DECOY), "org0", Ready(study_hash=other.hash))


def test_a_stranger_is_refused():
    with pytest.raises(ProtocolError, match="'org9' is not a party of study 'run'"):
        step_server(server_node.start(DECOY), "org9", Ready(study_hash=DECOY.hash))
    release = finished(("decoy", "equal", "tight", 2)).server.releases["org0"]
    with pytest.raises(ProtocolError, match="'org9' is not a party of study 'run'"):
        step_server(gathered(DECOY)[0], "org9", release)


def test_only_the_counting_party_may_send_the_count():
    state, sent = gathered(COUNTED)
    assert isinstance(state, server_node.Counting)
    assert [(envelope.receiver, type(envelope.message)) for envelope in sent] == [
        ("org0", CountRequest)
    ]
    with pytest.raises(
        ProtocolError, match="server in state Counting cannot take CountRelease from 'org1'"
    ):
        step_server(state, "org1", CountRelease(noisy_count=600))


def test_a_release_in_the_wrong_state_names_both():
    release = finished(("decoy", "equal", "tight", 2)).server.releases["org0"]
    with pytest.raises(
        ProtocolError, match="server in state Gathering cannot take PartyRelease from 'org0'"
    ):
        step_server(server_node.start(DECOY), "org0", release)


def test_a_second_release_is_refused():
    release = finished(("decoy", "equal", "tight", 2)).server.releases["org0"]
    state, _ = step_server(gathered(DECOY)[0], "org0", release)
    with pytest.raises(ProtocolError, match="party 'org0' sent a second release"):
        step_server(state, "org0", release)


def test_a_negative_noisy_count_does_not_stop_a_run():
    state, _ = gathered(COUNTED)
    state, sent = step_server(state, "org0", CountRelease(noisy_count=-40))
    assert isinstance(state, server_node.Collecting)
    assert sent[0].message.noisy_count == -40


def test_a_release_that_does_not_fit_the_plan_is_refused():
    state, _ = gathered(DECOY)
    good = finished(("decoy", "equal", "tight", 2)).server.releases["org0"]
    wrong_shape = dataclasses.replace(good, centres=good.centres[:3])
    with pytest.raises(
        ProtocolError, match=r"'org0' sent centres of shape \(3, 3\), expected \(4, 3\)"
    ):
        step_server(state, "org0", wrong_shape)
    outside = dataclasses.replace(good, centres=good.centres + 2**22)
    with pytest.raises(ProtocolError, match="'org0' sent a centre outside the study's bounds"):
        step_server(state, "org0", outside)
    wrong_kind = PartyRelease(
        centres=good.centres, membership=HistogramMessage(noisy_counts=np.zeros(4, dtype=np.int64))
    )
    with pytest.raises(ProtocolError, match="sent HistogramMessage, expected DecoyMessage"):
        step_server(state, "org0", wrong_kind)
