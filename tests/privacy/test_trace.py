"""What others see of a run is the same on neighbouring tables, or in one list (rule R12, O2).

The list is the table under "What an onlooker sees" in docs/concepts/guarantee.md. Every case says
which of its lines it may show; a difference that no line allows fails, and so does a line that no
case shows any more: it has been mended and must go.
"""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import DataError
from splitmeans.mailbox.open import MailboxLimits
from splitmeans.plan import settle
from splitmeans.plan.message_sizes import HEADROOM, message_sizes
from splitmeans.plan.settle import make_plan
from splitmeans.study import Study
from splitmeans.study.features import bounds_of, features_of
from splitmeans.table.walk import stream
from tests.attacks import conftest as attack_conftest
from tests.attacks.harness import Box
from tests.scene import keyed_study

from .trace import Facts, Rows, TracedWorld, differing, facts_of

fast = attack_conftest.fast

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "guarantee.md"
SECTION = PAGE.read_text(encoding="utf-8").split("\n### What an onlooker sees\n")[1]
LISTED = dict(re.findall(r"^\| (T\d+) \| `([^|`]+)` \|", SECTION, flags=re.MULTILINE))

N = 300


def tables(n: int = N, *, only: str | None = None, change: float | None = None) -> Rows:
    """Both parties' tables with the same n users; `only` has one more that the other has not."""
    made: Rows = {}
    for number, name in enumerate(("bank", "shop")):
        rng = np.random.default_rng([7, number])
        own = n + (name == only)
        values = rng.uniform(5, 95, (max(2 * N, own), 2))[:own]
        if change is not None:
            values[0] = change
        ids = [f"user-{row}" for row in range(own)]
        made[name] = {"id": ids, "x": values[:, 0], "y": values[:, 1]}
    return made


def clipped(outside: int) -> Rows:
    """Tables of which a column has so many values outside its bounds."""
    made = tables()
    made["bank"]["x"] = np.concatenate([np.full(outside, 200.0), made["bank"]["x"][outside:]])
    return made


@dataclass(frozen=True, kw_only=True)
class Case:
    """Worlds in a row, each a neighbour of the one before it.

    Attributes:
        worlds: The tables of each.
        allowed: Lines of the list that may show.
        study: Changes to the study.
        patch: Limits of the engine that make it small enough for a test.
        room_for: The mailbox has room for a run of this many users, and no more.
    """

    worlds: tuple[Rows, ...]
    allowed: frozenset[str]
    study: dict[str, Any] = field(default_factory=dict)
    patch: dict[tuple[Any, str], Any] = field(default_factory=dict)
    room_for: int | None = None


def growing(n: int) -> tuple[Rows, ...]:
    """One user more each time; four labels fill a byte, so one of the steps makes a byte more."""
    return tuple(tables(n + more) for more in range(5))


def odd_is_five(study: Study, stages: Any, released: Any) -> int:
    """A rule by which each user more gives another k'."""
    return 4 + (released[0][0][0] % 2 if released else 0)


RELEASED = frozenset({"T1"})
IN_MEMORY = {(stream, "ROWS_IN_MEMORY"): N}
ON_DISK = {(stream, "ROWS_IN_MEMORY"): 10, (stream, "BLOCK_ROWS"): 100}


def largest_of_a_step() -> int:
    """Return the rows of the largest table whose step of room is that of smaller tables too."""
    plan = make_plan(keyed_study())
    users = int(HEADROOM * plan.assumed_users)

    def length(n: int) -> int:
        return message_sizes(plan, users=n).releases["bank"]

    while length(2 * users) == length(users):
        users *= 2
    return users


