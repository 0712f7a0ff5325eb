"""Runs of a series between organisations: which one is next, and which result it follows.

A home knows the runs that it took part in, and keeps their results. So a participant gives the same
command every time; `--run` and `--previous` are for what a home cannot know: that a run shall begin
before its time, that an attempt is repeated, or a result that this home has lost.

A run draws its slot with its first release, and no slot is given twice: `privacy/series.py` says
what the ledger holds a series to. A home that has forgotten some finds them in the mailbox (O10).
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from splitmeans.errors import JournalError, ParameterError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.series import SeriesRun, earlier_names, run_number
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.series import Series, events_digest, series_key
from splitmeans.result.previous import Previous, previous_of, series_run
from splitmeans.result.publish import published_facts, read_published
from splitmeans.result.result import Result
from splitmeans.run.drive import DONE
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.post import Post
from splitmeans.run.records import RunKey, SavedRun, kept_result
from splitmeans.study import Study
from splitmeans.study.options import TOWARDS_SERVER
from splitmeans.wire.saved_result import load_result
from splitmeans.wire.slot import SERVER

# What the journal has beside a run of a series: its number, and the hash of the result it follows.
NUMBER, PREVIOUS = "series_run", "previous"


def runs_of(journal: Journal, study_hash: str, participant: str) -> dict[str, SavedRun]:
    """Return the runs of a study that a participant has begun, by name, in that order."""
    rows = journal.connection.execute(
        "SELECT run FROM runs WHERE study_hash = ? AND participant = ? ORDER BY id",
        (study_hash, participant),
    ).fetchall()
    found: dict[str, SavedRun] = {}
    for (name,) in rows:
        key = RunKey(study_hash=study_hash, run=name, participant=participant)
        if (saved := journal.load(key)) is not None:
            found[name] = saved
    return found


def choose_run(
    study: Study,
    home: Path,
    participant: str,
    *,
    asked: str | None,
) -> tuple[str, str | None]:
    """Return the name of the run that a participant takes part in now, and what to say about it.

    Of a study of one run it is "1" unless another is asked for. Of a series it is the run that goes
    on; else the next one, if at least half of `renewal.every` has passed since the last result;
    else the last one again, which is finished.

    `asked` is what --run says, if anything; the home may not exist yet.

    Raises:
        ParameterError: The participants have to agree on something that no home knows.
    """
    if study.renewal is None or asked is not None:
        run_number(study, asked or "1")
        return asked or "1", None
    if not home.is_dir():
        return "1", None
    with Journal.open(home) as journal:
        runs = runs_of(journal, study.hash, participant)
        for name, saved in runs.items():
            if saved.outcome is None:
                return name, None
        if not runs:
            return "1", None
        name, last = max(runs.items(), key=lambda run: _order(study, run[0]))
        number = run_number(study, name)
        assert number is not None
        if last.outcome != DONE:
            raise ParameterError(_after_failure(journal, study, participant, name, number))
        key = RunKey(study_hash=study.hash, run=name, participant=participant)
        published = _published_on(journal, key)
    if number == study.renewal.runs:
        done = f"all {number} runs of study {study.name!r} are done; another needs a new study"
        return name, done
    following = f"run {number + 1} of {study.renewal.runs}"
    begins, due = study.renewal.may_begin_after(published), study.renewal.due_after(published)
    if begins is None or begins > datetime.now(UTC).date():
        when = " begins" if due is None else f" is due on {due}; it begins earlier"
        return name, f"{following}{when} if all participants give --run {number + 1}"
    return str(number + 1), f"this is {following}"


def previous_for(
    journal: Journal, key: RunKey, study: Study, *, folder: Path | None
) -> Previous | None:
    """Return the result that a run follows: the last one that this home keeps, or that of a folder.

    A run that was begun goes on with the result that it was begun with.

    Raises:
        ParameterError: The folder does not hold such a result, or the run needs one that is lost.
    """
    number = run_number(study, key.run)
    if number is None:
        if folder is not None:
            raise ParameterError(f"--previous is for series; study {study.name!r} is run once")
        return None
    saved = journal.load(key)
    if saved is not None and saved.outcome is not None:
        return None  # it needs no more than the hash, which the journal has
    found: Previous | None
    if folder is not None:
        found = previous_of(Result.read(folder), study)
        if found.number >= number:
            raise ParameterError(
                f"{folder} is the result of run {found.number}, which run {number} cannot follow"
            )
    else:
        found = _last_kept(journal, key, study, before=number)
    if saved is None:
        return found
    wanted = saved.details[PREVIOUS]
    if wanted != ("" if found is None else found.digest):
        raise ParameterError(
            f"{key} was begun after the result {wanted[:16] or 'of no run'}, and this is another "
            "one: give the folder with that result as --previous; every participant has a copy"
        )
    return found


def place_of(
    journal: Journal, key: RunKey, study: Study, *, previous: Previous | None
) -> SeriesRun | None:
    """Return the place of a run in its series: as it was begun, or as it is about to be."""
    saved = journal.load(key)
    number = run_number(study, key.run)
    if saved is None or number is None:
        return series_run(study, key.run, previous)
    return SeriesRun(number=number, previous=saved.details[PREVIOUS])


def check_series(journal: Journal, key: RunKey, study: Study) -> None:
    """Refuse a run of a series that this party may not begin.

    Raises:
        ParameterError: Another run of the series goes on, or a later one was begun.
        BudgetError: The slot was used.
    """
    number = run_number(study, key.run)
    if number is None:
        return
    for name, saved in runs_of(journal, study.hash, key.participant).items():
        if saved.outcome is None and name != key.run:
            raise ParameterError(
                f"run {name!r} of the series goes on at this home: finish it first (--run {name}); "
                "runs of a series come one after the other"
            )
    used = Ledger(journal.connection).slots_of(study_hash=study.hash, party=key.participant)
    if used and number <= max(used):
        last = max(used)
        raise ParameterError(
            f"run {number} cannot begin: this party has released in run {last}, so slots up to "
            f"{last} are closed. Agree with the others on run {last + 1}"
        )


def details_of(this: SeriesRun | None) -> dict[str, str]:
    """Return what the journal keeps of a run's place in its series."""
    return {} if this is None else {NUMBER: str(this.number), PREVIOUS: this.previous}


