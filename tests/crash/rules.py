"""What must hold after a participant was killed at any instant, and when a run has ended."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from splitmeans.errors import SplitmeansError
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.series import ALL_RUNS
from splitmeans.run.journal import Journal, RunKey
from splitmeans.wire.messages import PartyRelease, StageRelease, kinds_of
from splitmeans.wire.slot import short_name

PARTIES = ("bank", "shop", "clinic")
SERVER = "server"
EVERYONE = (*PARTIES, SERVER)
MAILBOX, RESULTS = "mailbox", "results"

# For each slot, SHA-256 of all bytes that anyone ever tried to send for it.
Record = dict[str, set[str]]

_RELEASES = {kind.lower(): kind for kind in kinds_of((StageRelease, PartyRelease))}


def broken_now(home: Path, key: RunKey, sent: Record) -> list[str]:
    """Check a participant that was stopped, before it is started again; return what is wrong."""
    who = key.participant
    try:
        with Journal.open(home) as journal:
            found = [
                f"{who}: the database is damaged ({line})"
                for (line,) in journal.connection.execute("PRAGMA integrity_check")
                if line != "ok"
            ]
            if who != SERVER:
                found += _broken_ledger(journal, key, sent)
            stored = {item.slot_path: item.sha256 for item in journal.outgoing(key)}
            saved = journal.load(key)
        # Its own key of the run is there as long as the run goes on, and no longer.
        is_there = (home / "run-keys" / key.lock_name).exists()
        if is_there != (saved is not None and saved.outcome is None):
            found.append(f"{who}: its key of the run is {'there' if is_there else 'gone'}")
    except SplitmeansError as problem:
        return [f"{who}: the home cannot be used: {problem}"]
    for slot, hashes in sorted(sent.items()):
        if _sender(slot) != short_name(who) or _run(slot) != key.run:
            continue
        if len(hashes) > 1:
            found.append(f"{who}: {len(hashes)} different messages were sent for {slot}")
        if hashes - {stored.get(slot)}:
            found.append(f"{who}: what was sent for {slot} is not stored")
    return found


def broken_at_end(
    folder: Path, keys: dict[str, RunKey], sent: Record, *, mailbox: str = MAILBOX
) -> list[str]:
    """Check that a run came to the same end for all; return what is wrong."""
    found, hashes = [], set()
    for who, key in keys.items():
        found += broken_now(folder / who, key, sent)
        with Journal.open(folder / who) as journal:
            saved = journal.load(key)
            if saved is None or saved.outcome != "done" or saved.state is not None:
                found.append(f"{who}: the run has not ended")
            n_charges = sum(
                (entry.kind, entry.study_hash) == ("charge", key.study_hash)
                and entry.run in (key.run, ALL_RUNS)
                for entry in Ledger(journal.connection).entries()
            )
            if n_charges != (who != SERVER):
                found.append(f"{who}: {n_charges} charges")
        try:
            hashes.add(_check_result(folder / RESULTS / who))
        except (OSError, ValueError, KeyError) as problem:
            found.append(f"{who}: the result cannot be used ({problem!r})")
        left = [path.name for path in (folder / who / "outbox").iterdir()]
        left += [path.name for path in (folder / who).glob(".*")]
        left += [path.name for path in (folder / who / "run-keys").iterdir()]
        if left:
            found.append(f"{who}: files of a finished run are left: {left}")
    found += [f"{path.name} is left beside the results" for path in (folder / RESULTS).glob(".*")]
    if len(hashes) > 1:
        found.append("participants have different results")
    runs = {f"{key.study_hash[:32]}/{key.run}/" for key in keys.values()}
    for slot, data in messages_in(folder / mailbox):
        if not slot.startswith(tuple(runs)):
            continue
        if sent.get(slot) != {hashlib.sha256(data).hexdigest()}:
            found.append(f"the mailbox holds something else than was sent for {slot}")
    return found


def messages_in(mailbox: Path) -> Iterator[tuple[str, bytes]]:
    """Yield slot and bytes of all messages in a folder, without half-written ones."""
    for path in sorted(mailbox.glob("*/*/*")):
        if not path.name.startswith("."):
            yield str(path.relative_to(mailbox)), path.read_bytes()


def _broken_ledger(journal: Journal, key: RunKey, sent: Record) -> list[str]:
    """A release that anyone tried to send must have been charged before."""
    ledger = Ledger(journal.connection)
    ledger.verify()
    entries = [entry for entry in ledger.entries() if entry.run == key.run]
    charged = {entry.what: entry.release_sha256 for entry in entries}
    found = []
    for slot, hashes in sorted(sent.items()):
        what = _RELEASES.get(slot.split("/")[2].split(".")[0])
        if what is None or _sender(slot) != short_name(key.participant):
            continue
        if _run(slot) != key.run:
            continue
        if what not in charged:
            found.append(f"{key.participant}: sent {what} without a charge")
        # What a stage releases goes to several participants; the ledger names one of the messages.
        elif what == "PartyRelease" and hashes != {charged[what]}:
            found.append(f"{key.participant}: sent another {what} than was charged")
    return found + _spent_twice(ledger, key, sent)


def _spent_twice(ledger: Ledger, key: RunKey, sent: Record) -> list[str]:
    """Every run of a series that anything was released in has a slot of its own."""
    own = short_name(key.participant)
    released = {
        _run(slot)
        for slot in sent
        if _sender(slot) == own and slot.split("/")[2].split(".")[0] in _RELEASES
    }
    slots = [entry for entry in ledger.entries() if entry.kind in ("slot", "late-slot")]
    numbers = [entry.series_run for entry in slots]
    if not slots:
        return []
    found = [] if len(set(numbers)) == len(numbers) else [f"{key.participant}: a slot given twice"]
    if not released <= {entry.run for entry in slots}:
        found.append(f"{key.participant}: released in {released}, slots are {numbers}")
    return found


def _run(slot: str) -> str:
    return slot.split("/")[1]


def _sender(slot: str) -> str:
    return slot.rsplit(".", 2)[1]


def _check_result(folder: Path) -> str:
    """Compare the files with their hashes; return the hash of the result."""
    result = json.loads((folder / "result.json").read_text())
    names = {path.name for path in folder.iterdir()} - {"result.json"}
    if names != set(result["files"]):
        raise ValueError(f"{folder} has the files {sorted(names)}")
    for name, digest in result["files"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise ValueError(f"{folder / name} is not what was written")
    return str(result["result_hash"])
