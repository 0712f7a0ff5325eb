"""The paper's statements as data (`claims.toml`), held against what was measured.

A claim names its figure, the comparison that decides it (a function of `judges.py`) with its lines,
settings and bounds, and why it may not come out here. The verdict is computed.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.judges import JUDGES, NOT_MEASURED, YES
from benchmarks.paper.points import Points

OURS = "ours"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement.

    Attributes:
        claim: What the paper says, in our words, or what we add.
        measured: What the runs say.
        agrees: "yes", "partly", "no", "not measured", or "ours" where the paper has nothing.
        why: Why not, where the two do not agree.
    """

    claim: str
    measured: str
    agrees: str
    why: str = ""


def findings(points: Points) -> list[Finding]:
    """Return what the paper says about a figure, and whether its points agree."""
    if not points.panels:
        return []
    return [_judged(claim, points) for claim in _claims().get(points.figure.name, [])]


@functools.cache
def _claims() -> Mapping[str, list[dict[str, Any]]]:
    """Return the claims of each figure."""
    with Path(__file__).with_name("claims.toml").open("rb") as opened:
        return tomllib.load(opened)


def _judged(claim: Mapping[str, Any], points: Points) -> Finding:
    options = dict(claim)
    text, why = options.pop("claim"), options.pop("why", "")
    ours = options.pop("ours", False)
    found = JUDGES[options.pop("judge")](points, **options)
    if found is None:
        return Finding(claim=text, measured="-", agrees=NOT_MEASURED)
    measured, verdict = found
    agrees = OURS if ours else verdict
    return Finding(
        claim=text, measured=measured, agrees=agrees, why="" if agrees in (YES, OURS) else why
    )
