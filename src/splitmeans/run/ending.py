"""The end of a run: its result is written to a folder, now and whenever the folder is lost."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from splitmeans.errors import JournalError, ParameterError, SplitmeansError
from splitmeans.plan.series import SeriesRun
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import ReleasedValues
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.noise import SecureNoise
from splitmeans.result.result import Result, remark_on
from splitmeans.result.write import write_result
from splitmeans.run.drive import DONE, FAILED, Desk
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.records import RunKey, keep_result, kept_result
from splitmeans.run.run_keys import erase_key
from splitmeans.study import Study
from splitmeans.wire.messages import PublishedResult
from splitmeans.wire.saved_result import dump_result, load_result


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Where a participant wants the result of a run."""

    study: Study
    desk: Desk
    folder: Path
    say: Callable[[str], object]
    series_run: SeriesRun | None = None

    def finish(self, released: ReleasedValues, result: PublishedResult) -> Path:
        """Write the result and end the run; the journal keeps the result, which is public."""
        self._write(released, result)
        journal, key = self.desk.journal, self.desk.key
        with journal.transaction():
            keep_result(journal.connection, key, dump_result(released, result))
            journal.finish(key, outcome=DONE, reason="")
        journal.forget_files(key)
        erase_key(journal.folder, key)
        self.say(Note(f"the result is in {self.folder}", event="result_written"))
        if remark := remark_on(self.study, found=len(result.sizes), released=released):
            self.say(remark)
        return self.folder

    def again(self) -> Path:
        """Return the folder of a finished run; written again if the result is not there whole."""
        self.desk.journal.forget_files(self.desk.key)  # a crash may have come before
        run = self.desk.key.run
        if self._is_there():
            self.say(f"run {run!r} is finished; see {self.folder}")
            return self.folder
        kept = kept_result(self.desk.journal.connection, self.desk.key)
        if kept is None:
            raise ParameterError(
                f"run {run!r} is finished, and {self.folder} does not hold its result; copy the "
                "folder of another participant, they are equal"
            )
        self._write(*load_result(kept))
        text = f"run {run!r} is finished; its result is written to {self.folder} again"
        self.say(Note(text, event="result_written"))
        return self.folder

    def _write(self, released: ReleasedValues, result: PublishedResult) -> None:
        write_result(
            self.folder,
            make_plan(self.study, released=released, series_run=self.series_run),
            result,
            run=self.desk.key.run,
            participant=self.desk.key.participant,
            transcript=self.desk.transcript(),
            secure_noise=SecureNoise().secure,
        )

    def _is_there(self) -> bool:
        """Whether the folder holds the result of this very run, with nothing missing or changed."""
        try:
            found = Result.read(self.folder)
        except (SplitmeansError, OSError):
            return False
        return found.study.hash == self.study.hash and found.facts["run"] == self.desk.key.run


def abandoned(journal: Journal, key: RunKey, *, reason: str) -> bool:
    """End a run for good and erase its state and its own key; return whether it was charged.

    Raises:
        HomeUnavailable: Another process drives the run.
        ParameterError: The home does not know the run.
        JournalError: It has ended already.
    """
    journal.hold(key)
    saved = journal.load(key)
    if saved is None:
        raise ParameterError(
            f"{journal.folder} knows no {key}; `splitmeans status --home {journal.folder}` lists "
            "its runs"
        )
    if saved.outcome is not None:
        raise JournalError(f"{key} has ended already ({saved.outcome}); its key is erased")
    journal.finish(key, outcome=FAILED, reason=f"abandoned: {reason}")
    erase_key(journal.folder, key)
    charge = Ledger(journal.connection).charge_of(
        study_hash=key.study_hash, run=key.run, party=key.participant
    )
    return charge is not None
