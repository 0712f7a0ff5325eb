"""The loss model predicts what runs give, on tables that it was not fitted to.

The factors are those that the documentation states, read from the model's own file. Single settings
are means over few seeds, and a run can fail by chance, hence what is left open below.
"""

import pytest

from benchmarks.forecast import Setting, compare, measure, measure_all, settings
from benchmarks.forecast_tables import TableCase, held_out_tables
from splitmeans.forecasting.loss_model import model

STATED = model()["held_out"]


@pytest.mark.parametrize(
    ("family", "detail", "membership", "n_parties", "epsilon"),
    [
        ("customers", 0.0, "decoy", 2, 0.25),
        ("customers", 0.0, "sketch", 2, 1.0),
        ("blurred", 0.3, "decoy", 4, 0.5),
    ],
)
def test_a_few_settings(family, detail, membership, n_parties, epsilon):
    """Tables with seeds of their own; twelve such runs were all within a factor 1.03."""
    table = TableCase(family=family, users=20_000, columns=8, n_clusters=5, detail=detail, seed=101)
    found = measure(
        Setting(table=table, n_parties=n_parties, epsilon=epsilon, membership=membership, seeds=1)
    )
    (compared,) = compare([found])
    assert compared.ratio_factor <= STATED["ratio_factor"]["nine_in_ten"]
    assert found.predicted_bytes == pytest.approx(found.release_bytes, rel=0.03)


@pytest.mark.slow
def test_made_up_tables_that_the_model_has_not_seen():
    """All made-up tables of the check, drawn anew, one seed each instead of three.

    Nine of ten settings were within the stated factor there; of about 70 noisier ones at least
    eight of ten must be, and all within twice the stated worst.
    """
    tables = [
        TableCase(**{**vars(table), "seed": table.seed + 50})
        for table in held_out_tables(real=False)
    ]
    chosen = settings(tables, memberships=("decoy",), seeds=1)
    compared = compare(measure_all(chosen, data_dir=None, workers=1))
    factors = sorted(item.ratio_factor for item in compared)
    within = sum(factor <= STATED["ratio_factor"]["nine_in_ten"] for factor in factors)
    assert within >= 0.8 * len(factors)
    assert factors[-1] <= 2 * STATED["ratio_factor"]["all"]


def test_the_stated_factors_are_not_empty():
    """What the documentation promises is about enough settings and is not infinite."""
    assert STATED["settings"] >= 100
    assert STATED["ratio_factor"]["nine_in_ten"] <= 1.1
    assert STATED["ratio_factor"]["all"] <= 2
    assert STATED["share_in_range"] >= 0.85
