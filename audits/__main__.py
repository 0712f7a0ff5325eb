"""`python -m audits`: claimed and measured privacy side by side, and twins that must fail."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from audits.case import Outcome
from audits.published_gap import (
    CLAIMED_DELTA,
    CLAIMED_EPSILON,
    SharedKeys,
    coincidence,
    table_cases,
    true_cost,
)
from audits.report import choose_cases, gap_mapping, rows, run_audit
from splitmeans.cli import run_app
from splitmeans.cli.console import Quiet, alarm, check_file, err, new_table, out, print_table
from splitmeans.privacy.noise import InsecureSeededNoise, NoiseSource, SecureNoise

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    long: Annotated[
        bool, typer.Option("--long", help="More trials and the system's noise; takes minutes.")
    ] = False,
    gap: Annotated[
        bool,
        typer.Option("--gap", help="Instead: what the published sketch really costs, calculated."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Run this line; may be given several times.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence of all lower bounds together.")
    ] = 0.999,
    seed: Annotated[int, typer.Option(help="Seed of the test noise of the quick form.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the results here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run every part on neighbouring inputs and bound its privacy parameter from below.

    A part must stay under its claim, and with half its noise, or broken otherwise, it must be
    caught; otherwise the exit code is 1.

    Example: python -m audits --json audit.json
    """
    check_file(json_file)
    if gap:
        _write(json_file, _gap())
        return
    noise: NoiseSource = SecureNoise() if long else InsecureSeededNoise(seed)
    err.print("preparing the parts and their claims", markup=False)
    cases = choose_cases(only or (), long=long)
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("lines", total=len(cases))
        report = run_audit(
            cases,
            noise=noise,
            confidence=confidence,
            long=long,
            on_outcome=lambda _: progress.advance(task),
        )
    parts = [outcome for outcome in report.outcomes if outcome.sound is not None]
    twins = [outcome for outcome in report.outcomes if outcome.sound is None]
    if parts:
        _print(
            "Parts: the bound must stay under the claim, and with half the noise exceed it",
            ("part", "claim", "bound", "half noise", "half is", "trials", "seconds"),
            parts,
        )
    if twins:
        _print(
            "Other broken twins: the bound must exceed the claim",
            ("twin", "claim", "bound", "twin is", "trials", "seconds"),
            twins,
        )
    out.print(
        f"lower bounds, all together with confidence {confidence:g}; seconds of processor time\n"
        "mu, curve: the part claims a loss curve, read in mu at the test's false alarms",
        markup=False,
    )
    _write(json_file, report.to_mapping())
    if not report.passed:
        wrong = [outcome.case.name for outcome in report.outcomes if not outcome.as_expected]
        alarm.print(
            f"error: not as it should be: {', '.join(wrong)}", style="bold red", markup=False
        )
        raise typer.Exit(1)


def _print(title: str, headings: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    table = new_table(title)
    for heading in headings:
        left = heading in headings[:2] or heading.endswith(" is")
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    for row in rows(outcomes):
        table.add_row(*row)
    print_table(table)


def _gap() -> dict[str, Any]:
    named = list(table_cases())
    gaps = []
    with Progress(console=err, transient=True) as progress:
        for name, case in progress.track(named, description="cases"):
            gaps.append((name, true_cost(case)))
    claim = f"{CLAIMED_EPSILON:g} at {CLAIMED_DELTA:g}"
    table = new_table(f"Published sketch under shared keys: at least this, claimed {claim}")
    for heading in ("case", "phantoms", "floor", "eps", "delta", "eps reversed", "claim"):
        table.add_column(heading, justify="left" if heading in ("case", "claim") else "right")
    for name, found in gaps:
        table.add_row(
            name,
            str(found.case.sketch.phantoms),
            str(found.case.sketch.floor),
            f"{found.epsilon:.2f}",
            f"{found.delta:.1e}",
            f"{found.reverse_epsilon:.2f}",
            "EXCEEDED" if found.violates else "no excess shown",
        )
    print_table(table)
    events = [
        (gamma, coincidence(SharedKeys(gamma=gamma), least=least))
        for gamma, least in ((1.0, 25), (0.02, 693))
    ]
    for gamma, event in events:
        out.print(
            f"gamma {gamma:g}: some row has both registers equal and >= {event.least} with "
            f"probability {event.with_user:.2e} with the user, {event.without_user:.2e} without; "
            f"with - e x without = {event.excess(1.0):.2e}",
            markup=False,
        )
    return gap_mapping(gaps, events)


def _write(path: Path | None, record: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(record, indent=1))
        err.print(f"wrote {path}", markup=False)


if __name__ == "__main__":
    run_app(app, "python -m audits")
