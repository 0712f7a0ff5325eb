"""`splitmeans bench plan`: the loss model of `splitmeans plan`, fitted and checked."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from splitmeans._version import __version__
from splitmeans.cli.console import Quiet, check_file, err, new_table, out

if TYPE_CHECKING:
    from splitmeans.bench.forecast import Compared, Measured
    from splitmeans.bench.forecast_tables import TableCase


def plan(
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="Fit the constants anew and write them, with the check, to this file."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each setting.", min=1)] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One table only, for a test.")] = False,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all settings here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Predicted against measured loss ratios, on tables that the model was not fitted to.

    Example: splitmeans bench plan --data-dir DIR --seeds 3 --json plan.json
    """
    from splitmeans.bench import forecast as bench
    from splitmeans.bench.forecast_tables import fitted_tables, held_out_tables

    check_file(json_file)
    check_file(calibrate)
    memberships = ("decoy",) if quick else ("decoy", "sketch")
    epsilons = (0.1, 1.0) if quick else bench.EPSILONS

    def measured(tables: "list[TableCase]", what: str) -> "list[Measured]":
        chosen = list(
            bench.settings(tables, memberships=memberships, seeds=seeds, epsilons=epsilons)
        )
        with Progress(console=err, transient=True) as progress:
            task = progress.add_task(what, total=len(chosen))
            found = []
            for item in bench.measure_all(chosen, data_dir=data_dir, workers=workers):
                found.append(item)
                progress.advance(task)
        return found

    constants = None
    unseen = list(held_out_tables(real=data_dir is not None))
    if calibrate is not None:
        seen = list(fitted_tables())
        fitted = measured([seen[2], seen[10]] if quick else seen, "fitting")
        constants = bench.fit(fitted)
    compared = bench.compare(
        measured(unseen[2:3] if quick else unseen, "checking"), constants=constants
    )
    facts = bench.summary(compared)
    if calibrate is not None and constants is not None:
        command = "splitmeans bench plan --calibrate FILE" + (" --data-dir DIR" if data_dir else "")
        bench.write_model(
            calibrate,
            constants,
            fitted=fitted,
            held_out=facts,
            command=f"{command} --seeds {seeds}",
        )
        err.print(f"wrote {calibrate}", markup=False)
    compared.sort(key=_order)
    table = new_table("ratio of the loss to that without privacy, mean over seeds")
    for heading in ("table", "users", "k", "method", "S", "eps", "k'", "measured", "predicted"):
        table.add_column(heading, justify="left" if heading in ("table", "method") else "right")
    for heading in ("range", "ratio factor", "increase factor", "release, kB", "predicted kB"):
        table.add_column(heading, justify="right")
    for item in compared:
        setting, strain = item.measured.setting, item.measured.strain
        table.add_row(
            setting.table.family,
            f"{item.measured.users:,}",
            str(strain.n_clusters),
            setting.membership,
            str(strain.n_parties),
            f"{setting.epsilon:g}",
            str(strain.n_local_clusters),
            f"{item.measured.ratio:.3f}",
            f"{item.typical:.3f}",
            f"{item.low:.3f}-{item.high:.3f}",
            f"{item.ratio_factor:.3f}",
            f"{item.increase_factor:.2f}",
            f"{item.measured.release_bytes / 1000:.1f}",
            f"{item.measured.predicted_bytes / 1000:.1f}",
        )
    out.print(table)
    out.print()
    out.print(_factors(bench.parts(compared)))
    if json_file is not None:
        record = {
            "splitmeans": __version__,
            "summary": bench.parts(compared),
            "settings": [bench.to_mapping(item) for item in compared],
        }
        json_file.write_text(json.dumps(record, indent=1))


def _factors(parts: dict[str, dict[str, Any]]) -> Table:
    table = new_table("factor between measured and predicted: ratio / increase")
    headings = ("settings", "number", "half of them", "nine of ten", "all", "inside the range")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "settings" else "right")
    for name, facts in parts.items():
        ratio, increase = facts["ratio_factor"], facts["increase_factor"]
        shares = [f"{ratio[share]:.3f} / {increase[share]:.1f}" for share in ratio]
        table.add_row(name, str(facts["settings"]), *shares, f"{facts['share_in_range']:.0%}")
    return table


def _order(item: "Compared") -> tuple[str, int, str, int, float]:
    setting = item.measured.setting
    return (
        setting.table.family,
        item.measured.users,
        setting.membership,
        setting.n_parties,
        setting.epsilon,
    )
