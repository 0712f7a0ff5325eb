import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.decoy.direct_labels import randomise
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law, decoy_law
from splitmeans.membership.decoy.layout import (
    cell_count,
    cell_shape,
    check_groups,
    own_cell_count,
    pack,
    packed_size,
    unpack,
)
from splitmeans.membership.decoy.tag_lists import LOW_BITS, bitmap_size
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire import codec, keys
from splitmeans.wire.messages import DecoyMessage

LAW = decoy_law(0.5, delta_share=1e-6)
# Noise of this scale is 0 and a cell has one decoy, both but for a chance below 1e-18.
ONE_DECOY = DecoyLaw(sigma=0.1, truncation=1, server_sigma=0.01)
KEY = b"run key of the unit tests, 32 b."
NOISE = InsecureSeededNoise(8)
JOINT = ((0, 1, 2),)
PAIRS = ((0, 1), (0, 2), (1, 2))
WIDTHS = (3, 5, 2)
HIGH_BITS = 12

Users = list[dict[str, int]]  # for each party, the cluster of each of its users


def users_of(n_users: int, *, widths=WIDTHS, overlap: float = 1.0, seed: int = 0) -> Users:
    rng = np.random.default_rng(seed)
    return [
        {
            f"id-{user}": int(rng.integers(width))
            for user in range(n_users)
            if rng.random() < overlap
        }
        for width in widths
    ]


def send(users: Users, *, law=LAW, groups=JOINT, widths=WIDTHS, **options: Any):
    options = {"run_key": KEY, "noise": NOISE, "high_bits": HIGH_BITS, **options}
    return [
        encode(
            law,
            users=MemoryUsers(
                ids=pa.array(list(own), type=pa.large_string()),
                labels=np.array(list(own.values()), dtype=np.int32),
            ),
            position=party,
            groups=groups,
            n_local_clusters=widths,
            **options,
        )
        for party, own in enumerate(users)
    ]


def count(messages, *, groups=JOINT, widths=WIDTHS, high_bits=HIGH_BITS):
    return join_counts(messages, groups=groups, n_local_clusters=widths, high_bits=high_bits)


def tags_of(message: DecoyMessage, group: int = 0) -> list[int]:
    """The tags of one table of a message, read bit by bit."""
    lengths = [int(length) for length in message.lengths]
    first = sum(lengths[:group])
    start = sum(bitmap_size(length, high_bits=HIGH_BITS) for length in lengths[:group])
    bits = int.from_bytes(message.bitmaps[start:].tobytes(), "little")
    found, high = [], 0
    while len(found) < lengths[group]:
        if bits & 1:
            found.append(high << LOW_BITS | int(message.lows[first + len(found)]))
        else:
            high += 1
        bits >>= 1
    return found


def true_cells(users: Users, group, *, widths=WIDTHS) -> np.ndarray:
    table = np.zeros([widths[party] + 1 for party in group], dtype=np.int64)
    for name in set().union(*(users[party] for party in group)):
        table[tuple(users[party].get(name, widths[party]) for party in group)] += 1
    return table


