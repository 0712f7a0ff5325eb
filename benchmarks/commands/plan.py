"""`plan`: the loss model of `splitmeans plan`, fitted and checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import forecast
from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.forecast_tables import TableCase, fitted_tables, held_out_tables
from splitmeans.cli.console import Quiet, check_file, err

_HEADINGS = (
    *("table", "users", "k", "method", "S", "eps", "k'", "measured", "predicted", "range"),
    *("ratio factor", "increase factor", "release, kB", "predicted kB"),
)


def plan(
    data_dir: options.DataDir = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="Fit the constants anew and write them, with the check, to this file."),
    ] = None,
    seeds: options.Seeds = 3,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Predicted against measured loss ratios, on tables that the model was not fitted to.

    Example: python -m benchmarks plan --data-dir DIR --seeds 3 --json plan.json
    """
    check_file(calibrate)
    memberships = ("decoy",) if quick else ("decoy", "sketch")
    epsilons = (0.1, 1.0) if quick else forecast.EPSILONS

    def measured(tables: Sequence[TableCase], what: str) -> list[forecast.Measured]:
        chosen = list(
            forecast.settings(tables, memberships=memberships, seeds=seeds, epsilons=epsilons)
        )
        runs = forecast.measure_all(chosen, data_dir=data_dir, workers=workers)
        return collected(runs, what=what, total=len(chosen))

    constants = None
    unseen = list(held_out_tables(real=data_dir is not None))
    if calibrate is not None:
        seen = list(fitted_tables())
        fitted = measured([seen[2], seen[10]] if quick else seen, "fitting")
        constants = forecast.fit(fitted)
    compared = forecast.compare(
        measured(unseen[2:3] if quick else unseen, "checking"), constants=constants
    )
    if calibrate is not None and constants is not None:
        command = "python -m benchmarks plan --calibrate FILE"
        command += (" --data-dir DIR" if data_dir else "") + f" --seeds {seeds}"
        facts = forecast.summary(compared)
        forecast.write_model(calibrate, constants, fitted=fitted, held_out=facts, command=command)
        err.print(f"wrote {calibrate}", markup=False)
    compared.sort(key=forecast.place)
    show(
        "ratio of the loss to that without privacy, mean over seeds",
        _HEADINGS,
        map(_row, compared),
        left=("table", "method"),
    )
    parts = forecast.parts(compared)
    rows = []
    for name, part in parts.items():
        ratio, increase = part["ratio_factor"], part["increase_factor"]
        shares = [f"{ratio[share]:.3f} / {increase[share]:.1f}" for share in ratio]
        rows.append((name, str(part["settings"]), *shares, f"{part['share_in_range']:.0%}"))
    headings = ("settings", "number", "half of them", "nine of ten", "all", "inside the range")
    title = "factor between measured and predicted: ratio / increase"
    show(title, headings, rows, left=("settings",))
    write_json(
        json_file, {"summary": parts, "settings": [forecast.to_mapping(item) for item in compared]}
    )


def _row(item: forecast.Compared) -> tuple[str, ...]:
    measured = item.measured
    return (
        measured.setting.table.family,
        f"{measured.users:,}",
        str(measured.strain.n_clusters),
        measured.setting.membership,
        str(measured.strain.n_parties),
        f"{measured.setting.epsilon:g}",
        str(measured.strain.n_local_clusters),
        f"{measured.ratio:.3f}",
        f"{item.typical:.3f}",
        f"{item.low:.3f}-{item.high:.3f}",
        f"{item.ratio_factor:.3f}",
        f"{item.increase_factor:.2f}",
        f"{measured.release_bytes / 1000:.1f}",
        f"{measured.predicted_bytes / 1000:.1f}",
    )
