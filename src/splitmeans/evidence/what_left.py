"""What leaves a party in a run, column by column, in plain words.

Everything follows from the plan: names, bounds, and how many local clusters there are.
"""

from splitmeans.evidence.pages import Section
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import PRESENCES, releases_of
from splitmeans.plan.size_stage import SIZE
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.accountant import cost_text
from splitmeans.study.parties import Column

_MEMBERSHIPS = {
    "decoy": "for every person the number of the group that the person is in, among invented "
    "records that look the same, in an order that only the parties know",
    "sketch": "for every group a list of random-looking maxima over the people in it and over "
    "invented ones",
}
_COUNTED = (
    "for every person a random-looking tag that fits the same person elsewhere, among invented "
    "records that look the same, so that people can be counted by where they are"
)
# What is sent beside it where some people are at some parties only.
_IF_PARTIAL = {"decoy": ", each with a random-looking tag that fits the same person elsewhere"}


def by_column(plan: Plan) -> Section:
    """Return for every column of every party what was sent about it."""
    rows = []
    for party, k in zip(plan.parties, plan.n_local_clusters, strict=True):
        agreed = plan.study.party(party.name)
        for before, column in zip(agreed.columns, party.columns, strict=True):
            rows.append(
                (party.name, column.name, _allowed(before, column, plan), _sent(plan, before, k=k))
            )
        shown = ", ".join(held.column for held in agreed.id_columns) or agreed.id_column
        rows.append(
            (party.name, f"{shown} (identifies people)", "not sent", _sent_of_ids(plan, party.name))
        )
    return Section(
        heading="What left each organisation, by column",
        text=(
            "No row, no value of a person and no identifier left an organisation. What left is "
            "listed here; random noise or invented records were added to all of it before it was "
            "sent, and the figure epsilon below says how much they hide.",
        ),
        head=("Organisation", "Column", "What is agreed about it", "What was sent about it"),
        rows=tuple(rows),
    )


def releases(plan: Plan, *, secure_noise: bool = True) -> Section:
    """Return every release with what it would cost alone."""
    report = PrivacyReport(plan=plan, secure_noise=secure_noise)
    return Section(
        heading="Messages that carry information about people",
        text=(
            "Each organisation sends these once in a run. A message that is lost on the way is "
            "sent again as it is and never made anew. The figures of single messages do not add up "
            "to the total, which is computed for all of them together.",
        ),
        head=("From", "What", "Would cost alone", "Called in the transcript"),
        rows=tuple(
            (one.party, _release_words(one.what), cost_text(report.cost(one)), one.message)
            for one in releases_of(plan)
        ),
    )


def _release_words(what: str) -> str:
    words = {
        "local clusters": "local clusters: typical values of groups of people, with noise",
        "detail": "detail: how columns spread, in all and in each group, with noise; it is in the "
        "invented people's values",
        "columns together": "columns together: in which bin of each column who is, among invented "
        "records, to count columns of two organisations together",
        "memberships": "memberships: who is in which group, among invented records or with noise",
    }
    if what == PRESENCES:
        return "who is where: a record for every person, among invented ones"
    return words.get(what, f"{what}, with noise")


def _allowed(agreed: Column, column: Column, plan: Plan) -> str:
    """Say what values a column may have, as agreed or as the run has learned it."""
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
    """Say what a party's release holds of a column, which is the study's, before it was learned."""
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
    if study.user_sets == "partial":
        memberships += _IF_PARTIAL.get(study.membership, "")
    counts = any(stage.name == SIZE and party in stage.parties for stage in plan.stages)
    counted = "; how many people there are, with noise" if counts else ""
    return f"nothing of it; {memberships}{counted}"
