"""Methods are data: registries agree, records are complete, and a new one needs no other code."""

import ast
import dataclasses
import subprocess
import sys
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import splitmeans
from splitmeans import protocol
from splitmeans._types import NoiseLine
from splitmeans.forecasting.forecast import forecast
from splitmeans.forecasting.noise import noise_levels
from splitmeans.local import algorithms as mechanisms
from splitmeans.local import methods as local_methods
from splitmeans.local.law import LocalMethod
from splitmeans.local.rows import LocalRelease
from splitmeans.membership import methods
from splitmeans.membership.exact.encode import encode as send_labels
from splitmeans.membership.exact.encode import in_secret_order
from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.membership.method import MembershipMethod, paper_clusters
from splitmeans.party import memberships
from splitmeans.party.memberships import PartySide
from splitmeans.plan.certificate import certificate_of
from splitmeans.plan.settle import make_plan
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.events import Event, PureEvent
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.study.methods import (
    ACCOUNTING_METHODS,
    LOCALS,
    MEMBERSHIPS,
    PAPER,
    TIGHT,
    LocalFacts,
    MembershipFacts,
)
from splitmeans.table.prepare import prepare_table
from splitmeans.wire import messages
from splitmeans.wire.tags import tag_of

ROOT = Path(splitmeans.__file__).parent


def test_all_registries_have_the_names_that_a_study_takes() -> None:
    assert list(MEMBERSHIPS) == list(methods.METHODS) == list(memberships.PARTY_SIDES)
    assert list(LOCALS) == list(local_methods.METHODS)


@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_the_record_of_a_membership_method_is_complete(name: str) -> None:
    method, facts = methods.METHODS[name], MEMBERSHIPS[name]
    assert facts is method.facts
    assert facts.name == name
    assert (method.tight_law is not None) == (TIGHT in facts.accountings)
    assert (method.published_law is not None) == (PAPER in facts.accountings)
    assert (facts.budget_share is not None) == (TIGHT in facts.accountings)
    assert (method.server_noise is not None) == facts.hides_from_parties
    assert set(facts.accountings) <= set(ACCOUNTING_METHODS)
    assert {facts.grid_of_two, facts.grid_of_more} <= {"joint", "pairs", "pairs-paper"}
    assert method.message in typing.get_args(messages.MembershipMessage)
    assert tag_of(method.law)
    # Who reads the statement of a method without a proof learns what it does not hide.
    assert facts.unproved is None or facts.caveats


def test_every_law_and_message_belongs_to_one_method() -> None:
    used = [method.message for method in methods.METHODS.values()]
    assert sorted(used, key=tag_of) == sorted(
        typing.get_args(messages.MembershipMessage), key=tag_of
    )
    laws = [method.law for method in methods.METHODS.values()]
    assert len(set(laws)) == len(laws)


@pytest.mark.parametrize("name", LOCALS)
def test_the_record_of_a_local_algorithm_is_complete(name: str) -> None:
    method, facts = local_methods.METHODS[name], LOCALS[name]
    assert facts is method.facts
    assert facts.name == name
    assert (method.tight is not None) == (TIGHT in facts.accountings)
    assert (method.published is not None) == (PAPER in facts.accountings)
    assert facts.is_private or facts.caveats
    for cost in ({"mu": 0.5},) * (method.tight is not None) + ({"epsilon": 0.5},) * (
        method.published is not None
    ):
        law = local_methods.local_law(name, n_clusters=3, bounds=(2**20, 2**20), **cost)
        assert tag_of(type(law))
        mechanism = mechanisms.mechanism_of(law)
        assert isinstance(mechanism, type(law))
        assert dataclasses.astuple(mechanism) == dataclasses.astuple(typing.cast(Any, law))
        assert mechanism.event == law.event
        # Only what has no noise has no lines about it.
        assert bool(list(law.noise_lines(1000))) == facts.is_private


