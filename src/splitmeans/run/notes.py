"""What a run tells: a sentence for people and, beside it, an event for programs.

Sentences may say what follows from rows, such as how many there are: they are for the terminal of
whoever may see the table. Logs travel further, so a log for programs is made of notes alone, and a
note's facts are names, kinds and agreed figures. docs/reference/logs.md lists them.
"""

from collections.abc import Mapping
from typing import Self, TypeAlias

Fact: TypeAlias = str | float | list[str]

EVENTS = (
    "started",
    "rehearsing",
    "rehearsed",
    "reading_data",
    "data_checked",
    "joined",
    "resumed",
    "waiting",
    "message_taken",
    "charged",
    "result_written",
    "finished",
    "stopped",
    "failed",
    "warning",
)
"""Everything that `party run` and `server run` write with `--log-format json`."""


class Note(str):
    """A sentence that is also an event.

    Facts are what programs may know of it, never anything that follows from rows.
    """

    event: str
    facts: Mapping[str, Fact]

    def __new__(cls, text: str, *, event: str, **facts: Fact) -> Self:
        """Make a note; an event that the list does not have is a mistake in the program."""
        assert event in EVENTS, event
        note = super().__new__(cls, text)
        note.event, note.facts = event, facts
        return note
