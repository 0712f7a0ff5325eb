"""From exact and noisy tables to pseudo-users: totals, sizes of cells, steps that are left out."""

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles
from splitmeans.synopsis.decode import STEPS, decode, read_counts, without
from splitmeans.synopsis.decode.cleaned import total_of
from splitmeans.synopsis.decode.recipe import cells_of

from .scene import Plain, Users, plain_bundles, released, segments

SEGMENTS = 4


def decoded(n_parties, *, share, everyone=False, noise=0.0, widths=None, n=30_000):
    """Return the users of each segment at the wanted parties, those that are decoded, and all."""
    widths = widths or tuple(SEGMENTS + party % 3 for party in range(n_parties))
    of_user, labels, present, turns = segments(
        n=n, n_parties=n_parties, n_segments=SEGMENTS, share=share, widths=widths
    )
    estimator = Users(labels, present, plain_bundles(*widths), noise=noise)
    users = decode(
        released(estimator, n_segments=SEGMENTS, everyone=everyone), rng=np.random.default_rng(1)
    )
    wanted = np.ones(len(of_user), dtype=bool) if everyone else present.all(axis=1)
    found = [
        users.weights[(users.labels == turns[:, which]).all(axis=1)].sum()
        for which in range(SEGMENTS)
    ]
    return np.bincount(of_user[wanted], minlength=SEGMENTS), np.array(found), users


@pytest.mark.parametrize("n_parties", [2, 3, 8])
def test_exact_tables_of_users_who_are_everywhere(n_parties):
    wanted, found, users = decoded(n_parties, share=1.0)
    assert users.weights.sum() == pytest.approx(30_000)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert [own.shape for own in users.places] == [(len(users.weights), 1)] * n_parties


@pytest.mark.parametrize("n_parties", [2, 3, 8])
def test_exact_tables_of_users_at_some_parties_only(n_parties):
    """Of eight parties one user in sixty is at all of them, so sizes are a model's."""
    wanted, found, users = decoded(n_parties, share=0.6)
    assert users.weights.sum() == pytest.approx(wanted.sum())
    assert found.sum() > 0.98 * wanted.sum()
    assert np.abs(found - wanted).sum() < (0.25 if n_parties == 8 else 0.06) * wanted.sum()


@pytest.mark.parametrize("n_parties", [3, 8])
def test_everyone_who_is_at_a_party(n_parties):
    wanted, found, users = decoded(n_parties, share=0.6, everyone=True)
    assert users.weights.sum() == pytest.approx(wanted.sum())
    assert np.abs(found - wanted).sum() < 0.03 * wanted.sum()


def test_noise_of_a_run_changes_little():
    wanted, found, users = decoded(4, share=0.8, noise=20.0)
    # Three deviations of the count of those at all parties.
    assert users.weights.sum() == pytest.approx(wanted.sum(), abs=60)
    assert np.abs(found - wanted).sum() < 0.06 * wanted.sum()


def test_two_parties_without_presence():
    _, labels, present, turns = segments(n=5_000, n_parties=2, n_segments=3)
    estimator = Users(labels, present, plain_bundles(3, 3))
    whole = released(estimator, n_segments=3)
    object.__setattr__(whole, "estimator", Plain({(0, 1): estimator.tables[0, 1][:3, :3]}, (3, 3)))
    cells, weights = cells_of(whole, rng=np.random.default_rng(0))
    sizes = np.bincount(np.argsort(turns[0])[labels[:, 0]])
    for which, size in enumerate(sizes):
        assert weights[(cells == turns[:, which]).all(axis=1)].sum() == pytest.approx(size)


def test_clusters_of_one_bundle_are_told_apart():
    """Twice as many segments as labels: a table alone has two segments in every label."""
    bundles = Bundles(n_local_clusters=(16,) * 4, n_labels=(8,) * 4)
    _, labels, present, turns = segments(n=40_000, n_parties=4, n_segments=16, share=0.9)
    estimator = Users(labels, present, bundles, noise=5.0)
    cells, weights = cells_of(released(estimator, n_segments=16), rng=np.random.default_rng(0))
    assert weights.sum() == pytest.approx(present.all(axis=1).sum(), rel=0.01)
    segment = np.argsort(turns[0])[cells[:, 0]]
    right = (cells == turns[:, segment].T).all(axis=1)
    # Four parties have two ways to pair neighbours, so a few segments stay mixed with another; by
    # chance alone one vector in a thousand would be right.
    assert weights[right].sum() > 0.75 * weights.sum()


@pytest.mark.parametrize("everyone", [False, True])
def test_tables_that_noise_leaves_without_users(everyone):
    """A hundred users at one party stand out in the presence table alone."""
    present = np.zeros((100, 3), dtype=bool)
    present[:, 0] = True
    labels = np.zeros((100, 3), dtype=np.int64)
    estimator = Users(labels, present, plain_bundles(12, 12, 12), noise=20.0, seed=1)
    counts = read_counts(estimator)
    assert counts.total > 0 > total_of(counts.tables)
    users = decode(
        released(estimator, n_segments=2, everyone=everyone), rng=np.random.default_rng(0)
    )
    assert users.weights.tolist() == [0.0]
    assert users.nodes.shape == (1, 3)


class TestAblation:
    def users(self):
        """Segments that share local clusters of the last party."""
        _, labels, present, _ = segments(n=6_000, n_parties=3, n_segments=6, share=0.8)
        labels[:, 2] //= 2
        estimator = Users(labels, present, plain_bundles(6, 6, 3), noise=10.0)
        return decode(released(estimator, n_segments=6), rng=np.random.default_rng(1))

    @pytest.mark.parametrize("step", STEPS)
    def test_every_step_can_be_left_out(self, step):
        """What is left is still users, as many as were counted, and others than with the step."""
        whole = self.users()
        with without(step):
            users = self.users()
        assert users.weights.sum() == pytest.approx(whole.weights.sum())
        same = [np.array_equal(a, b) for a, b in zip(users.places, whole.places, strict=True)]
        assert not all(same) or not np.array_equal(users.weights, whole.weights)
        np.testing.assert_array_equal(self.users().nodes, whole.nodes)

    def test_unknown_steps_are_refused(self):
        refused = pytest.raises(ParameterError, match=r"steps must be among .*, got \['magic'\]")
        with refused, without("rake", "magic"):
            raise AssertionError("not reached")
