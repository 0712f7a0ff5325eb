"""LDP-AGG at the server: count supports, invert the law (paper, appendix "LDP-AGG Details").

The parties randomise independently, so the matrix that turns cells into expected supports is a
Kronecker product of one small matrix per party. Its inverse is applied axis by axis and is never
built.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.estimator import check_parties
from splitmeans.membership.ldp.law import RandomisedLabels, hash_labels
from splitmeans.wire.messages import RandomisedLabelsMessage

# Numbers held at once while supports are counted: 32 MB.
_CHUNK_NUMBERS = 2**22


@dataclass(frozen=True, kw_only=True)
class LdpEstimator:
    """Unbiased cell weights from randomised reports.

    Attributes:
        laws: The public parameters of each party.
        messages: One message per party; position i is the same user in all of them.
    """

    laws: tuple[RandomisedLabels, ...]
    messages: tuple[RandomisedLabelsMessage, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "messages", tuple(self.messages))
        if not self.laws or len(self.laws) != len(self.messages):
            raise ParameterError(
                "laws and messages must have one entry per party, "
                f"got {len(self.laws)} and {len(self.messages)}"
            )
        for party, (law, message) in enumerate(zip(self.laws, self.messages, strict=True)):
            _check_message(law, message, party=party, n_users=self.n_users)

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        """The number of local clusters (k') of each party."""
        return tuple(law.n_local_clusters for law in self.laws)

    @property
    def n_users(self) -> int:
        """The number of users; randomised labels do not hide it."""
        return int(self.messages[0].reports.size)

    def one(self, party: int) -> FloatArray:
        """Return the sizes of one party's clusters, shape (k',); some may be negative."""
        return self.joint([party])

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Return unbiased cell weights of these parties, shape (k'_1, ..., k'_s)."""
        chosen = check_parties(parties, n_parties=len(self.laws))
        laws = [self.laws[party] for party in chosen]
        messages = [self.messages[party] for party in chosen]
        if any(law.uses_hashing for law in laws):
            weights = _count_supports(laws, messages)
        else:
            weights = _count_labels(laws, messages)
        for axis, law in enumerate(laws):
            inverted = np.tensordot(inverse_support(law), weights, axes=(1, axis))
            weights = np.moveaxis(inverted, 0, axis)
        return np.ascontiguousarray(weights)


def inverse_support(law: RandomisedLabels) -> FloatArray:
    """Return the inverse of the matrix with p on its diagonal and q elsewhere, shape (k', k').

    The matrix is (p-q) I + q J with J all ones, so its inverse is (I - q/r J) / (p-q), where
    r = p + (k'-1) q is its row sum. The entries are computed as fractions and rounded once.
    """
    p, q, width = law.true_support, law.false_support, law.n_local_clusters
    off_diagonal = -q / ((p - q) * (p + (width - 1) * q))
    inverse = np.full((width, width), float(off_diagonal))
    np.fill_diagonal(inverse, float(1 / (p - q) + off_diagonal))
    return inverse


def _count_labels(
    laws: Sequence[RandomisedLabels], messages: Sequence[RandomisedLabelsMessage]
) -> FloatArray:
    """Count users per reported cell when all parties report labels: one cell per user."""
    shape = tuple(law.n_local_clusters for law in laws)
    cells = np.ravel_multi_index(tuple(m.reports.astype(np.int64) for m in messages), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _count_supports(
    laws: Sequence[RandomisedLabels], messages: Sequence[RandomisedLabelsMessage]
) -> FloatArray:
    """Count the users who support each cell when some party hashes: many cells per user."""
    shape = tuple(law.n_local_clusters for law in laws)
    half = (len(shape) + 1) // 2  # two factors of about equal width keep the chunks small
    counts = np.zeros((math.prod(shape[:half]), math.prod(shape[half:])))
    rows = max(1, _CHUNK_NUMBERS // (sum(counts.shape) + 2 * max(shape)))
    for users in _chunks(messages[0].reports.size, rows):
        supports = [_supports(law, m, users) for law, m in zip(laws, messages, strict=True)]
        left = _row_products(supports[:half])
        right = _row_products(supports[half:]) if half < len(shape) else np.ones((len(left), 1))
        counts += left.T @ right  # sums of zeros and ones: exact
    return counts.reshape(shape)


def _supports(law: RandomisedLabels, message: RandomisedLabelsMessage, users: slice) -> FloatArray:
    """Return which labels each of these users supports, as zeros and ones, shape (users, k')."""
    values = np.arange(law.n_local_clusters, dtype=np.uint8)[np.newaxis, :]
    if law.uses_hashing:
        seeds = message.seeds[users, np.newaxis]
        values = hash_labels(seeds, values, n_values=law.n_values)
    return np.equal(message.reports[users, np.newaxis], values).astype(np.float64)


def _row_products(supports: Sequence[FloatArray]) -> FloatArray:
    """Return every user's products over all label combinations, shape (users, product of k')."""
    return functools.reduce(
        lambda left, right: (left[:, :, np.newaxis] * right[:, np.newaxis, :]).reshape(
            len(left), -1
        ),
        supports,
    )


def _chunks(n_users: int, rows: int) -> Iterator[slice]:
    return (slice(start, start + rows) for start in range(0, n_users, rows))


def _check_message(
    law: RandomisedLabels, message: RandomisedLabelsMessage, *, party: int, n_users: int
) -> None:
    reports, seeds = message.reports, message.seeds
    if reports.dtype != np.uint8 or reports.ndim != 1:
        raise ProtocolError(f"reports of party {party} must be a list of bytes")
    if reports.size != n_users:
        raise ProtocolError(
            f"party {party} sent {reports.size} reports where party 0 sent {n_users}; "
            "all parties must hold the same users"
        )
    if reports.size and reports.max() >= law.n_values:
        raise ProtocolError(f"reports of party {party} must be below {law.n_values}")
    expected_seeds = (n_users if law.uses_hashing else 0,)
    if seeds.dtype != np.uint32 or seeds.shape != expected_seeds:
        raise ProtocolError(f"party {party} must send {expected_seeds[0]} seeds of 32 bits")
