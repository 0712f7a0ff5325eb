"""Studies whose runs have, together, every release with noise there is; and their tables."""

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Column, DecoyOptions, DetailOptions, PartySpec, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.prepare import PartyTable, prepare_table
from tests.scene import make_study, make_tables, numbers


def detailed() -> Study:
    """Shapes within clusters with tables of pairs, and tables of columns of two parties."""
    kind = Column(name="z", categories=("a", "b", "c"))
    return make_study(
        # Of three columns pairs have the noise of columns by chance, of two another one.
        parties=(
            PartySpec(name="org0", columns=(*numbers("x", "y"), kind)),
            PartySpec(name="org1", columns=numbers("x", "y")),
        ),
        budget=Budget(epsilon=4, delta=1e-6),
        expected_users=100_000,
        detail=DetailOptions(),
    )


def learning() -> Study:
    """The number of users, bounds and categories are learned before."""
    income = Column(name="income", bounds="private", low=0)
    job = Column(name="job", categories="open", missing="spread")
    return make_study(
        parties=(
            PartySpec(name="bank", columns=(income, job)),
            PartySpec(name="shop", columns=numbers("visits")),
        ),
        n_local_clusters="auto",
        expected_users=2000,
    )


def counting() -> Study:
    """Counts alone: who is at which parties."""
    return Study(
        name="counts",
        parties=tuple(PartySpec(name=f"org{number}", columns=()) for number in range(3)),
        n_clusters=1,
        budget=Budget(epsilon=1, delta=1e-6),
        ids=AS_IS,
    )


# A bound towards fellow parties gives the server's noise another scale than the decoys'.
BOUNDED = Budget(epsilon=4, delta=1e-6, party_epsilon=2)
STUDIES: dict[str, Callable[[], Study]] = {
    "detail and tables of columns": detailed,
    "the same with a bound towards parties": lambda: replace(detailed(), budget=BOUNDED),
    "values learned before": learning,
    "counts alone": counting,
    "presence and pairs": lambda: make_study(n_parties=3),
    "presence with a bound": lambda: make_study(n_parties=3, budget=BOUNDED),
    "pairs of three": lambda: make_study(n_parties=3, grid="pairs"),
    "against collusion": lambda: make_study(decoy=DecoyOptions(collusion_epsilon=3)),
    "registers": lambda: make_study("sketch"),
}


def tables_of(study: Study) -> list[PartyTable]:
    if study.name == "counts":
        return [prepare_table(party, {"id": np.arange(300)}) for party in study.parties]
    if study.party_names == ("bank", "shop"):
        rng = np.random.default_rng(3)
        n = 2000
        bank = {"id": np.arange(n), "income": rng.lognormal(8, 1, n), "job": ["a", "b"] * (n // 2)}
        shop = {"id": np.arange(n), "visits": rng.uniform(0, 100, n)}
        data = (bank, shop)
        return [prepare_table(party, own) for party, own in zip(study.parties, data, strict=True)]
    if study.detail is not None:
        rng = np.random.default_rng(4)
        n = 2000
        made = []
        for party in study.parties:
            columns = {"z": rng.choice(["a", "b", "c"], n)}
            columns |= {name: rng.uniform(0, 100, n) for name in ("x", "y")}
            own = {column.name: columns[column.name] for column in party.columns}
            made.append(prepare_table(party, {"id": np.arange(n), **own}))
        return made
    return make_tables(study)


@functools.cache
def plan_of(name: str) -> Plan:
    """The plan of a study before anything is learned."""
    return make_plan(STUDIES[name]())
