"""What Coq is given is what the library has now, and the checker's program computes what it says.

`make proofs` runs Coq itself; nothing here needs it.
"""

import itertools
import re
from fractions import Fraction
from pathlib import Path

import pytest

from proofs.check import CLOSED, FILES, THEOREMS, controls, open_assumptions, unproved
from proofs.figure import SCALE, block_of, exp_sum, figure
from proofs.generate import GENERATED, STUDIES, TERMS, checked, differences, generated
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.id_rules import AS_IS

ROOT = Path(__file__).resolve().parents[2]
THEORY = ROOT / "proofs" / "theory"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return generated()


def test_committed_files_are_those_of_the_library(files: dict[str, str]) -> None:
    assert differences(GENERATED, files) == []


def test_a_changed_missing_or_further_file_is_noticed(
    files: dict[str, str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert differences(tmp_path, files) == []
    (tmp_path / "Refused.v").unlink()
    (tmp_path / "More.v").touch()
    changed = files["TwoParties.v"].replace(
        "Definition delta : Q := (", "Definition delta : Q := (1"
    )
    (tmp_path / "TwoParties.v").write_text(changed, encoding="utf-8")
    assert differences(tmp_path, files) == [
        "More.v: should not be there",
        "TwoParties.v: differs from what the library gives now",
        "Refused.v: is missing",
    ]


@pytest.mark.parametrize("source", STUDIES.values())
def test_the_checked_delta_is_that_of_the_accountant(source: str) -> None:
    found = checked(Study.read(ROOT / "proofs" / "studies" / source))
    # The accountant adds 1e-12, and its grid some parts in ten million.
    assert float(found.delta) == pytest.approx(found.accountant, rel=1e-6)
    assert float(found.delta) <= found.plan.study.budget.delta
    assert sum(found.laws.values()) == len(found.plan.groups)


@pytest.mark.parametrize(
    ("n_parties", "epsilon", "delta"),
    [(2, 0.1, 1e-6), (2, 8.0, 1e-9), (3, 4.0, 1e-8)],
)
def test_other_studies_have_the_accountants_delta_too(n_parties, epsilon, delta) -> None:
    study = Study(
        name="another",
        n_clusters=3,
        expected_users=1000,
        ids=AS_IS,
        budget=Budget(epsilon=epsilon, delta=delta),
        parties=tuple(
            PartySpec(name=f"party {number}", columns=(Column(name="x", low=0, high=1),))
            for number in range(n_parties)
        ),
    )
    found = checked(study, terms=60)
    assert float(found.delta) == pytest.approx(found.accountant, rel=1e-6, abs=1.1e-12)
    assert float(found.delta) <= delta


def product_divergence(laws: list[tuple[int, ...]], factor: Fraction) -> Fraction:
    """The hockey-stick divergence of products of (D + 1, D), term by term."""
    total = Fraction(0)
    pairs = [list(zip((0, *law), (*law, 0), strict=True)) for law in laws]
    for outcome in itertools.product(*pairs):
        upper = lower = Fraction(1)
        for (with_user, without), law in zip(outcome, laws, strict=True):
            upper, lower = (
                upper * Fraction(with_user, sum(law)),
                lower * Fraction(without, sum(law)),
            )
        total += max(Fraction(0), upper - factor * lower)
    return total


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_the_program_bounds_the_exact_divergence_from_above(epsilon: Fraction) -> None:
    laws = [
        (DecoyLaw(sigma=sigma, truncation=t, server_sigma=1.0), times)
        for sigma, t, times in ((1.3, 6, 2), (2.0, 9, 1))
    ]
    blocks = [block_of(law.weights, times=times, sigma=law.sigma) for law, times in laws]
    tables = [law.weights for law, times in laws for _ in range(times)]
    factor = exp_sum(TERMS, epsilon)
    exact = product_divergence(tables, factor)
    found = Fraction(figure(blocks, factor), SCALE)
    assert exact <= found  # by the ends of the tables, and 2^-64 for a rounding
    assert float(found) == pytest.approx(float(exact), rel=1e-5)


def test_every_theorem_is_where_it_is_listed(files: dict[str, str]) -> None:
    texts = {name: (THEORY / f"{name}.v").read_text(encoding="utf-8") for name in FILES}
    texts |= {name.removesuffix(".v"): text for name, text in files.items()}
    for full_name in THEOREMS:
        module, name = full_name.split(".")
        assert re.search(rf"^Theorem {name}\b", texts[module], flags=re.MULTILINE), full_name
    listed = {name for name in THEOREMS if name.startswith("Theorems.")}
    stated = re.findall(r"^Theorem (\w+)", texts["Theorems"], flags=re.MULTILINE)
    assert listed == {f"Theorems.{name}" for name in stated}


def test_the_page_names_every_theorem_and_every_figure() -> None:
    page = (ROOT / "docs" / "concepts" / "machine-checked.md").read_text(encoding="utf-8")
    for full_name in THEOREMS:
        assert f"`{full_name.split('.')[1]}`" in page, full_name
    for source in STUDIES.values():
        found = checked(Study.read(ROOT / "proofs" / "studies" / source))
        row = next(line for line in page.splitlines() if f"`{source}`" in line)
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[-3:] == [
            f"{float(found.epsilon):.4f}",
            f"{float(found.delta):.6e}",
            f"{found.accountant:.6e}",
        ]


def test_what_leaves_something_unproved_is_noticed() -> None:
    for path in THEORY.glob("*.v"):
        assert unproved(path.read_text(encoding="utf-8")) == [], path.name
    assert unproved("(* no Axiom (* nor Admitted *) here *) Lemma x : True.") == []
    assert unproved("Lemma x : 0 = 1. Admitted.") == ["Admitted"]
    assert unproved("Axiom a : False. (* . *) Unset Guard Checking.") == ["Axiom", "Unset"]


def test_open_assumptions_are_noticed() -> None:
    two = ("first", "second")
    assert open_assumptions(f"{CLOSED}\n{CLOSED}\n", two) == []
    assert open_assumptions(f"{CLOSED}\nAxioms:\na : False\n", two) == ["second"]
    assert open_assumptions(f"{CLOSED}\n", two) == ["first", "second"]


def test_controls_change_the_file_in_one_place_each() -> None:
    text = (GENERATED / "TwoParties.v").read_text(encoding="utf-8")
    found = controls(text)
    assert len({changed for changed, _ in found.values()} | {text}) == len(found) + 1
    assert {lemma for _, lemma in found.values()} <= set(re.findall(r"Lemma (\w+)", text))
