"""What an attacker may have seen: checked on the log of a world, after every attack."""

import hashlib
from typing import TYPE_CHECKING

from splitmeans.mailbox.open import MessagePath
from splitmeans.plan.settle import make_plan
from splitmeans.server.combine import check_release
from splitmeans.wire.codec import encode
from splitmeans.wire.messages import (
    Confirmation,
    Hello,
    KeyContribution,
    PartyRelease,
    PlanConfirmation,
    PublishedResult,
    Ready,
    RunPlan,
    StageRelease,
    kinds_of,
    staged,
)
from splitmeans.wire.slot import SERVER, short_name

if TYPE_CHECKING:
    from .harness import World

RELEASES = (StageRelease, PartyRelease)
TO_PARTIES = (Hello, KeyContribution, Confirmation, PlanConfirmation, StageRelease)
TO_SERVER = (Hello, Ready, StageRelease, PartyRelease)
KINDS = {
    name.lower(): kind
    for kind in (*TO_PARTIES, Ready, PartyRelease, RunPlan, PublishedResult)
    for name in kinds_of((kind,))
}


def kind_in_slot(kind: type | str) -> str:
    """What slots call a message; of a stage the first, unless it is named."""
    return kind if isinstance(kind, str) else kinds_of((kind,))[0]


class ViewError(AssertionError):
    """The attacker has seen more than the protocol allows."""


def check_view(world: "World") -> None:
    """Raise `ViewError` if honest parties sent more than the protocol lets the attacker see.

    1. A party sends only known kinds, each to whom it belongs.
    2. A party has said one thing in each slot, and released the same bytes whenever it did.
    3. A release was sent only after every other party's own confirmation had been taken.
    4. Every release stands in the party's ledger under its hash, so it was charged.
    5. A release is what the approved study's plan says, with its k' and its kind of message.
    """
    checks = {
        "kinds": _check_kinds,
        "confirmed": _check_confirmed,
        "charged": _check_charged,
        "planned": _check_planned,
    }
    assert set(world.unchecked) <= set(checks)
    for title, check in checks.items():
        for name in world.study.party_names:
            if title not in world.unchecked:
                check(world, name)


def _check_kinds(world: "World", name: str) -> None:
    seen: dict[str, bytes] = {}
    for path, data in world.box.sent:
        place = MessagePath.parse(path)
        if place.sender != short_name(name):
            continue
        allowed = TO_SERVER if place.receiver == short_name(SERVER) else TO_PARTIES
        if KINDS[place.kind] not in allowed:
            raise ViewError(f"{name} sent {place.kind} to someone it is not for")
        kind, first = KINDS[place.kind], seen.setdefault(path, data)
        if first != data and (kind in RELEASES or not _same(world, place, kind, first, data)):
            raise ViewError(f"{name} sent two different {place.kind} for one slot")


def _same(world: "World", place: MessagePath, kind: type, *versions: bytes) -> bool:
    """Whether sealed bytes have the same content."""
    names = {short_name(name): name for name in (*world.study.party_names, SERVER)}
    ends = (names[place.sender], names[place.receiver])
    (name,) = (name for name in kinds_of((kind,)) if name.lower() == place.kind)
    found = [encode(world.read(*ends, name, data, run=place.run)) for data in versions]
    return all(content == found[0] for content in found)


def _check_confirmed(world: "World", name: str) -> None:
    """An honest confirmation of every other party must have been taken before a release."""
    true = set(world.box.sent)
    stages = make_plan(world.study).stages
    log = world.box.log
    for path in world.releases(name):
        place = MessagePath.parse(path)
        at = next(n for n, (act, slot, _) in enumerate(log) if (act, slot) == ("put", path))
        taken = {slot for act, slot, data in log[:at] if act == "got" and (slot, data) in true}
        # The first release follows the first confirmation, others that of the stage before.
        names = [staged(StageRelease, n + 1).lower() for n in range(len(stages))]
        at_stage = [*names, PartyRelease.TAG.lower()].index(place.kind)
        word = staged(PlanConfirmation, at_stage) if at_stage else Confirmation
        for other in world.study.party_names:
            if other != name and world.path(other, name, word, run=place.run) not in taken:
                raise ViewError(f"{name} released before {other} had confirmed")


def _check_charged(world: "World", name: str) -> None:
    known = {entry.release_sha256 for entry in world.entries(name)}
    for path, versions in world.releases(name).items():
        # What a stage releases goes to several receivers; the ledger names the first of them.
        to_party = MessagePath.parse(path).receiver != short_name(SERVER)
        for data in versions:
            if not to_party and hashlib.sha256(data).hexdigest() not in known:
                raise ViewError(f"{name} sent a release that its ledger does not have")


def _check_planned(world: "World", name: str) -> None:
    plan = make_plan(world.study, released=world.released)
    for path, versions in world.releases(name, kind=PartyRelease).items():
        run = MessagePath.parse(path).run
        for data in versions:
            check_release(plan, name, world.read(name, SERVER, PartyRelease, data, run=run))
