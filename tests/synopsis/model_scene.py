"""Synopses for tests of models: nodes that a test says, with what a study says of the columns."""

import numpy as np

from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS, features_of, features_of_columns
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.synopsis import Synopsis

BANK = PartySpec(name="bank", columns=(Column(name="income", low=-1, high=1),))
SHOP = PartySpec(
    name="shop",
    columns=(
        Column(name="plan", categories=("a", "b", "c")),
        Column(name="visits", low=-1, high=1),
    ),
)


def numbers_synopsis(rows, *, weights=None, columns=None):
    """A synopsis of one party with a node at each row, in units of columns from -1 to 1."""
    if columns is None:
        columns = tuple(Column(name=f"x{at}", low=-1, high=1) for at in range(rows.shape[1]))
    return Synopsis(
        scaled_nodes=np.asarray(rows, dtype=float),
        weights=np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=float),
        party_names=("p",),
        features=(features_of_columns(columns),),
        columns=(columns,),
    )


def mixed_synopsis(rng, n=600):
    """Two parties: half of the users have low incomes and plan a or b, the others plan c."""
    low = np.arange(n) % 2 == 0
    income = np.where(low, -0.5, 0.5) + rng.normal(0, 0.08, n)
    plan = np.where(low, rng.integers(2, size=n), 2)
    visits = np.where(low, 0.2, -0.4) + rng.normal(0, 0.1, n)
    bound = features_of(SHOP)[0].bound
    levels = (2 * np.eye(3)[plan] - 1) * bound
    numbers = np.clip(np.stack([income, visits], axis=1), -1, 1) * GRID_UNITS
    nodes = np.column_stack([numbers[:, 0], levels, numbers[:, 1]])
    ends = np.array([[-GRID_UNITS // 2], [GRID_UNITS // 2]], dtype=np.int64)
    shop = np.array([[bound, -bound, -bound, 0], [-bound, -bound, bound, 0]], dtype=np.int64)
    labels = np.stack([~low, ~low], axis=1).astype(np.int64)
    return build_synopsis_from_points(
        labels, np.ones(n), [ends, shop], [BANK, SHOP], nodes=np.rint(nodes).astype(np.int64)
    )