def test_a_server_loads_nothing_that_sees_rows() -> None:
    """Plans and servers read laws; tables, encoders and local algorithms stay with the parties."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, splitmeans.run.server; print(*sorted(sys.modules))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "splitmeans.membership.methods" in loaded
    public = {"splitmeans.local.law", "splitmeans.local.methods"}
    seen = [
        name
        for name in loaded
        if name.startswith(("splitmeans.party.", "splitmeans.table"))
        or (name.startswith("splitmeans.membership") and name.endswith(".encode"))
        or (
            name.startswith("splitmeans.local.")
            and not name.startswith("splitmeans.local.laws")
            and name not in public
        )
    ]
    assert seen == []


def _compared(path: Path) -> set[str]:
    """All texts that a file compares something with, or matches it by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare | ast.MatchValue):
            found |= {
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
    return found


# The command line and reports may name a method in words; the paper has methods of its own.
_ABOUT_METHODS = ("paper",)


def test_no_code_asks_for_a_method_by_its_name() -> None:
    names = {*MEMBERSHIPS, *LOCALS}
    asking = {
        str(path.relative_to(ROOT)): sorted(_compared(path) & names)
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in _ABOUT_METHODS and _compared(path) & names
    }
    assert asking == {}


def test_the_check_for_names_can_fail(tmp_path: Path) -> None:
    file = tmp_path / "asks.py"
    file.write_text('if x in ("decoy", "b"):\n    pass\nmatch x:\n    case "ldp":\n        pass\n')
    assert _compared(file) == {"decoy", "b", "ldp"}


# ---- methods that nobody has written: only registries know them ----


@dataclass(frozen=True, kw_only=True)
class MadeUpLabels(PlainLabels):
    TAG: ClassVar[str] = "MadeUpLabels"

    epsilon: float

    @property
    def event(self) -> Any:
        return PureEvent(epsilon=self.epsilon)


MADE_UP = MembershipFacts(
    name="made-up",
    accountings=(TIGHT,),
    budget_share=0.3,
    caveats=("It was made up.",),
    warning="made up",
    needs_count=True,
    grouped=False,
    partial_sets=False,
    grid_of_two="joint",
    grid_of_more="joint",
)
MADE_UP_METHOD: MembershipMethod[MadeUpLabels, messages.PlainLabelsMessage] = MembershipMethod(
    facts=MADE_UP,
    law=MadeUpLabels,
    message=messages.PlainLabelsMessage,
    default_labels=paper_clusters,
    tight_law=lambda study, precisions, k, groups: MadeUpLabels(epsilon=precisions.membership),
    estimator=lambda law, plan, sent, noise: ExactEstimator(
        messages=tuple(sent), n_local_clusters=plan.n_local_clusters
    ),
    noise_lines=lambda law, plan: [("made-up noise", law.epsilon, "users")],
    message_size=lambda law, plan, position, users, deviations: (users, 0),
    cell_error=lambda law, plan, users: 1.5,
)


def _made_up_release(law: Any, plan: Any, position: int, users: Any, **secrets: Any) -> Any:
    return send_labels(law, labels=in_secret_order(users, secrets["run_key"]))


@dataclass(frozen=True, kw_only=True)
class CornersLaw:
    """Centres that depend on no row."""

    TAG: ClassVar[str] = "Corners"

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float

    @property
    def event(self) -> Event:
        return PureEvent(epsilon=self.mu)

    def noise_lines(self, users: int) -> Iterable[NoiseLine]:
        return [("made-up local noise", self.mu, "box")]


class Corners(CornersLaw):
    def release(self, raw_rows: Any, *, noise: Any, rng: Any) -> Any:
        places = np.linspace(-1, 1, self.n_clusters)[:, np.newaxis]
        centres = np.rint(places * np.array(self.bounds)).astype(np.int64)
        return LocalRelease.of_centres(centres)


CORNERS = LocalFacts(name="corners", accountings=(TIGHT,), gathers_rows=False)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study with a membership method and a local algorithm that only the registries know."""
    side = PartySide(release=_made_up_release, shared_pieces=lambda law, plan, key: [key[:4]])
    monkeypatch.setitem(typing.cast(Any, MEMBERSHIPS), "made-up", MADE_UP)
    monkeypatch.setitem(typing.cast(Any, methods.METHODS), "made-up", MADE_UP_METHOD)
    monkeypatch.setitem(typing.cast(Any, memberships.PARTY_SIDES), "made-up", side)
    monkeypatch.setitem(typing.cast(Any, LOCALS), "corners", CORNERS)
    local = LocalMethod(facts=CORNERS, tight=CornersLaw)
    monkeypatch.setitem(typing.cast(Any, local_methods.METHODS), "corners", local)
    monkeypatch.setitem(typing.cast(Any, mechanisms.MECHANISMS), CornersLaw, Corners)
    columns = (Column(name="x", low=0, high=100),)
    return Study(
        name="made up",
        parties=tuple(PartySpec(name=name, columns=columns) for name in ("bank", "shop")),
        n_clusters=3,
        budget=Budget(epsilon=2, delta=1e-4),
        membership="made-up",
        local="corners",
        expected_users=200,
        ids=AS_IS,
    )


def test_a_new_method_runs_and_is_planned_stated_and_forecast(made_up: Study) -> None:
    rng = np.random.default_rng(5)
    ids = [f"user-{number}" for number in range(200)]
    values = rng.uniform(0, 100, (2, 200, 1))
    tables = [
        prepare_table(party, own, ids=ids)
        for party, own in zip(made_up.parties, values, strict=True)
    ]
    result = protocol.run(
        made_up, tables, noise=InsecureSeededNoise(1), rng=np.random.default_rng(2)
    )
    # Corners are at 0, 50 and 100 of each column; counts are exact but for the projection.
    cells = np.rint(values[:, :, 0] / 50).astype(int)
    counts = np.zeros((3, 3))
    np.add.at(counts, (cells[0], cells[1]), 1)
    weights = result.server.synopsis.weights
    (((noisy_count,),),) = result.plan.released
    assert np.corrcoef(weights, counts.ravel())[0, 1] > 0.99
    assert weights.sum() == pytest.approx(noisy_count)

    plan = make_plan(made_up)
    assert plan.n_local_clusters == (3, 3)
    assert plan.grid_method == "joint"
    report = PrivacyReport(plan=plan, secure_noise=True)
    assert report.proved
    assert 1.9 < report.epsilon <= 2
    assert "It was made up." in report.statement()
    lines = {level.what for level in noise_levels(plan, users=200)}
    assert lines == {"number of users", "made-up local noise", "made-up noise"}
    assert forecast(made_up).cell_error == 1.5
    laws = [
        part["law"] for release in certificate_of(plan)["releases"] for part in release["parts"]
    ]
    assert laws == ["discrete laplace", "pure", "pure", "pure", "pure"]


def test_a_new_method_is_unknown_without_its_record() -> None:
    with pytest.raises(splitmeans.errors.StudyError, match="membership must be"):
        Study(
            name="made up",
            parties=tuple(
                PartySpec(name=name, columns=(Column(name="x", low=0, high=1),)) for name in "ab"
            ),
            n_clusters=3,
            budget=Budget(epsilon=2, delta=1e-5),
            membership="made-up",
        )