LARGEST = largest_of_a_step()
CASES = {
    "one user more": Case(worlds=growing(N), allowed=RELEASED),
    "one user's values changed": Case(
        worlds=(tables(), tables(change=99.0), tables(change=0.0)), allowed=frozenset()
    ),
    "one user more at one party": Case(
        worlds=(tables(), tables(only="bank"), tables(N + 1)),
        allowed=RELEASED,
        study={},
    ),
    "as many users as local clusters, and fewer": Case(
        worlds=(tables(5), tables(4), tables(3), tables(2), tables(1)), allowed=RELEASED
    ),
    "one user more, and another k' by the released number of users": Case(
        worlds=growing(N),
        allowed=RELEASED | {"T4"},
        study={"name": "open", "n_local_clusters": "auto"},
        patch={(settle, "_labels"): odd_is_five},
    ),
    "half of a column clipped, and one value more": Case(
        worlds=(clipped(N // 2), clipped(N // 2 + 1)), allowed=frozenset()
    ),
    "the last table in memory, and one user more": Case(
        worlds=(tables(), tables(N + 1)), allowed=RELEASED, patch=IN_MEMORY
    ),
    "whole blocks on disk, and one user more": Case(
        worlds=(tables(), tables(N + 1)), allowed=RELEASED | {"T2"}, patch=ON_DISK
    ),
    "the largest table that the study makes room for, and one user more": Case(
        worlds=(tables(LARGEST), tables(LARGEST + 1)),
        allowed=RELEASED | {"T3"},
        room_for=LARGEST,
    ),
}


@dataclass
class NarrowBox(Box):
    """A mailbox with little room, whose keeper sees how much of it is asked for."""

    room: int | None = None
    asked: list[int] = field(default_factory=list)

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        self.asked.append(n_bytes)

    def limits(self, study_hash: str) -> MailboxLimits:
        return MailboxLimits(max_message_bytes=None, free_bytes=self.room, clock_offset=None)


def lines_of(names: set[str], *, allowed: frozenset[str] = RELEASED) -> set[str]:
    """Return the allowed lines of the list that these differences are; others by their name."""
    if "joins" in names:
        names = {"joins"}  # nothing of a run that does not take place can be compared
    lines = {what: line for line, what in LISTED.items() if line in allowed}
    return {lines.get(name, name) for name in names}


Look = Callable[..., Facts]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """A function that runs a study on tables and returns what others see."""
    made: list[TracedWorld] = []

    def run(
        rows: Rows,
        *,
        study: Study | None = None,
        room_for: int | None = None,
        change: Callable[[str, Any], Any] = lambda name, table: table,
    ) -> Facts:
        agreed = study or keyed_study()
        box = NarrowBox()
        if room_for is not None:
            sizes = message_sizes(make_plan(agreed), users=room_for)
            box.room = sum(sizes.releases.values()) + sum(sizes.small.values())
            box.room += sizes.result * (len(agreed.parties) + 1)
        world = TracedWorld(agreed, tmp_path / f"world-{len(made)}", box=box).write(rows)
        world.change_table = change
        made.append(world)
        return facts_of(world) | {"room": box.asked}

    return run


_shown: dict[str, set[str]] = {}


@pytest.mark.parametrize("name", CASES)
def test_neighbouring_tables(name: str, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    for (module, limit), value in case.patch.items():
        monkeypatch.setattr(module, limit, value)
    study = keyed_study(**case.study)
    seen = [look(rows, study=study, room_for=case.room_for) for rows in case.worlds]
    assert seen[0]["stages"] == {"bank": "done", "shop": "done"}
    found: set[str] = set()
    for first, second in itertools.pairwise(seen):
        found |= lines_of(differing(first, second), allowed=case.allowed)
    assert found <= case.allowed
    _shown[name] = found


def test_the_list_has_no_line_that_nothing_shows() -> None:
    """A line that has become untrue must go from the page, and from the cases above."""
    if set(_shown) != set(CASES):
        pytest.skip("needs all cases of this file")
    assert set().union(*_shown.values()) == set(LISTED)


def test_the_same_tables_look_the_same(look: Look) -> None:
    """Else differences would be found that do not follow from tables."""
    assert differing(look(tables()), look(tables())) == set()


# ---- broken twins: each is caught as something that no line allows ----


def one_large_value() -> tuple[Rows, Rows]:
    """Two tables that differ in one value of one user, which is the largest in one of them."""
    small, large = tables(), tables()
    large["bank"]["x"][0] = 100.0
    return small, large


def if_large(act: Callable[[Any], object]) -> Callable[[str, Any], Any]:
    """What a careless party might do: act on a value of its table."""

    def change(name: str, table: Any) -> Any:
        bounds = bounds_of(features_of(keyed_study().party(name)))
        if (table.rows._inner.gather() >= bounds).any():
            act(table)
        return table

    return change


def leave(table: Any) -> None:
    raise DataError("a value is too large")


def walk_again(table: Any) -> None:
    table.rows.gather()


@pytest.mark.parametrize(("act", "caught"), [(leave, "joins"), (walk_again, "walks")])
def test_what_follows_from_a_value_is_caught(
    act: Callable[[Any], object], caught: str, look: Look
) -> None:
    first, second = (look(rows, change=if_large(act)) for rows in one_large_value())
    assert lines_of(differing(first, second)) == {caught}


def test_every_length_and_the_order_count(look: Look) -> None:
    """One byte more in any message, two messages in another order, one message more."""
    facts = look(tables())
    lengths = [name for name in facts if name.startswith("length of")]
    assert len(lengths) >= 5
    for name in lengths:
        (sender, receiver, length), *rest = facts[name]
        other = facts | {name: [(sender, receiver, length + 1), *rest]}
        assert differing(facts, other) == {name}
    first, second, *rest = facts["messages"]
    assert differing(facts, facts | {"messages": [second, first, *rest]}) == {"messages"}
    assert differing(facts, facts | {"messages": [first, *facts["messages"]]}) == {"messages"}
