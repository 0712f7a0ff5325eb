import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.ldp import estimate
from splitmeans.membership.ldp.encode import encode
from splitmeans.membership.ldp.estimate import LdpEstimator, inverse_support
from splitmeans.membership.ldp.law import WORDS, RandomisedLabels, hash_labels
from splitmeans.privacy.events import RandomisedResponseEvent
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise
from splitmeans.wire.messages import RandomisedLabelsMessage

GRR = RandomisedLabels(epsilon=1.0, n_local_clusters=4)
OLH = RandomisedLabels(epsilon=1.0, n_local_clusters=12)


@dataclass
class FixedWords:
    """A noise source that returns the given words in turn, one list per call."""

    calls: list[list[int]]
    secure = False

    def words(self, size: int):
        drawn = np.array(self.calls.pop(0), dtype=np.uint64)
        assert drawn.size == size
        return drawn


def labels_of(*values: int):
    return np.array(values, dtype=np.int32)


# ---- law ----


def test_grr_probabilities_are_those_of_the_paper():
    assert not GRR.uses_hashing
    assert GRR.n_values == 4
    assert float(GRR.true_support) == pytest.approx(math.e / (math.e + 3), rel=1e-15)
    assert float(GRR.false_support) == pytest.approx(1 / (math.e + 3), rel=1e-15)
    assert GRR.event == RandomisedResponseEvent(epsilon=1.0)


def test_olh_probabilities_come_from_the_rounded_range():
    assert OLH.uses_hashing
    assert OLH.n_values == 3  # floor(e + 1)
    assert float(OLH.true_support) == pytest.approx(math.e / (math.e + 2), rel=1e-15)
    assert OLH.false_support * 3 == 1


def test_hashing_starts_where_the_paper_says():
    # 3 e + 2 = 10.15...
    assert not RandomisedLabels(epsilon=1.0, n_local_clusters=10).uses_hashing
    assert RandomisedLabels(epsilon=1.0, n_local_clusters=11).uses_hashing


@pytest.mark.parametrize("width", [2, 3, 12, 255])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 45.0, 1000.0])
def test_words_add_up_and_favour_the_truth(epsilon, width):
    law = RandomisedLabels(epsilon=epsilon, n_local_clusters=width)
    assert law.n_values >= 2
    assert law.true_words + (law.n_values - 1) * law.other_words == WORDS
    assert law.true_words > law.other_words >= 1


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="epsilon must be > 0"):
        RandomisedLabels(epsilon=0.0, n_local_clusters=4)
    with pytest.raises(ParameterError, match="epsilon is too small for 64-bit words"):
        RandomisedLabels(epsilon=1e-19, n_local_clusters=4)
    with pytest.raises(ParameterError, match="n_local_clusters must be a whole number >= 2"):
        RandomisedLabels(epsilon=1.0, n_local_clusters=1)
    with pytest.raises(ParameterError, match="n_local_clusters must be <= 255, got 256"):
        RandomisedLabels(epsilon=1.0, n_local_clusters=256)


def plain_hash(seed: int, label: int, n_values: int) -> int:
    """The hash in whole-number arithmetic."""
    word = ((seed << 8 | label) + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    word ^= word >> 31
    return (word >> 32) * n_values >> 32


@pytest.mark.parametrize("n_values", [2, 3, 85])
def test_hash_equals_its_plain_twin(n_values):
    seeds = np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32)[:, np.newaxis]
    labels = np.array([0, 1, 17, 254])[np.newaxis, :]
    expected = [[plain_hash(int(s), int(a), n_values) for a in labels[0]] for s in seeds[:, 0]]
    assert hash_labels(seeds, labels, n_values=n_values).tolist() == expected


def test_hash_values_are_fixed_for_ever():
    # splitmix64 started at 0 first gives 0xE220A8397B1DCDAF; its upper half times 85 is 75.07...
    zero = np.zeros(1, dtype=np.uint32)
    assert hash_labels(zero, np.array([0]), n_values=85).tolist() == [75]
    assert 0xE220A839 * 85 >> 32 == 75


# ---- encode ----


def test_every_word_range_gives_its_own_report():
    true, other = GRR.true_words, GRR.other_words
    words = [0, true - 1, true, true + other - 1, true + other, true + 2 * other, WORDS - 1]
    for truth, others in [(0, [1, 2, 3]), (2, [0, 1, 3]), (3, [0, 1, 2])]:
        sent = encode(GRR, labels=labels_of(*[truth] * 7), noise=FixedWords([words]))
        first, second, third = others
        assert sent.reports.tolist() == [truth, truth, first, first, second, third, third]
        assert sent.seeds.size == 0


def test_hashed_reports_keep_the_bucket_of_the_label():
    labels = labels_of(0, 5, 11)
    seeds = [1, 2, 2**32 - 1]
    noise = FixedWords([[seed << 32 for seed in seeds], [0, 0, WORDS - 1]])
    sent = encode(OLH, labels=labels, noise=noise)
    assert sent.seeds.tolist() == seeds
    buckets = [plain_hash(seed, int(label), 3) for seed, label in zip(seeds, labels, strict=True)]
    assert sent.reports.tolist()[:2] == buckets[:2]
    assert sent.reports[2] == max({0, 1, 2} - {buckets[2]})


def test_255_clusters_with_a_large_budget():
    law = RandomisedLabels(epsilon=20.0, n_local_clusters=255)
    assert not law.uses_hashing
    words = [law.true_words, WORDS - 1]
    sent = encode(law, labels=labels_of(0, 0), noise=FixedWords([words]))
    assert sent.reports.tolist() == [1, 254]


