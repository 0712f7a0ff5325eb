"""Plain labels at the server: exact cell counts (paper, section 3.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.estimator import check_parties
from splitmeans.wire.messages import PlainLabelsMessage


@dataclass(frozen=True, kw_only=True)
class ExactEstimator:
    """Counts users per cell.

    Attributes:
        messages: One message per party; position i is the same user in all of them.
        n_local_clusters: k' of each party.
    """

    messages: tuple[PlainLabelsMessage, ...]
    n_local_clusters: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "n_local_clusters", tuple(self.n_local_clusters))
        if not self.messages or len(self.messages) != len(self.n_local_clusters):
            raise ParameterError(
                "messages and n_local_clusters must have one entry per party, "
                f"got {len(self.messages)} and {len(self.n_local_clusters)}"
            )
        for party, (message, width) in enumerate(
            zip(self.messages, self.n_local_clusters, strict=True)
        ):
            _validate.at_least(1, n_local_clusters=width)
            _check_labels(message, party=party, n_users=self.n_users, width=width)

    @property
    def n_users(self) -> int:
        """The number of users; plain labels do not hide it."""
        return int(self.messages[0].labels.size)

    def one(self, party: int) -> FloatArray:
        """Return the sizes of one party's clusters, shape (k',)."""
        return self.joint([party])

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Return the number of users in each cell of these parties, shape (k'_1, ..., k'_s)."""
        chosen = check_parties(parties, n_parties=len(self.messages))
        shape = tuple(self.n_local_clusters[party] for party in chosen)
        labels = tuple(self.messages[party].labels.astype(np.int64) for party in chosen)
        cells = np.ravel_multi_index(labels, shape)
        counts = np.bincount(cells, minlength=math.prod(shape))
        return counts.reshape(shape).astype(np.float64)


def _check_labels(message: PlainLabelsMessage, *, party: int, n_users: int, width: int) -> None:
    labels = message.labels
    if labels.dtype != np.uint8 or labels.ndim != 1:
        raise ProtocolError(f"labels of party {party} must be a list of bytes")
    if labels.size != n_users:
        raise ProtocolError(
            f"party {party} sent {labels.size} labels where party 0 sent {n_users}; "
            "all parties must hold the same users"
        )
    if labels.size and labels.max() >= width:
        raise ProtocolError(f"labels of party {party} must be below its {width} local clusters")
