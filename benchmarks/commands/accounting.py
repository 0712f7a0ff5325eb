"""`accounting`: noise levels of tight accounting against the paper's."""

import dataclasses

from benchmarks.accounting import noise_levels
from benchmarks.commands import options
from benchmarks.commands.output import show, write_json


def accounting(
    eps: options.Epsilon = 1.0,
    delta: options.Delta = 5e-5,
    parties: options.Counts = "2,4,8",
    json_file: options.JsonFile = None,
) -> None:
    """Noise levels of tight accounting against the paper's at the same budget.

    Example: python -m benchmarks accounting --eps 1 --delta 5e-5
    """
    counts = options.numbers("parties", parties, int)
    levels = list(noise_levels(epsilon=eps, delta=delta, parties=counts))
    show(
        f"noise at total epsilon {eps:g}, delta {delta:g}",
        ("S", "quantity", "paper", "tight", "paper / tight"),
        [
            (str(n.n_parties), n.what, f"{n.paper:,.4g}", f"{n.tight:,.4g}", f"{n.ratio:.1f}")
            for n in levels
        ],
        left=("quantity",),
    )
    config = {"epsilon": eps, "delta": delta}
    write_json(json_file, {"config": config, "scores": list(map(dataclasses.asdict, levels))})
