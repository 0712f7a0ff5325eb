"""How far synthetic rows are from real ones, in codes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.synthetic.codes import Coder
from splitmeans._types import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Means over columns or pairs of columns.

    Attributes:
        one_way: Total variation of the columns' shares.
        within: That of the shares of pairs of columns of one party.
        across: Of pairs of columns of different parties.
        correlation: Mean absolute difference of the correlations of codes, over all pairs of
            columns that have an order.
        auc: Of a classifier trained on the synthetic rows and tested on real ones that were held
            out.
    """

    one_way: float
    within: float
    across: float
    correlation: float
    auc: float


def distances(
    real: IntArray,
    synthetic: IntArray,
    *,
    coder: Coder,
    splits: Sequence[tuple[int, ...]],
    target: int,
    held_out: IntArray,
) -> list[Distance]:
    """Return how far synthetic codes are from real ones, for each way to split the columns.

    Args:
        real: The rows that were used, shape (n, columns).
        synthetic: Shape (m, columns).
        coder: What the codes are.
        splits: For each the party of each column.
        target: The column that the classifier predicts.
        held_out: Real rows that were not used.
    """
    sizes = coder.sizes
    one_way = [_variation(real[:, j], synthetic[:, j], size) for j, size in enumerate(sizes)]
    pairs = {}
    for i, j in combinations(range(len(sizes)), 2):
        before, after = (rows[:, i] * sizes[j] + rows[:, j] for rows in (real, synthetic))
        pairs[i, j] = _variation(before, after, sizes[i] * sizes[j])
    correlation = _correlation_error(real, synthetic, list(_in_order(coder)))
    auc = _auc(synthetic, held_out, coder=coder, target=target)
    return [
        Distance(
            one_way=float(np.mean(one_way)),
            within=float(np.mean([v for (i, j), v in pairs.items() if at[i] == at[j]] or [0.0])),
            across=float(np.mean([v for (i, j), v in pairs.items() if at[i] != at[j]])),
            correlation=correlation,
            auc=auc,
        )
        for at in splits
    ]


def _variation(real: IntArray, synthetic: IntArray, size: int) -> float:
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (real, synthetic)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _in_order(coder: Coder) -> Iterator[int]:
    """Yield the columns whose codes have an order: numbers, and two categories."""
    for place, (edges, size) in enumerate(zip(coder.edges, coder.sizes, strict=True)):
        if edges is not None or size == 2:
            yield place


def _correlation_error(real: IntArray, synthetic: IntArray, columns: list[int]) -> float:
    found = [_correlations(rows[:, columns].astype(np.float64)) for rows in (real, synthetic)]
    upper = np.triu_indices(len(columns), 1)
    return float(np.abs(found[0] - found[1])[upper].mean())


def _correlations(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(axis=0)
    # A column of one value goes with no other.
    deviations = np.maximum(centred.std(axis=0), 1e-12)
    return np.asarray((centred / deviations).T @ (centred / deviations) / len(rows))


def _auc(synthetic: IntArray, held_out: IntArray, *, coder: Coder, target: int) -> float:
    others = [place for place in range(synthetic.shape[1]) if place != target]
    kinds = [coder.edges[place] is None for place in others]
    if len(np.unique(synthetic[:, target])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(categorical_features=kinds, random_state=0)
    model.fit(synthetic[:, others], synthetic[:, target])
    scores = model.predict_proba(held_out[:, others])[:, 1]
    return float(roc_auc_score(held_out[:, target], scores))