def naive_counts(messages, group, *, groups, widths=WIDTHS) -> np.ndarray:
    """Read the messages bit by bit and join them by a dictionary of tags."""
    shape = [widths[party] + 1 for party in group]
    cells: dict[int, list[int]] = {}
    repeated: set[int] = set()
    for axis, party in enumerate(group):
        message, bits = messages[party], (widths[party] - 1).bit_length()
        own = [g for g in groups if party in g]
        start = 0
        for place, (other, length) in enumerate(zip(own, message.lengths, strict=True)):
            size = -(-int(length) * bits // 8)
            number = int.from_bytes(message.labels[start : start + size].tobytes(), "little")
            if other == group:
                tags = tags_of(message, place)
                assert tags == sorted(tags)
                repeated |= {tag for tag in tags if tags.count(tag) > 1}
                for tag in tags:
                    label = number & ((1 << bits) - 1)
                    cells.setdefault(tag, [w - 1 for w in shape])[axis] = label
                    number >>= bits
            start += size
    table = np.zeros(shape, dtype=np.int64)
    for tag, cell in cells.items():
        table[tuple(cell)] += tag not in repeated
    return table


def same(first: DecoyMessage, second: DecoyMessage) -> bool:
    return codec.encode(first) == codec.encode(second)


# ---- by hand ----


def test_hand_case_with_overlapping_users():
    users = [{"a": 0, "b": 1}, {"b": 0, "c": 0}]
    messages = send(users, law=ONE_DECOY, groups=((0, 1),), widths=(2, 1))
    # Cells (0,0) (0,-) (1,0) (1,-) (-,0) have one decoy each; party 0 is in four, party 1 in three.
    assert messages[0].lengths.tolist() == [6]
    assert messages[1].lengths.tolist() == [5]
    assert messages[0].lows.shape == (6,)
    assert messages[0].bitmaps.shape == (513,)  # six tags and 4096 ranges, one bit each
    assert messages[0].labels.shape == (1,)  # six labels of one bit
    assert messages[1].labels.shape == (0,)  # one cluster needs no bits
    tables = count(messages, groups=((0, 1),), widths=(2, 1))
    assert tables[0, 1].tolist() == [[1, 2], [2, 1], [2, 0]]
    noisy_tables = add_server_noise(ONE_DECOY, tables, noise=NOISE)
    estimator = DecoyEstimator(law=ONE_DECOY, noisy_tables=noisy_tables, n_local_clusters=(2, 1))
    assert estimator.groups == ((0, 1),)
    assert estimator.joint((0, 1)).tolist() == [[0.0], [1.0]]
    assert estimator.joint((1, 0)).tolist() == [[0.0, 1.0]]
    assert estimator.one(0).tolist() == [1.0, 1.0]
    assert estimator.one(1).tolist() == [2.0]


# ---- encode, then join ----


@pytest.mark.parametrize("overlap", [1.0, 0.6])
@pytest.mark.parametrize("groups", [JOINT, PAIRS])
def test_join_agrees_with_a_plain_one_and_contains_the_users(groups, overlap):
    users = users_of(120, overlap=overlap)
    messages = send(users, groups=groups)
    tables = count(messages, groups=groups)
    # The same key without users gives the decoys alone; a run must never do this.
    decoys = count(send([{}, {}, {}], groups=groups), groups=groups)
    for group in groups:
        np.testing.assert_array_equal(tables[group], naive_counts(messages, group, groups=groups))
        np.testing.assert_array_equal(tables[group] - decoys[group], true_cells(users, group))
        flat = decoys[group].ravel()
        assert flat[-1] == 0
        assert 0 <= flat[:-1].min() <= flat[:-1].max() <= 2 * LAW.truncation
        assert len(set(flat[:-1].tolist())) > 3


def test_groups_share_nothing():
    messages = send(users_of(50), groups=((0, 1), (0, 2)))
    first, second = (set(tags_of(messages[0], group)) for group in (0, 1))
    # By chance one of some 500,000 pairs has the same 28 bits once in 500 keys.
    assert len(first & second) <= 1


@given(st.permutations(range(12)))
@settings(max_examples=20, deadline=None)
def test_row_order_does_not_show(order):
    users = users_of(12)
    shuffled = [{name: own[name] for name in (f"id-{i}" for i in order)} for own in users]
    assert all(map(same, send(users), send(shuffled)))


def test_another_key_changes_every_tag_and_the_decoys():
    users = users_of(30)
    first, second = send(users), send(users, run_key=b"another run key of 32 bytes here")
    assert len(set(tags_of(first[0])) & set(tags_of(second[0]))) <= 1
    assert (count(first)[0, 1, 2] != count(second)[0, 1, 2]).any()


def test_messages_survive_the_wire():
    messages = send(users_of(40), groups=PAIRS)
    received = [codec.decode(codec.encode(message)) for message in messages]
    for group, table in count(received, groups=PAIRS).items():
        np.testing.assert_array_equal(table, count(messages, groups=PAIRS)[group])


# ---- sampling and collusion ----


def test_sampling_keeps_the_same_users_everywhere_and_all_decoys():
    users = users_of(200)
    names = list(users[0])
    words = hash_ids(keys.subkey(KEY, keys.SAMPLE), pa.array(names))[:, 0]
    kept = {name for name, word in zip(names, words.tolist(), strict=True) if word < 2**62}
    assert 25 < len(kept) < 75
    sampled = [{name: own[name] for name in own if name in kept} for own in users]
    options = {"groups": PAIRS}
    assert all(map(same, send(users, sample_rate=0.25, **options), send(sampled, **options)))


def test_collusion_randomises_users_once_and_decoys_never():
    users = users_of(200)
    labels = np.array(list(users[1].values()), dtype=np.int32)
    response = collusion_law(0.7, n_local_clusters=5)
    reports = randomise(response, labels, noise=InsecureSeededNoise(3))
    assert 0.1 < (reports == labels).mean() < 0.9
    options = {"position": 1, "groups": PAIRS, "n_local_clusters": WIDTHS, "run_key": KEY}
    options |= {"high_bits": HIGH_BITS, "noise": InsecureSeededNoise(3)}
    ids = pa.array(list(users[1]))
    sent = encode(LAW, users=MemoryUsers(ids=ids, labels=labels), collusion=response, **options)
    expected = encode(LAW, users=MemoryUsers(ids=ids, labels=reports), **options)
    assert same(sent, expected)


def test_collusion_must_be_a_response_on_the_party_s_labels():
    with pytest.raises(ParameterError, match="randomised response on 3 labels"):
        send(
            [{"a": 1}],
            groups=((0,),),
            widths=(3,),
            collusion=collusion_law(1.0, n_local_clusters=4),
        )


# ---- what a party is refused ----


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"labels": np.zeros(2, dtype=np.int32)},
            "labels must be 32-bit integers of shape \\(3,\\)",
        ),
        ({"labels": np.zeros(3)}, "labels must be 32-bit integers"),
        ({"labels": np.array([0, 1, 3], dtype=np.int32)}, "labels must be between 0 and 2"),
        ({"position": 2}, "position must be below 2"),
        ({"position": -1}, "position must be a whole number >= 0"),
        ({"sample_rate": 0.0}, "sample_rate must be > 0"),
        ({"groups": ()}, "groups must be one or more different groups"),
        ({"groups": ((0, 1), (0, 1))}, "groups must be one or more different groups"),
        ({"groups": ((1, 0),)}, "groups must hold ascending positions"),
        ({"groups": ((0, 2),)}, "groups must hold ascending positions"),
        ({"groups": ((),)}, "groups must hold ascending positions"),
        ({"n_local_clusters": (3, 0)}, "n_local_clusters must be a whole number >= 1"),
        ({"n_local_clusters": (3, 256)}, "n_local_clusters must be <= 255"),
    ],
)
def test_bad_input_is_refused(changes, message):
    valid = {
        "ids": pa.array(["a", "b", "c"]),
        "labels": np.array([0, 1, 2], dtype=np.int32),
        "position": 0,
        "groups": ((0, 1),),
        "n_local_clusters": (3, 4),
        "run_key": KEY,
        "high_bits": HIGH_BITS,
        "noise": NOISE,
    }
    arguments = {**valid, **changes}
    ids, labels = arguments.pop("ids"), arguments.pop("labels")
    with pytest.raises(ParameterError, match=message):
        encode(LAW, users=MemoryUsers(ids=ids, labels=labels), **arguments)


