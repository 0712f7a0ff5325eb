"""How long a place on a network is tried again: one rule for relays, SFTP and object stores.

The first attempts follow each other quickly, later ones every half minute, until the patience of
whoever gave the command is used up. What cannot pass by itself is never tried again.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from splitmeans.errors import MailboxError, ParameterError

DEFAULT_PATIENCE = 120.0
"""Seconds: a restarted relay, a failed-over store or a short loss of the line is over by then."""

TRANSFER_SECONDS = 900.0
"""For one download or upload; nobody may keep a participant for ever."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds between attempts, doubled each time
_SAID_AFTER = 3.0  # seconds; most losses are over before anybody needs to know

_Result = TypeVar("_Result")


class TryAgain(Exception):
    """An attempt failed in a way that may pass.

    Attributes:
        problem: What is raised if no later attempt succeeds.
        after: Seconds that the other side asked to be left alone.
    """

    def __init__(self, problem: MailboxError, *, after: float = 0.0) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.after = after


def _nobody(_: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Retries:
    """A participant's patience with a mailbox that does not answer.

    Attributes:
        seconds: How long one request is tried; 0 tries once.
        say: Told once for each request that has to wait.
        sleep: Waits for some seconds.
        clock: Seconds that only go forward.
    """

    seconds: float = DEFAULT_PATIENCE
    say: Callable[[str], None] = _nobody
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < float("inf"):
            raise ParameterError(
                f"--patience must be a number of seconds >= 0, got {self.seconds!r}"
            )

    def run(self, attempt: Callable[[], _Result]) -> _Result:
        """Return what the first attempt that succeeds returns.

        Args:
            attempt: One request; raises `TryAgain` for what may pass.

        Raises:
            MailboxError: The last attempt's problem, with the time that it was tried for.
        """
        spent, wait, is_told = 0.0, _FIRST_WAIT, False
        while True:
            began = self.clock()
            try:
                return attempt()
            except TryAgain as again:
                spent += self.clock() - began
                left = self.seconds - spent
                if left <= 0:
                    raise self._given_up(again, spent) from again.__cause__
                # At random, so that participants who lost a relay do not all come back at once.
                pause = max(wait * random.uniform(0.5, 1.0), again.after)
                if not is_told and spent + pause > _SAID_AFTER:
                    is_told = True
                    self.say(f"{again.problem}; trying again for up to {self.seconds:g} seconds")
            pause = min(pause, left)
            self.sleep(pause)
            spent += pause  # by what was asked for, so that a made-up clock ends, too
            wait = min(_LONGEST_WAIT, 2 * wait)

    def _given_up(self, again: TryAgain, spent: float) -> MailboxError:
        if self.seconds == 0:
            return again.problem
        return type(again.problem)(
            f"{again.problem} (tried for {spent:.0f} seconds; --patience allows more)"
        )
