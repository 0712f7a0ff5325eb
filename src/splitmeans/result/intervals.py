"""Intervals of a result that was read from its folder, and what they are in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from splitmeans.errors import ParameterError
from splitmeans.intervals.overlap import Overlap, overlap_of
from splitmeans.intervals.sizes import SizeIntervals, size_intervals, total_interval
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.result.previous import series_run_of
from splitmeans.synopsis.clustering import COUNTS_ALONE
from splitmeans.synopsis.plan_precision import refusal

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
_UNKNOWN_FIGURES = "How far figures are off is not known for this run, so none has an interval: "
_UNKNOWN = "How far sizes are off is not known for this run, so there are no intervals: "


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Intervals of some segmentations of one result.

    Attributes:
        found: For each segmentation its intervals, None where they are withheld.
        words: What they are intervals for, or why there are none.
        users: The interval of all users together, also where those of segments are withheld; None
            where it is not known.
    """

    found: tuple[SizeIntervals | None, ...]
    words: str
    users: tuple[float, float] | None = None


def intervals_of(result: "Result", items: "Sequence[Segmentation]") -> Intervals:
    """Return the intervals of sizes of some segmentations of a result; costs no privacy."""
    study, synopsis = result.study, result.synopsis
    none = (None,) * len(items)
    if method_of(study).deviation is None:
        method = f"memberships were sent by the method {study.membership!r}."
        return Intervals(found=none, words=_UNKNOWN + method)
    plan = plan_of(result)
    if plan is None:
        version = "it was planned by another version of splitmeans."
        return Intervals(found=none, words=_UNKNOWN + version)
    if study.counts_only:
        at_all = overlap_of(plan, result.presence).at_all
        return Intervals(found=none, words=COUNTS_ALONE, users=(at_all.low, at_all.high))
    reason = refusal(plan, synopsis)
    if reason is not None:
        users = total_interval(plan, synopsis)
        known = ""
        if users is not None:
            known = (
                f" The number of all users is between {users[0]:,.0f} and {users[1]:,.0f} (95 %)."
            )
        return Intervals(found=none, words=f"{_UNKNOWN}{reason}.{known}", users=users)
    segments = [item.scaled_centres for item in items]
    # The seed only makes two reports of one result alike.
    found = size_intervals(plan, synopsis, segments, rng=np.random.default_rng(0)) or none
    users = next((one.total for one in found if one is not None), None)
    maybe_nobody = users is not None and users[0] <= 0
    words = f"{MAYBE_NOBODY} {MEANING}" if maybe_nobody else MEANING
    return Intervals(found=tuple(found), words=words, users=users)


def why_none(result: "Result") -> str:
    """Return why figures of a result have no intervals."""
    plan = plan_of(result)
    if plan is None:
        return f"{_UNKNOWN_FIGURES}it was planned by another version of splitmeans."
    reason = refusal(plan, result.synopsis)
    return f"{_UNKNOWN_FIGURES}{reason or 'the synopsis does not say'}."


def plan_of(result: "Result") -> Plan | None:
    """Return the plan of a run; None if this version makes another one, or none at all."""
    try:
        this = series_run_of(result)
        plan = make_plan(result.study, released=result.released, series_run=this)
    except ParameterError:
        return None
    return plan if plan.fingerprint == result.facts["plan"] else None


def overlap_of_result(result: "Result") -> Overlap:
    """Return who is at which parties; see `Result.overlap`."""
    plan = plan_of(result)
    if plan is None:
        raise ParameterError(
            f"{result.where}: it was planned by another version of splitmeans, so how far its "
            "counts are off is not known"
        )
    try:
        return overlap_of(plan, result.presence)
    except ParameterError as problem:
        raise ParameterError(f"{result.where}: {problem}") from None
