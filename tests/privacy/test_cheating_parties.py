"""Whatever fellow parties send, a user of an honest party moves two counts by one (obligation O6).

The server's own noise is made for that much. So whatever passes the server's checks must keep to
it; a twin without one of the checks shows that the check is needed.
"""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack
from splitmeans.membership.decoy.tag_lists import LOW_BITS, code_tags
from splitmeans.wire.messages import DecoyMessage

WIDTHS = (3, 2, 2)
GROUPS = ((0, 1, 2),)
LARGEST_TAG = 11


def message(tags: list[int], labels: list[int], *, party: int) -> DecoyMessage:
    """What a party sends; tags in any order are sent as they are, which the server refuses."""
    order = np.argsort(tags, kind="stable")
    words = np.array(tags, dtype=np.uint64)[order] << np.uint64(64 - LOW_BITS)
    _, bitmap = code_tags(words, high_bits=0)
    return DecoyMessage(
        lengths=np.array([len(labels)], dtype=np.int64),
        lows=np.array(tags, dtype=np.uint16),
        bitmaps=bitmap,
        labels=pack(np.array(labels, dtype=np.uint8), n_clusters=WIDTHS[party]),
    )


def counted(messages: list[DecoyMessage]) -> IntArray:
    found = join_counts(messages, groups=GROUPS, n_local_clusters=WIDTHS, high_bits=0)
    return found[GROUPS[0]]


def records(party: int, *, honest: bool) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Tags with labels, which repeat; those of an honest party ascend, a cheating one sends any."""
    record = st.tuples(st.integers(0, LARGEST_TAG), st.integers(0, WIDTHS[party] - 1))
    if not honest:
        return st.lists(record, max_size=14)
    return st.lists(record, min_size=1, max_size=8).map(sorted)


@settings(max_examples=200, deadline=None)
@given(
    own=records(0, honest=True),
    one=records(1, honest=False),
    two=records(2, honest=False),
    sort=st.booleans(),
    data=st.data(),
)
def test_a_changed_or_removed_user_moves_two_counts_by_one(
    own: list[tuple[int, int]],
    one: list[tuple[int, int]],
    two: list[tuple[int, int]],
    sort: bool,
    data: st.DataObject,
) -> None:
    if sort:  # else hardly any lie would pass the checks
        one, two = sorted(one), sorted(two)
    others = [message(*columns(given), party=party) for party, given in ((1, one), (2, two))]
    place = data.draw(st.integers(0, len(own) - 1))
    changed = list(own)
    changed[place] = own[place][0], (own[place][1] + 1) % WIDTHS[0]
    worlds = [own, sorted(changed), own[:place] + own[place + 1 :]]
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


def test_a_usual_join_would_count_one_user_many_times() -> None:
    """The broken twin: every record of a tag with every other one, where tags repeat."""
    others = [[(7, 1)] * 2, [(7, 1)] * 2]
    moved = paired([[(7, 0)], *others]) - paired([[(7, 1)], *others])
    assert np.abs(moved).max() == 4
    worlds = [[[(7, own)], *others] for own in (0, 1)]
    tables = [
        counted([message(*columns(given), party=party) for party, given in enumerate(world)])
        for world in worlds
    ]
    assert not tables[0].any()
    assert not tables[1].any()
