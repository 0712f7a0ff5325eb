"""Drive a party through a run over a mailbox: it may stop at any instant and be started again."""

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from splitmeans.errors import JournalError, ParameterError, StudyError
from splitmeans.party import node
from splitmeans.party.saved_state import dump_state, load_state
from splitmeans.party.session import Session
from splitmeans.party.states import Finished, Joined, PartyState, Released
from splitmeans.plan.costs import towards
from splitmeans.plan.message_sizes import release_length
from splitmeans.plan.series import SeriesRun
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Towards
from splitmeans.privacy.noise import SecureNoise
from splitmeans.result.previous import Previous
from splitmeans.result.write import check_place
from splitmeans.run.charged_data import ChargedData, GivenName
from splitmeans.run.charging import RELEASES, charge_releases, check_room, releases_among
from splitmeans.run.drive import DONE, FAILED, Desk, Patience, refuse_failed, taken_note
from splitmeans.run.ending import Ending
from splitmeans.run.greeting import Greeting
from splitmeans.run.home import SPOOL
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.own_keys import check_not_revoked
from splitmeans.run.party_run import PartyRun
from splitmeans.run.post import Received, check_own_key
from splitmeans.run.preflight import Preflight
from splitmeans.run.records import RunKey, SavedRun
from splitmeans.run.run_keys import erase_key
from splitmeans.run.series import (
    check_same_source,
    check_series,
    details_of,
    place_of,
    previous_for,
    remember_slots,
)
from splitmeans.table.walk.interface import Table
from splitmeans.table.walk.spool_folder import sweep_spools
from splitmeans.wire.identity import spoken
from splitmeans.wire.messages import Hello, KeyContribution, PartyRelease, StageRelease, staged
from splitmeans.wire.slot import SERVER
from splitmeans.wire.tags import tag_of

_OLDER = "this home is older than the mailbox, which has messages that it does not know"


def run_party(what: PartyRun, home: Path, *, timeout: float | None = None) -> Path:
    """Take part in a run until the result is there; return the folder with it.

    The home has the ledger and everything that must survive a crash. After `timeout` seconds
    without news from others it stops waiting; the same call then goes on later.
    """
    check_own_key(what.study, what.party, what.identity)
    check_not_revoked(home, what.study)
    key = RunKey(study_hash=what.study.hash, run=what.run, participant=what.party)
    with Journal.open(home) as journal, contextlib.ExitStack() as opened:
        journal.hold(key)
        sweep_spools(home / SPOOL)  # whatever becomes of the run
        if not journal.approved(what.study.hash):
            raise StudyError(
                f"study {what.study.name!r} with hash {spoken(what.study.hash)} is not approved at "
                f"{home}; compare the digits with the other parties, then `splitmeans study "
                "approve`"
            )
        post = what.post(what.run)
        patience = Patience(timeout=timeout, say=what.say, going_on=what.going_on)
        desk = Desk(key=key, journal=journal, post=post, patience=patience)
        previous = previous_for(journal, key, what.study, folder=what.previous)
        return _Driver(what=what, desk=desk, opened=opened, previous=previous).drive()


