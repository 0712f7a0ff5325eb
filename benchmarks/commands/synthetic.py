"""`synthetic`: synthetic rows from split columns beside those of methods that see all rows."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from benchmarks.synthetic.contest import Case, Row, Setup, run_contest
from benchmarks.synthetic.page import page_lines
from benchmarks.synthetic.peers import PEERS, PeerOptions
from benchmarks.synthetic.tables import DRAWN, FROM_FILES, TABLES, TUNED_ON
from splitmeans.cli.console import Quiet

_HEADINGS = ("rows from", "one-way", "within", "across", "correlation", "AUC", "seconds")
_MEASURES = ("one_way", "within", "across", "correlation", "auc")

Peers = Annotated[str, typer.Option(help="Methods on pooled rows: mst, aim; none if empty.")]
PeerPython = Annotated[
    Path | None, typer.Option(help="An interpreter that has dpmm; uv makes one otherwise.")
]
Iterations = Annotated[
    int | None, typer.Option(help="Steps of their inference; their default if not given.", min=1)
]
Seconds = Annotated[float, typer.Option(help="After so long one of their fits is given up.")]
Page = Annotated[
    bool, typer.Option("--page", help="Print the table of docs/synthetic.md instead of many.")
]
Rows = Annotated[int, typer.Option(help="Most rows of a table.", min=500)]


def synthetic(
    data: options.DataNames = "",
    data_dir: options.DataDir = None,
    epsilons: options.Epsilons = "1,4",
    parties: options.Counts = "2,3",
    seeds: options.Seeds = 3,
    rows: Rows = 40_000,
    peers: Peers = "mst",
    peer_python: PeerPython = None,
    peer_iterations: Iterations = None,
    peer_seconds: Seconds = 600.0,
    page: Page = False,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Synthetic rows: marginals, correlations, and a classifier tested on real rows.

    Example: python -m benchmarks synthetic --data census-like --peers mst,aim --json rows.json
    """
    there = DRAWN if data_dir is None else (*DRAWN, *FROM_FILES)
    names = options.listed("data", data, TABLES) if data else list(there)
    numbers = options.numbers("parties", parties, int)
    budgets = options.numbers("epsilons", epsilons, float)
    if quick:
        names, numbers, budgets, seeds = names[:1], numbers[:1], budgets[:1], 1
    setup = Setup(
        n=rows,
        data_dir=data_dir,
        peers=tuple(options.listed("peers", peers, PEERS)) if peers else (),
        peer_options=PeerOptions(
            python=peer_python, iterations=peer_iterations, seconds=peer_seconds
        ),
    )
    cases = [
        Case(data=name, n_parties=number, epsilon=epsilon, seed=seed)
        for name, number, epsilon, seed in itertools.product(names, numbers, budgets, range(seeds))
    ]
    runs = run_contest(cases, setup, workers=workers)
    found = list(itertools.chain(*collected(runs, what="runs", total=len(cases))))
    if page:
        typer.echo("\n".join(page_lines(found)))
    for name, number, epsilon in () if page else itertools.product(names, numbers, budgets):
        part = [
            row
            for row in found
            if (row.case.data, row.case.n_parties, row.case.epsilon) == (name, number, epsilon)
        ]
        kept = "" if name in TUNED_ON else ", not tuned on"
        title = f"{name}{kept}, {number} parties, epsilon {epsilon:g}, {seeds} seeds"
        show(title, _HEADINGS, _lines(part), left=("rows from",))
    record = {
        "config": {
            "data": names,
            "parties": numbers,
            "epsilons": budgets,
            "seeds": seeds,
            "rows": rows,
            "peers": setup.peers,
            "peer_iterations": peer_iterations,
            "peer_seconds": peer_seconds,
        },
        "runs": [asdict(row) for row in found],
    }
    write_json(json_file, record)


def _lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    lines = []
    for contender in dict.fromkeys(row.contender for row in rows):
        own = [row for row in rows if row.contender == contender]
        done = [row.measures for row in own if row.measures is not None]
        values = [mean_text([one[name] for one in done]) for name in _MEASURES]
        seconds = mean_text([row.processor_seconds for row in own], digits=1)
        lines.append((contender, *values, seconds))
    return lines
