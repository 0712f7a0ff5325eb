"""Removing runs from a relay's folder, whether a relay has the folder at the moment or not.

A relay counts in memory what participants have stored, so it does the removing itself if it runs:
the command leaves a request in `<folder>/requests/` and waits until the relay has taken it.
"""

import contextlib
import json
import logging
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

from splitmeans.errors import MailboxUnavailable, ParameterError
from splitmeans.relay.limits import RelayLimits
from splitmeans.relay.log import tell
from splitmeans.relay.store import RelayStore
from splitmeans.relay.study_files import FOLDER as STUDIES
from splitmeans.wire.slot import check_run

_REQUESTS = "requests"
_STUDY = re.compile(r"[0-9a-f]{32}")
_PATIENCE = 30.0


def purge(folder: Path, study: str, *, run: str | None = None) -> None:
    """Remove all messages of a study, or of one of its runs, and the study's file with the former.

    `study` is the first 32 digits of its hash. Without a run all of them go, and the study is then
    served no more.

    Raises:
        MailboxUnavailable: A relay has the folder and does not answer.
    """
    _check(study, run)
    if not (folder / "messages").is_dir():
        raise ParameterError(f"{folder}: no relay has kept messages there")
    try:
        store = RelayStore(folder, RelayLimits())
    except MailboxUnavailable:
        _ask(folder, {"study": study, "run": run})
        return
    try:
        purge_in(store, study, run=run)
    finally:
        store.close()


def purge_in(store: RelayStore, study: str, *, run: str | None) -> None:
    """Remove from a store that this process has."""
    if run is None:
        (store.folder / STUDIES / f"{study}.toml").unlink(missing_ok=True)
    for name in (run,) if run is not None else store.runs(study):
        store.purge(study, name)
    if run is None:
        with contextlib.suppress(OSError):
            (store.folder / "messages" / study).rmdir()


def take_requests(store: RelayStore) -> None:
    """Do what commands have asked of the relay that has the folder."""
    for file in sorted((store.folder / _REQUESTS).glob("*.json")):
        try:
            asked = json.loads(file.read_bytes())
            study, run = asked["study"], asked["run"]
            _check(study, run)
        except (OSError, ValueError, KeyError, TypeError):
            tell("bad_request", "{file} is no request", level=logging.WARNING, file=str(file))
        else:
            purge_in(store, study, run=run)
            shown = "all runs" if run is None else f"run {run}"
            tell("purged", "removed {run} of study {study:.12}", run=shown, study=study)
        file.unlink(missing_ok=True)


def _ask(folder: Path, request: dict[str, Any]) -> None:
    place = folder / _REQUESTS
    place.mkdir(mode=0o700, exist_ok=True)
    name = secrets.token_hex(8)
    part, file = place / f".{name}.part", place / f"{name}.json"
    part.write_text(json.dumps(request), encoding="utf-8")
    os.replace(part, file)
    end = time.monotonic() + _PATIENCE
    while file.exists():
        if time.monotonic() > end:
            file.unlink(missing_ok=True)
            raise MailboxUnavailable(
                f"{folder}: the relay that has this folder did not take the request; is it of an "
                "older version, or stopped? Stop it, and the same command works without it"
            )
        time.sleep(0.1)


def _check(study: Any, run: Any) -> None:
    if not isinstance(study, str) or not _STUDY.fullmatch(study):
        raise ParameterError(f"a study is named by the first 32 digits of its hash, got {study!r}")
    if run is not None:
        check_run(run)
