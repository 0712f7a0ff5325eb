"""Every part stays under its claim on neighbouring inputs, and everything broken is caught.

Seeds are fixed, so a run repeats. Over seeds, by construction, some bound of the table exceeds a
sound part's claim with probability below 1e-3 in all. Resampling the counts of the table 400 times
let no twin escape; the closest bound was 0.13 above its claim. The whole file takes about a minute.
"""

import dataclasses
import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from audits import __main__ as command
from audits import guided_views, report
from audits.case import (
    Case,
    Outcome,
    Part,
    Sampler,
    Scores,
    Twin,
    run_case,
    scores_of_calls,
)
from audits.claims import BudgetClaim, GaussianClaim
from audits.fit_views import memberships_of_runs, small_study
from audits.membership_parts import audit_decoys
from audits.noise_twins import HalfNoise, Silence, Tape
from audits.published_gap import SharedKeys
from audits.report import ALL_CASES, PARTS, choose_cases, run_audit
from audits.twins import TWINS
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import clipped_sums
from splitmeans.kernels.histograms import score_products
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.survey import ColumnSurvey
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise

# What the command uses for all its bounds together.
CONFIDENCE = 1 - 1e-3 / (2 * len(PARTS) + len(TWINS))
QUICK = [name for name, build in ALL_CASES.items() if build().trials > 0]
LONG_ONLY = {
    *("guided-lloyd-centre", "whole-run"),
    *("chained-runs", "chained-lloyd"),
    *("phantoms-per-cluster-encoder", "phantoms-per-cluster-gamma-1"),
}

app = typer.Typer()
app.command()(command.audit)


@functools.cache
def outcome(name: str) -> Outcome:
    return run_case(ALL_CASES[name](), noise=InsecureSeededNoise(7), confidence=CONFIDENCE)


# Its parts are audited one by one: the histograms, the products and a round.
WHOLE = "guided-lloyd"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == WHOLE else name
        for name in PARTS
        if name in QUICK
    ],
)
def test_part_stays_under_its_claim_and_half_its_noise_is_caught(name: str) -> None:
    found = outcome(name)
    assert found.case.name == name
    assert found.sound is not None
    # A bound near zero would hold for any part: each shows a good part of what is claimed.
    assert 0.35 * found.sound.allowed < found.sound.shown <= found.sound.allowed
    assert found.broken.shown > found.broken.allowed
    assert found.verdict == "caught"
    assert found.as_expected


@pytest.mark.parametrize("name", [name for name in TWINS if name in QUICK])
def test_broken_twin_is_caught(name: str) -> None:
    found = outcome(name)
    assert found.case.name == name
    assert found.sound is None
    assert found.broken.shown > found.broken.allowed
    assert found.verdict == "caught"


def test_every_mechanism_of_a_plan_has_a_part() -> None:
    """What a study may choose is audited: by its local clustering, its membership, its views."""
    assert set(LONG_ONLY) == set(ALL_CASES) - set(QUICK)
    for names in (
        {"round", "column-histogram", "score-products", "cell-histogram", "guided-lloyd"},
        {"wide-round", "mixed-round", "level-histogram", "detail", "bundles", "columns"},
        {"decoy", "sketch", "randomised-label", "size"},
        {"bounds", "categories", "low-threshold"},
        {"fellow-party", "collusion"},
        {"two-runs", "counts-alone"},
    ):
        assert names <= set(QUICK)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unclipped(GuidedLloyd):
    """Broken: rows are clipped to twice the radius that the noise is made for."""

    def noisy_sums(self, rows, centres, radii, *, mu, noise):  # type: ignore[no-untyped-def]
        noisy = super().noisy_sums(rows, centres, radii, mu=mu, noise=noise)
        limits = np.array(self.bounds)
        d = len(limits)
        for factor, sign in ((1, -1), (2, 1)):
            sums = rows.total(
                functools.partial(
                    clipped_sums, limits=limits, centres=centres, radii=factor * radii
                )
            )
            noisy[:, :d] += sign * 256 * sums[:, :d]
        return noisy


def test_rows_beyond_the_radius_are_noticed() -> None:
    """The user is far outside the radius, so that not clipping it shows."""
    mechanism = Unclipped(n_clusters=1, bounds=(2**20,) * 4, mu=1.0)
    assert verdict_on(functools.partial(guided_views.one_round, mechanism), 10_000) == "caught"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongScores(ColumnSurvey):
    """Broken: scores may be as long as they are without clipping; the noise is that of the law."""

    def noisy_products(self, rows, scores, *, noise):  # type: ignore[no-untyped-def]
        d = len(self.bounds)
        part = functools.partial(
            score_products,
            limits=self.limits,
            bins=np.array([len(own) for own in scores]),
            scores=np.concatenate(scores),
            longest=10_000,
        )
        raw = rows.total(part)[np.triu_indices(d, 1)]
        return raw + noise.gaussian(self.product_scale, len(raw))


