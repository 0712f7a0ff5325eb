"""Whatever fellow parties send, a user of an honest party moves two counts by one (obligation O6).

The server's own noise is made for that much. So whatever passes the server's checks must keep to
it; a twin without one of the checks shows that the check is needed.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.counts import count_joined
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack
from splitmeans.wire.messages import DecoyMessage

WIDTHS = (3, 2, 2)
GROUPS = ((0, 1, 2),)
LARGEST_TAG = 11


def message(tags: list[int], labels: list[int], *, party: int, equal_sets: bool) -> DecoyMessage:
    words = np.array([[0, tag] for tag in tags], dtype=np.uint64).reshape(-1, 2)
    packed = pack(np.array(labels, dtype=np.uint8), n_clusters=WIDTHS[party])
    return DecoyMessage(
        lengths=np.array([len(labels)], dtype=np.int64),
        tags=words[:0] if equal_sets else words,
        labels=packed,
    )


def counted(messages: list[DecoyMessage], *, equal_sets: bool) -> IntArray:
    return join_counts(messages, groups=GROUPS, n_local_clusters=WIDTHS)[GROUPS[0]]


def records(party: int, *, honest: bool) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Tags with labels; those of an honest party ascend, a cheating one sends any."""
    record = st.tuples(st.integers(0, LARGEST_TAG), st.integers(0, WIDTHS[party] - 1))
    if not honest:
        return st.lists(record, max_size=14)
    unique = st.lists(record, min_size=1, max_size=8, unique_by=lambda pair: pair[0])
    return unique.map(sorted)


@settings(max_examples=200, deadline=None)
@given(
    own=records(0, honest=True),
    one=records(1, honest=False),
    two=records(2, honest=False),
    sort=st.booleans(),
    equal_sets=st.booleans(),
    data=st.data(),
)
def test_a_changed_or_removed_user_moves_two_counts_by_one(
    own: list[tuple[int, int]],
    one: list[tuple[int, int]],
    two: list[tuple[int, int]],
    sort: bool,
    equal_sets: bool,
    data: st.DataObject,
) -> None:
    if sort:  # else hardly any lie would pass the checks
        one, two = sorted(dict(one).items()), sorted(dict(two).items())
    if equal_sets and sort:
        one, two = (given * len(own) for given in (one[:1] or [(0, 0)], two[:1] or [(0, 0)]))
    others = [message(*columns(given), party=party) for party, given in ((1, one), (2, two))]
    place = data.draw(st.integers(0, len(own) - 1))
    changed = list(own)
    changed[place] = own[place][0], (own[place][1] + 1) % WIDTHS[0]
    worlds = [own, changed]
    if not equal_sets:
        worlds.append(own[:place] + own[place + 1 :])
    tables = []
    for world in worlds:
        first = message(*columns(world), party=0)
        try:
            tables.append(counted([first, *others]))
        except ProtocolError:
            assert not tables  # whether it is refused does not depend on the user
            return
    for table in tables[1:]:
        moved = np.abs(table - tables[0])
        assert moved.max() <= 1
        assert moved.sum() <= 2


def columns(given: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [tag for tag, _ in given], [label for _, label in given]


def paired(lists: list[list[tuple[int, int]]]) -> IntArray:
    """A join as databases do it: every record of a tag with every other party's of that tag."""
    table = np.zeros([width + 1 for width in WIDTHS], dtype=np.int64)
    for tag in {tag for sent in lists for tag, _ in sent}:
        labels = [[label for other, label in sent if other == tag] for sent in lists]
        cells = (own or [absent] for own, absent in zip(labels, WIDTHS, strict=True))
        for cell in itertools.product(*cells):
            table[cell] += 1
    return table


@settings(max_examples=100, deadline=None)
@given(lists=st.tuples(*(records(party, honest=True) for party in range(3))))
def test_what_passes_the_checks_is_joined_alike_by_any_join(
    lists: tuple[list[tuple[int, int]], ...],
) -> None:
    messages = [message(*columns(given), party=party) for party, given in enumerate(lists)]
    assert (counted(messages) == paired(list(lists))).all()


def test_without_the_check_of_tags_one_user_is_counted_many_times() -> None:
    """The broken twin: tags may repeat, and the join is the usual one."""
    others = [[(7, 1)] * 2, [(7, 1)] * 2]
    moved = paired([[(7, 0)], *others]) - paired([[(7, 1)], *others])
    assert np.abs(moved).max() == 4
    messages = [
        message(*columns(given), party=party) for party, given in enumerate([[(7, 0)], *others])
    ]
    with pytest.raises(ProtocolError, match="tags of party 1 must ascend and not repeat"):
        counted(messages)


def test_without_equal_lengths_a_position_is_no_user() -> None:
    """Refused before anything is counted, whoever has more."""
    short = message([], [0, 1], party=1)
    long = message([], [0, 1, 1], party=0)
    two = message([], [0, 1, 1], party=2)
    with pytest.raises(ProtocolError, match="must send equally many records"):
        counted([long, short, two])
    with pytest.raises(ProtocolError, match="must send equally many records"):
        counted([replace(long, lengths=np.array([2]), labels=short.labels), short, two])


def test_the_join_counts_every_record_once() -> None:
    tags = [np.array([[0, 1], [0, 5]], dtype=np.uint64), np.array([[0, 5]], dtype=np.uint64)]
    labels = [np.array([0, 1], dtype=np.uint8), np.array([0], dtype=np.uint8)]
    table = count_joined(tags, labels, shape=(3, 2))
    assert table.tolist() == [[0, 1], [1, 0], [0, 0]]
