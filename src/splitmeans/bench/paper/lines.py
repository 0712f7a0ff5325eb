"""The lines that figures have in common, their panels and the values along their axes."""

import itertools

from splitmeans.bench.paper.cell import Cell
from splitmeans.bench.paper.figure import Panel, Series

DATA_NAMES = {
    "mixed-gaussian": "mixed Gaussian",
    "taxi": "taxi",
    "loan": "loan",
    "letter": "letter",
}

CENTRAL = Series(name="central, no privacy", cell={"method": "central"})
VERTICAL = Series(name="split, no privacy", cell={"method": "vertical-plain"})
CENTRAL_DPLSF = Series(name="central DPLSF", cell={"method": "central-dplsf"})
DIFFPRIVLIB = Series(name="central diffprivlib", cell={"method": "central-diffprivlib"})
TWO_PARTY = Series(name="DPFMPS-2PEst", cell={"method": "sketch-paper"})
BASIC = Series(name="DPFMPS-BasicEst", cell={"method": "sketch-paper-basic"})
LDP = Series(name="LDP-AGG-2PEst", cell={"method": "ldp"})
IND = Series(name="IND-LAP", cell={"method": "independent"})
SKETCH = Series(name="sketch (ours)", cell={"method": "sketch"})
DECOY = Series(name="decoy (ours)", cell={"method": "decoy"})

SPLIT_METHODS = (TWO_PARTY, BASIC, LDP, IND, SKETCH, DECOY)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
QUICK_EPSILONS = (0.5, 1.0, 4.0)
EPSILON_GRID = "Epsilon 0.25 to 8 in factors of two (quick: 0.5, 1, 4)."
FROM_HALF = EPSILONS[1:]
FROM_HALF_GRID = "Epsilon 0.5 to 8 in factors of two (quick: 0.5, 1, 4)."


def panels_of(*data: str) -> tuple[Panel, ...]:
    """Two rows: all data sets with two parties, then with four."""
    return tuple(
        Panel(name=f"{DATA_NAMES[name]}, S = {parties}", cell={"data": name, "n_parties": parties})
        for parties, name in itertools.product((2, 4), data)
    )


def is_same_at_two(cell: Cell) -> bool:
    """BasicEst is 2PEst at two parties, so it is run for more only."""
    return cell.method == "sketch-paper-basic" and cell.n_parties == 2


def at_epsilons(*epsilons: float) -> tuple[Series, ...]:
    """Return a line of 2PEst for each epsilon."""
    return tuple(
        Series(name=f"DPFMPS-2PEst, eps {epsilon:g}", cell={**TWO_PARTY.cell, "epsilon": epsilon})
        for epsilon in epsilons
    )


ALL_PANELS = panels_of(*DATA_NAMES)

FIVE = {"n_local_clusters": 5}
PLAIN_CENTRES = Series(name="plain centres + 2PEst", cell={"method": "plain-sketch-paper", **FIVE})
EXACT_WEIGHTS = Series(name="DPLSF + exact weights", cell={"method": "dplsf-exact-weights", **FIVE})