def test_scores_that_are_not_clipped_are_noticed() -> None:
    """The user has a large score in every column."""
    mechanism = LongScores(bounds=(2**20,) * 4, mu=1.0)
    assert verdict_on(functools.partial(guided_views.products, mechanism), 1_000) == "caught"


def verdict_on(sample: Sampler, trials: int) -> str:
    """Audit something broken that claims mu = 1."""
    twin = Twin(
        name="broken",
        what="a part without its clipping",
        claim=GaussianClaim(mu=1.0),
        sample=sample,
        trials=trials,
        long_trials=0,
    )
    return run_case(twin, noise=InsecureSeededNoise(7), confidence=CONFIDENCE).verdict


@dataclasses.dataclass
class NoNoise(HalfNoise):
    """Broken altogether."""

    def laplace(self, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def spawn(self, label: str) -> "NoNoise":
        return NoNoise(self.source.spawn(label))


@pytest.mark.parametrize("name", ["guided-lloyd-centre"])
def test_missing_noise_is_noticed_in_the_long_forms(name: str) -> None:
    """The long lines run; a short form of them notices that noise is missing altogether."""
    part = ALL_CASES[name]()
    assert isinstance(part, Part)
    twin = Twin(
        name=name,
        what="no noise",
        claim=part.claim,
        sample=part.sample,
        trials=120,  # 60 tested ones reach an epsilon of 2.4 at this confidence
        long_trials=0,
    )
    noise = NoNoise(InsecureSeededNoise(7))
    assert run_case(twin, noise=noise, confidence=0.99).verdict == "caught"


def test_missing_decoys_are_noticed_in_whole_runs() -> None:
    study = small_study(membership="decoy", epsilon=4.0, delta=1e-3)
    plan = dataclasses.replace(make_plan(study), membership=audit_decoys(mu=8.0))
    part = ALL_CASES["whole-run"]()
    twin = Twin(
        name="whole-run",
        what="hardly any decoys",
        claim=part.claim,
        sample=functools.partial(memberships_of_runs, plan),
        trials=60,
        long_trials=0,
    )
    assert run_case(twin, noise=InsecureSeededNoise(7), confidence=0.99).verdict == "caught"


def test_long_lines_wait_for_the_long_form() -> None:
    with pytest.raises(ParameterError, match="quick form"):
        choose_cases(["phantoms-per-cluster-gamma-1"])
    (case,) = choose_cases(["phantoms-per-cluster-gamma-1"], long=True)
    assert case.long_trials == 4_000_000


def test_violation_at_gamma_one_in_the_long_form() -> None:
    """A quarter of the long form's trials already shows the violation of 0.49.

    The seed is fixed; over seeds 99.5 % of runs show it.
    """
    (case,) = choose_cases(["phantoms-per-cluster-gamma-1"], long=True)
    shorter = dataclasses.replace(case, long_trials=1_000_000)
    found = run_case(shorter, noise=InsecureSeededNoise(2), confidence=0.999, long=True)
    assert found.broken.allowed == 0.49
    assert found.verdict == "caught"


def coin(likely: float) -> Scores:
    """Trials of a coin that shows the user with this probability, and as rarely without."""

    def sample(trials: int, noise: InsecureSeededNoise) -> Scores:
        words = noise.words(2 * trials).reshape(2, trials) < np.uint64(likely * 2**64)
        return Scores(with_user=words[0].astype(np.float64), without=(~words[1]).astype(np.float64))

    return sample


def lie(*, claimed: float, likely: float = 0.9, halved: float = 0.99) -> Part:
    """Epsilon of the part is log(likely / (1 - likely)): log 9, and log 99 with half the noise."""
    return Part(
        name="coin",
        what="a coin",
        claim=BudgetClaim(epsilon=claimed),
        sample=coin(likely),
        halved=coin(halved),
        trials=4000,
        long_trials=4000,
    )


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (lie(claimed=2.2), "caught"),
        (lie(claimed=1.5), "EXCEEDED"),
        (lie(claimed=2.2, halved=0.9), "ESCAPED"),
        (dataclasses.replace(lie(claimed=2.2), trials=20), "ESCAPED"),
    ],
    ids=["honest", "lies", "halving changes nothing", "too few trials"],
)
def test_verdicts(case: Case, verdict: str) -> None:
    found = run_case(case, noise=InsecureSeededNoise(0), confidence=0.999)
    assert found.verdict == verdict
    assert found.as_expected == (verdict == "caught")


