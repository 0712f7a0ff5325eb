"""docs/concepts/attacks.md lists all attacks, by the names of their tests."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "concepts" / "attacks.md"
# What is not an attack: broken twins, and checks of the attacks themselves.
OTHERS = re.compile(
    r"test_(twin_|r\d+_|the_template_itself|same_results_have)|test_every_attack_|test_the_number_"
)


def attacks() -> dict[str, str]:
    """Docstrings of all attacks."""
    found: dict[str, str] = {}
    for file in HERE.glob("test_*.py"):
        for item in ast.parse(file.read_text()).body:
            if not isinstance(item, ast.FunctionDef) or not item.name.startswith("test_"):
                continue
            if not OTHERS.match(item.name):
                assert item.name not in found, item.name
                found[item.name] = ast.get_docstring(item) or ""
    return found


def test_every_attack_is_on_the_page() -> None:
    listed = re.findall(r"^\| `(test_\w+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    assert len(listed) == len(set(listed)) >= 30
    assert set(listed) == set(attacks())


def test_every_attack_says_what_it_gains_and_why_it_fails() -> None:
    for name, text in attacks().items():
        assert "\n\nGain: " in text, name
        assert "\nFails: " in text, name


def test_the_number_on_the_page_is_right() -> None:
    (number,) = re.findall(r"\*\*(\d+) attacks\*\*", PAGE.read_text())
    assert int(number) == len(attacks())
