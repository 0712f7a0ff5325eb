"""The certificate: complete, narrow, and checked by programs that share nothing with ours."""

import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitmeans.plan.facts import PrivacyFacts, certificate_of
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.lower_bound import epsilon_at_least
from splitmeans.privacy.pld import delta_for, flatten
from splitmeans.study import Study
from tests.privacy import contour

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "certificate.md"
CHECK = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[1]


def study_of(epsilon=1.0, delta=1e-6, *, n_parties=2, d=3, **changes):
    columns = [{"name": f"c{j}", "low": 0, "high": 100} for j in range(d)]
    mapping = {
        "name": "x",
        "n_clusters": 5,
        "budget": {"epsilon": epsilon, "delta": delta},
        "expected_users": 20_000,
        "ids": {"type": "as-is"},
        "parties": [{"name": f"p{i}", "columns": columns} for i in range(n_parties)],
    }
    return Study.from_mapping(mapping | changes)


def check(certificate, folder):
    """Run the page's program on a certificate; return its exit code and what it said."""
    (folder / "certificate.json").write_text(json.dumps(certificate))
    (folder / "check.py").write_text(CHECK)
    done = subprocess.run(
        [sys.executable, "-I", "check.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_page_s_program_is_short_and_imports_nothing_of_ours():
    assert "splitmeans" not in CHECK
    statements = [line for line in CHECK.splitlines() if line.strip() and line[0] != "#"]
    assert len(statements) <= 48


@pytest.mark.parametrize(
    ("epsilon", "delta", "n_parties"),
    [
        (1, 1e-6, 2),
        (0.3, 1e-8, 3),
        (12, 1e-9, 2),
        (8, 1e-9, 4),
    ],
)
def test_the_page_s_program_accepts_true_certificates(epsilon, delta, n_parties, tmp_path):
    plan = make_plan(study_of(epsilon, delta, n_parties=n_parties))
    code, said = check(certificate_of(plan), tmp_path)
    assert (code, said[:6]) == (0, "holds:"), said


def test_the_page_s_program_reads_a_presence_table_too(tmp_path):
    certificate = certificate_of(make_plan(study_of(n_parties=3)))
    pair, presence = certificate["releases"][-1]["parts"]
    assert (pair["times"], presence["times"]) == (3, 1)
    noise = certificate["server_noise"]
    assert noise["groups"][-1] == [0, 1, 2]
    assert (noise["scale"], noise["presence_scale"]) == (pair["scale"], presence["scale"])
    code, said = check(certificate, tmp_path)
    assert (code, said[:6]) == (0, "holds:"), said
    presence["truncation"] -= 1
    code, said = check(certificate, tmp_path)
    assert code != 0, said


@pytest.mark.parametrize("broken", ["noise", "mu", "table", "upper", "lower", "left out"])
def test_the_page_s_program_refuses_false_ones(broken, tmp_path):
    certificate = certificate_of(make_plan(study_of()))
    local, members = certificate["releases"][0]["parts"], certificate["releases"][-1]["parts"]
    if broken == "noise":
        local[0]["scale"] //= 2
    elif broken == "mu":  # half the noise, honestly stated
        local[0]["scale"], local[0]["mu"] = local[0]["scale"] // 8, 8 * local[0]["mu"]
    elif broken == "table":
        members[0]["truncation"] -= 1
    elif broken == "upper":
        certificate["total"]["epsilon"] -= 0.002
    elif broken == "lower":
        certificate["lower"] += 0.002
    else:
        members.clear()
    code, said = check(certificate, tmp_path)
    assert code != 0, said


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_parties": 3},
        {"membership": "sketch", "sketch": {"repetitions": 256}},
    ],
    ids=["decoy", "presence", "sketch"],
)
def test_a_contour_integral_finds_the_same_epsilon_from_the_certificate(changes):
    """Of every law, rebuilt from the numbers in the file alone."""
    certificate = json.loads(json.dumps(certificate_of(make_plan(study_of(2.0, **changes)))))
    claim, lower = certificate["total"], certificate["lower"]
    directions = losses_of(certificate)
    at_upper, at_lower = (
        max(contour.delta(losses, epsilon) for losses in directions)
        for epsilon in (claim["epsilon"], lower)
    )
    assert at_upper + certificate["extra"]["delta"] <= claim["delta"] * (1 + 1e-9)
    assert at_lower >= claim["delta"]
    assert claim["epsilon"] - lower <= 0.005


