"""The paper's statements about every figure, held against what was measured."""

from collections.abc import Callable

from splitmeans.bench.paper import findings_loss, findings_parts, findings_tables
from splitmeans.bench.paper.finding import Finding
from splitmeans.bench.paper.points import Points

_FINDINGS: dict[str, Callable[[Points], list[Finding]]] = {
    "loss": findings_loss.loss,
    "v-score": findings_loss.v_score,
    "uneven": findings_loss.uneven,
    "parties": findings_loss.parties,
    "weights": findings_parts.weights,
    "components": findings_parts.components,
    "local-clusters": findings_parts.local_clusters,
    "repetitions": findings_parts.repetitions,
    "cost": findings_tables.cost,
    "mixed-gaussian": findings_tables.mixed_gaussian,
    "silhouette": findings_tables.silhouette,
}


def findings(points: Points) -> list[Finding]:
    """Return what the paper says about a figure, and whether its points agree."""
    judge = _FINDINGS.get(points.figure.name)
    return [] if judge is None or not points.panels else judge(points)
