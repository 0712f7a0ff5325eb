"""What is measured: a part of a run, or what people would use instead, and how to get its task."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.speed.inputs import Inputs
from benchmarks.speed.measure import Task

GROUPS = ("read", "ids", "local", "encode", "combine", "grid", "k-means", "plan", "fit", "start")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A task that does a known part of the work.

    Attributes:
        task: What is timed.
        factor: By how much its time is multiplied.
        scaled: What part of the work it does, in words; empty for the whole.
    """

    task: Task
    factor: float = 1.0
    scaled: str = ""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a run.

    Attributes:
        name: What tables call it.
        group: One of `GROUPS`.
        prepare: Loads what the task needs; raises `ImportError` if a peer's library is missing.
        by_users: Whether its time depends on the number of users; others are run once.
    """

    name: str
    group: str
    prepare: Callable[[Inputs], Prepared | Task]
    by_users: bool = True

    def ready(self, inputs: Inputs) -> Prepared:
        """Return the task, ready to run."""
        found = self.prepare(inputs)
        return found if isinstance(found, Prepared) else Prepared(task=found)


@dataclass(frozen=True, kw_only=True)
class Peer(Stage):
    """A library, or a plain way, that people would use instead of a stage.

    Attributes:
        does: What it does and what it does not do, in a few words.
        against: The stages it is compared with.
        most_users: It is left out for more users, because it would take minutes.
    """

    does: str
    against: tuple[str, ...]
    most_users: int = 10_000_000
