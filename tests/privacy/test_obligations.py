"""What the running system owes the proofs: every obligation has a number and a place that is there.

`docs/concepts/guarantee.md` has the list.
"""

import re
from pathlib import Path

import pytest

from splitmeans.plan.costs import cost_spelled_apart
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Column, IdRules, PartySpec, Study

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "guarantee.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Obligations\n")[1].split("\n## ")[0]
ROWS = {
    number: (words, places)
    for number, words, places in re.findall(
        r"^\| (O\d+) \| (.+?) \| (.+) \|$", SECTION, flags=re.MULTILINE
    )
}
QUOTED = re.findall(r'"([^"]{20,})"', SECTION)


def paths_of(text: str) -> list[str]:
    return re.findall(r"`((?:src|tests|docs)/[^`]+)`", text)


def test_all_ten_are_there_in_order() -> None:
    assert list(ROWS) == [f"O{number}" for number in range(1, 11)]


@pytest.mark.parametrize("number", ROWS)
def test_what_carries_an_obligation_is_there(number: str) -> None:
    found = paths_of(ROWS[number][1])
    assert found, f"{number} names no place"
    assert [path for path in found if not (ROOT / path).is_file()] == []


def test_figures_of_a_person_who_is_spelled_apart() -> None:
    found = []
    for n_parties in (2, 3, 4):
        study = Study(
            name="s",
            parties=tuple(
                PartySpec(name=f"p{number}", columns=(Column(name="x", low=0, high=1),))
                for number in range(n_parties)
            ),
            n_clusters=2,
            n_local_clusters=3,
            ids=IdRules(type="integer"),
            budget=Budget(epsilon=1.0, delta=1e-6),
        )
        cost = cost_spelled_apart(make_plan(study))
        assert cost is not None
        found.append(f"{cost.epsilon:.3f}")
    assert f"epsilon {', '.join(found)} for two, three, four parties" in ROWS["O1"][0]


@pytest.mark.parametrize("sentence", QUOTED)
def test_sentences_of_the_statement_are_in_it(sentence: str) -> None:
    parties = tuple(
        PartySpec(name=name, columns=(Column(name="x", low=0, high=1),)) for name in ("a", "b")
    )
    study = Study(name="s", parties=parties, n_clusters=2, budget=Budget(epsilon=1.0, delta=1e-6))
    assert sentence in PrivacyFacts.for_study(study).statement()


def test_a_place_that_is_gone_would_be_found() -> None:
    """The check above can fail, and no path of the list escapes its pattern."""
    assert paths_of("`src/splitmeans/nowhere.py`") == ["src/splitmeans/nowhere.py"]
    assert not (ROOT / "src/splitmeans/nowhere.py").is_file()
    for _, places in ROWS.values():
        assert len(paths_of(places)) == len(re.findall(r"`[^`]*/[^`]*`", places))
    assert len(QUOTED) >= 4
