"""Every mechanism stays under its claim on neighbouring inputs, and every broken twin is caught.

Seeds are fixed, so a run repeats. Over seeds, a bound on a sound mechanism fails with probability
below 1e-3 / 25 by construction. No twin escaped in 40 seeds; the closest bound was 0.18 above its
claim.
"""

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from splitmeans.audit.local_views import HalfNoise
from splitmeans.audit.mechanisms import DELTA, MECHANISMS, audit_decoys
from typer.testing import CliRunner

from splitmeans.audit import published_gap, report
from splitmeans.audit.case import Case, Outcome, Scores, run_case
from splitmeans.audit.fit_views import small_fit, small_study
from splitmeans.audit.published_gap import SharedKeys
from splitmeans.audit.report import ALL_CASES, choose_cases, run_audit
from splitmeans.audit.twins import TWINS
from splitmeans.cli.audit import audit
from splitmeans.errors import ParameterError
from splitmeans.plan import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise

CONFIDENCE = 1 - 1e-3 / 25
# Slow cases; so many trials still reach beyond the claim, which the verdict checks.
SHORTER = {"sketch": 600, "tree-counts-gaussian": 1000}
LONG_ONLY = {"phantoms-per-cluster-encoder", "phantoms-per-cluster-gamma-1"}

app = typer.Typer()
app.command()(audit)


@functools.cache
def outcome(name: str) -> Outcome:
    case = ALL_CASES[name]()
    case = dataclasses.replace(case, trials=SHORTER.get(name, case.trials))
    return run_case(case, noise=InsecureSeededNoise(7), confidence=CONFIDENCE)


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanism_stays_under_its_claim(name: str) -> None:
    found = outcome(name)
    assert found.case.name == name
    assert found.case.exact is not None
    assert found.case.exact <= found.case.claimed * (1 + 1e-9)
    assert found.bound.epsilon <= found.case.exact
    assert found.reach > found.case.claimed
    assert found.verdict == "not refuted"


@pytest.mark.parametrize("name", [name for name in TWINS if name not in LONG_ONLY])
def test_broken_twin_is_caught(name: str) -> None:
    found = outcome(name)
    assert found.case.name == name
    assert found.case.exact is not None
    assert found.case.claimed < found.bound.epsilon <= found.case.exact
    assert found.verdict == "caught"


@pytest.mark.parametrize(
    ("name", "least"),
    [("histogram", 0.8), ("leaf-sum", 0.6), ("decoy", 0.4), ("server-noise", 0.8)],
)
def test_audits_have_teeth(name: str, least: float) -> None:
    """A bound near zero would hold for any mechanism."""
    assert outcome(name).bound.epsilon > least


@dataclasses.dataclass
class NoNoise(HalfNoise):
    """Broken altogether."""

    def laplace(self, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    def spawn(self, label: str) -> "NoNoise":
        return NoNoise(self.source.spawn(label))


@pytest.mark.parametrize("name", ["dplloyd", "tree-lloyd"])
def test_missing_noise_is_noticed_in_slow_cases(name: str) -> None:
    case = dataclasses.replace(ALL_CASES[name](), sound=False)
    noise = NoNoise(InsecureSeededNoise(7))
    # Half the trials reach beyond the claims at this confidence.
    case = dataclasses.replace(case, trials=case.trials // 2)
    assert run_case(case, noise=noise, confidence=0.99).verdict == "caught"


def test_missing_decoys_are_noticed_in_a_whole_run() -> None:
    study = small_study(membership="decoy", epsilon=1.0, delta=DELTA, accounting="tight")
    plan = dataclasses.replace(make_plan(study), membership=audit_decoys(mu=8.0))
    sample = functools.partial(small_fit, plan)
    case = dataclasses.replace(ALL_CASES["whole-run"](), sample=sample, sound=False, trials=40)
    # At this confidence 40 trials reach an epsilon of 1.19.
    found = run_case(case, noise=InsecureSeededNoise(7), confidence=0.99)
    assert found.verdict == "caught"


def test_too_few_trials_do_not_pass() -> None:
    case = dataclasses.replace(lie(claimed=2.2, sound=True), trials=20)
    found = run_case(case, noise=InsecureSeededNoise(0), confidence=0.999)
    assert found.verdict == "TOO FEW TRIALS"
    assert not found.as_expected


def test_long_cases_wait_for_the_long_form() -> None:
    for name in LONG_ONLY:
        assert ALL_CASES[name]().trials == 0
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
    assert found.bound.epsilon > 0.49
    assert found.verdict == "caught"


def lie(*, claimed: float, sound: bool, exact: float | None = None) -> Case:
    """A coin that shows the user with probability 0.9 against 0.1: epsilon is log 9."""

    def sample(trials: int, noise: InsecureSeededNoise) -> Scores:
        words = noise.words(2 * trials).reshape(2, trials) < np.uint64(0.9 * 2**64)
        return Scores(with_user=words[0].astype(np.float64), without=(~words[1]).astype(np.float64))

    return Case(
        name="coin",
        what="a coin",
        claimed=claimed,
        delta=0.0,
        exact=exact,
        sample=sample,
        trials=4000,
        long_trials=4000,
        sound=sound,
    )


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (lie(claimed=2.2, sound=True), "not refuted"),
        (lie(claimed=1.5, sound=True), "EXCEEDED"),
        (lie(claimed=3.0, sound=True, exact=3.1), "EXCEEDED"),
        (lie(claimed=1.5, sound=False), "caught"),
        (lie(claimed=2.2, sound=False), "ESCAPED"),
    ],
    ids=["honest", "lies", "exact above claim", "twin", "twin that looks sound"],
)
def test_verdicts(case: Case, verdict: str) -> None:
    found = run_case(case, noise=InsecureSeededNoise(0), confidence=0.999)
    assert found.verdict == verdict
    assert found.as_expected == (verdict in ("not refuted", "caught"))


