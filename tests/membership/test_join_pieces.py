"""The join piece by piece: the counts of a dictionary, whatever the pieces and the tags are."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ProtocolError
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack, unpack, unpack_part
from splitmeans.wire.messages import DecoyMessage
from splitmeans.wire.on_disk import kept_on_disk

WIDTHS = (3, 5, 2)
PAIRS = ((0, 1), (0, 2), (1, 2))


def message_of(parts: list[tuple[list[tuple[int, int]], list[int]]], width: int) -> DecoyMessage:
    """One group after the other: tags and labels."""
    tags = [tag for own, _ in parts for tag in own]
    packed = [pack(np.array(labels, dtype=np.uint8), n_clusters=width) for _, labels in parts]
    return DecoyMessage(
        lengths=np.array([len(labels) for _, labels in parts], dtype=np.int64),
        tags=np.array(tags, dtype=np.uint64).reshape(-1, 2),
        labels=np.concatenate([np.zeros(0, dtype=np.uint8), *packed]),
    )


def counts_by_hand(parts, *, shape) -> np.ndarray:
    """Every tag at every party that has it, one after the other."""
    cells: dict[tuple[int, int], list[int]] = {}
    for axis, (tags, labels) in enumerate(parts):
        for tag, label in zip(tags, labels, strict=True):
            absent = [width - 1 for width in shape]
            cells.setdefault(tag, absent)[axis] = label
    counts = np.zeros(shape, dtype=np.int64)
    for cell in cells.values():
        counts[tuple(cell)] += 1
    return counts


# Few first words, so that pieces end between tags that only the second word tells apart.
TAGS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64 - 1)), unique=True, max_size=40)
WORDS = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3))
PARTY = st.one_of(TAGS, st.lists(WORDS, unique=True, max_size=40))


@settings(max_examples=60, deadline=None)
@given(st.tuples(PARTY, PARTY, PARTY), st.randoms(), st.integers(1, 50))
def test_counts_are_those_of_a_dictionary(lists, random, piece):
    shared = random.sample(lists[0], len(lists[0]) // 2)
    parts = [
        (tags, [random.randrange(width) for _ in tags])
        for tags, width in zip((sorted({*own, *shared}) for own in lists), WIDTHS, strict=True)
    ]
    found = join_counts(
        [message_of([part], width) for part, width in zip(parts, WIDTHS, strict=True)],
        groups=((0, 1, 2),),
        n_local_clusters=WIDTHS,
        equal_sets=False,
        piece_records=piece,
    )
    shape = tuple(width + 1 for width in WIDTHS)
    assert (found[0, 1, 2] == counts_by_hand(parts, shape=shape)).all()


def made_up(n_records: int, *, equal_sets: bool, seed: int = 0) -> list[DecoyMessage]:
    """Messages of three parties in pairs, about half of the tags shared."""
    rng = np.random.default_rng(seed)
    parts: list[list] = [[], [], []]
    for group in PAIRS:
        pool = rng.integers(2**64, size=(2 * n_records, 2), dtype=np.uint64)
        for party in group:
            chosen = pool[np.sort(rng.permutation(len(pool))[:n_records])]
            tags = [] if equal_sets else sorted(map(tuple, chosen.tolist()))
            parts[party].append((tags, rng.integers(WIDTHS[party], size=n_records).tolist()))
    return [message_of(own, width) for own, width in zip(parts, WIDTHS, strict=True)]


@pytest.mark.parametrize("equal_sets", [False, True])
@pytest.mark.parametrize("n_records", [0, 1, 7, 1000])
def test_pieces_of_any_size_give_the_counts_of_one(equal_sets, n_records, tmp_path):
    messages = made_up(n_records, equal_sets=equal_sets)
    facts = {"groups": PAIRS, "n_local_clusters": WIDTHS, "equal_sets": equal_sets}
    whole = join_counts(messages, piece_records=10**6, **facts)
    on_disk = [kept_on_disk(message, tmp_path, held=0) for message in messages]
    for piece, own in itertools.product((1, 8, 13, 999), (messages, on_disk)):
        found = join_counts(own, piece_records=piece, **facts)
        assert {group: table.tolist() for group, table in found.items()} == {
            group: table.tolist() for group, table in whole.items()
        }
    assert list(tmp_path.iterdir()) == []
    assert sum(table.sum() for table in whole.values()) >= n_records


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 17, 200, 256])
def test_parts_of_packed_labels(n_clusters):
    labels = np.random.default_rng(n_clusters).integers(n_clusters, size=53).astype(np.uint8)
    packed = pack(labels, n_clusters=n_clusters)
    assert (unpack(packed, 53, n_clusters=n_clusters) == labels).all()
    for start, end in ((0, 53), (0, 1), (7, 9), (8, 16), (50, 53), (13, 13), (53, 53)):
        found = unpack_part(packed, start, end, n_labels=53, n_clusters=n_clusters)
        assert found.tolist() == labels[start:end].tolist()


# ---- what a party must not send shows in whatever piece it is ----


def broken(place: int, *, how: str) -> tuple[list[DecoyMessage], str]:
    messages = made_up(100, equal_sets=False)
    bad = messages[1]
    tags, labels = bad.tags.copy(), bad.labels.copy()
    if how == "repeated":
        tags[place + 1] = tags[place]
    elif how == "swapped":
        tags[[place, place + 1]] = tags[[place + 1, place]]
    else:
        labels[place * 3 // 8] = 255
    messages[1] = DecoyMessage(lengths=bad.lengths, tags=tags, labels=labels)
    said = "records of party 1" if how == "label" else "tags of party 1 must ascend"
    return messages, said


@pytest.mark.parametrize("how", ["repeated", "swapped", "label"])
@pytest.mark.parametrize("place", [0, 9, 10, 11, 97])
@pytest.mark.parametrize("piece", [1, 10, 1000])
def test_a_broken_record_is_refused_in_any_piece(how, place, piece):
    messages, said = broken(place, how=how)
    with pytest.raises(ProtocolError, match=said):
        join_counts(
            messages,
            groups=PAIRS,
            n_local_clusters=WIDTHS,
            equal_sets=False,
            piece_records=piece,
        )


def test_a_bit_after_the_last_label_is_refused():
    messages = made_up(100, equal_sets=True)
    labels = messages[1].labels.copy()
    assert math.ceil(300 / 8) * 8 > 300
    labels[37] |= 128
    bad = DecoyMessage(lengths=messages[1].lengths, tags=messages[1].tags, labels=labels)
    with pytest.raises(ProtocolError, match="after the last record"):
        join_counts(
            [messages[0], bad, messages[2]],
            groups=PAIRS,
            n_local_clusters=WIDTHS,
            equal_sets=True,
            piece_records=10,
        )


def test_all_tags_in_one_corner_are_no_larger_piece(monkeypatch):
    """Tags are uniform where parties follow the rules; a party that does not gains no memory."""
    from splitmeans.membership.decoy import join

    sizes = []
    own = join.count_joined

    def noted(tags, labels, **facts):
        sizes.append([len(part) for part in tags])
        return own(tags, labels, **facts)

    monkeypatch.setattr(join, "count_joined", noted)
    corner = ([(0, place) for place in range(1000)], [0] * 1000)
    spread = ([(place * 2**50, 0) for place in range(1000)], [0] * 1000)
    messages = [message_of([part], 2) for part in (corner, spread)]
    join_counts(
        messages, groups=((0, 1),), n_local_clusters=(2, 2), equal_sets=False, piece_records=64
    )
    assert max(max(size) for size in sizes) == 64
    assert np.sum(sizes, axis=0).tolist() == [1000, 1000]
