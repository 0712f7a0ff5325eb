"""`splitmeans plan`: what a study will give, before any data is touched."""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.plan_text import print_plan
from splitmeans.errors import ParameterError
from splitmeans.forecasting.forecast import SWEEP, EpsilonNeeded, forecast
from splitmeans.forecasting.loss_model import STRUCTURES
from splitmeans.plan.facts import certificate_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.study import Study

app = typer.Typer(add_completion=False)


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    users: Annotated[
        int | None,
        typer.Option(help="Users that all parties share; without it the study's number of users."),
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
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="Write the whole numbers of every release and epsilon with two sides, as JSON."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Expected errors, message sizes and noise of a study, before any data is touched.

    The loss ratio is the loss over that of k-means on the pooled tables without privacy: 1.05 means
    that the mean squared distance of users to their segment's centre is 5 per cent more. If an
    epsilon is asked for and none is enough, the plan is printed all the same; exit code 2.

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
    if certificate is not None:
        _write_certificate(make_plan(found.study), certificate)
    # Without a forecast of the loss there is nothing to search.
    needed = None if wanted is None or found.loss is None else found.epsilon_for(wanted)
    if json:
        mapping = found.to_mapping(epsilons)
        if wanted is not None:
            mapping["needed"] = None if needed is None else needed.pessimistic
            mapping["epsilon_needed"] = None if needed is None else _needed_mapping(needed)
        typer.echo(json_format.dumps(mapping, indent=1))
    else:
        print_plan(found, epsilons, needed=needed)
    # Only now: what could be said has been said.
    if wanted is not None and needed is None:
        raise ParameterError(f"no epsilon can be found: {found.loss_refusal}")
    if needed is not None and needed.refusal is not None:
        raise ParameterError(needed.refusal)


def _write_certificate(plan: Plan, path: Path) -> None:
    text = json_format.dumps(certificate_of(plan), indent=1, allow_nan=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        raise ParameterError(
            f"--certificate {path}: cannot be written ({problem.strerror})"
        ) from problem


def _needed_mapping(needed: EpsilonNeeded) -> dict[str, Any]:
    return {
        "loss_ratio": needed.ratio,
        "typical": needed.typical,
        "pessimistic": needed.pessimistic,
        "best_reachable": {"typical": needed.best.typical, "pessimistic": needed.best.high},
    }


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
