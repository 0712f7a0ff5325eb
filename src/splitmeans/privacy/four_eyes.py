"""Four eyes: what loosens a limit needs two people, each with a key that the home has pinned.

A home that says so takes none of these acts from one person: a limit that is higher than the one
that holds, a higher home-wide limit, "these are other people", another guard, and the end of this
rule. One guard signs a request, which is an entry of the ledger; another one signs the act itself,
which names the request and must be what was requested. Both signatures cover the hash of the entry
before them, so neither fits another ledger, or another place in this one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from splitmeans.errors import BudgetError, ParameterError
from splitmeans.wire.identity import Identity, PublicIdentity

if TYPE_CHECKING:
    from splitmeans.privacy.ledger_rules import Entry

# Acts that may need a second person, and what of an entry says what is done.
LIMIT, DEFAULT, APART, GUARD, EYES = "limit", "default", "apart", "guard", "four-eyes"
GUARDED = (LIMIT, DEFAULT, APART, GUARD, EYES)
ON, OFF = "on", "off"
_WHAT_IS_DONE = (
    *("source", "what", "note", "party"),
    *("epsilon", "delta", "party_epsilon", "coalition_epsilon"),
)
_TEXT = "splitmeans four eyes 1\n"


@dataclass(frozen=True, kw_only=True)
class Signer:
    """A guard with the own private key."""

    name: str
    identity: Identity

    def signed(self, entry: "Entry", *, previous: str) -> "Entry":
        """Return an entry with this guard's signature."""
        named = replace(entry, signer=self.name)
        signature = self.identity.sign(to_sign(named, previous=previous))
        return replace(named, signature=signature.hex())


@dataclass(kw_only=True)
class Guards:
    """Pinned keys, open requests, and whether the home has four eyes; part of a `Book`."""

    keys: dict[str, PublicIdentity] = field(default_factory=dict)
    requests: dict[int, "Entry"] = field(default_factory=dict)
    is_on: bool = False

    def pin(self, name: str | None, text: str | None) -> None:
        """Take an entry that pins the key of a person, or another key of one."""
        if not name:
            raise BudgetError("a guard must have a name")
        if not text:
            raise BudgetError(f"guard {name!r} must have a public key")
        try:
            key = PublicIdentity.from_text(text)
        except ParameterError as problem:
            raise BudgetError(f"the key of guard {name!r}: {problem}") from problem
        if key.signing in {known.signing for who, known in self.keys.items() if who != name}:
            raise BudgetError(f"the key of guard {name!r} is another guard's: four eyes, two keys")
        self.keys[name] = key

    def switch(self, state: str | None) -> None:
        """Take an entry that turns the rule on or off."""
        if state not in (ON, OFF):
            raise BudgetError(f"four eyes are {ON!r} or {OFF!r}, got {state!r}")
        if state == ON and len(self.keys) < 2:
            raise BudgetError(
                "four eyes need two people: pin the keys of two guards first, with `splitmeans "
                "ledger guard NAME KEY.pub`"
            )
        self.is_on = state == ON

    def request(self, entry: "Entry", *, previous: str) -> None:
        """Take a signed request."""
        if entry.act not in GUARDED:
            raise BudgetError(f"a request must be for one of {', '.join(GUARDED)}")
        self._check_signed(entry, previous=previous)
        self.requests[entry.number] = entry

    def check_act(self, entry: "Entry", *, previous: str, loosens: bool) -> None:
        """Refuse an act that needs a second person and has none.

        Args:
            entry: The act.
            previous: Hash of the entry before it.
            loosens: Whether it needs one, if the home has four eyes.
        """
        if entry.covered_by is None:
            if self.is_on and loosens:
                raise BudgetError(
                    f"this home has four eyes: {words_of(entry)} needs a second person. One guard "
                    f"({', '.join(sorted(self.keys))}) repeats the command with --request and the "
                    "own --key, another one signs it with `splitmeans ledger approve NUMBER`"
                )
            return
        asked = self.requests.get(entry.covered_by)
        if asked is None:
            raise BudgetError(f"entry {entry.covered_by} is no open request")
        if (asked.act, _done(asked)) != (entry.kind, _done(entry)):
            raise BudgetError(f"what is approved is not what entry {asked.number} requests")
        self._check_signed(entry, previous=previous)
        same = {asked.signer, entry.signer}
        if len(same) < 2 or len({self.keys[str(name)].signing for name in same}) < 2:
            raise BudgetError(
                f"entry {asked.number} was requested by {asked.signer!r}: another guard must "
                "approve it"
            )
        del self.requests[asked.number]

    def _check_signed(self, entry: "Entry", *, previous: str) -> None:
        if entry.signer not in self.keys:
            known = ", ".join(sorted(self.keys)) or "nobody"
            raise BudgetError(f"{entry.signer!r} is no guard of this home; guards: {known}")
        try:
            signature = bytes.fromhex(entry.signature or "")
        except ValueError:
            signature = b""
        if not self.keys[entry.signer].verify(to_sign(entry, previous=previous), signature):
            raise BudgetError(f"the signature of {entry.signer!r} is wrong")


def to_sign(entry: "Entry", *, previous: str) -> bytes:
    """Return what a guard signs: everything of the entry but the signature, and its place."""
    plain: Mapping[str, Any] = {
        name: value
        for name, value in entry.plain.items()
        if value is not None and name not in ("signature", "time")
    }
    return (_TEXT + previous + "\n" + json.dumps(plain, sort_keys=True)).encode()


def words_of(entry: "Entry") -> str:
    """Say what an act does."""
    match entry.act or entry.kind:
        case "limit":
            return f"a higher limit of {entry.source!r} (epsilon {entry.epsilon:g})"
        case "default":
            return f"a higher home-wide limit (epsilon {entry.epsilon:g})"
        case "apart":
            return f"saying that {entry.source!r} are other people than {entry.what!r}"
        case "guard":
            return f"the key of guard {entry.party!r}"
        case _:
            return f"four eyes {entry.what}"


def _done(entry: "Entry") -> tuple[Any, ...]:
    return tuple(getattr(entry, name) for name in _WHAT_IS_DONE)
