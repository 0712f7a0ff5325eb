"""A series in the ledger: charged once for all of its runs, each of which draws a slot.

All runs of a series were composed before the first of them (`Plan.lifetime_events`), and that is
their cost only if there are no more of them, none is repeated, and none has less noise. So

- the charge of the series is for the composed total and comes with the first release of the first
  run; the limit of the source sees it there, once, and nothing of it is ever given back;
- a run takes the slot of its number with its first release, and a number is given once: a run that
  released anything has used its slot, however it ended;
- the charge and every slot have the hash of what one run releases (`events_digest`). Another
  version of splitmeans that would draw other noise is refused, and so is everything else that would
  change a series after it was opened.

The rules here are those of `ledger_rules.Book`, which keeps them when the ledger is written and
when it is checked.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splitmeans import _validate
from splitmeans.errors import BudgetError
from splitmeans.privacy.events import Event
from splitmeans.wire.tags import tagged_text

if TYPE_CHECKING:
    from splitmeans.privacy.ledger_rules import Entry

# What stands where a charge names its run. Runs of a series are named by numbers.
ALL_RUNS = "series"


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a series is charged for.

    `events` is the `events_digest` of one of its runs.
    """

    runs: int
    events: str

    def __post_init__(self) -> None:
        _validate.at_least(2, runs=self.runs)


def events_digest(events: Iterable[Event], *, runs: int) -> str:
    """Return the hash of what is composed: the events of one run, and how many runs there are."""
    text = f"splitmeans series 1\n{runs}\n{tagged_text(tuple(events))}"
    return hashlib.sha256(text.encode()).hexdigest()


def series_key(study_hash: str | None, party: str | None) -> tuple[str | None, ...]:
    """What a series is charged under, beside the runs of other studies."""
    return study_hash, ALL_RUNS, party


def check_opening(entry: "Entry", series: "Entry | None") -> None:
    """Refuse a charge that is neither that of a study of one run nor a new series.

    The series is that of the same study and party, if one is open.
    """
    is_series = entry.series_runs is not None
    if not is_series and series is not None:
        raise BudgetError(
            f"study {_short(entry)} has a series of {series.series_runs} runs, opened by entry "
            f"{series.number}: run {entry.run!r} must take a slot of it"
        )
    parts = (entry.series_events is not None, entry.run == ALL_RUNS)
    if entry.series_run is not None or (is_series and parts != (True, True)):
        raise BudgetError("a series is charged as a whole, with the hash of what one run releases")
    if not is_series and entry.series_events is not None:
        raise BudgetError("only a series has the hash of what one run releases")


def check_slot(entry: "Entry", series: "Entry | None", used: Mapping[int | None, "Entry"]) -> None:
    """Refuse a slot that the series does not have, has given, or has for other releases.

    The series is that of the same study and party, if one is open; `used` has the slots that it has
    given, by number.
    """
    named = f"run {entry.run!r} of party {entry.party!r}"
    if series is None or series.series_runs is None:
        raise BudgetError(f"{named} has no series that was charged for it")
    number, first = entry.series_run, used.get(entry.series_run)
    if number is None or not 1 <= number <= series.series_runs:
        raise BudgetError(f"{named} asks for slot {number!r} of {series.series_runs}")
    if first is not None:
        raise BudgetError(
            f"slot {number} of the series of study {_short(entry)} was used by run {first.run!r} "
            f"(entry {first.number}), and a slot is given once: go on with run {number + 1}"
        )
    if entry.series_events != series.series_events:
        raise BudgetError(
            f"{named} would release with other noise than the series was charged for (entry "
            f"{series.number}): another version of splitmeans opened it. Nothing was released; use "
            "that version, or agree on a new study, whose series is charged anew"
        )
    same = (series.number, series.source, series.relation)
    if (entry.covered_by, entry.source, entry.relation) != same:
        raise BudgetError(
            f"{named} is of source {entry.source!r}, and its series is charged to "
            f"{series.source!r}: a slot covers the same people only"
        )
    figures = (entry.party_epsilon, entry.party_relation, entry.coalition_epsilon)
    if (entry.epsilon, entry.delta) != (0.0, 0.0) or figures != (None,) * 3 or entry.series_runs:
        raise BudgetError(f"{named} has a cost beside that of its series")


def _short(entry: "Entry") -> str:
    return (entry.study_hash or "")[:16]
