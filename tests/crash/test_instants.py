"""Every participant is stopped at every instant of a run that can make a difference.

After each stop: the home can be opened, the ledger is sound and has a charge for every release that
anyone tried to send, what was sent is stored; and the run, taken up again, ends with the same
result for all, with one message per slot and one charge per party. `make runs` takes every
so-manieth instant, `-m slow` all of them.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import SplitmeansError
from tests.crash.crew import Crew, crew_study
from tests.crash.instants import Picture, all_pictures, stop_at
from tests.crash.rules import EVERYONE, PARTIES, SERVER, broken_at_end, broken_now
from tests.crash.twins import charge_late, mark_first, seal_again, send_first

slow = pytest.mark.slow


def broken_after(crew: Crew, picture: Picture, order: Sequence[str] = EVERYONE) -> list[str]:
    """Go on from what a kill left; return what is wrong then or at the end."""
    crew.put_back(picture.disk, picture.sent)
    return broken_from_here(crew, order)


def broken_from_here(crew: Crew, order: Sequence[str] = EVERYONE) -> list[str]:
    found = [
        line for who in order for line in broken_now(crew.folder / who, crew.keys[who], crew.sent)
    ]
    try:
        crew.go_on(order)
    except (SplitmeansError, AssertionError) as problem:
        return [*found, f"the run does not go on: {type(problem).__name__}: {problem}"]
    return found + broken_at_end(crew.folder, crew.keys, crew.sent)


def killed_one_last(picture: Picture) -> list[str]:
    return sorted(EVERYONE, key=lambda who: who == picture.who)


def check(crew: Crew, pictures: Sequence[Picture]) -> None:
    for number, picture in enumerate(pictures):
        order = killed_one_last(picture) if number % 2 else EVERYONE
        found = broken_after(crew, picture, order)
        assert not found, f"{picture.who}, turn {picture.turn}, {picture.instant}: {found}"


def stop_everywhere(
    crew: Crew, pictures: Sequence[Picture], *, step: int, every_turn: int = 1
) -> int:
    """Stop by an exception at every so-manieth instant of the turns; return how often."""
    count, skip = 0, 0
    starts = {picture.turn: picture for picture in reversed(pictures)}
    for start in list(starts.values())[::every_turn]:
        number = skip
        while True:
            crew.put_back(start.disk, start.sent)
            instant = stop_at(crew, start.who, number)
            if instant is None:
                break
            found = broken_from_here(crew)
            assert not found, f"{start.who}, turn {start.turn}, {instant} ({number}): {found}"
            number, count = number + step, count + 1
        skip = (skip + 7) % step
    return count


def test_a_kill_at_some_instants(crew: Crew) -> None:
    pictures = all_pictures(crew)
    assert {picture.who for picture in pictures} == set(EVERYONE)
    assert len(pictures) > 300
    check(crew, pictures[5 :: len(pictures) // 4])
    assert stop_everywhere(crew, pictures, step=150, every_turn=8) > 2


@slow
@pytest.mark.parametrize("order", [EVERYONE, EVERYONE[::-1]], ids=["server-last", "server-first"])
def test_a_kill_at_every_instant(crew: Crew, order: Sequence[str]) -> None:
    check(crew, all_pictures(crew, order))


STAGED: dict[str, dict[str, Any]] = {
    "decoy": {"n_local_clusters": "auto"},
    "decoy, partial": {"n_local_clusters": "auto"},
}


def staged_crew(crew: Crew, name: str) -> Crew:
    """A crew whose study has a stage: parties release twice under one charge."""
    made = Crew(folder=crew.folder, study=crew_study(**STAGED[name]))
    made.put_back({}, {})
    made.approve()
    return made


def test_a_kill_at_some_instants_of_a_run_with_a_stage(crew: Crew) -> None:
    """Just before and after the messages of the stage leave, of which every party has some."""
    counted = staged_crew(crew, "decoy, partial")
    pictures = all_pictures(counted)
    sent = [
        pair
        for pair in itertools.pairwise(pictures)
        if any("stagerelease_1" in slot for slot in set(pair[1].sent) - set(pair[0].sent))
    ]
    assert {pair[1].who for pair in sent} == set(PARTIES)
    for before, after in sent[:: max(1, len(sent) // 3)]:
        check(counted, [before, after])


@slow
@pytest.mark.parametrize("name", STAGED)
def test_a_kill_at_every_instant_of_a_run_with_a_stage(name: str, crew: Crew) -> None:
    counted = staged_crew(crew, name)
    check(counted, all_pictures(counted))


@slow
def test_ctrl_c_at_every_fourth_instant(crew: Crew) -> None:
    pictures = all_pictures(crew, (SERVER, *PARTIES))
    assert stop_everywhere(crew, pictures, step=4) > 600


@slow
def test_one_kill_after_another(crew: Crew) -> None:
    pictures = all_pictures(crew)
    rng = np.random.default_rng(6)
    for _ in range(100):
        picture = pictures[rng.integers(len(pictures))]
        crew.put_back(picture.disk, picture.sent)
        for _ in range(rng.integers(1, 6)):
            stop_at(crew, EVERYONE[rng.integers(4)], int(rng.integers(150)))
        found = broken_from_here(crew)
        assert not found, f"{picture.who}, turn {picture.turn}, {picture.instant}: {found}"


TWINS = [
    (send_first, "sent PartyRelease without a charge"),
    (seal_again, "2 different messages were sent for .*/partyrelease"),
    (mark_first, "the run does not end"),
    (charge_late, "sent PartyRelease without a charge"),
]


@pytest.mark.parametrize(
    ("twin", "caught"),
    [pytest.param(*TWINS[0]), *(pytest.param(*t, marks=slow) for t in TWINS[1:])],
)
def test_a_broken_twin_is_caught(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, twin: Callable[..., None], caught: str
) -> None:
    """Each twin works as long as nobody is killed."""
    twin(monkeypatch)
    for before, after in itertools.pairwise(all_pictures(crew)):
        if before.sent == after.sent or not any("partyrelease" in slot for slot in after.sent):
            continue
        # A release has just been handed to the mailbox, or is about to be.
        found = broken_after(crew, before) + broken_after(crew, after)
        if any(re.search(caught, line) for line in found):
            return
    pytest.fail("the twin was not caught")
