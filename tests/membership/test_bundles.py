"""Bundles: which clusters share a label, by hand; the ring; and what a party sends of them."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles, ring_order
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import collusion_law, decoy_law
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers

PAIRS = ((0, 1), (0, 2), (1, 2))
BUNDLES = Bundles(n_local_clusters=(6, 6, 6), n_labels=(3, 3, 3))
LAW = decoy_law(0.5, delta_share=1e-6)


def test_labels_by_hand():
    # Six clusters on a ring, two to a label; a party later the ring is cut one cluster further on.
    assert BUNDLES.labels_of(0, 1).tolist() == [0, 0, 1, 1, 2, 2]
    assert BUNDLES.labels_of(0, 2).tolist() == [0, 1, 1, 2, 2, 0]
    assert BUNDLES.labels_of(1, 2).tolist() == [0, 0, 1, 1, 2, 2]
    assert BUNDLES.labels_of(2, 1).tolist() == [0, 1, 1, 2, 2, 0]
    # Five clusters in three labels: 0, 3, 6, 9 and 12 fifths.
    uneven = Bundles(n_local_clusters=(5, 5), n_labels=(3, 3))
    assert uneven.labels_of(0, 1).tolist() == [0, 0, 1, 1, 2]


@given(
    n_parties=st.integers(3, 16),
    clusters=st.integers(2, 64),
    data=st.data(),
)
def test_every_label_has_clusters_and_no_two_clusters_share_all_labels(n_parties, clusters, data):
    # With more than two clusters to a label, tables are too few to part all of them.
    labels = data.draw(st.integers(-(-clusters // 2), clusters))
    bundles = Bundles(n_local_clusters=(clusters,) * n_parties, n_labels=(labels,) * n_parties)
    seen = [bundles.labels_of(0, other) for other in range(1, n_parties)]
    for own in seen:
        sizes = np.bincount(own, minlength=labels)
        assert len(sizes) == labels
        assert sizes.min() >= 1
        assert sizes.max() <= 2
    if labels > 1:
        together = {tuple(own[cluster] for own in seen) for cluster in range(clusters)}
        assert len(together) == clusters


def test_bundles_of_one_are_the_clusters():
    bundles = Bundles(n_local_clusters=(4, 7), n_labels=(4, 7))
    assert bundles.is_trivial
    assert bundles.labels_of(1, 0).tolist() == list(range(7))
    assert not BUNDLES.is_trivial


@pytest.mark.parametrize("labels", [(4, 4), (0, 3), (3,)])
def test_bundles_that_are_none_are_refused(labels):
    with pytest.raises((ParameterError, ValueError)):
        Bundles(n_local_clusters=(3, 3), n_labels=labels)


def test_centres_that_repeat_are_not_in_use():
    three = np.arange(6)[:, np.newaxis].repeat(2, axis=1)
    repeated = np.concatenate([three[:3], np.repeat(three[2:3], 3, axis=0)])
    found = BUNDLES.in_use([three, repeated, three])
    assert found.n_local_clusters == (6, 3, 6)
    assert found.labels_of(1, 0).tolist() == found.labels_of(1, 2).tolist() == [0, 1, 2]
    assert found.labels_of(0, 2).tolist() == BUNDLES.labels_of(0, 2).tolist()
    assert BUNDLES.in_use([repeated] * 3).is_trivial
    assert BUNDLES.of_party(1, repeated) == found
    assert BUNDLES.of_party(1, three) == BUNDLES


class TestRing:
    def test_a_circle_is_walked_around(self):
        angles = np.random.default_rng(0).permutation(12) * 2 * np.pi / 12
        centres = np.rint(1000 * np.stack([np.cos(angles), np.sin(angles)], axis=1))
        walked = np.unwrap(angles[ring_order(centres.astype(np.int64))])
        steps = np.diff(walked)
        assert np.allclose(np.abs(steps), 2 * np.pi / 12)
        assert len(set(np.sign(steps))) == 1

    @given(seed=st.integers(0, 10_000), n=st.integers(1, 40), d=st.integers(1, 4))
    def test_it_is_an_order_and_no_part_turned_round_is_shorter(self, seed, n, d):
        centres = np.random.default_rng(seed).integers(-1000, 1000, size=(n, d))
        order = ring_order(centres)
        assert sorted(order) == list(range(n))
        places = centres[order].astype(float)

        def length(way):
            return float(np.sqrt(np.square(way - np.roll(way, -1, axis=0)).sum(axis=1)).sum())

        whole = length(places)
        for first, last in itertools.combinations(range(n), 2):
            turned = places.copy()
            turned[first : last + 1] = turned[first : last + 1][::-1]
            assert length(turned) >= whole - 1e-5 * max(whole, 1.0)

    def test_centres_at_one_place(self):
        assert sorted(ring_order(np.zeros((5, 2), dtype=np.int64))) == list(range(5))


def _messages(clusters, *, bundles=BUNDLES, key=bytes(32)):
    ids = pa.array([f"user {number}" for number in range(len(clusters))], type=pa.string())
    return [
        encode(
            LAW,
            users=MemoryUsers(ids=ids, labels=clusters[:, party].astype(np.int32)),
            position=party,
            groups=PAIRS,
            n_local_clusters=bundles.n_labels,
            run_key=key,
            high_bits=12,
            bundles=bundles,
            noise=InsecureSeededNoise(0),
        )
        for party in range(3)
    ]


def _counts(clusters, **options):
    return join_counts(
        _messages(clusters, **options),
        groups=PAIRS,
        n_local_clusters=BUNDLES.n_labels,
        high_bits=12,
    )


def test_a_user_is_in_one_cell_of_each_table():
    """What the event of a table rests on: one user more moves one cell of each table by one."""
    clusters = np.random.default_rng(1).integers(6, size=(300, 3))
    with_user, without = _counts(clusters), _counts(clusters[:-1])
    for first, second in PAIRS:
        moved = with_user[first, second] - without[first, second]
        assert moved.sum() == np.abs(moved).sum() == 1
        cell = tuple(
            BUNDLES.labels_of(party, other)[clusters[-1, party]]
            for party, other in ((first, second), (second, first))
        )
        assert moved[cell] == 1


def test_tables_count_users_by_bundles():
    clusters = np.random.default_rng(2).integers(6, size=(5_000, 3))
    counted, nobody = _counts(clusters), _counts(clusters[:0])
    for first, second in PAIRS:
        wanted = np.zeros((4, 4), dtype=np.int64)
        for own in clusters:
            wanted[
                BUNDLES.labels_of(first, second)[own[first]],
                BUNDLES.labels_of(second, first)[own[second]],
            ] += 1
        # The decoys are the same whoever the users are.
        assert np.array_equal(counted[first, second] - nobody[first, second], wanted)


@pytest.mark.parametrize(
    ("groups", "collusion"), [(((0, 1, 2),), None), (PAIRS, collusion_law(1.0, n_local_clusters=3))]
)
def test_bundles_are_for_pairs_without_randomised_labels(groups, collusion):
    users = MemoryUsers(ids=pa.array(["a"]), labels=np.zeros(1, dtype=np.int32))
    with pytest.raises(ParameterError, match="bundles of clusters are for pairs"):
        encode(
            LAW,
            users=users,
            position=0,
            groups=groups,
            n_local_clusters=(3, 3, 3),
            run_key=bytes(32),
            high_bits=12,
            bundles=BUNDLES,
            collusion=collusion,
            noise=InsecureSeededNoise(0),
        )
