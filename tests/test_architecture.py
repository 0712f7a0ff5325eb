"""Imports point one way: what sees raw rows is never imported by what the server runs."""

import ast
from pathlib import Path

import pytest

import splitmeans

ROOT = Path(splitmeans.__file__).parent

# Modules that handle raw rows.
RAW = ("splitmeans.party.", "splitmeans.labels", "splitmeans.engine")
# Modules that run at the server, or that the server's modules build on.
SERVER_SIDE = ("server", "grid", "wire")


def imports_of(path: Path, package: str = "splitmeans") -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith(package)}


def module_path(name: str) -> Path | None:
    place = ROOT.joinpath(*name.split(".")[1:])
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if name != "splitmeans" and candidate.is_file():
            return candidate
    return None


def reachable(path: Path) -> set[str]:
    """All modules of ours that importing this file loads, directly or not."""
    seen: set[str] = set()
    queue = list(imports_of(path))
    while queue:
        name = queue.pop()
        target = module_path(name)
        if target is None or name in seen:
            continue
        seen.add(name)
        queue.extend(imports_of(target))
    return seen


# Of local clustering these are public; everything else walks rows.
LOCAL_PUBLIC = ("laws", "mechanism", "methods")


def sees_rows(module: str) -> bool:
    local = module.removeprefix("splitmeans.local.")
    if local != module:
        return local.split(".")[0] not in LOCAL_PUBLIC
    return module.startswith(RAW) or module.endswith(".encode")


SERVER_FILES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.relative_to(ROOT).parts[0] in SERVER_SIDE
    or path.name in ("estimate.py", "law.py", "method.py", "methods.py", "plan.py")
    or path.parent.name == "laws"
    or path == ROOT / "run" / "server.py"
]


@pytest.mark.parametrize("path", SERVER_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_server_side_never_reaches_code_that_sees_rows(path: Path) -> None:
    assert {module for module in reachable(path) if sees_rows(module)} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "wire").glob("*.py")), ids=lambda path: path.name)
def test_wire_imports_only_study_types_and_errors(path: Path) -> None:
    allowed = tuple(
        f"splitmeans.{name}" for name in ("wire", "study", "parties", "errors", "_types")
    )
    assert [name for name in imports_of(path) if not name.startswith(allowed)] == []


def test_the_check_itself_can_fail() -> None:
    """A party module does reach raw rows, so an empty result above is not an accident."""
    assert any(sees_rows(module) for module in reachable(ROOT / "party" / "node.py"))


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


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
    assert [path for path in ROOT.rglob("*.py") if imports_of(path, "benchmarks")] == []
    assert imports_of(BENCHMARKS / "__main__.py", "benchmarks")
