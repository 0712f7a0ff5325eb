"""What the relay tells a monitoring system, in the text format of Prometheus.

Whoever can reach the relay may read it, so nothing in it depends on how long messages are, and no
figure is about one study or participant. What participants do follows from their tables in one
way: how long they take. So their requests are counted in steps: a count is told as it was at the
last full ten minutes, rounded down to two digits. What strangers do depends on no table and is
told as it is. docs/guides/relay.md says what a reader can learn.
"""

import math
import time
from collections import Counter
from collections.abc import Callable

from splitmeans._version import __version__

STEP_SECONDS = 600.0

PARTICIPANT_ANSWERS = (
    "stored",
    "stored_before",
    "handed_out",
    "not_there",
    "refused",
    "cut_off",
)
_PREFIX = "splitmeans_relay"


class Metrics:
    """Counts since the start."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._start, self._started_at = clock(), int(now())
        self._step = 0
        self._participants: Counter[str] = Counter()
        self._told: dict[str, int] = {}
        self._strangers: Counter[str] = Counter()
        self.certificate_ends: int | None = None

    @property
    def uptime_seconds(self) -> int:
        """How long the relay runs."""
        return int(self._clock() - self._start)

    def count_participant(self, answer: str) -> None:
        """Count what a participant was answered, one of `PARTICIPANT_ANSWERS`."""
        assert answer in PARTICIPANT_ANSWERS, answer
        self._end_step()
        self._participants[answer] += 1

    def count_stranger(self, code: str) -> None:
        """Count a request of nobody who takes part."""
        self._strangers[code] += 1

    def text(self, *, n_studies: int) -> str:
        """Return everything."""
        self._end_step()
        lines = [
            *_metric("up", "1 while the relay answers.", {"": 1}),
            *_metric("info", "Version of splitmeans.", {f'version="{__version__}"': 1}),
            *_metric("start_time_seconds", "Unix time of the start.", {"": self._started_at}),
            *_metric("studies", "Studies that are served.", {"": n_studies}),
            *_metric(
                "stranger_requests_total",
                "Requests of nobody who takes part, by the reason why they were refused.",
                {f'code="{code}"': self._strangers[code] for code in ("stranger", "no-page")},
            ),
            *_metric(
                "participant_requests_total",
                "Answers to participants; in steps of ten minutes, rounded down to two digits.",
                {
                    f'answer="{answer}"': _rounded(self._told.get(answer, 0))
                    for answer in PARTICIPANT_ANSWERS
                },
            ),
        ]
        if self.certificate_ends is not None:
            lines += _metric(
                "certificate_end_time_seconds",
                "Unix time at which the TLS certificate expires.",
                {"": self.certificate_ends},
            )
        return "\n".join(lines) + "\n"

    def _end_step(self) -> None:
        """Tell the counts of a step when it is over, and not before."""
        step = int((self._clock() - self._start) // STEP_SECONDS)
        if step > self._step:
            self._step = step
            self._told = dict(self._participants)


def _rounded(count: int) -> int:
    """Round down to two digits."""
    unit: int = 10 ** max(0, int(math.log10(count)) - 1) if count else 1
    return count // unit * unit


def _metric(name: str, about: str, values: dict[str, int]) -> list[str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    full = f"{_PREFIX}_{name}"
    labelled = (
        f"{full}{{{label}}} {value}" if label else f"{full} {value}"
        for label, value in values.items()
    )
    return [f"# HELP {full} {about}", f"# TYPE {full} {kind}", *labelled]
