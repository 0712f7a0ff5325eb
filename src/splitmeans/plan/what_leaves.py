"""What leaves a party in a run, column by column, in plain words.

Everything follows from the plan: names, bounds, and how many local clusters there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from splitmeans.plan.plan import Plan
from splitmeans.plan.size_stage import SIZE
from splitmeans.study.parties import Column

_MEMBERSHIPS = {
    "decoy": "for every person the number of the group that the person is in, among invented "
    "records that look the same, each with a random-looking tag that fits the same person "
    "elsewhere",
    "sketch": "for every group a list of random-looking maxima over the people in it and over "
    "invented ones",
}
_COUNTED = (
    "for every person a random-looking tag that fits the same person elsewhere, among invented "
    "records that look the same, so that people can be counted by where they are"
)


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """What is agreed about a column of a party, and what is sent about it."""

    party: str
    column: str
    agreed: str
    sent: str


def columns_of(plan: Plan) -> Iterator[ColumnFacts]:
    """Yield the columns of every party, and after them the ids that people have there."""
    for party, k in zip(plan.parties, plan.n_local_clusters, strict=True):
        agreed = plan.study.party(party.name)
        for before, column in zip(agreed.columns, party.columns, strict=True):
            yield ColumnFacts(
                party=party.name,
                column=column.name,
                agreed=_allowed(before, column, plan),
                sent=_sent(plan, before, k=k),
            )
        ids = ", ".join(held.column for held in agreed.id_columns) or agreed.id_column
        yield ColumnFacts(
            party=party.name,
            column=f"{ids} (identifies people)",
            agreed="not sent",
            sent=_sent_of_ids(plan, party.name),
        )


def _allowed(agreed: Column, column: Column, plan: Plan) -> str:
    """Return what values a column may have, as agreed or as the run has learned it."""
    if not agreed.is_settled and plan.next_stage is not None:
        kind = "categories" if agreed.is_categorical else "bounds"
        what = "a choice" if agreed.is_categorical else "a number"
        return f"{what}; the run learns its {kind}"
    learned = "" if agreed.is_settled else ", learned by the run"
    if column.is_categorical:
        return f"one of: {', '.join(column.levels)}{learned}"
    bounds = f"from {column.low:.12g} to {column.high:.12g}{learned}"
    return f"a number {bounds}; others are moved to the nearest"


def _sent(plan: Plan, column: Column, *, k: int) -> str:
    """Return what a release holds of a column, which is the study's, before it was learned."""
    what = "the share of each category in" if column.is_categorical else "its average in"
    parts = [f"{what} each of {k} groups of people, with noise"]
    closely = ", also within each group" if plan.detail else ""
    parts.append(f"values of invented people who are spread as real ones are{closely}, with noise")
    if column.is_private:
        parts.append("its bounds, found in the table with noise")
    if column.is_open:
        parts.append("names of categories that many people have, found with noise")
    return "; ".join(parts)


def _sent_of_ids(plan: Plan, party: str) -> str:
    study = plan.study
    if study.counts_only:
        return f"nothing of it; {_COUNTED}"
    memberships = _MEMBERSHIPS[study.membership]
    counts = any(stage.name == SIZE and party in stage.parties for stage in plan.stages)
    counted = "; how many people there are, with noise" if counts else ""
    return f"nothing of it; {memberships}{counted}"
