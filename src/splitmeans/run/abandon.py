"""Ending a run that its participant will never finish, so that its secrets can be erased."""

from splitmeans.errors import JournalError, ParameterError
from splitmeans.privacy.ledger import Ledger
from splitmeans.run.drive import FAILED
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from splitmeans.run.run_keys import erase_key


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
