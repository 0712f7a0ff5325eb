"""Everything that others can see of a run beside the contents of releases, recorded as facts.

Participants are the real ones over a mailbox that keeps a log (`tests.attacks.harness`). Their
randomness is fixed, so that whatever differs between runs on two tables follows from the tables.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import SplitmeansError
from splitmeans.mailbox.open import MessagePath
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.run import party as party_run
from splitmeans.study import Study
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from splitmeans.table.walk.interface import Table
from splitmeans.table.walk.stored import StoredTable
from splitmeans.wire.messages import ALL_KINDS, PublishedResult
from splitmeans.wire.slot import SERVER, short_name
from tests.attacks.harness import Box, World

# What slots call messages, by what paths call them.
NAMES = {name.lower(): name for name in ALL_KINDS}

Facts = dict[str, Any]
Rows = dict[str, dict[str, Any]]  # by party: the columns of its table


class _RepeatedNoise(InsecureSeededNoise):
    """The same draws in every run, with the statement of a real one."""

    secure = True

    def spawn(self, label: str) -> "InsecureSeededNoise":
        source = super().spawn(label)
        object.__setattr__(source, "secure", True)
        return source


class Watched:
    """A table, its rows or its users, that notes every walk over them."""

    _WALKS = frozenset({"total", "gather", "each", "relabelled", "in_tag_order", "labelled"})

    def __init__(self, inner: Any, walks: list[str]) -> None:
        self._inner, self._walks = inner, walks

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("rows", "users"):
            return Watched(found, self._walks)
        if name not in self._WALKS:
            return found

        def walk(*args: Any, **options: Any) -> Any:
            self._walks.append(name)
            made = found(*args, **options)
            return Watched(made, self._walks) if name in ("labelled", "relabelled") else made

        return walk


class TracedWorld(World):
    """A world whose tables are files that are opened as in a run, and watched."""

    def __init__(self, study: Study, root: Path, *, box: Box | None = None) -> None:
        super().__init__(study, root, box=box)
        self.engines: list[tuple[str, str]] = []
        self.blocks: list[tuple[str, int]] = []
        self.walks: dict[str, list[str]] = {name: [] for name in study.party_names}
        self.change_table: Callable[[str, Any], Any] = lambda name, table: table
        self._opened: list[contextlib.AbstractContextManager[Table]] = []

    def write(self, rows: Rows) -> "TracedWorld":
        for name, columns in rows.items():
            self.home(name).mkdir(mode=0o700, parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), self._file(name))
        return self

    def _file(self, name: str) -> Path:
        return self.root / f"{name}.parquet"

    def _open(self, name: str) -> Callable[[], contextlib.AbstractContextManager[Any]]:
        # As `party run` opens it.
        options = SourceOptions(
            rules=self.study.id_rules,
            workers=1,
            expected_users=self.study.expected_users,
            allow_clipping=True,
            spool=self.root,
        )

        @contextlib.contextmanager
        def opened() -> Iterator[Any]:
            spec, path = self.study.party(name), str(self._file(name))
            with open_source(spec, path, options=options) as table:
                self.engines.append((name, type(table).__name__))
                blocks = len(table._blocks) if isinstance(table, StoredTable) else 1
                self.blocks.append((name, blocks))
                yield self.change_table(name, Watched(table, self.walks[name]))

        return opened

    def visit(self, name: str, **changes: Any) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            seed = 1 + (*self.study.party_names, SERVER).index(name)
            patch.setattr(party_run, "SecureNoise", partial(_RepeatedNoise, seed))
            return super().visit(name, **changes)


def facts_of(world: TracedWorld) -> Facts:
    """Run the study to its end, or until somebody gives up; return what others can see of it."""
    world.approve()
    errors = world.play()
    facts: Facts = {
        "joins": sorted({_place(world, path)[0] for path, _ in world.box.sent}),
        "ends": {name: type(problem).__name__ for name, problem in errors.items()},
        "messages": [(action, *_place(world, path)) for action, path, _ in world.box.log],
        "names": [path for path, _ in world.box.sent],
        "engine": world.engines,
        "blocks": world.blocks,
        "walks": world.walks,
        "stages": {name: _stage(world, name) for name in world.study.party_names},
    }
    for path, data in world.box.sent:
        sender, receiver, kind = _place(world, path)
        if kind == PublishedResult.TAG:
            continue  # made of releases alone, with noise of the server that is not fixed here
        facts.setdefault(f"length of {kind}", []).append((sender, receiver, len(data)))
        message = world.read(sender, receiver, kind, data)
        facts.setdefault(f"shape of {kind}", []).append((sender, receiver, shape_of(message)))
    return facts


def differing(first: Facts, second: Facts) -> set[str]:
    """Return the names of facts that tell the two runs apart."""
    return {name for name in {*first, *second} if first.get(name) != second.get(name)}


def shape_of(value: Any) -> Any:
    """What an opened message looks like, without its numbers: kinds, shapes and lengths."""
    if dataclasses.is_dataclass(value):
        fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        return type(value).__name__, {name: shape_of(part) for name, part in fields.items()}
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    if isinstance(value, str | bytes):
        return type(value).__name__, len(value)
    if isinstance(value, tuple | list):
        return [shape_of(part) for part in value]
    return type(value).__name__


def _place(world: World, path: str) -> tuple[str, str, str]:
    place = MessagePath.parse(path)
    names = {short_name(name): name for name in (*world.study.party_names, SERVER)}
    return names[place.sender], names[place.receiver], NAMES[place.kind]


def _stage(world: World, name: str) -> str:
    try:
        saved = world.saved(name)
    except SplitmeansError as problem:
        return type(problem).__name__
    return "none" if saved is None else saved.outcome or saved.stage
