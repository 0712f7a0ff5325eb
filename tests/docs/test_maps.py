"""The map of the house and the pages about extending it name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "splitmeans"
PAGES = (
    "docs/architecture.md",
    "docs/extending.md",
    "docs/concepts/rules.md",
    "docs/decide/evaluation.md",
    "CONTRIBUTING.md",
)
_PATH = re.compile(r"`([\w.<>/-]+(?:\.(?:py|html|css|js|json|toml|md)|/))`")
# What people write themselves, and a file that a study is.
_NOT_OURS = ("study.toml", "result.json", "statement.txt", "pyproject.toml", "certificate.json")


def paths_of(text: str) -> list[str]:
    """The paths that a page names; one with <name> stands for a folder that must be there."""
    named = [path for path in _PATH.findall(text) if path not in _NOT_OURS]
    return [path.split("<")[0] if "<" in path else path for path in named]


def is_there(path: str) -> bool:
    return any((base / path).exists() for base in (PACKAGE, ROOT))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_is_there(page: str) -> None:
    found = paths_of((ROOT / page).read_text(encoding="utf-8"))
    missing = [path for path in found if not is_there(path) and "/" in path]
    assert missing == []
    assert found


def test_every_room_is_on_the_map() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {f"{place.name}/" for place in PACKAGE.iterdir() if (place / "__init__.py").is_file()}
    assert rooms <= set(paths_of(page))


def test_a_file_that_is_gone_would_be_found() -> None:
    assert paths_of("`engine/walk.py` and `local/<name>.py`") == ["engine/walk.py", "local/"]
    assert not is_there("engine/walk.py")
