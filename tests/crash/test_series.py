"""Every participant is stopped in a later run of a series: no slot is given twice, none is lost."""

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from splitmeans.errors import BudgetError, JournalError, ParameterError
from splitmeans.privacy import ledger_rules
from splitmeans.privacy.ledger import Ledger
from splitmeans.run.journal import Journal
from splitmeans.study import Renewal
from tests.crash.crew import Crew, Disk, crew_study, drop_pauses
from tests.crash.instants import all_pictures, stop_at
from tests.crash.rules import EVERYONE, MAILBOX, PARTIES, SERVER, Record
from tests.crash.test_instants import broken_from_here, check

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def after_one_run(place: Path) -> tuple[Disk, Record]:
    """What is on disk after the first of three runs, and what was sent."""
    with pytest.MonkeyPatch.context() as patch:
        drop_pauses(patch)
        made = Crew(folder=place / "crew", study=crew_study(renewal=Renewal(runs=3)))
        made.put_back({}, {})
        made.approve()
        made.go_on()
        return made.disk(), dict(made.sent)


@pytest.fixture
def series(crew: Crew, after_one_run: tuple[Disk, Record]) -> Crew:
    """A crew that has done the first of three runs, and is about to begin the second."""
    made = Crew(folder=crew.folder, study=crew_study(renewal=Renewal(runs=3)), run="2")
    made.put_back(*after_one_run)
    return made


def at_run(crew: Crew, run: str) -> Crew:
    return dataclasses.replace(crew, run=run)


def slots_of(crew: Crew, who: str) -> dict[int, str]:
    with Journal.open(crew.folder / who) as journal:
        ledger = Ledger(journal.connection)
        ledger.verify()
        found = ledger.slots_of(study_hash=crew.study.hash, party=who)
        assert ledger.spent("customers").epsilon == (crew.study.budget.epsilon if found else 0.0)
    return {number: str(entry.run) for number, entry in found.items()}


def test_a_stop_at_some_instants_of_the_second_run(series: Crew) -> None:
    """Where the bank draws its slot and releases."""
    for who in (*PARTIES * 3, SERVER):
        assert not series.turn(who)
    about_to_release = series.disk(), {slot: set(sent) for slot, sent in series.sent.items()}
    for number in (40, 70, 95):
        series.put_back(*about_to_release)
        assert stop_at(series, "bank", number) is not None
        found = broken_from_here(series)
        assert not found, f"{number}: {found}"
        assert slots_of(series, "bank") == {1: "1", 2: "2"}


@slow
def test_a_kill_at_every_instant_of_the_second_run(series: Crew) -> None:
    check(series, all_pictures(series))


def test_a_ledger_that_gives_slots_twice_is_caught(
    series: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: slots are given, and not reserved, so the next run takes the same one."""
    series.go_on()
    monkeypatch.setattr(ledger_rules, "check_slot", lambda entry, opened, used: None)
    draw = Ledger.draw_slot

    def always_the_first(self: Ledger, source: str, of: Any, number: int, **facts: Any) -> Any:
        return draw(self, source, of, 1, **facts)

    monkeypatch.setattr(Ledger, "draw_slot", always_the_first)
    found = broken_from_here(at_run(series, "3"))
    assert any(re.search("a slot given twice", line) for line in found), found


def test_a_home_that_was_lost_finds_its_slots_in_the_mailbox(series: Crew) -> None:
    """The second run was not finished by anybody; the shop's home is gone, but for its key."""
    for who in (SERVER, *PARTIES * 4, SERVER, *PARTIES):
        assert not series.turn(who)
    kept = series.folder / "kept"
    forget(series, "shop", keep_results=False)
    with pytest.raises(JournalError, match="must not follow"):
        series.turn("shop")
    # The first run is charged, late, when another one begins; and the second was found now.
    assert set(slots_of(series, "shop")) == {2}
    for who in ("bank", "clinic"):
        forget(series, who, keep_results=True)
    third = at_run(series, "3")
    result = shutil.copytree(third.result_of("bank"), kept)
    turn_after(third, "shop", result)
    assert set(slots_of(series, "shop")) == {1, 2}
    with pytest.raises(ParameterError, match="run '3' of the series goes on"):
        at_run(series, "2-2").turn("shop")


def test_a_home_from_a_backup_gives_no_slot_again(series: Crew) -> None:
    """The home of the bank is put back to before the second run; the others are past it."""
    backup = {name: data for name, data in series.disk().items() if name.split("/")[0] == "bank"}
    series.go_on()
    now = {name: data for name, data in series.disk().items() if name.split("/")[0] != "bank"}
    series.put_back(now | backup, series.sent)
    with pytest.raises(JournalError, match="older than the mailbox"):
        series.turn("bank")
    assert slots_of(series, "bank") == {1: "1", 2: "2"}
    with pytest.raises(ParameterError, match="slots up to 2 are closed"):
        at_run(series, "2-2").turn("bank")


def test_a_second_attempt_needs_a_slot_that_is_free(series: Crew) -> None:
    for who in ("bank", "shop"):
        assert not series.turn(who)  # nobody has released anything yet
    assert slots_of(series, "bank") == {1: "1"}
    for who in EVERYONE:
        with Journal.open(series.folder / who) as journal:
            if journal.load(series.keys[who]) is not None:
                journal.finish(series.keys[who], outcome="failed", reason="made up")
    again = at_run(series, "2-2")
    again.go_on()
    assert slots_of(series, "bank") == {1: "1", 2: "2-2"}


def test_runs_come_one_after_the_other(series: Crew) -> None:
    assert not series.turn("bank")
    with pytest.raises(ParameterError, match="run '2' of the series goes on"):
        at_run(series, "3").turn("bank")
    with pytest.raises(ParameterError, match="from 1 to 3"):
        at_run(series, "4").turn("bank")


def test_another_noise_than_the_series_was_charged_for_is_refused(
    series: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a version that draws less noise in its second run."""
    monkeypatch.setattr("splitmeans.run.series.events_digest", lambda events, runs: "0" * 64)
    with pytest.raises(BudgetError, match="other noise than the series was charged for"):
        series.go_on()
    assert slots_of(series, "bank") == {1: "1"}
    assert not any("/2/" in slot and "release" in slot for slot in series.sent)


def forget(crew: Crew, who: str, *, keep_results: bool) -> None:
    """Lose a home; the mailbox stays. With `keep_results` only open runs are given up."""
    home = crew.folder / who
    if keep_results:
        with Journal.open(home) as journal:
            saved = journal.load(crew.keys[who])
            if saved is not None and saved.outcome is None:
                journal.finish(crew.keys[who], outcome="failed", reason="made up")
        return
    shutil.rmtree(home)
    with Journal.open(home) as journal:
        journal.approve(crew.study.hash, crew.study.to_toml())
    assert (crew.folder / MAILBOX).is_dir()


def turn_after(crew: Crew, who: str, previous: Path) -> bool:
    return dataclasses.replace(crew, previous=previous).turn(who)
