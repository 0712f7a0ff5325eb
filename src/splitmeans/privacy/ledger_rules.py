"""Entries of the ledger and the rules that they keep, without any storage.

Costs of different runs of one source are added up, exactly: nothing needs to be known about how the
runs relate for that. The same holds for the costs towards a fellow party, and towards a party
together with the server; parties who share what they know are one fellow party, so their sums
bound any of them. A `Book` is filled entry by entry, and by the same code when the ledger is
written and when it is checked.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, NamedTuple

from splitmeans.errors import BudgetError, ParameterError
from splitmeans.privacy.data_sets import DataSets
from splitmeans.privacy.limits import AMOUNTS, Limit, check_cost
from splitmeans.privacy.series import check_opening, check_slot, series_key

# Wide enough for any sum of floats; a sum that is not exact raises.
_SUMS = Context(prec=1500, traps=[Inexact, InvalidOperation])


# What a figure towards a party covers: values elsewhere, or also presence elsewhere.
VALUES, VALUES_AND_PRESENCE = "REPLACE", "REPLACE, ADD_OR_REMOVE"

_TOWARDS = ("party_epsilon", "party_relation", "coalition_epsilon")

# A home that was put back from a backup, and the word that nothing is missing any more.
RESTORED, RECOVERED = "restored", "recovered"

KINDS = {
    "charge": "the whole budget of a run, or of a series, with its first release",
    "cover": "a later release of a run that has been charged; costs nothing",
    "added": "a run that was released and was missing here; limits do not stop it",
    "slot": "the first release of a run of a series that has been charged; costs nothing",
    "late-slot": "the same, of a run that was missing here",
    "limit": "a new limit of the data set",
    "source": "declares a data set; `what` says who its people are",
    "same": "the name is part of the data set in `what`",
    "apart": "its people are others than those of `what`; `note` says why",
    RESTORED: "the home was put back from the backup in `what`; nothing is charged",
    RECOVERED: "nothing is missing any more, for the reason in `what`",
}
"""What each kind of entry says."""


@dataclass(frozen=True, kw_only=True)
class Towards:
    """What a run costs towards participants, at the run's delta; infinite where nothing bounds it.

    Attributes:
        party_epsilon: Towards a fellow party, if the server follows the rules.
        party_relation: `VALUES`, or `VALUES_AND_PRESENCE` if it covers presence elsewhere as well.
        coalition_epsilon: Towards a party together with the server; values elsewhere.
    """

    party_epsilon: float
    party_relation: str
    coalition_epsilon: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger.

    Attributes:
        number: Position, from 1.
        kind: One of `KINDS`.
        time: When it was written, UTC.
        source: Name of the data source.
        study_hash: The study; None for a limit, as are the next four.
        run: Name of the run.
        party: The party that releases.
        what: What is released, each at most once in a run; the reason of what was added by hand.
        relation: Name of the neighbouring relation that the cost is about.
        epsilon: Cost, or the limit.
        delta: Cost, or the limit.
        covered_by: For a cover or a slot, the number of the charge, or of the slot.
        release_sha256: Hash of the bytes that are released; None for a limit, or if not known.
        party_epsilon: Cost towards a fellow party, or its limit; None if not recorded or not
            limited.
        party_relation: What that cost covers, see `Towards`; None for a limit.
        coalition_epsilon: Cost towards a party together with the server, or its limit.
        note: The reason of what was declared; of a charge, which record of people it is for.
        series_runs: For the charge of a series, how many runs it is for (`privacy.series`).
        series_run: For a slot, which run of the series.
        series_events: For both, the hash of what one run releases.
    """

    number: int
    kind: str
    time: str
    source: str
    study_hash: str | None = None
    run: str | None = None
    party: str | None = None
    what: str | None = None
    relation: str | None = None
    epsilon: float
    delta: float
    covered_by: int | None = None
    release_sha256: str | None = None
    party_epsilon: float | None = None
    party_relation: str | None = None
    coalition_epsilon: float | None = None
    note: str | None = None
    series_runs: int | None = None
    series_run: int | None = None
    series_events: str | None = None

    @property
    def plain(self) -> dict[str, Any]:
        """The entry as it is stored and hashed; numbers are text that reads back unchanged."""
        amounts = {name: getattr(self, name) for name in AMOUNTS}
        written = {name: repr(amount) for name, amount in amounts.items() if amount is not None}
        return vars(self) | written

    @property
    def towards(self) -> Towards | None:
        """Costs towards participants; None if they were not recorded."""
        if self.party_epsilon is None or self.party_relation is None:
            return None
        if self.coalition_epsilon is None:
            return None
        return Towards(
            party_epsilon=self.party_epsilon,
            party_relation=self.party_relation,
            coalition_epsilon=self.coalition_epsilon,
        )

    @property
    def run_key(self) -> tuple[str | None, ...]:
        """What a run is charged under."""
        return self.study_hash, self.run, self.party

    def hash_after(self, previous: str) -> str:
        """Return the hash of this entry in a ledger whose last hash is `previous`."""
        plain = {name: value for name, value in self.plain.items() if value is not None}
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(bytes.fromhex(previous) + text.encode("ascii")).hexdigest()


