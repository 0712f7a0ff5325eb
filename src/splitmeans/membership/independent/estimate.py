"""IND-LAP at the server: cells as products of cluster shares (paper, section 4.1, baseline 1)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.estimator import check_parties
from splitmeans.wire.messages import HistogramMessage


@dataclass(frozen=True, kw_only=True)
class IndependentEstimator:
    """Estimates a cell by n̂ times the product of the parties' noisy shares.

    Attributes:
        messages: One message per party.
        noisy_count: The noisy number of users n̂, above zero.
    """

    messages: tuple[HistogramMessage, ...]
    noisy_count: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        _validate.positive(noisy_count=self.noisy_count)
        if not self.messages:
            raise ParameterError("messages must have one entry per party, got none")
        for party, message in enumerate(self.messages):
            counts = message.noisy_counts
            if counts.dtype != np.int64 or counts.ndim != 1 or not counts.size:
                raise ProtocolError(f"sizes of party {party} must be a list of whole numbers")

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        """The number of local clusters (k') of each party."""
        return tuple(int(message.noisy_counts.size) for message in self.messages)

    def one(self, party: int) -> FloatArray:
        """Return the noisy sizes of one party's clusters, shape (k',); some may be negative."""
        (chosen,) = check_parties([party], n_parties=len(self.messages))
        return self.messages[chosen].noisy_counts.astype(np.float64)

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Return the cell weights under independence, shape (k'_1, ..., k'_s).

        Negative sizes count as zero here: the product of two negative sizes would be a positive
        weight for a cell that both parties report as empty.
        """
        chosen = check_parties(parties, n_parties=len(self.messages))
        shares = [np.maximum(self.one(party), 0.0) / self.noisy_count for party in chosen]
        product: FloatArray = functools.reduce(np.multiply.outer, shares)
        return product * self.noisy_count
