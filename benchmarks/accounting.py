"""Noise of exact accounting against the paper's, at equal budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.dplsf import DplsfLaw, DplsfPaperLaw
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Column, PartySpec, Study

COLUMNS = 4


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """One quantity that noise or phantoms are added to, under both ways of accounting.

    `ratio` is the paper's level over the tight one: how many times less noise there is.
    """

    n_parties: int
    what: str
    paper: float
    tight: float

    @property
    def ratio(self) -> float:
        """Paper over tight."""
        return self.paper / self.tight


def noise_levels(*, epsilon: float, delta: float, parties: Sequence[int]) -> Iterator[NoiseLevel]:
    """Yield noise levels of the same mechanisms for each number of parties.

    Both sides use the same algorithm (`dplsf` for the centres) and the same total budget; the tight
    side also has the freedom to choose Gaussian noise and phantoms per cell.
    """
    for n in parties:
        paper = _plan(n, "sketch-paper", "paper", epsilon, delta)
        tight = _plan(n, "sketch", "tight", epsilon, delta)
        published, exact = paper.local[0], tight.local[0]
        assert isinstance(published, DplsfPaperLaw)
        assert isinstance(exact, DplsfLaw)
        # A Laplace variable of scale b has the standard deviation b sqrt 2.
        yield NoiseLevel(
            n_parties=n,
            what="standard deviation on a tree count",
            paper=2**0.5 * published.count_scale,
            tight=exact.count_scale / COUNT_UNITS,
        )
        yield NoiseLevel(
            n_parties=n,
            what=f"standard deviation on a leaf sum ({COLUMNS} columns in [-1, 1])",
            paper=2**0.5 * published.sum_scale / published.bounds[0],
            tight=exact.sum_scale / exact.bounds[0],
        )
        assert isinstance(paper.membership, SketchPaperLaw)
        assert isinstance(tight.membership, SketchLaw)
        yield NoiseLevel(
            n_parties=n,
            what="phantoms: per cluster (paper), per cell (tight)",
            paper=paper.membership.phantoms,
            tight=tight.membership.phantoms,
        )


def _plan(n_parties: int, membership: str, accounting: str, epsilon: float, delta: float) -> Plan:
    columns = tuple(Column(name=f"x{j}", low=-1, high=1) for j in range(COLUMNS))
    study = Study(
        name="noise levels",
        parties=tuple(PartySpec(name=f"p{i}", columns=columns) for i in range(n_parties)),
        n_clusters=5,
        n_local_clusters=5,
        budget=Budget(epsilon=epsilon, delta=delta),
        membership=membership,
        accounting=accounting,
        local="dplsf",
        expected_users=10_000,
        allow_unproved=True,
    )
    return make_plan(study)
