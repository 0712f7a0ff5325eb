"""What a party brings to a run; `run/party.py` drives it."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from splitmeans.mailbox.open import Mailbox
from splitmeans.run.post import Post
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table
from splitmeans.wire.identity import Identity
from splitmeans.wire.ways import MAX_LARGE_BYTES


@dataclass(frozen=True, kw_only=True)
class PartyRun:
    """A party's part in a run.

    Attributes:
        study: The agreed study, with everyone's keys.
        party: The party's name.
        run: Name of the run, the same at all participants.
        source: What the ledger calls the data, so that runs on the same data add up.
        is_source_chosen: Whether a person gave that name. One that was made of the place of the
            data yields to the data set whose people are recognised (`run.data_set`).
        open_table: Checks and opens the data (rule R12); called only when it is needed.
        identity: The party's keys.
        mailbox: Where messages are left and found.
        result_folder: Where the result is written.
        say: Told what happens, for people.
        rehearse: Plays the whole study through before it is joined; raises if that fails.
        before_joining: Called when the data has passed its checks and nothing has been sent yet;
            raises to stay away. Not called when a run is taken up again.
        going_on: Called before joining, before every step and while waiting; raises to stop there.
        max_bytes: Largest message that is looked at.
        is_made_up: Whether this is a rehearsal: nobody sees its messages, so their lengths may
            tell how many users were made up.
        previous: Folder with the result that a run of a series follows; None takes the last one
            that the home keeps.
    """

    study: Study
    party: str
    run: str
    source: str
    open_table: Callable[[], contextlib.AbstractContextManager[Table]]
    identity: Identity
    mailbox: Mailbox
    result_folder: Path
    say: Callable[[str], None]
    rehearse: Callable[[], object] = lambda: None
    before_joining: Callable[[], object] = lambda: None
    going_on: Callable[[], object] = lambda: None
    max_bytes: int = MAX_LARGE_BYTES
    is_made_up: bool = False
    is_source_chosen: bool = True
    previous: Path | None = None

    def post(self, run: str) -> Post:
        """Return the party's way to the others in a run of the study."""
        return Post(
            self.study,
            run=run,
            participant=self.party,
            identity=self.identity,
            mailbox=self.mailbox,
            max_bytes=self.max_bytes,
        )