def test_a_party_outside_all_groups_sends_nothing():
    message = send(users_of(5), groups=((0, 1),))[2]
    assert message.lengths.size == message.lows.size == message.labels.size == 0


# ---- layout ----


@given(st.integers(1, 255), st.data())
@settings(max_examples=50, deadline=None)
def test_packing_has_an_inverse(n_clusters, data):
    values = data.draw(st.lists(st.integers(0, n_clusters - 1), max_size=30))
    packed = pack(np.array(values, dtype=np.uint8), n_clusters=n_clusters)
    assert packed.shape == (packed_size(len(values), n_clusters=n_clusters),)
    assert packed.size * 8 < len(values) * max(1, (n_clusters - 1).bit_length()) + 8
    assert unpack(packed, len(values), n_clusters=n_clusters).tolist() == values


def test_packing_by_hand():
    # Three bits each, low end first: 1 -> 001, 5 -> 101, 3 -> 011.
    packed = pack(np.array([1, 5, 3], dtype=np.uint8), n_clusters=6)
    assert packed.tolist() == [0b11101001, 0b0]


@pytest.mark.parametrize(
    ("packed", "message"),
    [([1], "wrong size"), ([0b111, 0], "labels must be below 6"), ([0, 0b10], "bits set after")],
)
def test_bytes_that_no_party_makes_are_refused(packed, message):
    with pytest.raises(ProtocolError, match=message):
        unpack(np.array(packed, dtype=np.uint8), 3, n_clusters=6)


def test_cells():
    shape = cell_shape((0, 2), n_local_clusters=WIDTHS)
    assert shape == (4, 3)
    assert cell_count(shape) == 11
    assert [own_cell_count(shape, axis) for axis in (0, 1)] == [9, 8]
    assert check_groups([[0, 1]], n_local_clusters=(2, 2)) == ((0, 1),)
    with pytest.raises(ParameterError, match="cells, more than"):
        cell_shape((0, 1, 2, 3), n_local_clusters=(200,) * 4)