@dataclass(frozen=True, kw_only=True)
class _Driver:
    what: PartyRun
    desk: Desk
    opened: contextlib.ExitStack
    previous: Previous | None

    def drive(self) -> Path:
        saved = self.desk.journal.load(self.desk.key)
        refuse_failed(saved, self.desk.key)
        if saved is not None and saved.outcome == DONE:
            return self._ending.again()
        check_place(self.what.result_folder)
        if saved is None:
            state = self._join()
        else:
            assert saved.state is not None
            text = f"taking run {self.what.run!r} up again ({saved.stage})"
            self.what.say(Note(text, event="resumed", stage=saved.stage))
            # Data first: if it no longer passes its checks, the mailbox is not even asked (R12).
            state = load_state(
                saved.stage, saved.state, session=self._session, open_table=self._open
            )
            self._settle_source(saved)
            self._greeting.take_up()
        self.desk.send_pending(again=saved is not None)
        self._greeting.complete()
        if isinstance(state, Joined):
            self._queue_first_words(state)
        while not isinstance(state, Finished):
            with self.desk.ending_on_protocol_errors():
                state = self._step(state, self.desk.next_message(node.expects(state)))
            self.desk.send_pending()
        return self._ending.finish(state.released, state.result)

    @property
    def _ending(self) -> Ending:
        what = self.what
        return Ending(
            study=what.study,
            desk=self.desk,
            folder=what.result_folder,
            say=what.say,
            series_run=self._series_run,
        )

    @property
    def _series_run(self) -> SeriesRun | None:
        return place_of(self.desk.journal, self.desk.key, self.what.study, previous=self.previous)

    @property
    def _preflight(self) -> Preflight:
        return Preflight(
            study=self.what.study,
            participant=self.what.party,
            home=self.desk.journal.folder,
            result_folder=self.what.result_folder,
            mailbox=self.what.mailbox,
        )

    @property
    def _greeting(self) -> Greeting:
        return Greeting(
            desk=self.desk,
            identity=self.what.identity,
            others=(SERVER, *self._session.others),
            say=self.what.say,
            going_on=self.what.going_on,
        )

    @property
    def _releases(self) -> tuple[str, ...]:
        """The releases that a run of this study can have."""
        stages = range(1, len(make_plan(self.what.study).stages) + 1)
        return (*(staged(StageRelease, number) for number in stages), PartyRelease.TAG)

    @property
    def _session(self) -> Session:
        return Session(
            study=self.what.study,
            run=self.what.run,
            party=self.what.party,
            previous=self.previous,
        )

    @property
    def _data(self) -> ChargedData:
        given = GivenName(name=self.what.source, is_chosen=self.what.is_source_chosen)
        return ChargedData(
            journal=self.desk.journal, key=self.desk.key, given=given, say=self.what.say
        )

    def _charged_to(self, source: str) -> "_Driver":
        """The same run, charged to the data set that was settled."""
        return replace(self, what=replace(self.what, source=source, is_source_chosen=True))

    @property
    def _details(self) -> dict[str, str]:
        budget = self.what.study.budget
        return {
            "source": self.what.source,
            "study": self.what.study.name,
            "epsilon": repr(budget.epsilon),
            "delta": repr(budget.delta),
            "towards": json.dumps(vars(self._towards)),
            **details_of(self._series_run),
        }

    @property
    def _towards(self) -> Towards:
        """What the run costs towards other participants."""
        return towards(make_plan(self.what.study))

    @property
    def _cost(self) -> Charge:
        budget = self.what.study.budget
        return Charge(
            relation=Relation.ADD_OR_REMOVE,
            epsilon=budget.epsilon,
            delta=budget.delta,
            towards=self._towards,
        )

    def _check_room(self) -> None:
        """Refuse a run that the source's limit has no room for, beside those that go on now.

        Others would spend for nothing in whichever of them is charged last.
        """
        check_series(self.desk.journal, self.desk.key, self.what.study)
        check_room(self.desk.journal, self.desk.key, source=self.what.source, cost=self._cost)

    def _settle_source(self, saved: SavedRun) -> None:
        """Let a run that is taken up again have another source, as long as nothing was charged."""
        charged = Ledger(self.desk.journal.connection).charge_of(
            study_hash=self.what.study.hash, run=self.what.run, party=self.what.party
        )
        before = saved.details["source"]
        if charged is not None:
            if charged.source != self.what.source:
                self.what.say(f"the run was charged to source {charged.source!r} and stays with it")
            return
        self._refuse_older_home(self._releases, begun=True)
        source = self._data.by_name() if self.what.is_source_chosen else before
        if before == source:
            self._charged_to(source)._go_on_uncharged()
            return
        with self.desk.journal.transaction():
            settled = self._charged_to(self._data.rename(source))
            settled._go_on_uncharged()
            self.desk.journal.change_details(self.desk.key, details=settled._details)
        self.what.say(
            f"nothing was charged yet: source {settled.what.source!r} takes the place of {before!r}"
        )

    def _go_on_uncharged(self) -> None:
        self._check_room()
        self._preflight.check_result_folder()  # it may be another one than when the run was joined

    def _open(self) -> Table:
        self.what.say(Note("reading and checking the data", event="reading_data"))
        return self.opened.enter_context(self.what.open_table())

    def _join(self) -> PartyState:
        first = (Hello.TAG, KeyContribution.TAG)
        self._refuse_older_home((*first, *self._releases), begun=False)
        remember_slots(
            self.desk.journal,
            self.what.study,
            run=self.what.run,
            party=self.what.party,
            source=self._late_source(),
            cost=self._cost,
            kinds=self._releases,
            post=self.what.post,
            say=self.what.say,
        )
        # Before joining: a party that drops out later makes the others spend for nothing.
        self._charged_to(self._data.by_name())._check_room()
        preflight = self._preflight
        preflight.check()
        self.what.rehearse()
        table = self._open()
        preflight.check(rows=len(table))
        record = self._data.record(table)
        settled = self._charged_to(self._data.by_people(record))
        check_same_source(self.desk.journal, self.desk.key, settled.what.source)
        self.what.before_joining()
        self.what.going_on()
        preflight.reserve(self.what.run, rows=len(table))
        state, _ = node.join(
            self.what.study,
            table,
            run=self.what.run,
            noise=SecureNoise(),
            previous=self.previous,
        )
        words = self._greeting.make()
        with self.desk.journal.transaction():
            # Once more: another run may have joined while the table was read.
            settled._check_room()
            source = settled._data.by_people(record)
            settled._data.store(record, source=source)
            self.desk.journal.begin(
                self.desk.key,
                details=settled._details,
                stage=tag_of(type(state)),
                state=dump_state(state),
            )
            words.store()
        text = f"joined run {self.what.run!r} of study {self.what.study.name!r}"
        self.what.say(Note(text, event="joined", stage=tag_of(type(state))))
        return state

    def _queue_first_words(self, state: Joined) -> None:
        """Store the contributions to the run key, once there are keys to seal them to."""
        stored = {item.slot_path for item in self.desk.journal.outgoing(self.desk.key)}
        messages = self.desk.seal(node.first_words(state))
        with self.desk.journal.transaction():
            self.desk.queue([message for message in messages if message.path not in stored])
        self.desk.send_pending()

    def _step(self, state: PartyState, received: Received) -> PartyState:
        envelope = received.envelope
        next_state, envelopes = node.step(
            state, envelope, noise=SecureNoise(), rng=np.random.default_rng()
        )
        messages = self.desk.seal(envelopes, release_length=self._release_length(next_state))
        releases = releases_among(messages)
        self._refuse_older_home(releases, begun=True)
        self.what.going_on()
        with self.desk.journal.transaction():
            self.desk.journal.accept(self.desk.key, received.slot.path, sha256=received.sha256)
            self._charge(releases)
            self.desk.queue(messages)
            self.desk.journal.save(
                self.desk.key, stage=tag_of(type(next_state)), state=dump_state(next_state)
            )
        self.what.say(taken_note(envelope, stage=tag_of(type(next_state))))
        return next_state

    def _release_length(self, state: PartyState) -> int:
        """Return the bytes of the release that leads to a state, by the plan that is run."""
        if self.what.is_made_up or not isinstance(state, Released):
            return 0
        plan = make_plan(self.what.study, released=state.released)
        return release_length(plan, self.what.party)

    def _refuse_older_home(self, kinds: Iterable[str], *, begun: bool) -> None:
        """End the run if the mailbox has messages of it that this home has forgotten (R11).

        A step stores before it sends, so no crash leads here: the home is an older copy. What was
        released is charged now, whatever the limit is; it cannot be called back.

        `kinds` are messages that this home has not sent; `begun` is whether the journal has the
        run.
        """
        found = self.desk.post.left_before((SERVER, *self._session.others), kinds)
        if not found:
            return
        releases = {kind: found[kind] for kind in RELEASES if kind in found}
        with self.desk.journal.transaction():
            if not begun:
                settled = self._charged_to(self._late_source())
                self.desk.journal.begin(self.desk.key, details=settled._details, state=b"")
            self._charge(releases, late=True)
            self.desk.journal.finish(self.desk.key, outcome=FAILED, reason=_OLDER)
        erase_key(self.desk.journal.folder, self.desk.key)
        paid = "nothing is charged"
        if releases:
            paid = "its release was found in the mailbox and is charged now"
        raise JournalError(
            f"{self.desk.key}: {_OLDER}. The home was put back from a backup, or the run was begun "
            "from another copy of it; nobody else did anything wrong. The run ends here, because a "
            f"second release must not follow; {paid}. Add what other runs released since the "
            "backup with `splitmeans ledger recover`, and begin another run with a new name"
        )

    def _late_source(self) -> str:
        """What was released counts under any name, if need be under a new one."""
        try:
            return self._data.by_name()
        except ParameterError:
            return self.what.source

    def _charge(self, releases: Mapping[str, str], *, late: bool = False) -> None:
        """Charge the whole run at its first release; what follows in the run is covered by it.

        `releases` and `late` are as for `charge_releases`.
        """
        charge_releases(
            self.desk.journal,
            self.desk.key,
            study=self.what.study,
            cost=self._cost,
            note=self._data.note(),
            releases=releases,
            late=late,
            say=self.what.say,
        )
