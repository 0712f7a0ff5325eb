"""Studies with [detail]: agreed, accounted, stated, run, and refused where they make no sense."""

import math

import numpy as np
import pandas as pd
import pytest

from splitmeans import DetailOptions, Study, VerticalKMeans
from splitmeans.errors import StudyError
from splitmeans.forecasting.noise import noise_levels
from splitmeans.plan.releases import DETAIL, releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.privacy.pld import epsilon_for, flatten


def study(**changes):
    mapping = {
        "name": "detail",
        "parties": [
            {
                "name": "bank",
                "columns": [
                    {"name": "income", "low": 0, "high": 9000},
                    {"name": "kind", "categories": ["a", "b", "c"]},
                ],
            },
            {"name": "shop", "columns": [{"name": "visits", "low": 0, "high": 30}]},
        ],
        "n_clusters": 3,
        "budget": {"epsilon": 1.0, "delta": 1e-6},
        "expected_users": 20_000,
        **changes,
    }
    return Study.from_mapping(mapping)


def test_a_study_without_it_keeps_its_hash_and_one_with_it_reads_back() -> None:
    assert "detail" not in study().to_mapping()
    asked = study(detail={"share": 0.3})
    assert asked.detail == DetailOptions(share=0.3)
    assert Study.from_toml(asked.to_toml()) == asked
    assert asked.hash != study().hash
    assert study(detail={}).detail == DetailOptions()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"detail": {"share": 0.9}}, r"detail\.share must be between 0\.05 and 0\.8, got 0\.9"),
        ({"detail": {"shares": 0.5}}, "shares"),
        (
            {"detail": {}, "renewal": {"runs": 4}},
            r"\[detail\] and \[renewal\] cannot be in one study: .* leave one of the two",
        ),
        (
            {
                "detail": {},
                "n_clusters": 1,
                "ids": {"type": "text"},
                "parties": [{"name": "bank"}, {"name": "shop"}],
            },
            r"\[detail\] must be left out in a study of counts alone \(n_clusters = 1\)",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes, words) -> None:
    with pytest.raises(StudyError, match=words):
        study(**changes)


def test_detail_takes_its_share_of_the_local_budget_and_nothing_else_of_the_total() -> None:
    plain, asked = make_plan(study()), make_plan(study(detail={"share": 0.3}))
    mu = {law.mu for law in asked.local}, {law.mu for law in asked.detail}
    assert len(mu[0]) == len(mu[1]) == 1
    local, detail = mu[0].pop(), mu[1].pop()
    assert detail**2 / (local**2 + detail**2) == pytest.approx(0.3)
    # Together they have what local clustering has alone, up to the steps of calibration.
    assert math.hypot(local, detail) == pytest.approx(plain.local[0].mu, rel=0.01)
    assert epsilon_for(flatten(asked.events), 1e-6) <= 1.0
    assert [law.n_columns for law in asked.detail] == [2, 1]
    assert asked.fingerprint != plain.fingerprint


def test_every_release_is_listed_with_its_event_and_noise() -> None:
    plan = make_plan(study(detail={"share": 0.3}))
    listed = [release for release in releases_of(plan) if release.what == DETAIL]
    assert [release.party for release in listed] == ["bank", "shop"]
    assert [release.event for release in listed] == [law.event for law in plan.detail]
    all_parts = [part for release in releases_of(plan) for part in flatten((release.event,))]
    assert sorted(map(repr, all_parts)) == sorted(map(repr, flatten(plan.events)))
    lines = [line.what for line in noise_levels(plan, users=20_000) if line.release == DETAIL]
    assert lines == ["each bin of a whole column", "each bin of a column in a cluster"] * 2


def test_a_bound_towards_parties_holds_with_detail() -> None:
    budget = {"epsilon": 1.0, "delta": 1e-6, "party_epsilon": 1.0}
    plain, asked = make_plan(study(budget=budget)), make_plan(study(budget=budget, detail={}))
    assert math.hypot(asked.local[0].mu, asked.detail[0].mu) <= plain.local[0].mu * 1.01


def customers(n=3000):
    rng = np.random.default_rng(9)
    rich = rng.random(n) < 0.4
    income = np.where(rich, 6000, 1500) + rng.normal(0, 300, n)
    # Half of all people come exactly four times.
    visits = np.where(rng.random(n) < 0.5, 4, rng.integers(0, 25, n)).astype(float)
    kind = np.where(rich, "c", rng.choice(["a", "b"], n))
    bank = pd.DataFrame({"income": income, "kind": kind})
    return bank, pd.DataFrame({"visits": visits + 3 * rich})


def test_rows_of_a_run_with_detail_have_the_columns_shapes() -> None:
    bank, shop = customers()

    model = VerticalKMeans(
        n_clusters=3,
        epsilon=4.0,
        bounds={"income": (0, 9000), "visits": (0, 30)},
        categories={"kind": ["a", "b", "c"]},
        detail=0.5,
        noise=InsecureSeededNoise(3),
        random_state=3,
    ).fit({"bank": bank, "shop": shop})
    rows = model.synopsis_.sample(3000, random_state=0).to_pandas()
    share = float((abs(rows["shop: visits"] - 4) < 0.5).mean())
    truth = float((abs(shop["visits"] - 4) < 0.5).mean())
    assert abs(share - truth) < 0.06
    assert rows["shop: visits"].between(0, 30).all()
    assert set(rows["bank: kind"]) <= {"a", "b", "c"}
    assert [line for line in model.privacy_.statement().splitlines() if " detail " in line]
    assert model.privacy_.epsilon <= 4.0
    rich = rows["bank: kind"] == "c"
    assert abs(rich.mean() - (bank["kind"] == "c").mean()) < 0.05
