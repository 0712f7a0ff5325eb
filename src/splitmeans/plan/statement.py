"""The privacy statement: the facts of a plan as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from splitmeans.plan.conditions import SEEDED_NOISE
from splitmeans.plan.observers import MEANING
from splitmeans.privacy.accountant import cost_text

if TYPE_CHECKING:
    from splitmeans.plan.facts import PrivacyFacts, SeriesFacts


def statement_text(facts: "PrivacyFacts") -> str:
    """Return the statement; it says what the facts say and nothing else."""
    return "\n".join(_lines(facts))


def _lines(facts: "PrivacyFacts") -> Iterator[str]:
    yield f"Privacy of study {facts.study!r} (hash {facts.study_hash[:16]})"
    if SEEDED_NOISE in facts.caveats:  # no figure below holds
        yield f"  {SEEDED_NOISE}"
    yield f"  unit       {facts.unit}"
    if facts.series is not None:
        yield from _series_lines(facts.series)
    # People worry about the figure towards parties most.
    largest = facts.towards_party
    if largest is not None and largest[1].epsilon > facts.epsilon:
        yield f"  to a party {cost_text(largest[1])}: {largest[0]}, the larger figure"
    yield f"  total      {facts.total_words} (budget {facts.budget.words})"
    if facts.series is not None:
        for one in facts.series.attended:
            party = one.towards_party
            more = "" if party is None else f", {party.epsilon:.4g} towards a party"
            of = facts.series.runs
            server = f"{cost_text(one.towards_server)} towards the server and readers"
            yield f"    in {one.runs} of {of} runs: {server}{more}"
    each = "" if facts.series is None else " of each run"
    yield f"  releases{each}, with what each would cost alone towards the server"
    width = max(len(release.party) for release in facts.releases)
    for release in facts.releases:
        yield f"    {release.party:<{width}}  {release.what:<16} {cost_text(release.cost)}"
    if facts.machine_checked is not None:
        yield f"    checked by a machine: {facts.machine_checked}"
    if facts.learned:
        yield "  learned from the tables, with noise"
        yield from (f"    {line}" for line in facts.learned)
    yield "  who sees what, and how well two cases of a user can be told apart"
    yield f"    {MEANING}"
    for observer in facts.observers:
        yield f"    {observer.who}: {observer.sees}"
        for bound in observer.bounds:
            yield f"      {bound.case}: {bound.text}"
    yield "  holds if"
    yield from (f"    {assumption}" for assumption in facts.assumptions)
    yield from (f"  NOTE: {caveat}" for caveat in facts.caveats if caveat != SEEDED_NOISE)


def _series_lines(series: "SeriesFacts") -> Iterator[str]:
    often = "" if series.every is None else f", one about every {series.every}"
    yield (
        f"  series     {series.runs} runs{often}; all figures but those of single releases are of "
        "all runs together"
    )
    if series.number is not None:
        after = f", after result {series.previous[:16]}" if series.previous else ""
        yield f"  run        {series.number} of {series.runs}{after}"
