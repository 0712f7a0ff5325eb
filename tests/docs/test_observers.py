"""Who is protected from whom: one table on every page that has it, with figures of this version."""

import math
import re
import tomllib

import pytest

from splitmeans.plan.facts import PrivacyFacts
from splitmeans.study import Study

from .blocks import PAGES, ROOT, name_of

SOURCE = "docs/concepts/threat-model.md"
COPIES = (
    "README.md",
    "docs/index.md",
    "docs/decide/evaluation.md",
    "docs/guides/privacy-officer.md",
)
# What is not true of every observer, in the forms that pages had.
UNTRUE = {
    r"(?:nobody|no one|no-one) (?:has|needs) to trust": "name who is protected from whom",
    r"guess of 50 %[^.|]*becomes": "a single run can exceed it: say how often guesses are right",
    r"\bbut for (?:delta|1e-)": "delta is added to probabilities, it is no chance of failing",
    r"(?:whatever|what) (?:anybody|anyone|somebody|someone) concludes": "name the observers",
    r"opens every message that was ever": "messages are sealed to keys of the run",
    r"opens messages sealed to it, old ones": "messages are sealed to keys of the run",
}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def observers(page: str) -> str:
    """Return the table of observers, the markers around it included."""
    (table,) = re.findall(r"<!-- observers.*?<!-- end of observers -->", text_of(page), re.DOTALL)
    return str(table)


@pytest.mark.parametrize("page", COPIES)
def test_every_copy_of_the_table_is_the_same(page: str) -> None:
    assert observers(page) == observers(SOURCE)


def test_no_other_page_has_a_table_of_its_own() -> None:
    with_table = [name_of(page) for page in PAGES if "<!-- observers" in page.read_text()]
    assert sorted(with_table) == sorted((SOURCE, *COPIES))


def test_figures_towards_a_party_are_those_of_the_statement() -> None:
    pattern = r"([\d.]+) for two parties, ([\d.]+) for three \(equal user sets, epsilon 1, delta"
    ((two, three),) = re.findall(pattern, observers(SOURCE))
    assert (float(two), float(three)) == (_towards_party(2), _towards_party(3))


def _towards_party(n_parties: int) -> float:
    columns = [{"name": name, "low": 0, "high": 1} for name in ("x", "y")]
    study = Study.from_mapping(
        {
            "name": "defaults",
            "n_clusters": 5,
            "budget": {"epsilon": 1.0, "delta": 1e-5},
            "parties": [{"name": f"p{at}", "columns": columns} for at in range(n_parties)],
        }
    )
    found = PrivacyFacts.for_study(study).towards_party
    assert found is not None
    return round(found[1].epsilon, 2)


def test_how_often_guesses_are_right() -> None:
    """The best test of (epsilon, delta) has errors that add up to 2 (1 - delta) / (1 + e^eps)."""
    page = text_of("docs/guides/privacy-officer.md")
    rows = re.findall(r"^\| ([\d.]+)(?: \(default\))? \| ([\d.]+) % \|$", page, flags=re.MULTILINE)
    assert len(rows) == 5
    for epsilon, percent in rows:
        factor = math.exp(float(epsilon))
        right = 100 * (factor + 1e-5) / (factor + 1)
        assert math.ceil(10 * right) / 10 == float(percent)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md"], ids=name_of)
def test_no_page_says_more_than_is_true(page) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    found = {rule: why for rule, why in UNTRUE.items() if re.search(rule, text, re.IGNORECASE)}
    assert found == {}


def test_no_docstring_or_template_says_more_than_is_true() -> None:
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".html"):
            text = " ".join(path.read_text(encoding="utf-8").split())
            assert [rule for rule in UNTRUE if re.search(rule, text, re.IGNORECASE)] == [], path


def test_timing_of_the_comparison_of_users_is_said_where_observers_are() -> None:
    """The library says of itself that it is not constant-time; no page may say less."""
    for page in (SOURCE, "docs/decide/evaluation.md", "docs/concepts/guarantee.md"):
        assert "not constant-time" in text_of(page), page
    assert "| the server or a carrier | when messages appear" in text_of(SOURCE)


def test_the_security_review_knows_every_dependency() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    needed = {re.split(r"[><=!~ ]", entry)[0] for entry in project["dependencies"]}
    section = text_of("docs/decide/evaluation.md").split("## Dependencies")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == needed