@pytest.mark.parametrize("law", [GRR, OLH], ids=["grr", "olh"])
def test_secure_noise_gives_a_valid_message(law):
    labels = np.arange(200, dtype=np.int32) % law.n_local_clusters
    sent = encode(law, labels=labels, noise=SecureNoise())
    LdpEstimator(laws=(law,), messages=(sent,))
    assert sent.reports.dtype == np.uint8
    assert sent.seeds.dtype == np.uint32


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_outside_the_clusters_are_refused(label):
    with pytest.raises(ParameterError, match="labels must be between 0 and 3"):
        encode(GRR, labels=labels_of(label), noise=InsecureSeededNoise(0))


# ---- estimate ----


@pytest.mark.parametrize("law", [GRR, OLH], ids=["grr", "olh"])
def test_inverse_support_is_the_inverse(law):
    width = law.n_local_clusters
    matrix = np.full((width, width), float(law.false_support))
    np.fill_diagonal(matrix, float(law.true_support))
    np.testing.assert_allclose(inverse_support(law) @ matrix, np.eye(width), atol=1e-13)


def random_messages(laws, *, n_users, seed):
    rng = np.random.default_rng(seed)
    return tuple(
        encode(
            law,
            labels=rng.integers(law.n_local_clusters, size=n_users).astype(np.int32),
            noise=InsecureSeededNoise(seed).spawn(str(party)),
        )
        for party, law in enumerate(laws)
    )


def naive_joint(laws, messages):
    """Supports user by user and cell by cell, then one solve with the whole matrix."""
    shape = tuple(law.n_local_clusters for law in laws)
    supports = np.zeros(shape)
    for cell in itertools.product(*map(range, shape)):
        for user in range(messages[0].reports.size):
            supports[cell] += all(
                message.reports[user]
                == (
                    plain_hash(int(message.seeds[user]), label, law.n_values)
                    if law.uses_hashing
                    else label
                )
                for law, message, label in zip(laws, messages, cell, strict=True)
            )
    small = [
        np.full((width, width), float(law.false_support))
        + np.eye(width) * float(law.true_support - law.false_support)
        for law, width in zip(laws, shape, strict=True)
    ]
    whole = functools.reduce(np.kron, small)
    return np.linalg.solve(whole, supports.ravel()).reshape(shape)


SMALL_GRR = RandomisedLabels(epsilon=0.5, n_local_clusters=3)
SMALL_OLH = RandomisedLabels(epsilon=0.2, n_local_clusters=6)


@pytest.mark.parametrize(
    "laws",
    [
        (SMALL_GRR,),
        (SMALL_OLH,),
        (SMALL_GRR, GRR),
        (SMALL_OLH, SMALL_OLH),
        (SMALL_GRR, SMALL_OLH, GRR),
    ],
    ids=["grr", "olh", "grr-grr", "olh-olh", "mixed"],
)
@pytest.mark.parametrize("chunk", [1, 64, 2**22])
def test_joint_equals_its_naive_twin(laws, chunk, monkeypatch):
    monkeypatch.setattr(estimate, "_CHUNK_NUMBERS", chunk)
    messages = random_messages(laws, n_users=15, seed=4)
    fast = LdpEstimator(laws=laws, messages=messages).joint(range(len(laws)))
    np.testing.assert_allclose(fast, naive_joint(laws, messages), rtol=1e-9, atol=1e-9)


def test_grr_weights_add_up_to_the_users():
    laws = (GRR, SMALL_GRR)
    estimator = LdpEstimator(laws=laws, messages=random_messages(laws, n_users=50, seed=1))
    assert estimator.n_users == 50
    assert estimator.joint([0, 1]).sum() == pytest.approx(50)
    np.testing.assert_allclose(estimator.joint([0, 1]).sum(axis=1), estimator.one(0))


def test_large_epsilon_gives_the_exact_counts():
    law = RandomisedLabels(epsilon=60.0, n_local_clusters=3)
    sent = encode(law, labels=labels_of(0, 2, 2), noise=InsecureSeededNoise(0))
    sizes = LdpEstimator(laws=(law,), messages=(sent,)).one(0)
    np.testing.assert_allclose(sizes, [1, 0, 2], atol=1e-12)


@pytest.mark.parametrize("law", [GRR, OLH], ids=["grr", "olh"])
def test_no_users(law):
    messages = random_messages((law, law), n_users=0, seed=0)
    weights = LdpEstimator(laws=(law, law), messages=messages).joint([0, 1])
    np.testing.assert_array_equal(weights, np.zeros((law.n_local_clusters,) * 2))


def message(reports, seeds=(), *, dtype=np.uint8):
    return RandomisedLabelsMessage(
        reports=np.array(reports, dtype=dtype), seeds=np.array(seeds, dtype=np.uint32)
    )


@pytest.mark.parametrize(
    ("law", "second", "problem"),
    [
        (GRR, message([0, 1]), "party 1 sent 2 reports where party 0 sent 3"),
        (GRR, message([0, 1, 4]), "reports of party 1 must be below 4"),
        (GRR, message([0, 1, 1], [1, 2, 3]), "party 1 must send 0 seeds"),
        (GRR, message([0, 1, 1], dtype=np.int64), "reports of party 1 must be a list of bytes"),
        (GRR, message([[0], [1], [1]]), "reports of party 1 must be a list of bytes"),
        (OLH, message([0, 1, 1]), "party 1 must send 3 seeds"),
        (OLH, message([0, 1, 3], [1, 2, 3]), "reports of party 1 must be below 3"),
    ],
)
def test_malformed_messages_are_refused(law, second, problem):
    with pytest.raises(ProtocolError, match=problem):
        LdpEstimator(laws=(GRR, law), messages=(message([0, 1, 2]), second))


def test_one_entry_per_party():
    with pytest.raises(ParameterError, match="one entry per party, got 1 and 0"):
        LdpEstimator(laws=(GRR,), messages=())
