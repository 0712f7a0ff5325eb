"""The lines of a party's ledger that are about one run, with their places in its chain.

Other lines are left out: they are about other studies. Each line that is there has the hash of the
line before it and its own, and the extract has the last hash of the whole ledger, so whoever is
shown the ledger later can find the lines in it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from splitmeans.errors import EvidenceError, ParameterError
from splitmeans.mailbox.open import MessagePath
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.ledger_tables import GENESIS
from splitmeans.privacy.limits import AMOUNTS
from splitmeans.privacy.series import series_key
from splitmeans.study import Study
from splitmeans.wire.messages import PartyRelease, StageRelease, kinds_of
from splitmeans.wire.slot import SERVER, short_name

_RELEASES = {kind.lower(): kind for kind in kinds_of((StageRelease, PartyRelease))}
_COSTS = ("charge", "added")
NONE = "a server has no data, so it is charged nothing and has no ledger of a run"


def extract(ledger: Ledger, *, study: Study, run: str, party: str) -> dict[str, Any]:
    """Return the lines of a run, from a ledger that is checked first."""
    head = ledger.verify().head
    entries = ledger.entries()
    previous, lines, sources = GENESIS, [], set()
    for entry in entries:
        digest = entry.hash_after(previous)
        if entry.run_key in _keys(study, run=run, party=party):
            lines.append({"entry": entry.plain, "previous": previous, "hash": digest})
            sources.add(entry.source)
        previous = digest
    if previous != head:
        raise EvidenceError("the ledger changed while it was read; try again")
    return {
        "head": {"number": len(entries), "hash": head},
        "lines": lines,
        "spent": {source: _spent(ledger, source) for source in sorted(sources)},
    }


def _keys(study: Study, *, run: str, party: str) -> tuple[tuple[str | None, ...], ...]:
    """Return what entries about a run name: the run itself, and the series that it is one of."""
    return (study.hash, run, party), series_key(study.hash, party)


def _spent(ledger: Ledger, source: str) -> dict[str, Any]:
    spent = ledger.spent(source)
    return {
        "epsilon": repr(spent.epsilon),
        "delta": repr(spent.delta),
        "limit_epsilon": None if spent.limit is None else repr(spent.limit.epsilon),
        "limit_delta": None if spent.limit is None else repr(spent.limit.delta),
    }


def read_lines(saved: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the entries of an extract after checking their hashes and their order."""
    try:
        found = [(_entry(one["entry"]), one["previous"], one["hash"]) for one in saved["lines"]]
        head = int(saved["head"]["number"]), str(saved["head"]["hash"])
        for entry, previous, digest in found:
            if entry.hash_after(previous) != digest:
                raise EvidenceError(f"ledger.json: entry {entry.number} does not have its hash")
    except (KeyError, TypeError, ValueError, ParameterError, AttributeError) as problem:
        raise EvidenceError("ledger.json is no extract of a ledger") from problem
    by_number = {entry.number: digest for entry, _, digest in found} | {0: GENESIS}
    for entry, previous, digest in found:
        if by_number.get(entry.number - 1, previous) != previous:
            raise EvidenceError(
                f"ledger.json: entry {entry.number} does not follow entry {entry.number - 1}"
            )
        if entry.number > head[0] or (entry.number == head[0] and digest != head[1]):
            raise EvidenceError(f"ledger.json: entry {entry.number} is not below its last hash")
    numbers = [entry.number for entry, _, _ in found]
    if numbers != sorted(set(numbers)):
        raise EvidenceError("ledger.json: its entries are not in order")
    return tuple(entry for entry, _, _ in found)


def _entry(plain: Mapping[str, Any]) -> Entry:
    amounts = {name: float(plain[name]) for name in AMOUNTS if plain.get(name) is not None}
    entry = Entry(**{**plain, **amounts})
    if entry.plain != dict(plain):
        raise EvidenceError(f"ledger.json: entry {entry.number} is not in its one form")
    return entry


def compare(
    entries: Iterable[Entry],
    messages: Iterable[Mapping[str, str]],
    *,
    study: Study,
    run: str,
    participant: str,
) -> None:
    """Check that the ledger has exactly the releases that the transcript says were sent.

    Raises:
        EvidenceError: One has what the other does not, or it is about another run.
    """
    sent = _sent_releases(messages, study=study, run=run, participant=participant)
    if participant == SERVER:
        return
    charged: dict[str, Entry] = {}
    paid = False
    for entry in entries:
        if entry.run_key not in _keys(study, run=run, party=participant):
            raise EvidenceError(f"ledger.json: entry {entry.number} is about another run")
        if entry.kind in _COSTS:
            paid = True
            if (entry.epsilon, entry.delta) != (study.budget.epsilon, study.budget.delta):
                raise EvidenceError(
                    f"ledger.json: entry {entry.number} charges epsilon {entry.epsilon:g}, delta "
                    f"{entry.delta:g}; the study's budget is another"
                )
        # A series is charged with the first release of its first run, which may be another one.
        is_own = entry.run == run
        if is_own and entry.what is not None and entry.what in _RELEASES.values():
            charged[entry.what] = entry
    for kind, digests in sent.items():
        entry_of = charged.pop(kind, None)
        if entry_of is None:
            raise EvidenceError(f"ledger.json: {kind} was sent and stands in no entry")
        if entry_of.release_sha256 not in digests:
            raise EvidenceError(
                f"ledger.json: entry {entry_of.number} is for another {kind} than was sent"
            )
    if charged:
        kind, entry_of = next(iter(charged.items()))
        raise EvidenceError(
            f"ledger.json: entry {entry_of.number} is for a {kind}, which the transcript lacks"
        )
    if sent and not paid:
        raise EvidenceError("ledger.json: something was sent, and no entry charges the run")


def _sent_releases(
    messages: Iterable[Mapping[str, str]], *, study: Study, run: str, participant: str
) -> dict[str, set[str]]:
    """Return the hashes of all releases that were sent, after checking whose transcript it is."""
    own, found = short_name(participant), dict[str, set[str]]()
    for message in messages:
        try:
            path = MessagePath.parse(message["slot"])
            direction, digest = message["direction"], message["sha256"]
        except (KeyError, TypeError, ParameterError) as problem:
            raise EvidenceError("transcript.json has a line that is no message") from problem
        who = path.sender if direction == "sent" else path.receiver
        if (path.study, path.run, who) != (study.hash[:32], run, own):
            raise EvidenceError("transcript.json is of another run or participant")
        if direction == "sent" and path.kind in _RELEASES:
            found.setdefault(_RELEASES[path.kind], set()).add(digest)
    return found
