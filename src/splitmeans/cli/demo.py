"""`splitmeans demo`: three made-up organisations find segments together, in one process."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table

from splitmeans._types import LabelArray
from splitmeans.cli.console import (
    Quiet,
    check_folder,
    err,
    new_table,
    out,
    print_table,
    print_text,
)
from splitmeans.errors import ParameterError
from splitmeans.figures import number, users

if TYPE_CHECKING:
    from splitmeans.protocol import RunResult
    from splitmeans.result.result import Result
    from splitmeans.wire.envelope import Envelope

_STEPS = {
    "KeyContribution": "parties agree on a secret key that the server does not learn",
    "Confirmation": "parties confirm that they hold the same key and users",
    "StageRelease": "how many users there are is released with noise, and sets the local clusters",
    "PlanConfirmation": "parties confirm the plan that follows from it",
    "PartyRelease": "each party sends its one private message",
    "PublishedResult": "the server publishes the weighted grid and the centres",
}


app = typer.Typer(add_completion=False)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("splitmeans-demo"),
    users: Annotated[int, typer.Option(help="Number of customers.", min=1000)] = 20_000,
    epsilon: Annotated[float, typer.Option(help="Epsilon towards server and readers.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the made-up customers.", min=0)] = 2026,
    quiet: Quiet = False,
) -> None:
    """Show a bank, an insurer and a retailer finding segments of the same customers.

    The customers are made up. The protocol is the real one: keys, private local clustering,
    private memberships, and a server that sees only what the parties release.

    Example: splitmeans demo --epsilon 2 --output my-demo
    """
    from splitmeans import protocol
    from splitmeans.plan.settle import make_plan
    from splitmeans.simulate.baselines import central_kmeans
    from splitmeans.simulate.datasets import demo_customers
    from splitmeans.simulate.evaluation import assign_labels, normalised_loss
    from splitmeans.simulate.pooling import pooled_rows
    from splitmeans.study import DEFAULT_DELTA, Budget, Study
    from splitmeans.synopsis.clustering import NOBODY
    from splitmeans.table.prepare import prepare_table

    made_up = demo_customers(users, seed=seed)
    study = Study(
        name="demo",
        parties=made_up.parties,
        n_clusters=5,
        budget=Budget(epsilon=epsilon, delta=DEFAULT_DELTA),
    )
    _check_output(output)
    tables = [
        prepare_table(party, table)
        for party, table in zip(made_up.parties, made_up.tables, strict=True)
    ]
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), console=err
    ) as progress:
        planning = progress.add_task("work out the noise that the budget asks for", total=1)
        make_plan(study)
        progress.update(planning, completed=1)
        tasks: dict[str, TaskID] = {}

        def show(envelope: "Envelope", size: int) -> None:
            step = _STEPS.get(envelope.message.TAG)
            if step is not None and step not in tasks:
                tasks[step] = progress.add_task(step, total=1)
                progress.update(tasks[step], completed=1)

        result = protocol.run(study, tables, on_message=show)

    found = result.server.clustering
    if len(found.sizes) == 0:
        _save(output, result, [])
        out.print(NOBODY, markup=False)
        return
    rows, ids = pooled_rows(tables)
    labels = assign_labels(rows, found.scaled_centres)
    loss = normalised_loss(rows, found.scaled_centres)
    central = normalised_loss(rows, central_kmeans(rows, study.n_clusters, random_state=0))
    names = _segment_names(labels, ids, made_up.segments, len(found.sizes))

    print_table(_segment_table(result, names))
    out.print(
        "in brackets: share of a segment's customers that are of the kind it is named after; this "
        "and the next line need all data in one place, which only a demo has"
    )
    out.print(
        f"loss {loss:.3f}; pooling everything without privacy gives {central:.3f} "
        f"(ratio {loss / central:.2f})"
    )
    sent = sum(result.bytes_from(party) for party in study.party_names) / len(study.parties)
    out.print(f"each party sent {sent / 1000:.0f} kB\n")
    saved = _save(output, result, names)
    print_text(out, saved.statement)
    out.print(
        f"\nresult in {output}: look at report.html in a browser, or at the segments with "
        f"`splitmeans result show {output}`",
        markup=False,
        soft_wrap=True,
    )


def _check_output(folder: Path) -> None:
    """Refuse a folder with other things in it: an older result is replaced as a whole."""
    check_folder(folder)
    if any(folder.iterdir()) and not (folder / "result.json").is_file():
        raise ParameterError(f"{folder}: has files that are no result; name an empty or new folder")


def _segment_names(
    labels: LabelArray, ids: pa.Array, truth: pa.Table, n_clusters: int
) -> list[str]:
    """Name each found segment after the hidden group that most of its customers come from."""
    position = pc.index_in(pc.cast(ids, pa.string()), value_set=pc.cast(truth["id"], pa.string()))
    hidden = truth["segment"].take(position).to_numpy(zero_copy_only=False)
    names = []
    for cluster in range(n_clusters):
        inside, counts = np.unique(hidden[labels == cluster], return_counts=True)
        if len(inside) == 0:
            names.append("(nobody)")
            continue
        names.append(f"{inside[counts.argmax()]} ({counts.max() / counts.sum():.0%})")
    return names


def _segment_table(result: "RunResult", names: list[str]) -> Table:
    from splitmeans.synopsis.segments import letter

    clustering = result.server.clustering
    table = new_table("Segments found (centres in the columns' own units)")
    table.add_column("column", overflow="fold")
    for rank, name in enumerate(names):
        table.add_column(f"{letter(rank)}\n{name}", justify="right", overflow="fold")
    table.add_row("size (noisy)", *(users(size) for size in clustering.sizes), end_section=True)
    for column, name in enumerate(result.server.synopsis.feature_names):
        table.add_row(name, *(number(value) for value in clustering.centres[:, column]))
    return table


def _save(output: Path, result: "RunResult", names: list[str]) -> "Result":
    from splitmeans.report.build import build_report
    from splitmeans.report.html import render
    from splitmeans.result.result import Result
    from splitmeans.result.write import write_result
    from splitmeans.synopsis.segments import letter

    # Nothing was sealed or sent between machines, so there is no transcript.
    write_result(
        output,
        result.plan,
        result.server.published,
        run="demo",
        participant="server",
        transcript=(),
        secure_noise=result.secure_noise,
    )
    saved = Result.read(output)
    kinds = {letter(rank): name.split(" (")[0] for rank, name in enumerate(names)}
    page = render(build_report(saved, names=kinds))
    (output / "report.html").write_text(page, encoding="utf-8")
    return saved
