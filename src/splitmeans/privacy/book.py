"""Entries of the ledger and the rules that they keep, without any storage.

Costs of different runs of one source are added up, exactly: nothing needs to be known about how the
runs relate for that. A `Book` is filled entry by entry, and by the same code when the ledger is
written and when it is checked.
"""

import hashlib
import json
import math
import unicodedata
from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, NamedTuple

from splitmeans import _validate
from splitmeans.errors import BudgetError, ParameterError

# Wide enough for any sum of floats; a sum that is not exact raises.
_SUMS = Context(prec=1500, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that all runs on one data source may cost together."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        check_delta(self.delta)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger.

    Attributes:
        number: Position, from 1.
        kind: "charge" (a run's whole budget, with its first release), "cover" (a later release of
            a run that has been charged; costs nothing), "added" (a run that was released without
            this ledger, added by hand) or "limit" (a new limit of the source).
        time: When it was written, UTC.
        source: Name of the data source.
        study_hash: The study; None for a limit, as are the next four.
        run: Name of the run.
        party: The party that releases.
        what: What is released, each at most once in a run; the reason of what was added by hand.
        relation: Name of the neighbouring relation that the cost is about.
        epsilon: Cost, or the limit.
        delta: Cost, or the limit.
        covered_by: For a cover, the number of the charge.
        release_sha256: Hash of the bytes that are released; None for a limit, or if not known.
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

    @property
    def plain(self) -> dict[str, Any]:
        """The entry as it is stored and hashed; numbers are text that reads back unchanged."""
        amounts = {"epsilon": repr(self.epsilon), "delta": repr(self.delta)}
        return vars(self) | amounts

    @property
    def run_key(self) -> tuple[str | None, ...]:
        """What a run is charged under."""
        return self.study_hash, self.run, self.party

    def hash_after(self, previous: str) -> str:
        """Return the hash of this entry in a ledger whose last hash is `previous`."""
        text = json.dumps(self.plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(bytes.fromhex(previous) + text.encode("ascii")).hexdigest()


class Spent(NamedTuple):
    """What a source has spent, rounded up, and the limit that holds (None: no limit)."""

    epsilon: float
    delta: float
    limit: Limit | None


@dataclass(kw_only=True)
class Book:
    """Sums, limits and releases of all entries so far, by source and by run."""

    epsilon: dict[str, Decimal] = field(default_factory=dict)
    delta: dict[str, Decimal] = field(default_factory=dict)
    relations: dict[str, str | None] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    charges: dict[tuple[str | None, ...], Entry] = field(default_factory=dict)
    released: set[tuple[str | None, ...]] = field(default_factory=set)

    def add(self, entry: Entry, *, default: Limit | None) -> None:
        """Take one entry, or raise if it breaks a rule.

        Args:
            entry: The entry.
            default: Limit of sources that have none of their own.
        """
        if entry.kind == "limit":
            self.limits[entry.source] = Limit(epsilon=entry.epsilon, delta=entry.delta)
            return
        named = f"run {entry.run!r} of party {entry.party!r}"
        release = (*entry.run_key, entry.what)
        first = self.charges.get(entry.run_key)
        if release in self.released and entry.kind != "added":
            raise BudgetError(
                f"{named} has released {entry.what!r} already: resend the stored bytes"
            )
        if entry.kind in ("charge", "added"):
            if first is not None:
                raise BudgetError(f"{named} has been charged already, by entry {first.number}")
            self._add_cost(entry, default=default)
            self.charges[entry.run_key] = entry
        elif entry.kind != "cover" or first is None or not _covers(first, entry):
            raise BudgetError(
                f"{named} has no charge on source {entry.source!r} that covers {entry.what!r}"
            )
        self.released.add(release)

    def _add_cost(self, entry: Entry, *, default: Limit | None) -> None:
        source = entry.source
        check_cost(entry.epsilon, entry.delta)
        if self.relations.get(source, entry.relation) != entry.relation:
            raise BudgetError(
                f"source {source!r} has charges for relation {self.relations[source]}; costs for "
                f"{entry.relation} cannot be added to them"
            )
        epsilon = _SUMS.add(self.epsilon.get(source, Decimal(0)), _exact(entry.epsilon))
        delta = _SUMS.add(self.delta.get(source, Decimal(0)), _exact(entry.delta))
        # What was released cannot be refused any more; it leaves less room for what follows.
        limit = None if entry.kind == "added" else self.limits.get(source, default)
        if limit is not None and (epsilon > _exact(limit.epsilon) or delta > _exact(limit.delta)):
            raise BudgetError(
                f"source {source!r} would have spent epsilon {_round_up(epsilon)!r}, delta "
                f"{_round_up(delta)!r}; its limit is epsilon {limit.epsilon!r}, delta "
                f"{limit.delta!r}. Nothing was released; only the data's owner can set a new limit"
            )
        self.relations[source] = entry.relation
        self.epsilon[source], self.delta[source] = epsilon, delta

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all sources that have a charge or a limit."""
        return tuple(sorted({*self.epsilon, *self.limits}))

    def spent(self, source: str, *, default: Limit | None) -> Spent:
        """Return what a source has spent."""
        return Spent(
            epsilon=_round_up(self.epsilon.get(source, Decimal(0))),
            delta=_round_up(self.delta.get(source, Decimal(0))),
            limit=self.limits.get(source, default),
        )


def check_source(name: str) -> None:
    """Check the name of a data source: the one rule wherever a name is given, kept or charged."""
    if not isinstance(name, str) or not name.strip():
        raise ParameterError("source must be a name that is not empty; give one with --source")
    wrong = next((place for place, sign in enumerate(name) if not sign.isprintable()), None)
    if wrong is not None:
        raise ParameterError(
            "source must be printable text, so that people can read the ledger and set limits; "
            f"character {wrong + 1} of {printable(name)!r} is not (U+{ord(name[wrong]):04X}): give "
            "another name with --source"
        )


def printable(name: str) -> str:
    r"""Return a name that `check_source` takes, for one that comes from a file's name.

    Unusual spaces (a no-break space, a tab) become a plain space, because that is what people see
    and type; every other character that cannot be printed becomes its code, such as `\x07`.
    Accents are composed (NFC): systems differ in how they store them. Names that look alike become
    one source, whose costs add up.
    """
    composed = unicodedata.normalize("NFC", name)
    return "".join(
        sign if sign.isprintable() else " " if sign.isspace() else _code(sign) for sign in composed
    )


def _code(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def check_cost(epsilon: float, delta: float) -> None:
    """Check the cost of a run; an infinite epsilon stands for a release without protection."""
    if epsilon != math.inf:
        _validate.positive(epsilon=epsilon)
    check_delta(delta)


def check_delta(delta: float) -> None:
    """Check a delta."""
    _validate.finite(delta=delta)
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be in [0, 1), got {delta!r}")


def _covers(first: Entry, entry: Entry) -> bool:
    same = (first.number, first.source, first.relation)
    free = (entry.epsilon, entry.delta) == (0.0, 0.0)
    return free and same == (entry.covered_by, entry.source, entry.relation)


def _exact(amount: float) -> Decimal:
    """The amount as it is written: 0.1 is one tenth, so that ten of them fit a limit of 1."""
    return Decimal(repr(amount))


def _round_up(total: Decimal) -> float:
    near = float(total)
    return near if _exact(near) >= total else math.nextafter(near, math.inf)
