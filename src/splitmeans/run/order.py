"""In which order the messages of a run come: what each participant must have before it sends.

It says once more, for people who wait, what the state machines of party and server do; a test
compares it with a run.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from splitmeans.plan.settle import make_plan
from splitmeans.study import Study
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
    staged,
)
from splitmeans.wire.slot import SERVER, Slot


class Due(NamedTuple):
    """A message that a run has: who sends it to whom."""

    sender: str
    receiver: str
    kind: str

    def path(self, study: Study, run: str) -> str:
        """Its place in a mailbox."""
        return Slot(study_hash=study.hash, run=run, **self._asdict()).path


IsThere = Callable[[Due], bool]


class MessageOrder:
    """The order of one study's messages."""

    def __init__(self, study: Study) -> None:
        self._parties = study.party_names
        self._stages = [stage.parties for stage in make_plan(study).stages]

    def steps(self, participant: str) -> list[frozenset[Due]]:
        """Return what a participant waits for, one step after the other."""
        if participant == SERVER:
            numbered = enumerate(self._stages, start=1)
            gathered = {
                Due(party, SERVER, staged(StageRelease, number))
                for number, parties in numbered
                for party in parties
            }
            gathered |= {Due(party, SERVER, Ready.TAG) for party in self._parties}
            releases = {Due(party, SERVER, PartyRelease.TAG) for party in self._parties}
            hellos = {Due(party, SERVER, Hello.TAG) for party in self._parties}
            return [frozenset(hellos), frozenset(gathered), frozenset(releases)]
        others = [party for party in self._parties if party != participant]

        def from_all(parties: Iterable[str], kind: str) -> frozenset[Due]:
            return frozenset(Due(party, participant, kind) for party in parties)

        steps = [
            from_all([*others, SERVER], Hello.TAG),
            from_all(others, KeyContribution.TAG),
            from_all(others, Confirmation.TAG),
        ]
        for number, parties in enumerate(self._stages, start=1):
            released = [party for party in parties if party != participant]
            steps.append(from_all(released, staged(StageRelease, number)))
            steps.append(from_all(others, staged(PlanConfirmation, number)))
        return [
            *steps,
            from_all([SERVER], RunPlan.TAG),
            from_all([SERVER], PublishedResult.TAG),
        ]

    def needed_before(self, message: Due) -> frozenset[Due]:
        """Return what its sender must have before it sends a message."""
        steps = self.steps(message.sender)
        if message.sender == SERVER:
            last = {Hello.TAG: 0, RunPlan.TAG: 2, PublishedResult.TAG: 3}[message.kind]
        else:
            last = self._step_of(message.kind)
        return frozenset().union(*steps[:last])

    def _step_of(self, kind: str) -> int:
        """Return how many steps a party has behind it when it sends a message."""
        sent_after = {Hello.TAG: 0, KeyContribution.TAG: 1, Confirmation.TAG: 2}
        for number in range(1, len(self._stages) + 1):
            sent_after[staged(StageRelease, number)] = 2 * number + 1
            sent_after[staged(PlanConfirmation, number)] = 2 * number + 2
        sent_after[Ready.TAG] = 3 + 2 * len(self._stages)
        sent_after[PartyRelease.TAG] = 4 + 2 * len(self._stages)
        return sent_after[kind]

    def next_of(self, participant: str, is_there: IsThere) -> frozenset[Due]:
        """Return what is missing of the first step of which something is; empty at the end."""
        for step in self.steps(participant):
            missing = frozenset(message for message in step if not is_there(message))
            if missing:
                return missing
        return frozenset()

    def whose_turn(self, wanted: Iterable[Due], is_there: IsThere) -> frozenset[Due]:
        """Return the messages whose senders have all they need, and which are not there."""
        found: set[Due] = set()
        seen: set[Due] = set()
        queue = list(wanted)
        while queue:
            message = queue.pop()
            if message in seen:
                continue
            seen.add(message)
            missing = [one for one in self.needed_before(message) if not is_there(one)]
            if missing:
                queue += missing
            else:
                found.add(message)
        return frozenset(found)
