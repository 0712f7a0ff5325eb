"""What a stage and a peer are: a name, and how to get from stored inputs to a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from splitmeans.bench.speed.inputs import Inputs
from splitmeans.bench.speed.measure import Task

GROUPS = ("read", "ids", "local", "encode", "combine", "grid", "k-means", "plan", "fit")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A task that is ready to run.

    Attributes:
        task: What is timed.
        factor: By how much its time is multiplied, for a task that does a known part of the work.
        scaled: What part that is, in words; empty for the whole.
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
        prepare: Loads what the task needs.
        by_users: Whether its time depends on the number of users; others are run once.
    """

    name: str
    group: str
    prepare: Callable[[Inputs], Prepared | Task]
    by_users: bool = True


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A library, or a plain way, that people would use instead of a stage.

    Attributes:
        name: What tables call it.
        group: One of `GROUPS`.
        does: What it does and what it does not do, in a few words.
        against: The stages it is compared with.
        prepare: Loads what the task needs; raises `ImportError` if the library is missing.
        most_users: It is left out for more users, because it would take minutes.
    """

    name: str
    group: str
    does: str
    against: tuple[str, ...]
    prepare: Callable[[Inputs], Prepared | Task]
    most_users: int = 10_000_000


def as_prepared(found: Prepared | Task | Any) -> Prepared:
    """Return a task as a prepared one."""
    return found if isinstance(found, Prepared) else Prepared(task=found)
