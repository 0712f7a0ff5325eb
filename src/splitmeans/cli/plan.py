"""`splitmeans plan`: what a study will give, before any data is touched."""

import json as json_format
import math
from pathlib import Path
from typing import Annotated

import typer

from splitmeans.cli.console import Quiet, new_table, out
from splitmeans.cli.plan_chart import number, ratio, sweep_table
from splitmeans.errors import ParameterError
from splitmeans.forecasting.forecast import SWEEP, EpsilonNeeded, Forecast, forecast
from splitmeans.forecasting.loss_model import STRUCTURES, model
from splitmeans.forecasting.noise import shown_party
from splitmeans.study import Study

app = typer.Typer(add_completion=False)

# What is said behind the loss ratio, by what is known of the data.
_DATA = {
    None: "depending on the data",
    "clear": "for segments with gaps between them",
    "smooth": "for segments without gaps between them",
}


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    users: Annotated[
        int | None, typer.Option(help="Users at each party; without it the study's number.")
    ] = None,
    structure: Annotated[
        str | None,
        typer.Option(help="clear: gaps between segments; smooth: none. Without it, a range."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Find the epsilon for this ratio of losses, as 1.05.")
    ] = None,
    acceptable: Annotated[
        float | None, typer.Option(help="The same as a loss increase in per cent, as 5.")
    ] = None,
    eps: Annotated[
        str | None, typer.Option(help="Values of epsilon to compare, separated by commas.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Noise, expected errors, message sizes and run time of a study, before any data is touched.

    The loss ratio is the loss over that of k-means on the pooled tables without privacy: 1.05 means
    that segments are 5 per cent wider than they could be.

    Examples: splitmeans plan study.toml --users 50000

    splitmeans plan study.toml --acceptable 5
    """
    if structure is not None and structure not in STRUCTURES:
        raise ParameterError(f"--structure must be {' or '.join(STRUCTURES)}, got {structure!r}")
    if users is not None and users < 1:
        raise ParameterError(f"--users must be 1 or more, got {users}")
    wanted = _wanted_ratio(target, acceptable)
    epsilons = _epsilons(eps)
    found = forecast(Study.read(study), users=users, structure=structure)
    needed = None if wanted is None else found.epsilon_for(wanted)
    if json:
        mapping = found.to_mapping(epsilons)
        if needed is not None:
            mapping["epsilon_needed"] = {
                "loss_ratio": needed.ratio,
                "typical": needed.typical,
                "pessimistic": needed.pessimistic,
            }
        typer.echo(json_format.dumps(mapping, indent=1))
        return
    _print(found, epsilons)
    if needed is not None:
        _print_needed(needed)


def _wanted_ratio(target: float | None, acceptable: float | None) -> float | None:
    if target is not None and acceptable is not None:
        raise ParameterError("--target and --acceptable say the same thing: give one of them")
    if target is not None and not target > 1:
        raise ParameterError(f"--target must be above 1 (1.05 is 5 per cent more), got {target}")
    if acceptable is not None and not acceptable > 0:
        raise ParameterError(f"--acceptable must be above 0 per cent, got {acceptable}")
    return target if acceptable is None else 1 + acceptable / 100


def _epsilons(text: str | None) -> tuple[float, ...]:
    if text is None:
        return SWEEP
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"--eps must be numbers separated by commas, got {text!r}") from None
    if not all(0 < value < float("inf") for value in values):
        raise ParameterError(f"--eps must be numbers above 0, got {text!r}")
    return values


def _print(found: Forecast, epsilons: tuple[float, ...]) -> None:
    study = found.study
    budget = study.budget
    _line(
        f"study {study.name!r}: {len(study.parties)} parties, {found.users:,} users, "
        f"{study.n_clusters} segments, {study.membership}, epsilon {budget.epsilon:g}, "
        f"delta {budget.delta:g}, k' = {max(found.plan.n_local_clusters)}"
    )
    out.print()
    table = new_table("noise of every release (standard deviations)")
    for heading in ("party", "release", "on", "noise", "unit"):
        table.add_column(heading, justify="right" if heading == "noise" else "left")
    for level in found.noise:
        party = shown_party(level.party)
        table.add_row(party, level.release, level.what, number(level.deviation), level.unit)
    out.print(table)
    out.print()
    _print_expected(found)
    out.print()
    points = found.sweep(epsilons)
    out.print(sweep_table(points, chosen=budget.epsilon))
    left_out = [
        f"{epsilon:g}" for epsilon in epsilons if epsilon not in {p.epsilon for p in points}
    ]
    if left_out:
        _line(f"left out, because exact accounting refuses it: epsilon {', '.join(left_out)}")
    for note in found.notes:
        _line(f"note: {note}")


def _print_expected(found: Forecast) -> None:
    error = found.cell_error
    if error is None:
        _line("cell error   not known: the method counts no cells")
    else:
        _line(f"cell error   {number(error)} users, one standard deviation of a counted cell")
    loss = found.loss
    if loss is None:
        _line(f"loss ratio   no forecast: {found.loss_refusal}")
    else:
        between = f"from {ratio(loss.low)} to {ratio(loss.high)}"
        _line(f"loss ratio   {ratio(loss.typical)}, {between} {_DATA[loss.structure]}")
        held_out = model()["held_out"]
        often, worst = (
            math.ceil(held_out["ratio_factor"][share] * 100) / 100
            for share in ("nine_in_ten", "all")
        )
        _line(
            f"             (on {held_out['settings']} settings that the model had not seen: within "
            f"a factor {often} in nine of ten, {worst} at worst)"
        )
    sizes = found.sizes
    for party in found.study.party_names:
        _line(
            f"message      {party}: {_bytes(sizes.releases[party])} release, "
            f"{_bytes(sizes.small[party])} else"
        )
    _line(f"             server: result of at most {_bytes(sizes.result)}")
    time = found.run_time
    slowest = max(time.parties.values())
    _line(
        f"run time     about {_duration(slowest)} at the slowest party, {_duration(time.server)} "
        "at the server, waiting and network not included"
    )


def _print_needed(needed: EpsilonNeeded) -> None:
    def shown(epsilon: float | None) -> str:
        return "no epsilon" if epsilon is None else f"epsilon {epsilon:.3g}"

    answer = shown(needed.typical)
    if needed.pessimistic != needed.typical:
        answer += f" typically, {shown(needed.pessimistic)} to be on the safe side"
    out.print()
    _line(f"for a loss ratio of {needed.ratio:g}: {answer}")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _bytes(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{number(size / unit)} {name}"
    return f"{size} bytes"


def _line(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)
