"""The presence table beside pair tables: who is at which parties, under decoys of its own law."""

import dataclasses
import itertools

import numpy as np
import pyarrow as pa
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers

# One decoy a cell, three in the presence table: nearly certain with so small a scale.
PAIR = DecoyLaw(sigma=0.05, truncation=1, server_sigma=0.01)
PRESENCE = DecoyLaw(sigma=0.05, truncation=3, server_sigma=0.01)
GROUPS = ((0, 1), (0, 2), (1, 2), (0, 1, 2))
WIDTHS = (2, 1, 3)
KEY = bytes(range(32))
# a is at all parties, b at two, c and d at one.
USERS = [{"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 0}, {"a": 2, "d": 1}]


def send(
    users=USERS, *, groups=GROUPS, widths=WIDTHS, presence=PRESENCE, collusion=None, **options
):
    return [
        encode(
            PAIR,
            users=MemoryUsers(
                ids=pa.array(list(own), type=pa.large_string()),
                labels=np.array(list(own.values()), dtype=np.int32),
            ),
            position=party,
            groups=groups,
            n_local_clusters=widths,
            run_key=KEY,
            high_bits=12,
            presence=presence,
            collusion=None if collusion is None else collusion[party],
            noise=InsecureSeededNoise(party),
            **options,
        )
        for party, own in enumerate(users)
    ]


def count(messages):
    return join_counts(
        messages, groups=GROUPS, n_local_clusters=WIDTHS, high_bits=12, presence=True
    )


def estimator_of(messages, **options):
    noisy = add_server_noise(PAIR, count(messages), noise=InsecureSeededNoise(9), presence=PRESENCE)
    return DecoyEstimator(
        law=PAIR,
        noisy_tables=noisy,
        n_local_clusters=WIDTHS,
        presence_law=PRESENCE,
        **options,
    )


def test_hand_case():
    tables = count(send())
    # Present is 0, absent 1; three decoys in each cell, none where all are absent.
    expected = np.full((2, 2, 2), 3)
    expected[1, 1, 1] = 0
    expected[0, 0, 0] += 1  # a
    expected[0, 0, 1] += 1  # b
    expected[0, 1, 1] += 1  # c
    expected[1, 1, 0] += 1  # d
    np.testing.assert_array_equal(tables[0, 1, 2], expected)
    # One decoy in each cell of a pair; absent is the last label.
    np.testing.assert_array_equal(tables[0, 1], [[2, 2], [2, 1], [1, 0]])


def test_the_estimator_reads_pairs_and_presence_apart():
    estimator = estimator_of(send())
    counts, deviation = estimator.presence()
    assert counts[0, 0, 0] == counts[0, 0, 1] == counts[0, 1, 1] == counts[1, 1, 0] == 1
    assert counts.sum() == 4
    variance = float(PRESENCE.variance) + PRESENCE.server_sigma**2
    assert deviation == pytest.approx(variance**0.5)
    np.testing.assert_array_equal(estimator.with_absent((0, 1)), [[1, 1], [1, 0], [0, 0]])
    # Pairs are averaged over pairs alone: labels of the presence table mean something else.
    np.testing.assert_array_equal(estimator.joint((0, 1)), [[1], [1]])
    np.testing.assert_array_equal(estimator.one(2), [0, 1, 1])
    with pytest.raises(ParameterError, match="together in a group"):
        estimator.joint((0, 1, 2))


def test_without_a_presence_table_of_three_parties_there_is_none_to_read():
    estimator = dataclasses.replace(
        estimator_of(send()),
        presence_law=None,
        noisy_tables={(0, 1): np.zeros((3, 2), dtype=np.int64)},
    )
    with pytest.raises(ParameterError, match="no presence table"):
        estimator.presence()


def test_presence_of_two_parties_is_in_the_margins_of_their_table():
    table = np.array([[4, 3, 9], [2, 1, 8], [7, 6, 1]], dtype=np.int64)
    estimator = DecoyEstimator(law=PAIR, noisy_tables={(0, 1): table}, n_local_clusters=(2, 2))
    counts, deviation = estimator.presence()
    # One decoy is expected in each cell.
    assert counts.tolist() == [[10 - 4, 17 - 2], [13 - 2, 0]]
    per_cell = float(PAIR.variance) + PAIR.server_sigma**2
    assert deviation == pytest.approx((4 * per_cell) ** 0.5)
    assert estimator.with_absent((0, 1)).tolist() == [[3, 2, 8], [1, 0, 7], [6, 5, 0]]


def test_a_user_changes_one_cell_of_each_table_it_is_in():
    """At p of S parties: C(S, 2) - C(S - p, 2) pair tables, and one cell of the presence table."""
    names = range(3)
    for present in itertools.chain(*(itertools.combinations(names, p) for p in (1, 2, 3))):
        more = [
            {**own, **({"new": 0} if party in present else {})} for party, own in enumerate(USERS)
        ]
        before, after = count(send()), count(send(more))
        for group in GROUPS:
            change = after[group] - before[group]
            touched = bool(set(group) & set(present))
            assert np.abs(change).sum() == touched
            assert change.sum() == touched


def test_records_of_the_presence_table_have_no_label_and_tags_of_their_own():
    both = send()
    pairs = send(groups=GROUPS[:-1], presence=None)
    for party, (message, without) in enumerate(zip(both, pairs, strict=True)):
        assert len(message.lengths) == len(without.lengths) + 1
        # Three decoys in four of seven cells, and the party's users.
        assert message.lengths[-1] == 12 + len(USERS[party])
        np.testing.assert_array_equal(message.labels, without.labels)
        np.testing.assert_array_equal(message.lows[: len(without.lows)], without.lows)
        assert len(message.lows) == len(without.lows) + message.lengths[-1]


def test_randomised_labels_are_inverted_where_the_party_is_present():
    laws = tuple(collusion_law(1.0, n_local_clusters=width) for width in WIDTHS)
    estimator = estimator_of(send(collusion=laws), collusion=laws)
    table = estimator.with_absent((0, 2))
    # The inverse keeps sums over labels, so presence is exact whatever was reported.
    assert table[:-1, :-1].sum() == pytest.approx(1)
    assert table[:-1, -1].sum() == pytest.approx(2)
    assert table[-1, :-1].sum() == pytest.approx(1)
    assert estimator.presence()[0].sum() == 4


def test_a_sample_is_the_same_users_in_all_tables():
    users = [{f"user {i}": 0 for i in range(4000)} for _ in range(3)]
    estimator = estimator_of(send(users, sample_rate=0.25), sample_rate=0.25)
    counts, deviation = estimator.presence()
    # 1000 of 4000 expected; six deviations of a binomial number.
    assert counts[0, 0, 0] == counts.sum()
    assert abs(counts[0, 0, 0] - 4000) < 6 * (4000 * 3) ** 0.5
    assert deviation == pytest.approx((3 * counts[0, 0, 0]) ** 0.5, rel=0.01)
    assert estimator.joint((0, 1)).sum() == counts[0, 0, 0]


def test_a_message_without_the_presence_table_is_refused():
    messages = send(groups=GROUPS[:-1], presence=None)
    with pytest.raises(ProtocolError, match="must send 3 lengths"):
        count(messages)
