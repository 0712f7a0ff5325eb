"""Intervals of a result that was read from its folder, and what they are in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from splitmeans.intervals.sizes import SizeIntervals, refusal, size_intervals, total_interval
from splitmeans.membership.methods import method_of
from splitmeans.plan.settle import make_plan, needs_count

if TYPE_CHECKING:
    from splitmeans.result.result import Result, Segmentation

MEANING = (
    "A 95 % interval is for the number of users who are nearer to the segment's centre than to any "
    "other; the number of users in the segment's grid cells, which the size estimates, is inside "
    "as often. It covers noise on the cells, cells left out because they could be noise, and users "
    "on the other side of a border between two segments. How users lie within a cell is not "
    "published and had to be guessed, from the gaps between local centres: an interval need not "
    "have the size in its middle. Measured over many data sets and settings, nine of ten or more "
    "were right (docs/intervals.md)."
)
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
    if needs_count(study) or method_of(study).deviation is None:
        method = f"memberships were sent by the method {study.membership!r}."
        return Intervals(found=none, words=_UNKNOWN + method)
    plan = make_plan(study)
    if plan.fingerprint != result.facts["plan"]:
        version = "it was planned by another version of splitmeans."
        return Intervals(found=none, words=_UNKNOWN + version)
    reason = refusal(plan, synopsis)
    if reason is not None:
        users = total_interval(plan, synopsis)
        known = ""
        if users is not None:
            known = (
                f" The number of all users is between {users[0]:,.0f} and {users[1]:,.0f} (95 %)."
            )
        return Intervals(found=none, words=f"{_UNKNOWN}{reason}.{known}", users=users)
    centres = [item.scaled_centres for item in items]
    # The seed only makes two reports of one result alike.
    found = size_intervals(plan, synopsis, centres, rng=np.random.default_rng(0)) or none
    users = next((one.total for one in found if one is not None), None)
    return Intervals(found=tuple(found), words=MEANING, users=users)
