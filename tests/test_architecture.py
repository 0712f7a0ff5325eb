"""The house: rooms on levels, imports that only go down, and no way from the server to raw rows."""

import ast
import functools
from pathlib import Path

import pytest

import splitmeans

ROOT = Path(splitmeans.__file__).parent
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

# Rooms from the ground up. What is in a room may import its own room and rooms before it.
LEVELS = (
    ("_types", "_version", "errors", "figures"),
    ("_validate", "templates", "csv_cells", "shrinkage"),
    ("wire", "kernels"),
    ("kmeans",),
    ("study",),
    ("privacy",),
    ("table",),
    ("local", "membership"),
    ("plan",),
    ("synopsis",),
    ("intervals",),
    ("result",),
    ("insights", "queries"),
    ("party", "server"),
    ("protocol",),
    ("simulate",),
    ("paper",),
    ("forecasting", "mailbox"),
    ("relay", "run", "report"),
    ("analysis",),
    ("estimator",),
    ("rehearsal", "evidence"),
    ("cli",),
    ("__main__",),
)
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

# Imports that go up. It may only become shorter.
ALLOWED_UP: frozenset[tuple[str, str]] = frozenset()

# What handles raw rows: a party's table and its walkers, local clustering, everything a party does
# with them. The laws of local clustering are public numbers.
ROWS = ("table", "party", "local", "simulate")
PUBLIC = "local.law"

# What a server loads, whoever plans a study, or whoever reads what was published.
SERVER_SIDE = (
    *("wire", "kernels", "kmeans", "study", "privacy", "plan", "synopsis", "intervals", "result"),
    *("insights", "queries", "server", "forecasting", "mailbox", "relay", "report"),
)


def name_of(path: Path) -> str:
    """The module's name below `splitmeans`; the package itself is the empty text."""
    return (
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").strip(".")
    )


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def room_of(module: str) -> str:
    return module.split(".")[0]


@functools.cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of ours that a module imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            known = {name for name in whole if name.removeprefix("splitmeans.") in MODULES}
            found |= known or {node.module}
    ours = {name.removeprefix("splitmeans.") for name in found if name.startswith("splitmeans.")}
    return frozenset(name for name in ours if name in MODULES)


def with_packages(module: str) -> set[str]:
    """A module and the packages above it, which importing it runs as well."""
    parts = module.split(".")
    return {".".join(parts[: n + 1]) for n in range(len(parts))}


def reachable(module: str, *, past: str = "") -> set[str]:
    """All modules of ours that importing this one can load, at once or later.

    What only the room `past` leads to is left out.
    """
    seen: set[str] = set()
    queue = [module]
    while queue:
        name = queue.pop()
        if name not in seen and room_of(name) != past:
            seen.add(name)
            queue.extend(other for target in imports_of(name) for other in with_packages(target))
    return seen - {module}


def sees_rows(module: str) -> bool:
    if module.startswith(PUBLIC) or module == "local" or module.endswith(".law"):
        return False
    return room_of(module) in ROWS or module.endswith(".encode")


SERVER_MODULES = [
    module
    for module in MODULES
    if room_of(module) in SERVER_SIDE
    or (room_of(module) == "membership" and not module.endswith(".encode"))
    or module.endswith(".law")
    or module == "run.server"
]


def test_every_room_has_a_level() -> None:
    assert {room_of(module) for module in MODULES if module} == set(LEVEL_OF)


@pytest.mark.parametrize("room", sorted(LEVEL_OF))
def test_imports_only_go_down(room: str) -> None:
    up = {
        (module, target)
        for module in MODULES
        if room_of(module) == room
        for target in imports_of(module)
        if room_of(target) != room and LEVEL_OF[room_of(target)] >= LEVEL_OF[room]
    }
    assert up <= ALLOWED_UP


def test_no_import_is_allowed_that_is_not_there() -> None:
    there = {(module, target) for module in MODULES for target in imports_of(module)}
    assert there >= ALLOWED_UP


@pytest.mark.parametrize("module", SERVER_MODULES)
def test_server_side_never_reaches_code_that_sees_rows(module: str) -> None:
    assert {other for other in reachable(module) if sees_rows(other)} == set()


def test_a_servers_command_reaches_such_code_for_its_rehearsal_alone() -> None:
    """A study is rehearsed once, with all parties, on made-up tables."""
    assert {other for other in reachable("cli.server") if sees_rows(other)}
    passing_by = reachable("cli.server", past="rehearsal")
    assert "run.server" in passing_by
    assert {other for other in passing_by if sees_rows(other)} == set()


def test_the_checks_themselves_can_fail() -> None:
    """A party does reach raw rows, and rooms do import one another."""
    assert any(sees_rows(module) for module in reachable("party.node"))
    assert any(room_of(target) != "cli" for target in imports_of("cli.party"))
    assert len(SERVER_MODULES) > 50


def test_no_file_outgrows_one_idea() -> None:
    too_long = [
        path.name
        for folder in (ROOT, BENCHMARKS)
        for path in folder.rglob("*.py")
        if len(path.read_text().splitlines()) > 400
    ]
    assert too_long == []


def test_the_package_does_not_need_the_benchmarks() -> None:
    """They are not installed with it."""
    asks = [path for path in ROOT.rglob("*.py") if "benchmarks" in imported_tops(path)]
    assert asks == []
    assert "benchmarks" in imported_tops(BENCHMARKS / "__main__.py")


def imported_tops(path: Path) -> set[str]:
    """The packages that a file imports from, by their first name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found