class Spent(NamedTuple):
    """What a source has spent, rounded up, and the limit that holds (None: no limit).

    Attributes:
        epsilon: Towards the server and outsiders.
        delta: For each of the figures.
        limit: See above.
        party_epsilon: Towards a fellow party, or several that share what they know; infinite if a
            run has no bound or none was recorded.
        party_relation: What `party_epsilon` covers in every run: `VALUES`, or also presence.
        coalition_epsilon: Towards a party together with the server; infinite as above.
    """

    epsilon: float
    delta: float
    limit: Limit | None
    party_epsilon: float = 0.0
    party_relation: str = VALUES_AND_PRESENCE
    coalition_epsilon: float = 0.0


@dataclass(kw_only=True)
class Book:
    """Sums, limits and releases of all entries so far, by source and by run."""

    sums: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    values_only: set[str] = field(default_factory=set)
    relations: dict[str, str | None] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    charges: dict[tuple[str | None, ...], Entry] = field(default_factory=dict)
    released: set[tuple[str | None, ...]] = field(default_factory=set)
    data_sets: DataSets = field(default_factory=DataSets)
    slots: dict[tuple[str | None, ...], dict[int | None, Entry]] = field(default_factory=dict)
    restored: str | None = None

    def add(self, entry: Entry) -> None:
        """Take one entry, or raise if it breaks a rule."""
        source = entry.source
        match entry.kind:
            case "charge" | "added" | "slot" | "late-slot" | "cover":
                self._release(entry)
            case "limit":
                limit = Limit(**{name: getattr(entry, name) for name in AMOUNTS})
                self.limits[self.data_sets.owner(source)] = limit
            case "source":
                self.data_sets.declare(source, entry.what)
            case "same":
                self._join(source, self.data_sets.check_part(source, entry.what))
            case "apart":
                self.data_sets.set_apart(source, entry.what, reason=entry.note)
            case "restored" | "recovered":
                self.restored = entry.what if entry.kind == RESTORED else None
            case _:
                raise BudgetError(f"there is no entry of the kind {entry.kind!r}")

    def _release(self, entry: Entry) -> None:
        """Take the entry of a release, which costs something or was paid for before."""
        named = f"run {entry.run!r} of party {entry.party!r}"
        release = (*entry.run_key, entry.what)
        first = self.charges.get(entry.run_key)
        if release in self.released and entry.kind != "added":
            raise BudgetError(
                f"{named} has released {entry.what!r} already: resend the stored bytes"
            )
        if entry.kind in ("charge", "slot"):
            self.check_recovered()
        of_study = series_key(entry.study_hash, entry.party)
        series, slots = self.charges.get(of_study), self.slots.setdefault(of_study, {})
        if entry.kind in ("charge", "added"):
            if first is not None:
                raise BudgetError(f"{named} has been charged already, by entry {first.number}")
            check_opening(entry, series)
            self._add_cost(entry)
            self.charges[entry.run_key] = entry
        elif entry.kind in ("slot", "late-slot"):
            check_slot(entry, series, slots)
            self.charges[entry.run_key] = slots[entry.series_run] = entry
        elif first is None or not _covers(first, entry):
            raise BudgetError(
                f"{named} has no charge on source {entry.source!r} that covers {entry.what!r}"
            )
        self.released.add(release)

    def check_recovered(self) -> None:
        """Refuse to release from a home that was restored and may have forgotten something."""
        if self.restored is not None:
            raise BudgetError(
                f"this home was restored from a {self.restored}: what was released since then is "
                "not in its ledger, and nothing is charged until it is. Add it, and say that it is "
                "complete: splitmeans ledger recover --complete --reason WHY"
            )

    def _join(self, name: str, whole: str) -> None:
        """Let everything of a name count for the data set that it is part of."""
        relation = self.relations.pop(name, None)
        if relation is not None and self.relations.setdefault(whole, relation) != relation:
            raise BudgetError(
                f"{name!r} has charges for relation {relation} and {whole!r} for "
                f"{self.relations[whole]}; they cannot be added"
            )
        if (sums := self.sums.pop(name, None)) is not None:
            before = self.sums.get(whole, dict.fromkeys(AMOUNTS, Decimal(0)))
            self.sums[whole] = {one: _SUMS.add(before[one], sums[one]) for one in AMOUNTS}
        if name in self.values_only:
            self.values_only.discard(name)
            self.values_only.add(whole)
        if (limit := self.limits.pop(name, None)) is not None:
            own = self.limits.get(whole)
            self.limits[whole] = limit if own is None else own.tightened(limit)
        self.data_sets.owners[name] = whole

    def _add_cost(self, entry: Entry) -> None:
        source = self.data_sets.owner(entry.source)
        check_cost(entry.epsilon, entry.delta)
        if self.relations.get(source, entry.relation) != entry.relation:
            raise BudgetError(
                f"source {source!r} has charges for relation {self.relations[source]}; costs for "
                f"{entry.relation} cannot be added to them"
            )
        towards = entry.towards
        _check_towards(entry, towards)
        before = self.sums.get(source, dict.fromkeys(AMOUNTS, Decimal(0)))
        # A cost that was not recorded has no bound that could be added up.
        costs = {name: getattr(entry, name) for name in AMOUNTS}
        after = {
            name: _SUMS.add(before[name], _exact(math.inf if cost is None else cost))
            for name, cost in costs.items()
        }
        # What was released cannot be refused any more; it leaves less room for what follows.
        limit = None if entry.kind == "added" else self.limits.get(source)
        if limit is not None:
            _check_limit(source, after, limit)
        self.relations[source] = entry.relation
        self.sums[source] = after
        if towards is None or towards.party_relation == VALUES:
            self.values_only.add(source)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all data sets that are declared or have a charge or a limit."""
        return tuple(sorted({*self.sums, *self.limits, *self.data_sets.people}))

    def spent(self, source: str) -> Spent:
        """Return what a source has spent, with all names that are part of it."""
        source = self.data_sets.owner(source)
        sums = self.sums.get(source, {})
        totals = {name: _round_up(sums.get(name, Decimal(0))) for name in AMOUNTS}
        return Spent(
            **totals,
            limit=self.limits.get(source),
            party_relation=VALUES if source in self.values_only else VALUES_AND_PRESENCE,
        )


_NAMES = {
    "epsilon": "epsilon",
    "delta": "delta",
    "party_epsilon": "epsilon towards a party",
    "coalition_epsilon": "epsilon towards a party together with the server",
}


def _check_limit(source: str, sums: Mapping[str, Decimal], limit: Limit) -> None:
    limits = {name: getattr(limit, name) for name in AMOUNTS}
    limited = {name: most for name, most in limits.items() if most is not None}
    if all(sums[name] <= _exact(most) for name, most in limited.items()):
        return
    spent = ", ".join(f"{_NAMES[name]} {_round_up(sums[name])!r}" for name in limited)
    most = ", ".join(f"{_NAMES[name]} {amount!r}" for name, amount in limited.items())
    raise BudgetError(
        f"source {source!r} would have spent {spent}; its limit is {most}. Nothing was released; "
        "only the data's owner can set a new limit"
    )


def _check_towards(entry: Entry, towards: Towards | None) -> None:
    """Costs towards participants are all there or none, and are costs."""
    if towards is None:
        if any(getattr(entry, name) is not None for name in _TOWARDS):
            raise BudgetError("some costs towards participants are there and some are missing")
        return
    for cost in (towards.party_epsilon, towards.coalition_epsilon):
        check_cost(cost, entry.delta)
    if towards.party_relation not in (VALUES, VALUES_AND_PRESENCE):
        raise ParameterError(f"party_relation must be {VALUES!r} or {VALUES_AND_PRESENCE!r}")


def _covers(first: Entry, entry: Entry) -> bool:
    same = (first.number, first.source, first.relation)
    free = (entry.epsilon, entry.delta) == (0.0, 0.0)
    free = free and all(getattr(entry, name) is None for name in _TOWARDS)
    return free and same == (entry.covered_by, entry.source, entry.relation)


def _exact(amount: float) -> Decimal:
    """The amount as it is written: 0.1 is one tenth, so that ten of them fit a limit of 1."""
    return Decimal(repr(amount))


def _round_up(total: Decimal) -> float:
    near = float(total)
    return near if _exact(near) >= total else math.nextafter(near, math.inf)
