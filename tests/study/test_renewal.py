from datetime import date

import pytest

from splitmeans.errors import StudyError
from splitmeans.study import Renewal, Study
from tests.scene import make_study


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("3 months", "3 months"),
        ("3months", "3 months"),
        (" Quarterly ", "3 months"),
        ("year", "1 year"),
        ("1 weeks", "1 week"),
        ("10 days", "10 days"),
    ],
)
def test_a_length_of_time_has_one_form(said: str, kept: str) -> None:
    assert Renewal(runs=8, every=said).every == kept


@pytest.mark.parametrize("said", ["", "soon", "0 months", "-1 weeks", "3 fortnights", 3])
def test_what_is_no_length_of_time_is_refused(said: object) -> None:
    with pytest.raises(StudyError, match=r"renewal\.every must be a number of days"):
        Renewal(runs=8, every=said)  # type: ignore[arg-type]


@pytest.mark.parametrize("runs", [1, 0, 121, 2.5])
def test_a_series_has_some_runs(runs: int) -> None:
    with pytest.raises(StudyError, match="runs must be"):
        Renewal(runs=runs)


def test_when_the_next_run_is_due() -> None:
    quarterly = Renewal(runs=8, every="3 months")
    assert quarterly.due_after(date(2026, 11, 17)) == date(2027, 2, 17)
    assert quarterly.due_after(date(2026, 11, 30)) == date(2027, 2, 28)
    assert quarterly.may_begin_after(date(2026, 11, 17)) == date(2027, 1, 2)
    assert Renewal(runs=2, every="2 weeks").due_after(date(2026, 12, 25)) == date(2027, 1, 8)
    assert Renewal(runs=2).due_after(date(2026, 12, 25)) is None


def test_a_study_says_how_often_it_is_run() -> None:
    study = make_study(renewal=Renewal(runs=8, every="quarter"))
    assert Study.from_toml(study.to_toml()) == study
    assert study.n_runs == 8
    assert make_study().n_runs == 1
    assert study.hash != make_study().hash
    assert "renewal" not in make_study().to_mapping()
