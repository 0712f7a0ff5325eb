"""Every draw of a whole run has the scale that the plan's events name, and no draw is missing.

A recording source stands for the operating system's in `protocol.run`, so participants are the
real ones. Draws are compared by purpose (the labels of `spawn`) with the events of the plan: these
tests cannot fail by chance. `test_released_noise.py` measures that draws are in what is released.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import splitmeans
from splitmeans import protocol
from splitmeans._types import IntArray, WordArray
from splitmeans.plan.plan import Plan
from splitmeans.plan.stages import Stage
from splitmeans.plan.views import party_events
from splitmeans.privacy.events import (
    CountGaussianEvent,
    Event,
    GaussianEvent,
)
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.privacy.pld import flatten
from tests.statistical.noisy_studies import STUDIES, plan_of, tables_of

Scales = list[tuple[str, float]]


class Draw(NamedTuple):
    kind: str
    scale: float
    size: int


@dataclass
class Recorder:
    """Draws from a source and notes law, scale and number of the draws of every purpose."""

    source: InsecureSeededNoise
    path: str = ""
    draws: dict[str, list[Draw]] = field(default_factory=lambda: defaultdict(list))

    @property
    def secure(self) -> bool:
        return False

    def laplace(self, scale: float, size: int) -> IntArray:
        self.draws[self.path].append(Draw("laplace", scale, size))
        return self.source.laplace(scale, size)

    def gaussian(self, scale: float, size: int) -> IntArray:
        self.draws[self.path].append(Draw("gaussian", scale, size))
        return self.source.gaussian(scale, size)

    def words(self, size: int) -> WordArray:
        self.draws[self.path].append(Draw("words", 1, size))
        return self.source.words(size)

    def spawn(self, label: str) -> "Recorder":
        return Recorder(self.source.spawn(label), f"{self.path}/{label}", self.draws)


def scales_of(event: Event) -> Scales:
    """The noise that an event says is added, in the order of its parts."""
    found: Scales = []
    for part in flatten((event,)):
        match part:
            case GaussianEvent(realised=realised):
                assert realised is not None, "a plan's Gaussian releases name their whole numbers"
                found.append(("gaussian", realised.scale))
    return found


def drawn_in_stage(stage: Stage, party: str) -> Scales:
    law = stage.law_of(party)
    scales = scales_of(law.event)
    # The counts of all open columns are one vector, drawn column by column.
    return scales * len(law.columns) if stage.name == "categories" else scales


def expected(plan: Plan) -> dict[str, Scales]:
    """What every purpose draws, from the plan's events; local clustering is checked apart."""
    found: dict[str, Scales] = {}
    for number, stage in enumerate(plan.stages, start=1):
        for party in stage.parties:
            found[f"/party {party}/stage {number}"] = drawn_in_stage(stage, party)
    for place, party in enumerate(plan.study.party_names):
        release = f"/party {party}/release"
        found[f"/party {party}/contribution"] = found[f"/party {party}/user shares"] = [
            ("words", 1)
        ]
        if plan.detail:
            found[f"{release}/detail"] = scales_of(plan.detail[place].event)
        of_method: dict[str, Scales] = {
            "decoy": [("words", 1)] if plan.collusion_laws[place] else [],
        }
        found[f"{release}/membership"] = of_method.get(plan.study.membership, [])
    if plan.study.membership == "decoy":
        server = [("gaussian", plan.law_of(group).server_sigma) for group in plan.groups]
        found["/server/publication"] = server
    if plan.columns is not None:
        own = [("gaussian", plan.columns.law.server_sigma)] * len(plan.columns.tables)
        found["/server/publication/columns"] = own
    return {path: scales for path, scales in found.items() if scales}


def check_local(plan: Plan, place: int, draws: list[Draw]) -> None:
    """Compare a local clustering's draws with its event; some scales are known in a run only."""
    law = plan.local[place]
    got = [(draw.kind, draw.scale) for draw in draws]
    scales = scales_of(law.event)
    first = len(law.survey.event.parts)
    assert got[:first] == scales[:first]
    # Each round draws for all its centres: those of one radius together, at a scale that
    # grows with the radius from the event's, which is that of the smallest.
    rounds = iter(draws[first:])
    width = len(law.bounds) + 1 + law.n_squares
    n_labels = plan.n_labels[place]
    for (kind, least), n in zip(scales[first:], law.round_clusters, strict=True):
        size = 0
        while size < n * width:
            own = next(rounds, None)
            if own is None:
                assert size == n_labels * width, "the last round may have fewer centres"
                break
            assert own.kind == kind
            assert own.scale >= least
            size += own.size
    assert next(rounds, None) is None


@pytest.mark.parametrize("name", STUDIES)
def test_every_draw_of_a_run_has_the_scale_of_its_event(name: str) -> None:
    study = STUDIES[name]()
    noise = Recorder(InsecureSeededNoise(5))
    run = protocol.run(study, tables_of(study), noise=noise, rng=np.random.default_rng(5))
    draws, plan = dict(noise.draws), run.plan
    if not study.counts_only:
        for place, party in enumerate(study.party_names):
            check_local(plan, place, draws.pop(f"/party {party}/release/local"))
    got = {path: [(draw.kind, draw.scale) for draw in own] for path, own in draws.items()}
    assert got == expected(plan)
    if plan.columns is not None:
        sizes = [draw.size for draw in draws["/server/publication/columns"]]
        assert sizes == [table.n_cells for table in plan.columns.tables]


@pytest.mark.parametrize("name", STUDIES)
def test_the_accounting_towards_parties_has_the_servers_scales(name: str) -> None:
    """A fellow party is charged for E at the scale that the run draws."""
    plan = plan_of(name)
    drawn = {scale for path, own in expected(plan).items() if "/server" in path for _, scale in own}
    charged = {
        event.scale
        for view in party_events(plan)
        for event in flatten(view)
        if isinstance(event, CountGaussianEvent)
    }
    if plan.presence is not None and plan.study.user_sets == "equal":
        drawn -= {plan.presence.server_sigma}
    assert charged == drawn


# ---- every place that draws ----

DRAWS = {"laplace", "gaussian", "words", "gaussian_counts", "_count_errors", "randomise"}
SOURCE = Path(splitmeans.__file__).parent
SOURCES = {"privacy/noise.py", "privacy/keyed_noise.py", "privacy/exact_noise.py"}
# Files that draw, and how often: a draw that is added needs a study above whose run has it, and a
# case in `test_released_noise.py`.
PLACES = {
    "local/detail.py": 3,
    "local/guided_lloyd.py": 1,
    "local/law.py": 1,
    "local/survey.py": 4,
    "membership/decoy/direct_labels.py": 1,
    "membership/decoy/estimate.py": 1,
    "party/node.py": 2,
    "party/open_categories.py": 1,
    "party/private_bounds.py": 1,
    "party/stages.py": 1,
    "run/server.py": 1,
}


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", ""))


def test_no_place_draws_that_is_not_listed() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        # The paper's system is no part of the protocol and has tests of its own.
        if name.startswith(("kernels/", "paper/")) or name in SOURCES:
            continue
        number = sum(call in DRAWS for call in calls(path))
        if number:
            found[name] = number
    assert found == PLACES
