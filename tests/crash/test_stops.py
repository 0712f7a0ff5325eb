"""A stop whose signal got lost is heard before a participant joins, answers, or waits."""

import copy

from tests.crash.crew import Crew
from tests.crash.rules import EVERYONE, broken_at_end


def stop() -> None:
    raise KeyboardInterrupt


def is_stopped(crew: Crew, who: str) -> bool:
    try:
        crew.turn(who, going_on=stop)
    except KeyboardInterrupt:
        return True
    return False


def test_who_is_told_to_stop_sends_nothing_new(crew: Crew) -> None:
    """Each is stopped before every turn of a whole run, which then goes on and ends as it should.

    What is sealed and stored already may be sent again: it is the same bytes.
    """
    stops = 0
    for _ in range(20):
        ended = []
        for who in EVERYONE:
            before = copy.deepcopy(crew.sent)
            stops += is_stopped(crew, who)
            assert crew.sent == before
            ended.append(crew.turn(who))
        if all(ended):
            break
    assert stops >= 3 * len(EVERYONE)
    assert broken_at_end(crew.folder, crew.keys, crew.sent) == []