@pytest.mark.parametrize("n_parties", [2, 3])
def test_the_figure_towards_a_party_follows_from_the_certificate(n_parties):
    certificate = certificate_of(make_plan(study_of(1.0, n_parties=n_parties)))
    noise = certificate["server_noise"]
    (party,) = [one for one in certificate["observers"] if one["name"] == "party"]
    (bound,) = [one for one in party["bounds"] if "values elsewhere replaced" in one["case"]]
    # A presence table counts the same people, whatever their values are.
    pairs = [group for group in noise["groups"] if len(group) == 2]
    stated = bound["cost"]["epsilon"]
    scale = noise["scale"][0] / noise["scale"][1]
    x = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    law = np.exp(-((x / scale) ** 2) / 2) / np.exp(-((x / scale) ** 2) / 2).sum()
    counts = contour.table(np.append(0.0, law), np.append(law, 0.0), copies=2 * len(pairs))
    squares = [
        sum(part["times"] * (2 * part["mu"]) ** 2 for part in release["parts"])
        for release in certificate["releases"]
        if release["what"] == "local clusters"
    ]
    losses = [contour.normal(math.sqrt(sum(squares) - min(squares))), counts]
    delta = certificate["budget"]["delta"]
    assert contour.delta(losses, stated) <= delta
    assert contour.delta(losses, stated - 0.002) > delta


def losses_of(certificate):
    directions = ([], [])
    square = 0.0
    for release in certificate["releases"]:
        for part in release["parts"]:
            match part["law"]:
                case "discrete gaussian":
                    assert part["sensitivity"] <= part["mu"] * part["scale"] * (1 + 1e-12)
                    square += part["times"] * part["mu"] ** 2
                    continue
                case "truncated discrete gaussian":
                    sigma = part["scale"][0] / part["scale"][1]
                    x = np.arange(-part["truncation"], part["truncation"] + 1)
                    law = np.exp(-(x**2) / (2 * sigma**2))
                    here, moved = (
                        np.append(law, 0.0) / law.sum(),
                        np.append(0.0, law) / law.sum(),
                    )
                    pairs, copies = ((moved, here), (here, moved)), part["times"]
                case "maximum of geometric values":
                    without, there = (registers(part, n) for n in (0, 1))
                    pairs = ((there, without), (without, there))
                    copies = part["repetitions"] * part["times"]
                case "discrete laplace":
                    cost = part["multiplier"][1] / part["multiplier"][0]
                    coin = np.array([1.0, math.exp(-cost)]) / (1 + math.exp(-cost))
                    pairs, copies = ((coin, coin[::-1]),) * 2, part["times"]
            for losses, pair in zip(directions, pairs, strict=True):
                losses.append(contour.table(*pair, copies=copies))
    for losses in directions:
        losses.append(contour.normal(math.sqrt(square)))
    return directions


def registers(part, more):
    gamma = part["gamma"][0] / part["gamma"][1]
    floor = max(part["floor"], 1)
    values = np.arange(floor, floor + math.ceil(45 / math.log1p(gamma)))
    cdf = np.exp((part["phantoms"] + more) * np.log1p(-np.exp(-values * math.log1p(gamma))))
    cdf[-1] = 1.0
    return np.diff(cdf, prepend=0.0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n_parties"),
    [*itertools.product((0.05, 0.5, 4.0), (1e-9, 1e-5), (2,)), (1.0, 1e-6, 5)],
)
def test_the_bracket_is_narrow_and_in_order(epsilon, delta, n_parties):
    plan = make_plan(study_of(epsilon, delta, n_parties=n_parties))
    certificate = certificate_of(plan)
    lower, upper = certificate["lower"], certificate["total"]["epsilon"]
    assert lower <= upper <= epsilon
    assert upper - lower <= 0.001 * max(1, epsilon) + 0.001 * n_parties
    for at in (0.3 * epsilon, epsilon):
        assert epsilon_at_least(plan.events, delta_for(plan.events, at)) <= at


def test_every_part_of_every_release_is_there():
    plan = make_plan(study_of())
    certificate = certificate_of(plan)
    times = sum(part["times"] for release in certificate["releases"] for part in release["parts"])
    assert times == len(list(flatten(plan.events)))
    assert certificate["plan"] == plan.fingerprint
    assert certificate["total"]["epsilon"] == PrivacyFacts.of(plan).epsilon
