"""The join piece by piece: the counts of a dictionary, whatever the pieces and the tags are."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ProtocolError
from splitmeans.membership.decoy.encode import joined_messages
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack, unpack, unpack_part
from splitmeans.membership.decoy.tag_lists import LOW_BITS, code_tags
from splitmeans.wire.messages import DecoyMessage
from splitmeans.wire.on_disk import kept_on_disk

WIDTHS = (3, 5, 2)
PAIRS = ((0, 1), (0, 2), (1, 2))
HIGH_BITS = 6
BITS = LOW_BITS + HIGH_BITS


def table_of(tags: list[int], labels: list[int], width: int) -> DecoyMessage:
    """The records of one table; tags are whole numbers, ascending."""
    words = np.array(tags, dtype=np.uint64) << np.uint64(64 - BITS)
    lows, bitmap = code_tags(words, high_bits=HIGH_BITS)
    return DecoyMessage(
        lengths=np.array([len(tags)], dtype=np.int64),
        lows=lows,
        bitmaps=bitmap,
        labels=pack(np.array(labels, dtype=np.uint8), n_clusters=width),
    )


def counts_by_hand(parts, *, shape) -> np.ndarray:
    """Every tag at every party that has it, unless one of them has it twice."""
    counts = np.zeros(shape, dtype=np.int64)
    for tag in {tag for tags, _ in parts for tag in tags}:
        if all(tags.count(tag) <= 1 for tags, _ in parts):
            cell = tuple(
                labels[tags.index(tag)] if tag in tags else width - 1
                for (tags, labels), width in zip(parts, shape, strict=True)
            )
            counts[cell] += 1
    return counts


# Few values as well, so that tags repeat and a piece ends beside them.
TAGS = st.lists(
    st.one_of(st.integers(0, 2**BITS - 1), st.integers(0, 5), st.just(2**BITS - 1)), max_size=40
)


@settings(max_examples=100, deadline=None)
@given(st.tuples(TAGS, TAGS, TAGS), st.randoms(), st.integers(41, 200))
def test_counts_are_those_of_a_dictionary(lists, random, piece):
    shared = random.sample(lists[0], len(lists[0]) // 2)
    parts = [
        (tags, [random.randrange(width) for _ in tags])
        for tags, width in zip((sorted([*own, *shared]) for own in lists), WIDTHS, strict=True)
    ]
    found = join_counts(
        [table_of(*part, width) for part, width in zip(parts, WIDTHS, strict=True)],
        groups=((0, 1, 2),),
        n_local_clusters=WIDTHS,
        high_bits=HIGH_BITS,
        piece_records=piece,
    )
    shape = tuple(width + 1 for width in WIDTHS)
    assert (found[0, 1, 2] == counts_by_hand(parts, shape=shape)).all()


def made_up(n_records: int, *, seed: int = 0) -> list[DecoyMessage]:
    """Messages of three parties in pairs, about half of the tags shared."""
    rng = np.random.default_rng(seed)
    parts: list[list[DecoyMessage]] = [[], [], []]
    for group in PAIRS:
        pool = rng.integers(2**BITS, size=2 * n_records)
        for party in group:
            tags = np.sort(rng.permutation(pool)[:n_records]).tolist()
            labels = rng.integers(WIDTHS[party], size=n_records).tolist()
            parts[party].append(table_of(tags, labels, WIDTHS[party]))
    return [joined_messages(own) for own in parts]


@pytest.mark.parametrize("n_records", [0, 1, 7, 1000])
def test_pieces_of_any_size_give_the_counts_of_one(n_records, tmp_path):
    messages = made_up(n_records)
    facts = {"groups": PAIRS, "n_local_clusters": WIDTHS, "high_bits": HIGH_BITS}
    whole = join_counts(messages, piece_records=10**6, **facts)
    on_disk = [kept_on_disk(message, tmp_path, held=0) for message in messages]
    for piece, own in itertools.product((60, 99, 999), (messages, on_disk)):
        found = join_counts(own, piece_records=piece, **facts)
        assert {group: table.tolist() for group, table in found.items()} == {
            group: table.tolist() for group, table in whole.items()
        }
    assert list(tmp_path.iterdir()) == []
    assert sum(table.sum() for table in whole.values()) >= n_records


def test_memory_holds_a_piece(monkeypatch):
    from splitmeans.membership.decoy import join

    sizes = []
    own = join.count_joined

    def noted(tags, labels, **facts):
        sizes.append([len(part) for part in tags])
        return own(tags, labels, **facts)

    monkeypatch.setattr(join, "count_joined", noted)
    join_counts(
        made_up(3000),
        groups=PAIRS,
        n_local_clusters=WIDTHS,
        high_bits=HIGH_BITS,
        piece_records=256,
    )
    assert max(max(size) for size in sizes) <= 256
    assert np.sum(sizes) == 6 * 3000


def test_all_tags_in_one_corner_are_no_larger_piece():
    """Tags are uniform where parties follow the rules; a party that does not is refused."""
    corner = table_of(list(range(1000)), [0] * 1000, 2)
    spread = table_of([place * 2**12 for place in range(1000)], [0] * 1000, 2)
    with pytest.raises(ProtocolError, match="records of party 0: tags crowd"):
        join_counts(
            [corner, spread],
            groups=((0, 1),),
            n_local_clusters=(2, 2),
            high_bits=HIGH_BITS,
            piece_records=64,
        )


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 17, 200, 256])
def test_parts_of_packed_labels(n_clusters):
    labels = np.random.default_rng(n_clusters).integers(n_clusters, size=53).astype(np.uint8)
    packed = pack(labels, n_clusters=n_clusters)
    assert (unpack(packed, 53, n_clusters=n_clusters) == labels).all()
    for start, end in ((0, 53), (0, 1), (7, 9), (8, 16), (50, 53), (13, 13), (53, 53)):
        found = unpack_part(packed, start, end, n_labels=53, n_clusters=n_clusters)
        assert found.tolist() == labels[start:end].tolist()


# ---- what a party must not send shows in whatever piece it is ----


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("swapped", "records of party 1: tags must ascend"),
        ("label", "records of party 1: labels must be below 5"),
        ("last label", "records of party 1: packed labels have bits set after the last record"),
    ],
)
@pytest.mark.parametrize("piece", [30, 1000])
def test_a_broken_record_is_refused_in_any_piece(how, said, piece):
    tags = sorted(range(0, 2**BITS, 2**BITS // 97))
    good = table_of(tags, [0] * len(tags), 5)
    lows, labels = good.lows.copy(), good.labels.copy()
    if how == "swapped":
        # Two of one range of high bits.
        lows[[2, 1]] = 2**15, 2**15 + 1
        tags[1:3] = [2**15, 2**15 + 1]
        good = table_of(tags, [0] * len(tags), 5)
        lows = good.lows.copy()
        lows[[1, 2]] = lows[[2, 1]]
    elif how == "label":
        labels[20] = 255
    else:
        labels[-1] |= 128
    bad = DecoyMessage(lengths=good.lengths, lows=lows, bitmaps=good.bitmaps, labels=labels)
    with pytest.raises(ProtocolError, match=said):
        join_counts(
            [table_of([], [], 3), bad],
            groups=((0, 1),),
            n_local_clusters=(3, 5),
            high_bits=HIGH_BITS,
            piece_records=piece,
        )
