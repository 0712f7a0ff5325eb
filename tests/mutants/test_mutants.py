"""Every mutant still applies, says what it breaks, and names tests that are there."""

from collections import Counter

import pytest

from tests.mutants.mutant import ROOT, Mutant, all_mutants

MUTANTS = [mutant for mutants in all_mutants().values() for mutant in mutants]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_applies_and_its_tests_are_there(mutant: Mutant) -> None:
    assert mutant.apply(ROOT) != (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")


def test_no_mutant_is_there_twice() -> None:
    assert max(Counter(mutant.breaks for mutant in MUTANTS).values()) == 1
    assert max(Counter((one.file, one.old, one.new) for one in MUTANTS).values()) == 1


@pytest.mark.parametrize(
    ("old", "new"), [("no such text", "x"), ("def ", "x"), ("import importlib\n", "import (")]
)
def test_one_that_does_not_apply_is_refused(old: str, new: str) -> None:
    file = "tests/mutants/mutant.py"
    with pytest.raises((ValueError, SyntaxError)):
        Mutant(file=file, old=old, new=new, breaks="nothing", tests=()).apply(ROOT)
