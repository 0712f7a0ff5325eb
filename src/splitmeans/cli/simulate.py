"""`splitmeans simulate`: a whole study on one machine, to learn what it would give."""

import contextlib
import dataclasses
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from splitmeans.cli.console import (
    Quiet,
    check_file,
    err,
    new_table,
    out,
    print_table,
    print_text,
)
from splitmeans.cli.data_options import ALLOW_CLIPPING
from splitmeans.errors import ParameterError
from splitmeans.study import Study

if TYPE_CHECKING:
    from splitmeans.result.previous import Previous
    from splitmeans.simulate.yardsticks import Yardsticks
    from splitmeans.table.prepare import PartyTable

app = typer.Typer(add_completion=False)

_ONLY_HERE = (
    "only a simulation can say the following: it has all rows in one place. Do not publish it: "
    "none of it is private"
)


@app.command()
def simulate(
    study: Path = typer.Argument(help="The study file."),
    data: list[str] = typer.Option(
        ...,
        "--data",
        help="A party's table, as NAME=SOURCE; once for each party, and of a series as often as "
        "it is to be run, in that order.",
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for the result."),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Seeds the starts of k-means; never the privacy noise."
    ),
    json: Path | None = typer.Option(
        None, "--json", help="Also write the figures that only a simulation can say."
    ),
    allow_clipping: bool = ALLOW_CLIPPING,
    quiet: Quiet = False,
) -> None:
    """Run a whole study here, with the tables of all parties, and measure what it gives.

    The protocol and its noise are the real ones; nothing is sent, and no ledger is charged. The
    result folder says that it is of a simulation.

    Of a series each run has a folder of its own in that of -o: 1, 2 and so on.

    Example: splitmeans simulate study.toml --data bank=bank.parquet --data shop=shop.csv -o result
    """
    from splitmeans import protocol
    from splitmeans.result.of_run import fields_of_run
    from splitmeans.result.previous import previous_of
    from splitmeans.result.result import Result
    from splitmeans.result.write import check_place, write_folder
    from splitmeans.simulate.blocks import on_grid
    from splitmeans.simulate.yardsticks import measure

    check_file(json)
    if json is not None and output.resolve() in json.resolve().parents:
        raise ParameterError(
            f"--json {json} must not be in the result folder {output}: its figures are not "
            "private, and result folders are passed on; name a file elsewhere"
        )
    read = Study.read(study).without_keys()
    runs = _sources(read, data)
    folders = (
        [output] if read.renewal is None else [output / str(at + 1) for at in range(len(runs))]
    )
    for folder in folders:
        check_place(folder)
    rng, previous, figures = np.random.default_rng(seed), None, []
    for folder, sources in zip(folders, runs, strict=True):
        with contextlib.ExitStack() as opened:
            tables = [
                _table(read, name, sources[name], opened, allow_clipping=allow_clipping)
                for name in read.party_names
            ]
            err.print(f"running the study{_which(read, previous)}", markup=False)
            done = protocol.run(read, tables, rng=rng, previous=previous)
            result = Result(**fields_of_run(done.plan, done.privacy, done.server.published))
            write_folder(folder, result)
            if result.remark is not None:
                print_text(out, f"note: {result.remark}")
            if len(result.published_sizes):
                err.print("measuring it on the rows", markup=False)
                settled = on_grid(done.plan, tables)
                found = measure(settled, done.server.synopsis, done.server.clustering)
                _print(found)
                figures.append(dataclasses.asdict(found) | {"ratio": found.ratio})
        out.print(
            f"result in {folder}, marked as a simulation: `splitmeans result show {folder}`, "
            f"`splitmeans report {folder}`",
            markup=False,
            soft_wrap=True,
        )
        previous = None if read.renewal is None else previous_of(result, read)
    if json is not None and figures:
        values = figures[0] if read.renewal is None else {"runs": figures}
        json.write_text(json_format.dumps(values, indent=1) + "\n", encoding="utf-8")


def _which(study: Study, previous: "Previous | None") -> str:
    if study.renewal is None:
        return ""
    number = 1 if previous is None else previous.number + 1
    return f": run {number} of {study.renewal.runs}"


def _sources(study: Study, data: list[str]) -> list[dict[str, str]]:
    """Return the source of every party's table, for each run."""
    found: dict[str, list[str]] = {}
    for entry in data:
        name, equals, source = entry.partition("=")
        if not equals or not source:
            raise ParameterError(f"--data must be NAME=SOURCE, as bank=bank.csv, got {entry!r}")
        study.party(name)
        if name in found and study.renewal is None:
            raise ParameterError(f"--data must name each party once, got {name!r} twice")
        found.setdefault(name, []).append(source)
    missing = [name for name in study.party_names if name not in found]
    if missing:
        raise ParameterError(
            f"--data is missing for {', '.join(missing)}: a simulation needs the tables of all "
            f"parties; add --data {missing[0]}=SOURCE"
        )
    counts = {name: len(own) for name, own in found.items()}
    if len(set(counts.values())) > 1 or max(counts.values()) > study.n_runs:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ParameterError(
            "--data must name every party equally often, once for each run, and at most "
            f"{study.n_runs} times, got {listed}"
        )
    names, runs = list(found), zip(*found.values(), strict=True)
    return [dict(zip(names, sources, strict=True)) for sources in runs]


def _table(
    study: Study,
    name: str,
    source: str,
    opened: contextlib.ExitStack,
    *,
    allow_clipping: bool,
) -> "PartyTable":
    from splitmeans.table.options import SourceOptions
    from splitmeans.table.prepare import PartyTable
    from splitmeans.table.sources.open import open_source

    err.print(f"reading and checking the data of {name}", markup=False)
    options = SourceOptions(rules=study.id_rules, allow_clipping=allow_clipping)
    table = opened.enter_context(open_source(study.party(name), source, options=options))
    if not isinstance(table, PartyTable):
        raise ParameterError(
            f"the table of {name} is too long to be held in memory beside the others, which a "
            "simulation needs; take a sample of users, the same ids at every party"
        )
    return table


def _print(found: "Yardsticks") -> None:
    print_text(out, _ONLY_HERE)
    print_text(
        out,
        f"loss {found.loss:.4g} on {found.users:,} users; pooling everything without privacy gives "
        f"{found.pooled_loss:.4g} (ratio {found.ratio:.3f}, 1 is perfect)",
    )
    table = new_table("parts of all differences between users, and of users")
    table.add_column("")
    for name in ("explained", "placed right", "labels right"):
        table.add_column(name, justify="right")
    table.add_row("pooled, no privacy", f"{found.pooled_explained:.0%}", "", "")
    table.add_row("this study", f"{found.explained:.0%}", "", "")
    for one in found.parties:
        table.add_row(
            f"{one.party} alone",
            f"{one.alone_explains:.0%}",
            f"{one.alone_right:.0%}",
            f"{one.labels_right:.0%}",
        )
    print_table(table)
    print_text(
        out,
        "explained: by as many segments. placed right: users whom segments from this party's "
        "columns alone put into the right common one. labels right: users whose likeliest segment, "
        "from this party's columns and the published grid, is theirs",
    )
