"""What an observer gets from one party's numbers, with and without a user: counts, sums, centres.

Every function runs the code of the mechanism itself on two neighbouring inputs, many times, and
turns each release into a score. Where noise is independent for every cluster or leaf, one call with
many of them is many trials. The user sits where a proof has its worst case: at the bounds.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from splitmeans._types import FloatArray, IntArray, WordArray
from splitmeans.audit.case import Scores
from splitmeans.local.lsh_tree import Leaf, LshTree, grow
from splitmeans.local.mechanism import LocalClustering
from splitmeans.membership.independent.encode import encode as encode_histogram
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_response
from splitmeans.membership.ldp.law import RandomisedLabels, hash_labels
from splitmeans.party.release import release_count
from splitmeans.party.table import PartyTable
from splitmeans.plan import Plan
from splitmeans.privacy.noise import NoiseSource

# Users beside the one who comes or goes.
_OTHERS = 5
_LOCAL_OTHERS = 40


def user_count(plan: Plan, trials: int, noise: NoiseSource) -> Scores:
    """The released number of users."""

    def released(n: int) -> FloatArray:
        party = plan.study.party_names[0]
        ids = pa.array([str(i) for i in range(n)], type=pa.large_string())
        table = PartyTable(party=party, ids=ids, raw_rows=np.zeros((n, 1), dtype=np.int64))
        drawn = [release_count(plan, table, noise=noise).noisy_count for _ in range(trials)]
        return np.array(drawn, dtype=np.float64)

    return Scores(with_user=released(_OTHERS + 1), without=released(_OTHERS))


def histogram(law: NoisyHistogram, trials: int, noise: NoiseSource) -> Scores:
    """A noisy cluster size; every cluster of one call is a trial."""

    def sizes(users: int) -> FloatArray:
        labels = np.arange(users, dtype=np.int32)
        message = encode_histogram(law, labels=labels, n_local_clusters=trials, noise=noise)
        return message.noisy_counts.astype(np.float64)

    return Scores(with_user=sizes(trials), without=sizes(0))


def randomised_label(law: RandomisedLabels, trials: int, noise: NoiseSource) -> Scores:
    """One user's report, for label 1 against label 0: this relation replaces, it adds nobody."""

    def support(label: int) -> FloatArray:
        labels = np.full(trials, label, dtype=np.int32)
        message = encode_response(law, labels=labels, noise=noise)
        of_one, of_zero = (
            hash_labels(message.seeds, np.full(trials, value), n_values=law.n_values)
            if law.uses_hashing
            else np.full(trials, value)
            for value in (1, 0)
        )
        match = (message.reports == of_one).astype(np.float64)
        return np.asarray(match - (message.reports == of_zero))

    return Scores(with_user=support(1), without=support(0))


def leaf_sum(tree: LshTree, trials: int, noise: NoiseSource) -> Scores:
    """The noisy sum of a leaf; every leaf of one call is a trial, all with the same rows.

    The score is the log likelihood ratio of the sum.
    """
    user = np.array(tree.bounds, dtype=np.int64)
    others = np.zeros((_OTHERS, len(tree.bounds)), dtype=np.int64)

    def released(rows: IntArray) -> FloatArray:
        leaf = Leaf(prefix="", noisy_count=len(rows), raw_members=np.arange(len(rows)))
        sums = tree.leaf_sums(rows, [leaf] * trials, noise=noise).astype(np.float64)
        if tree.sums == "gaussian":
            return sums @ user
        return np.asarray((np.abs(sums) - np.abs(sums - user)).sum(axis=1))

    return Scores(with_user=released(np.vstack([others, user])), without=released(others))


def tree_counts(
    trials: int, noise: NoiseSource, *, count_scale: float, depth: int, law: str
) -> Scores:
    """All noisy counts on a user's way through a hash tree, one per level.

    The leaves of a tree that is cut after l levels show the counts of level l, so the same noise is
    played to trees of every depth. All rows go the same way, and thresholds are such that the
    way is never cut and its siblings are (with probability above 1 - 10^-6).
    """
    rows, low_noise_points = 400, 60
    draw = noise.laplace if law == "laplace" else noise.gaussian
    per_tree = 2 * depth + 1

    def counts(n: int) -> FloatArray:
        bits = np.zeros((depth, n), dtype=np.bool_)
        played = draw(count_scale, trials * per_tree).reshape(trials, per_tree)
        found = np.empty((trials, depth + 1))
        for trial in range(trials):
            for level in range(depth + 1):
                leaves = grow(
                    bits[:level],
                    count_scale=count_scale,
                    low_noise_points=low_noise_points,
                    n_clusters=1,
                    noise=_Tape(played[trial]),
                    law=law,
                )
                way = [leaf.noisy_count for leaf in leaves if leaf.prefix == "0" * level]
                found[trial, level] = way[0] if way else rows
        if law == "gaussian":
            return np.asarray(found.sum(axis=1))
        # The log likelihood ratio, in units of the scale.
        return np.asarray((np.abs(found - rows) - np.abs(found - rows - 1)).sum(axis=1))

    return Scores(with_user=counts(rows + 1), without=counts(rows))


def local_centre(
    mechanism: LocalClustering, trials: int, noise: NoiseSource, *, user: IntArray
) -> Scores:
    """The centre that a local clustering with one cluster releases, projected on the user's row.

    The other rows lie in the user's direction, so that a hash of directions keeps them together,
    but near zero; and they are enough that the noisy mean is hardly ever clipped.
    """
    rows = np.vstack([np.tile(user // 100, (_LOCAL_OTHERS, 1)), user])

    def released(n: int, rng: np.random.Generator) -> FloatArray:
        sources = (noise.spawn(f"{n} rows, trial {trial}") for trial in range(trials))
        centres = [mechanism.release(rows[:n], noise=source, rng=rng) for source in sources]
        return np.array([float(centre[0] @ user) for centre in centres])

    first, second = np.random.default_rng(0).spawn(2)
    return Scores(
        with_user=released(_LOCAL_OTHERS + 1, first), without=released(_LOCAL_OTHERS, second)
    )


@dataclass
class HalfNoise:
    """A broken source: noise of half the scale that was asked for."""

    source: NoiseSource

    @property
    def secure(self) -> bool:
        """Whether the source is."""
        return self.source.secure

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw with half the scale."""
        return self.source.laplace(scale / 2, size)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw with half the scale."""
        return self.source.gaussian(scale / 2, size)

    def words(self, size: int) -> WordArray:
        """Draw words, unchanged."""
        return self.source.words(size)

    def spawn(self, label: str) -> "HalfNoise":
        """Return a broken source again."""
        return HalfNoise(self.source.spawn(label))


@dataclass
class _Tape:
    """Plays drawn noise from its start, whatever law is asked for."""

    played: IntArray
    place: int = field(default=0, init=False)
    secure: bool = field(default=False, init=False)

    def laplace(self, scale: float, size: int) -> IntArray:
        self.place += size
        return self.played[self.place - size : self.place]

    def gaussian(self, scale: float, size: int) -> IntArray:
        return self.laplace(scale, size)

    def words(self, size: int) -> WordArray:
        raise AssertionError("a tree draws no words")

    def spawn(self, label: str) -> "_Tape":
        return self
