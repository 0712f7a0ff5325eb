"""The page that maps the paper to files: every file is there, and every file is on the page."""

import re
from pathlib import Path

import splitmeans.paper

PAGE = Path(__file__).parents[2] / "docs/explanation/paper-map.md"
PACKAGE = Path(splitmeans.paper.__file__).parent


def test_page_lists_the_files_of_the_package() -> None:
    text = PAGE.read_text()
    place = text.split("## Where each part is")[1].split("## Where it deviates")[0]
    listed = re.findall(r"\| `([a-z0-9_]+\.py)` \|", place)
    assert len(listed) == len(set(listed))
    assert {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"} == set(listed)


def test_files_named_anywhere_on_the_page_are_there() -> None:
    named = set(re.findall(r"`([a-z0-9_/]+\.py)`", PAGE.read_text()))
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).is_file()] == []


def test_package_lists_its_files_in_its_docstring() -> None:
    assert splitmeans.paper.__doc__ is not None
    listed = re.findall(r"^    ([a-z0-9_]+) {2,}", splitmeans.paper.__doc__, re.MULTILINE)
    assert {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"} == set(listed)
