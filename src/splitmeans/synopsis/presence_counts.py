"""How many users are at which parties, as the server publishes it: one list of whole numbers.

For each group of the plan, in its order, the counts of all ways to be at one or more of its
parties: a table of 2 x ... x 2 with 0 for present and 1 for absent, row by row, without its last
cell (who is at none of them). A pair's counts are sums over the cells of its table. They have the
noise that the decoys and the server gave those cells, with the expected decoys taken off, and count
sampled users where a sample was sent. Whoever has the plan knows how large that noise is
(`intervals/overlap.py`).

Guarantee: computed from tables that already have the server's noise, so it costs no privacy.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from splitmeans._types import IntArray
from splitmeans.membership.method import Group
from splitmeans.plan.plan import Plan


@runtime_checkable
class SumsPresence(Protocol):
    """An estimator that knows who is at which parties of each group."""

    def presence_sums(self, group: Group) -> IntArray:
        """Return the users at and not at each party of a group, shape (2, ..., 2)."""
        ...


def is_counted(plan: Plan) -> bool:
    """Whether a run of the plan publishes how many users are at which parties."""
    return plan.study.membership_facts.counts_presence


def count_presence(plan: Plan, estimator: Any) -> IntArray:
    """Return the published list; empty where presence is not counted."""
    if not is_counted(plan):
        return np.zeros(0, dtype=np.int64)
    assert isinstance(estimator, SumsPresence), "the study was not checked"
    parts = [estimator.presence_sums(group).ravel()[:-1] for group in plan.groups]
    return np.concatenate(parts).astype(np.int64)


def presence_length(plan: Plan) -> int:
    """Return how many numbers the published list has."""
    return sum(2 ** len(group) - 1 for group in plan.groups) if is_counted(plan) else 0


def presence_tables(plan: Plan, counts: IntArray) -> Mapping[Group, IntArray]:
    """Return the counts of every group, each of shape (2^parties - 1,)."""
    tables, start = {}, 0
    for group in plan.groups:
        end = start + 2 ** len(group) - 1
        tables[group] = counts[start:end]
        start = end
    return tables


def patterns_of(n_parties: int) -> IntArray:
    """Return at which parties each count of a table is, shape (2^parties - 1, parties), 0 or 1."""
    absent = np.indices((2,) * n_parties).reshape(n_parties, -1).T[:-1]
    return np.asarray(1 - absent, dtype=np.int64)
