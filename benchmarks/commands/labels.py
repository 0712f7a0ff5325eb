"""`labels`: how far segment probabilities can be trusted."""

from typing import Annotated

import typer

from benchmarks.cases import Setting
from benchmarks.commands import options
from benchmarks.data import DATA_SETS, Recipe
from benchmarks.reliability import measure_labels
from splitmeans.cli.console import out


def labels(
    data: options.Data = "mixed-gaussian",
    eps: options.Epsilon = 1.0,
    parties: Annotated[int, typer.Option(help="Number of parties.", min=2)] = 2,
    std: options.Std = 0.3,
    users: options.Users = 20_000,
    seed: Annotated[int, typer.Option(help="Seed.", min=0)] = 0,
    data_dir: options.DataDir = None,
) -> None:
    """How far a party can trust the segment probabilities it works out from its own columns.

    Example: python -m benchmarks labels --eps 1 --parties 2
    """
    options.listed("data", data, DATA_SETS)
    setting = Setting(
        data=data,
        epsilon=eps,
        n_parties=parties,
        seed=seed,
        recipe=Recipe(n=users, std=std),
        data_dir=data_dir,
    )
    for number, rating in enumerate(measure_labels(setting), start=1):
        out.print(f"party {number}\n{rating}\n", markup=False)
