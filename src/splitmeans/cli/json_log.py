"""`--log-format json`: what happens as one JSON object a line on stderr, for programs.

Of what a run says only notes get here (`run/notes.py`); sentences for people, which may tell how
many rows there are, do not. Of an error about a table the kind is told and not the words, and of
other programs' warnings who warns: their texts may quote anything.
"""

import enum
import json
import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from splitmeans.cli.console import leave_to_programs
from splitmeans.errors import DataError, SplitmeansError
from splitmeans.run.notes import Note

if TYPE_CHECKING:  # a study takes long to load, and this is part of every command
    from splitmeans.study import Study

_WITHHELD = "about the table: `splitmeans party check` tells what"


class LogFormat(enum.StrEnum):
    """How messages on stderr are written."""

    TEXT = "text"
    JSON = "json"


class JsonLog:
    """The log of one command; off until `--log-format json` is read."""

    def __init__(self) -> None:
        self.is_on = False
        self._is_quiet = False
        self._about: dict[str, str] = {}
        self._handler = _Lines(self)

    def choose(self, form: LogFormat) -> LogFormat:
        """Begin a log, or none; called for the option."""
        self.is_on, self._is_quiet = form is LogFormat.JSON, False
        self._about = {}
        logging.captureWarnings(self.is_on)
        logging.getLogger().removeHandler(self._handler)
        leave_to_programs(self.is_on)
        if self.is_on:
            logging.getLogger().addHandler(self._handler)
        return form

    def begin(self, study: "Study", *, run: str, participant: str, quiet: bool) -> None:
        """Say in every line from now on which study and run it is about, and whose log this is."""
        self._is_quiet = quiet
        self._about = {
            "study": study.hash[:32],
            "study_name": study.name,
            "run": run,
            "participant": participant,
            "stage": "",
        }
        self.write("started")

    def tell(self, text: str) -> None:
        """Take what a run says; only notes are written."""
        if isinstance(text, Note):
            self.write(text.event, **dict[str, Any](text.facts))

    def failed(self, problem: BaseException, *, code: int) -> None:
        """Write how the command ended without success."""
        facts: dict[str, Any] = {"error": type(problem).__name__, "exit_code": code}
        if isinstance(problem, DataError):
            facts["text"] = _WITHHELD
        elif isinstance(problem, SplitmeansError):
            facts["text"] = str(problem)
        else:
            # Whatever the words are, the places in the code hold no value of a table.
            frames = traceback.extract_tb(problem.__traceback__)
            facts["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        self.write("failed", level="error", **facts)

    def write(self, event: str, *, level: str = "info", **facts: Any) -> None:
        """Write one line."""
        if not self.is_on or (self._is_quiet and level == "info"):
            return
        if "stage" in self._about and "stage" in facts:
            self._about["stage"] = facts["stage"]
        typer.echo(line(event, level=level, **self._about | facts), err=True)


def line(event: str, *, level: str, **facts: Any) -> str:
    """Return one event as a line; time and level first, whatever an event is about."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": now, "level": level, "event": event} | facts, ensure_ascii=False)


class _Lines(logging.Handler):
    """Warnings of this program with their words, of others without."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        is_own = record.name.startswith("splitmeans")
        text: Mapping[str, str] = {"text": record.getMessage()} if is_own else {}
        self._log.write("warning", level=record.levelname.lower(), logger=record.name, **text)


json_log = JsonLog()

LOG_FORMAT = typer.Option(
    LogFormat.TEXT,
    "--log-format",
    callback=json_log.choose,
    is_eager=True,
    help="How messages on stderr are written: for people, or one JSON object a line.",
)