def test_fixed_event_uses_all_trials() -> None:
    case = dataclasses.replace(lie(claimed=2.2, sound=True), event_at=1.0)
    found = run_case(case, noise=InsecureSeededNoise(0), confidence=0.999)
    assert found.bound.trials == (4000, 4000)
    assert 1.9 < found.bound.epsilon < np.log(9)


def test_cases_share_the_confidence() -> None:
    cases = choose_cases(["histogram", "half-laplace"])
    seen: list[str] = []
    made = run_audit(
        cases,
        noise=InsecureSeededNoise(0),
        confidence=0.99,
        on_outcome=lambda found: seen.append(found.case.name),
    )
    assert seen == ["histogram", "half-laplace"]
    assert made.passed
    assert [found.bound.confidence for found in made.outcomes] == pytest.approx([0.995, 0.995])
    assert json.loads(json.dumps(made.to_mapping()))["secure_noise"] is False


def test_half_noise_halves_every_kind() -> None:
    noise, reference = HalfNoise(InsecureSeededNoise(1)), InsecureSeededNoise(1)
    assert noise.secure is False
    np.testing.assert_array_equal(noise.laplace(8.0, 5), reference.laplace(4.0, 5))
    np.testing.assert_array_equal(noise.gaussian(8.0, 5), reference.gaussian(4.0, 5))
    np.testing.assert_array_equal(noise.words(3), reference.words(3))
    assert isinstance(noise.spawn("party"), HalfNoise)


def test_command_prints_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    only = ["--only", "histogram", "--only", "no-phantoms"]
    result = CliRunner().invoke(app, [*only, "--json", str(path)])
    assert result.exit_code == 0
    assert "not refuted" in result.stdout
    assert "caught" in result.stdout
    record = json.loads(path.read_text())
    assert record["passed"] is True
    assert [case["name"] for case in record["cases"]] == ["histogram", "no-phantoms"]
    assert record["cases"][1]["exact"] is None


def test_command_fails_if_a_claim_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ALL_CASES", {"coin": lambda: lie(claimed=1.5, sound=True)})
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "EXCEEDED" in result.stdout
    assert "coin" in result.stderr


def test_command_refuses_unknown_cases() -> None:
    result = CliRunner().invoke(app, ["--only", "nothing"])
    assert isinstance(result.exception, ParameterError)
    assert "only must be one of 'user-count'" in str(result.exception)


def test_command_recomputes_the_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SharedKeys(epsilon=8.0, delta=0.01, repetitions=64)
    monkeypatch.setattr(published_gap, "table_cases", lambda: [("small", case)])
    path = tmp_path / "gap.json"
    result = CliRunner().invoke(app, ["--gap", "--json", str(path)])
    assert result.exit_code == 0
    assert "3.00e-04 with the user, 5.61e-05 without" in " ".join(result.stdout.split())
    record = json.loads(path.read_text())
    assert record["bound"] == "lower"
    assert record["cases"][0]["case"]["repetitions"] == 64
    assert record["coincidences"][0]["least"] == 25
