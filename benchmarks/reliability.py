"""Reliability of segment probabilities: is a segment given 80 % right in 80 % of the cases?

For simulation and benchmarks only: it needs the true segments, which no participant of a real run
knows. Nothing here is private.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.cases import Setting, make_case
from benchmarks.methods import federated
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.party.labels import segment_probabilities
from splitmeans.table.prepare import prepare_table


@dataclass(frozen=True, kw_only=True, eq=False)
class Reliability:
    """Rows in bins by the probability of their most likely segment.

    Attributes:
        edges: Bounds of the bins, shape (bins + 1,), from 0 to 1.
        counts: Rows in each bin, shape (bins,).
        confidence: Mean probability of the most likely segment in each bin; NaN in empty ones.
        accuracy: Share of rows whose most likely segment is the true one; NaN in empty bins.
        error: Expected calibration error: the mean over rows of |confidence - accuracy|.
    """

    edges: FloatArray
    counts: IntArray
    confidence: FloatArray
    accuracy: FloatArray
    error: float

    def __repr__(self) -> str:
        lines = ["probability      rows  predicted  correct"]
        for low, high, count, predicted, correct in zip(
            self.edges[:-1],
            self.edges[1:],
            self.counts,
            self.confidence,
            self.accuracy,
            strict=True,
        ):
            values = f"{predicted:9.3f}{correct:9.3f}" if count else f"{'-':>9}{'-':>9}"
            lines.append(f"{low:4.2f} to {high:4.2f} {count:8d}  {values}")
        lines.append(f"expected calibration error {self.error:.4f}")
        return "\n".join(lines)


def reliability(
    probabilities: FloatArray, true_segments: npt.ArrayLike, *, bins: int = 10
) -> Reliability:
    """Compare the most likely segment of each row with the true one; simulation only.

    Args:
        probabilities: Probability of each segment for each row, shape (n, k).
        true_segments: The true segment of each row, shape (n,).
        bins: Number of bins of equal width.
    """
    _validate.at_least(1, bins=bins)
    truth = np.asarray(true_segments)
    if probabilities.ndim != 2 or truth.shape != probabilities.shape[:1] or not truth.size:
        raise ParameterError(
            "probabilities must have the shape (n, k) and true_segments (n,), n >= 1, "
            f"got {probabilities.shape} and {truth.shape}"
        )
    highest = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    which = np.minimum((highest * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins)
    filled = counts > 0
    confidence, accuracy = np.full(bins, np.nan), np.full(bins, np.nan)
    np.divide(np.bincount(which, highest, bins), counts, out=confidence, where=filled)
    np.divide(np.bincount(which, right, bins), counts, out=accuracy, where=filled)
    gaps = np.abs(confidence - accuracy)[filled]
    return Reliability(
        edges=np.linspace(0, 1, bins + 1),
        counts=counts.astype(np.int64),
        confidence=confidence,
        accuracy=accuracy,
        error=float(counts[filled] @ gaps / counts.sum()),
    )


def measure_labels(setting: Setting, *, bins: int = 10) -> list[Reliability]:
    """Run the decoy join on one case and rate every party's segment probabilities.

    The true segment of a user is the published centre nearest in all columns, which only a
    simulation can know.
    """
    case = make_case(setting)
    model = federated(case).model
    assert model is not None
    ratings = []
    for party, block in zip(model.study_.parties, case.blocks, strict=True):
        probabilities = segment_probabilities(
            prepare_table(party, block),
            model.synopsis_,
            centres=model.result_.server.clustering,
        )
        ratings.append(reliability(probabilities, model.labels_, bins=bins))
    return ratings