# ---- what a server refuses ----


def spoil(message: DecoyMessage, what: str) -> DecoyMessage:
    parts = {name: own.copy() for name, own in vars(message).items()}
    match what:
        case "large label":
            parts["labels"][0] |= 0b11
        case "missing group":
            parts["lengths"] = parts["lengths"][:-1]
        case "negative length":
            first = parts["lengths"][0] + 1
            parts["lengths"][:2] += [-first, first]
        case "moved record":
            parts["lengths"][:2] += [-1, 1]
        case "flat bits":
            parts["lows"] = parts["lows"].reshape(-1, 1)
        case "missing lows" | "missing bitmaps" | "missing labels":
            name = what.split()[1]
            parts[name] = parts[name][:-1]
        case "another mark":
            parts["bitmaps"][100] ^= 1
    return replace(message, **parts)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("large label", "records of party 0: labels must be below 3"),
        ("missing group", "party 0 must send 2 lengths"),
        ("negative length", "party 0 must send 2 lengths that are not negative"),
        ("moved record", "records of party 0|party 0 must send"),
        ("missing lows", "party 0 must send .* low bits of tags"),
        ("flat bits", "party 0 must send .* low bits of tags"),
        ("missing bitmaps", "party 0 must send .* bytes of bitmaps"),
        ("missing labels", "party 0 must send .* bytes of packed labels"),
        ("another mark", "records of party 0: (the bitmap|tags must|tags crowd)"),
    ],
)
def test_bad_messages_are_refused(what, message):
    messages = send(users_of(20), groups=PAIRS)
    with pytest.raises(ProtocolError, match=message):
        count([spoil(messages[0], what), *messages[1:]], groups=PAIRS)


def test_tags_that_repeat_are_sent_and_counted_nowhere():
    """Two users of a party whose short tags agree are no event that anybody sees."""
    users = [{f"id-{user}": 0 for user in range(4000)}, {}]
    law, groups, widths = ONE_DECOY, ((0, 1),), (1, 1)
    options = {"law": law, "groups": groups, "widths": widths, "high_bits": 0}
    messages = send(users, **options)
    tags = messages[0].lows.tolist()
    repeated = sum(tags.count(tag) > 1 for tag in tags)
    assert repeated > 100
    assert len(tags) == 4000 + 2
    found = count(messages, groups=groups, widths=widths, high_bits=0)[0, 1]
    shared = len(set(tags) & set(messages[1].lows.tolist()))
    assert found.sum() <= len(set(tags)) + 2
    assert found[0, 1] == pytest.approx(4000 + 2 - repeated - shared, abs=2)


def test_wrong_number_of_messages_is_refused():
    with pytest.raises(ProtocolError, match="expected 3 messages, got 2"):
        count(send(users_of(5))[:2])


# ---- estimator ----


def tables_of(seed: int, *, groups, widths=WIDTHS):
    rng = np.random.default_rng(seed)
    shapes = {group: cell_shape(group, n_local_clusters=widths) for group in groups}
    return {group: rng.integers(0, 99, size=shape) for group, shape in shapes.items()}


def estimator_of(groups, **options: Any) -> DecoyEstimator:
    tables = options.pop("tables", tables_of(1, groups=groups))
    options = {"n_local_clusters": WIDTHS, **options}
    return DecoyEstimator(law=LAW, noisy_tables=tables, **options)


def test_margins_leave_out_absent_labels_of_the_asked_parties_only():
    estimator = estimator_of(JOINT)
    table = estimator.noisy_tables[0, 1, 2]
    t = LAW.truncation
    np.testing.assert_array_equal(estimator.joint((0, 1, 2)), table[:3, :5, :2] - t)
    np.testing.assert_array_equal(estimator.joint((2, 0)), (table.sum(axis=1)[:3, :2] - 6 * t).T)
    np.testing.assert_array_equal(estimator.one(1), table.sum(axis=(0, 2))[:5] - 12 * t)


def test_one_party_is_averaged_over_its_groups():
    estimator = estimator_of(PAIRS)
    t = LAW.truncation
    first = estimator.noisy_tables[0, 1].sum(axis=1)[:3] - 6 * t
    second = estimator.noisy_tables[0, 2].sum(axis=1)[:3] - 3 * t
    np.testing.assert_allclose(estimator.one(0), (first / 6 + second / 3) / (1 / 6 + 1 / 3))
    per_cell = float(LAW.variance) + LAW.server_sigma**2
    assert estimator.deviation((0,)) == pytest.approx((per_cell / (1 / 6 + 1 / 3)) ** 0.5)
    assert estimator.deviation((0, 1)) == pytest.approx(per_cell**0.5)