def _last_kept(journal: Journal, key: RunKey, study: Study, *, before: int) -> Previous | None:
    found: tuple[int, RunKey, SavedRun] | None = None
    for name, saved in runs_of(journal, study.hash, key.participant).items():
        number = run_number(study, name)
        if saved.outcome == DONE and number is not None and number < before:
            own = RunKey(study_hash=key.study_hash, run=name, participant=key.participant)
            if found is None or number > found[0]:
                found = (number, own, saved)
    if found is None:
        return None
    number, own, saved = found
    data = kept_result(journal.connection, own)
    if data is None:
        raise JournalError(f"the result of {own} is not kept in {journal.folder}")
    released, message = load_result(data)
    this = SeriesRun(number=number, previous=saved.details[PREVIOUS])
    plan = make_plan(study, released=released, series_run=this)
    synopsis = read_published(plan, message)
    facts = published_facts(plan, PrivacyFacts.of(plan), synopsis, message, run=own.run)
    return Previous(number=number, digest=facts.digest, synopsis=synopsis)


def _published_on(journal: Journal, key: RunKey) -> date:
    data = kept_result(journal.connection, key)
    if data is None:
        raise JournalError(f"the result of {key} is not kept in {journal.folder}")
    return datetime.fromisoformat(load_result(data)[1].published_at).date()


def _order(study: Study, name: str) -> tuple[int, str]:
    number = run_number(study, name)
    assert number is not None
    return number, name


def _after_failure(journal: Journal, study: Study, participant: str, name: str, number: int) -> str:
    used = Ledger(journal.connection).slots_of(study_hash=study.hash, party=participant)
    again = f"{number}-{int(name.partition('-')[2] or 1) + 1}"
    if number in used:
        advice = f"this party released in it, so its slot is used: agree on --run {number + 1}"
    else:
        advice = (
            f"this participant released nothing in it: if no party did (`splitmeans ledger show` "
            f"at each says so), agree on --run {again}, otherwise on --run {number + 1}"
        )
    return f"run {name!r} of study {study.name!r} failed; {advice}"


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

    The cost is of all runs together. A `late` release was made before, and this home had forgotten
    it.
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
            f"{study.n_runs} runs of the series, {TOWARDS_SERVER}"
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

    Runs before `run`, which is about to begin, are looked for; none if the study is run once. The
    cost is of all runs together, `kinds` are the releases that a run can have, and `post` gives the
    way to the mailbox of a run.
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
