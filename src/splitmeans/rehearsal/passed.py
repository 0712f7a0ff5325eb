"""Which studies have passed their rehearsal, kept in a participant's home.

A rehearsal says something about a study and a version of splitmeans, and about nothing else: with
another version it is held again.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from splitmeans._version import __version__
from splitmeans.errors import ParameterError
from splitmeans.run.home import make_folders
from splitmeans.run.notes import Note
from splitmeans.study import Study

_FOLDER = "rehearsed"


def rehearse_once(study: Study, home: Path, *, say: Callable[[str], None]) -> str:
    """Rehearse a study unless this version did so before from this home; say when it passed.

    Returns when it passed, as text with the time zone.

    Raises:
        RehearsalError: It did not pass.
    """
    mark = home / _FOLDER / study.hash
    passed = _read(mark)
    if passed is None:
        # Imported where it is used: it loads nearly everything, and is needed once for a study.
        from splitmeans.rehearsal.rehearse import rehearse

        done = rehearse(study, say=say)
        text = f"the rehearsal passed in {done.seconds:.1f} seconds; nothing was sent or charged"
        say(Note(text, event="rehearsed"))
        passed = _write(mark)
    return passed


def _read(mark: Path) -> str | None:
    """Return when this version's rehearsal passed, None if it did not or that is not known."""
    try:
        version, _, passed = mark.read_text(encoding="utf-8").strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return None
    return passed if version == __version__ and passed else None


def _write(mark: Path) -> str:
    passed = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    try:
        make_folders(mark.parent.parent)  # the home, with nobody else allowed in
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        mark.write_text(f"{__version__} {passed}\n", encoding="utf-8")
    except OSError as problem:
        raise ParameterError(f"{mark}: cannot be written ({problem.strerror})") from problem
    return passed
