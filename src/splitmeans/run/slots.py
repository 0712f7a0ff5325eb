"""A party's slots of a series: drawn with a run's first release, and never given twice.

What the ledger holds a series to is in `privacy/series.py`; here is how a run asks for its slot,
and how a home that has forgotten some finds them in the mailbox (obligation O10).
"""

from collections.abc import Callable, Sequence

from splitmeans.errors import ParameterError
from splitmeans.plan.series import earlier_names, run_number
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.series import Series, events_digest, series_key
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.post import Post
from splitmeans.run.records import RunKey
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER


def series_of(study: Study) -> Series:
    """Return what the ledger keeps of a study's series: how many runs, and what one releases."""
    runs = study.n_runs
    return Series(runs=runs, events=events_digest(make_plan(study).events, runs=runs))


def draw_slot(
    ledger: Ledger,
    study: Study,
    *,
    source: str,
    cost: Charge,
    run: str,
    late: bool,
    say: Callable[[str], None],
    **facts: str | None,
) -> Entry:
    """Give a run its slot, inside the transaction of its first release; see `Ledger.draw_slot`.

    Args:
        ledger: The ledger.
        study: The study, which is renewed.
        source: Name of the data source.
        cost: Of all runs together.
        run: Name of the run.
        late: The release was made before, and this home had forgotten it.
        say: Told what was charged.
        facts: What else an entry has.
    """
    number = run_number(study, run)
    assert number is not None, "the study is not renewed"
    slots = ledger.book().slots
    entry = ledger.draw_slot(
        source, series_of(study), number, cost=cost, late=late, run=run, **facts
    )
    if not slots.get(series_key(study.hash, facts["party"])):
        text = (
            f"charged epsilon {cost.epsilon:g}, delta {cost.delta:g} to source {source!r}, for all "
            f"{study.n_runs} runs of the series"
        )
        figures = {"epsilon": cost.epsilon, "delta": cost.delta}
        say(Note(text, event="charged", kind=str(facts["what"]), **figures))
    found = ", found in the mailbox and forgotten by this home" if late else ""
    say(f"slot {number} of {study.n_runs} is used{found}")
    return entry


def add_run(
    ledger: Ledger,
    study: Study,
    source: str,
    cost: Charge,
    *,
    run: str,
    party: str,
    what: str,
) -> Entry:
    """Add a run that the ledger has forgotten; of a series its slot, and the series if need be."""
    facts = {"study_hash": study.hash, "run": run, "party": party, "what": what}
    number = run_number(study, run)
    if number is None:
        return ledger.charge(source, cost, late=True, **facts)
    return ledger.draw_slot(source, series_of(study), number, cost=cost, late=True, **facts)


def check_same_source(journal: Journal, key: RunKey, source: str) -> None:
    """Refuse a run on other data than its series is charged to.

    Raises:
        ParameterError: It is another data set.
    """
    ledger = Ledger(journal.connection)
    series = ledger.series_of(study_hash=key.study_hash, party=key.participant)
    if series is None:
        return
    owner = ledger.book().data_sets.owner
    if owner(series.source) != owner(source):
        raise ParameterError(
            f"the series is charged to source {series.source!r}, and this data is called "
            f"{source!r}. If it is about the same people, give --source {series.source!r}; data "
            "about other people needs a study of its own. Nothing was sent, nothing was charged"
        )


def remember_slots(
    journal: Journal,
    study: Study,
    *,
    run: str,
    party: str,
    source: str,
    cost: Charge,
    kinds: Sequence[str],
    post: Callable[[str], Post],
    say: Callable[[str], None],
) -> None:
    """Take up in the ledger what the mailbox has of earlier runs that this home has forgotten.

    A home that was lost, or put back from a backup, would otherwise give a slot of its series
    again.

    Args:
        journal: The party's journal, with the ledger.
        study: The study; nothing is to be remembered if it is run once.
        run: The run that is about to begin; those before it are looked for.
        party: Whose releases.
        source: What the ledger calls the data.
        cost: Of all runs together.
        kinds: The releases that a run can have.
        post: The way to the mailbox of a run.
        say: Told what was found.
    """
    if study.renewal is None:
        return
    ledger = Ledger(journal.connection)
    receivers = (SERVER, *(other for other in study.party_names if other != party))
    for name in earlier_names(run):
        used = ledger.slots_of(study_hash=study.hash, party=party)
        if run_number(study, name) in used:
            continue
        found = post(name).left_before(receivers, kinds)
        for kind in [kind for kind in kinds if kind in found][:1]:
            facts = {"study_hash": study.hash, "party": party, "what": kind}
            facts["release_sha256"] = found[kind]
            with journal.transaction():
                draw_slot(
                    ledger, study, source=source, cost=cost, run=name, late=True, say=say, **facts
                )