def test_permuting_parties_permutes_axes():
    estimator = estimator_of(
        JOINT, collusion=tuple(collusion_law(2.0, n_local_clusters=width) for width in WIDTHS)
    )
    straight = estimator.joint((0, 1, 2))
    for order in itertools.permutations(range(3)):
        np.testing.assert_allclose(estimator.joint(order), np.transpose(straight, order))


def test_sampling_scales_up():
    whole, half = estimator_of(JOINT), estimator_of(JOINT, sample_rate=0.5)
    np.testing.assert_allclose(half.joint((0, 1)), 2 * whole.joint((0, 1)))
    # Noise doubles, and each of the users adds 1/q - 1 = 1 over the 15 cells.
    users = half.joint((0, 1)).sum()
    expected = 4 * whole.deviation((0, 1)) ** 2 + users / 15
    assert half.deviation((0, 1)) ** 2 == pytest.approx(expected)


def test_inversion_undoes_the_expected_response():
    responses = (
        collusion_law(1.0, n_local_clusters=3),
        None,
        collusion_law(0.5, n_local_clusters=2),
    )
    raw_table = tables_of(5, groups=((0, 2),))[0, 2].astype(float)
    raw_table[-1, -1] = 0
    expected = raw_table
    for axis, response in ((0, responses[0]), (1, responses[2])):
        p, q, width = response.true_support, response.false_support, response.n_local_clusters
        matrix = np.eye(width + 1)
        matrix[:-1, :-1] = np.where(np.eye(width, dtype=bool), float(p), float(q))
        expected = np.moveaxis(np.tensordot(matrix, expected, axes=(1, axis)), 0, axis)
    # Tables hold whole numbers, so both are multiplied until rounding does not matter.
    table = np.rint(expected * 2**40).astype(np.int64) + LAW.truncation
    estimator = estimator_of(((0, 2),), tables={(0, 2): table}, collusion=responses)
    np.testing.assert_allclose(estimator.joint((0, 2)) / 2**40, raw_table[:-1, :-1], rtol=1e-9)
    with_absent = estimator.with_absent((0, 2)) / 2**40
    np.testing.assert_allclose(with_absent, raw_table, rtol=1e-9, atol=1e-9)


def test_answers_are_copies():
    estimator = estimator_of(PAIRS)
    first = estimator.joint((0, 1))
    kept = first.copy()
    first *= 0
    np.testing.assert_array_equal(estimator.joint((0, 1)), kept)


def test_noise_is_drawn_for_every_cell_but_the_one_that_does_not_exist():
    counts = tables_of(2, groups=PAIRS)
    before = {group: table.copy() for group, table in counts.items()}
    noisy = add_server_noise(replace(LAW, server_sigma=40.0), counts, noise=InsecureSeededNoise(1))
    for group, table in noisy.items():
        np.testing.assert_array_equal(counts[group], before[group])
        change = (table - counts[group]).ravel()
        assert change[-1] == 0
        assert (change[:-1] != 0).mean() > 0.8


@pytest.mark.parametrize("parties", [[], [0, 0], [3], [-1, 0]])
def test_wrong_parties_are_refused(parties):
    with pytest.raises(ParameterError, match="parties must be"):
        estimator_of(JOINT).joint(parties)


def test_parties_must_share_a_group():
    with pytest.raises(ParameterError, match="parties must be together in a group"):
        estimator_of(PAIRS).joint((0, 1, 2))
    with pytest.raises(ParameterError, match="parties must be together in a group"):
        estimator_of(((0, 1),)).deviation((2,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collusion": (None,)}, "collusion must have 3 entries, got 1"),
        (
            {"collusion": (collusion_law(1.0, n_local_clusters=4), None, None)},
            "collusion must be a randomised response on 3 labels",
        ),
        ({"sample_rate": 2.0}, "sample_rate must be <= 1"),
        ({"tables": {}}, "groups must be one or more"),
        (
            {"tables": {(0, 1): np.zeros((3, 5), dtype=np.int64)}},
            "must be 64-bit integers of shape",
        ),
        ({"tables": {(0, 1): np.zeros((4, 6))}}, "must be 64-bit integers of shape"),
    ],
)
def test_bad_estimators_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        estimator_of(JOINT, **options)