def test_fixed_event_uses_all_trials() -> None:
    twin = Twin(
        name="coin",
        what="a coin",
        claim=BudgetClaim(epsilon=1.5),
        sample=coin(0.9),
        trials=4000,
        long_trials=4000,
        event_at=1.0,
    )
    found = run_case(twin, noise=InsecureSeededNoise(0), confidence=0.999)
    assert found.broken.trials == (4000, 4000)
    assert 1.9 < found.broken.shown < math.log(9)


def test_calls_make_as_many_trials_as_asked() -> None:
    calls: list[bool] = []

    def one_call(present: bool) -> np.ndarray:
        calls.append(present)
        return np.full(4, float(present))

    scores = scores_of_calls(one_call, trials=10)
    assert calls == [True] * 3 + [False] * 3
    assert scores.with_user.tolist() == [1.0] * 10
    assert scores.without.tolist() == [0.0] * 10


def test_bounds_share_the_confidence() -> None:
    cases = choose_cases(["size", "no-phantoms"])
    seen: list[str] = []
    made = run_audit(
        cases,
        noise=InsecureSeededNoise(0),
        confidence=0.97,
        on_outcome=lambda found: seen.append(found.case.name),
    )
    assert seen == ["size", "no-phantoms"]
    assert made.passed
    bounds = [made.outcomes[0].sound, made.outcomes[0].broken, made.outcomes[1].broken]
    assert [bound and bound.confidence for bound in bounds] == pytest.approx([0.99] * 3)
    assert json.loads(json.dumps(made.to_mapping()))["secure_noise"] is False


def test_half_noise_halves_every_kind() -> None:
    noise, reference = HalfNoise(InsecureSeededNoise(1)), InsecureSeededNoise(1)
    assert noise.secure is False
    np.testing.assert_array_equal(noise.laplace(8.0, 5), reference.laplace(4.0, 5))
    np.testing.assert_array_equal(noise.gaussian(8.0, 5), reference.gaussian(4.0, 5))
    np.testing.assert_array_equal(noise.words(3), reference.words(3))
    assert isinstance(noise.spawn("party"), HalfNoise)


def test_a_tape_plays_again_and_then_draws_on() -> None:
    tape, reference = Tape(InsecureSeededNoise(1)), InsecureSeededNoise(1)
    first = tape.gaussian(100.0, 3)
    np.testing.assert_array_equal(first, reference.gaussian(100.0, 3))
    again = tape.rewind().gaussian(100.0, 5)
    np.testing.assert_array_equal(again[:3], first)
    np.testing.assert_array_equal(again[3:], reference.gaussian(100.0, 2))
    assert not Silence().spawn("x").laplace(5.0, 4).any()


def test_command_prints_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    only = ["--only", "size", "--only", "no-phantoms"]
    result = CliRunner().invoke(app, [*only, "--json", str(path)])
    assert result.exit_code == 0
    assert "half noise" in result.stdout
    assert "caught" in result.stdout
    record = json.loads(path.read_text())
    assert record["passed"] is True
    assert [case["name"] for case in record["cases"]] == ["size", "no-phantoms"]
    part, twin = record["cases"]
    assert part["sound"]["shown"] < part["claim"] < part["broken"]["shown"]
    assert (twin["kind"], twin["sound"], twin["verdict"]) == ("twin", None, "caught")
    assert part["seconds"] >= 0


def test_command_fails_if_a_claim_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ALL_CASES", {"coin": lambda: lie(claimed=1.5)})
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "EXCEEDED" in result.stdout
    assert "coin" in result.stderr


def test_command_refuses_unknown_cases() -> None:
    result = CliRunner().invoke(app, ["--only", "nothing"])
    assert isinstance(result.exception, ParameterError)
    assert "only must be one of 'round'" in str(result.exception)


def test_command_recomputes_the_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SharedKeys(epsilon=8.0, delta=0.01, repetitions=64)
    monkeypatch.setattr(command, "table_cases", lambda: [("small", case)])
    path = tmp_path / "gap.json"
    result = CliRunner().invoke(app, ["--gap", "--json", str(path)])
    assert result.exit_code == 0
    assert "3.00e-04 with the user, 5.61e-05 without" in " ".join(result.stdout.split())
    record = json.loads(path.read_text())
    assert record["bound"] == "lower"
    assert record["cases"][0]["case"]["repetitions"] == 64
    assert record["coincidences"][0]["least"] == 25
