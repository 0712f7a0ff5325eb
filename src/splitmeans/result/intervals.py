"""Intervals of a result that was read from its folder, and what they are in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from splitmeans.errors import ParameterError
from splitmeans.intervals.sizes import SizeIntervals, one_table, refusal, size_intervals
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan

if TYPE_CHECKING:
    from splitmeans.result.result import Result, Segmentation

MEANING = (
    "A 95 % interval is for the number of users who are nearer to the segment's centre than to any "
    "other. It covers noise on the cells, cells left out because they could be noise, and that "
    "users near a border between two segments may be on its other side. Measured over many data "
    "sets and settings, nine of ten or more were right (docs/intervals.md)."
)
MAYBE_NOBODY = (
    "What is shown here may be noise and nothing else: the 95 % interval of the number of all "
    "users begins at 0."
)
_OTHER_K = (
    " Intervals are withheld for numbers of segments that were not published: the sizes were "
    "mended for the published ones alone."
)
_UNKNOWN = "How far sizes are off is not known for this run, so there are no intervals: "


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Intervals of some segmentations of one result.

    Attributes:
        found: For each segmentation its intervals, None where they are withheld.
        words: What they are intervals for, or why there are none.
    """

    found: tuple[SizeIntervals | None, ...]
    words: str


def intervals_of(result: "Result", items: "Sequence[Segmentation]") -> Intervals:
    """Return the intervals of sizes of some segmentations of a result; costs no privacy."""
    study, synopsis = result.study, result.synopsis
    none = (None,) * len(items)
    if method_of(study).deviation is None:
        method = f"memberships were sent by the method {study.membership!r}."
        return Intervals(found=none, words=_UNKNOWN + method)
    plan = _plan_of(result)
    if plan is None or plan.fingerprint != result.facts["plan"]:
        version = "it was planned by another version of splitmeans."
        return Intervals(found=none, words=_UNKNOWN + version)
    reason = refusal(plan, synopsis)
    if reason is not None:
        return Intervals(found=none, words=f"{_UNKNOWN}{reason}.")
    trusted = [item.published or not one_table(plan) for item in items]
    centres = [item.scaled_centres for item, wanted in zip(items, trusted, strict=True) if wanted]
    # The seed only makes two reports of one result alike.
    intervals = size_intervals(plan, synopsis, centres, rng=np.random.default_rng(0)) or ()
    found = iter(intervals)
    maybe_nobody = any(one.total[0] <= 0 for one in intervals)
    return Intervals(
        found=tuple(next(found) if wanted else None for wanted in trusted),
        words=(f"{MAYBE_NOBODY} " if maybe_nobody else "")
        + MEANING
        + ("" if all(trusted) else _OTHER_K),
    )


def _plan_of(result: "Result") -> Plan | None:
    """Return the plan of a run; None if this version has no such stages."""
    try:
        return make_plan(result.study, released=result.released)
    except ParameterError:
        return None
