"""Waiting for others: ask often at first, then less, and give up after a chosen time."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from splitmeans.errors import WaitingError
from splitmeans.run.notes import Note

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 2.0


@dataclass(kw_only=True)
class Patience:
    """How long a participant waits.

    Attributes:
        timeout: Seconds without any news after which waiting ends; None waits for ever.
        say: Told who is missing, when that changes.
        going_on: Called before every pause; raises to stop there.
        clock: Seconds that only go forward; a changed system time has no influence.
        sleep: Waits for some seconds.
    """

    timeout: float | None
    say: Callable[[str], None]
    going_on: Callable[[], object] = lambda: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _since: float | None = field(default=None, init=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _said: str = field(default="", init=False)

    def news(self) -> None:
        """Something arrived: begin to wait anew."""
        self._since, self._pause = None, _FIRST_PAUSE

    def wait(self, missing: Iterable[str]) -> None:
        """Pause before asking again.

        Raises:
            WaitingError: Nothing arrived for `timeout` seconds.
        """
        self.going_on()
        missing = sorted(missing)
        names = ", ".join(missing)
        now = self.clock()
        self._since = now if self._since is None else self._since
        if self.timeout is not None and now - self._since >= self.timeout:
            raise WaitingError(
                f"nothing came from {names} for {self.timeout:g} seconds; nothing is lost: the "
                "same command takes the run up again"
            )
        if names != self._said:
            self._said = names
            self.say(Note(f"waiting for {names}", event="waiting", missing=missing))
        self.sleep(self._pause)
        # Never much longer than a tenth of what was waited already.
        self._pause = min(2 * self._pause, max(_FIRST_PAUSE, (now - self._since) / 10))
        self._pause = min(self._pause, _LONGEST_PAUSE)
