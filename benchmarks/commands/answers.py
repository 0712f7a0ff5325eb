"""`answers`: questions to results, and what is done with them, against the truth."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from benchmarks.answers.measure import Asked, by_kind, by_run, line, run_all, settings_of
from benchmarks.answers.questions import Figure
from benchmarks.answers.whole_runs import NEED_FILES, NUMBERS, TABLES
from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from splitmeans.cli.console import Quiet

_HEADINGS = ("asked", "figures", "withheld", "right", "error", "half width", "seconds")
_DRAWN_MIXED = ("credit-like",)

Users = Annotated[int, typer.Option(help="Most users of a table.", min=500)]


def answers(
    data: options.DataNames = "",
    data_dir: options.DataDir = None,
    epsilons: options.Epsilons = "1,0.25",
    parties: options.Counts = "2,3,4",
    seeds: options.Seeds = 1,
    users: Users = 12_000,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Ask results of tables that nothing was tuned on, and compare with the pooled rows.

    Example: python -m benchmarks answers --data-dir DIR --seeds 2 --json answers.json
    """
    there = [name for name in NUMBERS if data_dir is not None or name not in NEED_FILES]
    names = options.listed("data", data, TABLES) if data else [*there, *_DRAWN_MIXED]
    numbers = options.numbers("parties", parties, int)
    budgets = options.numbers("epsilons", epsilons, float)
    if quick:
        names, numbers, budgets, seeds = names[:1], numbers[:1], budgets[:1], 1
    settings = settings_of(data=names, parties=numbers, epsilons=budgets, seeds=seeds, users=users)
    runs = run_all(settings, data_dir=data_dir, workers=workers)
    found = collected(runs, what="runs", total=len(settings))
    for title, groups in (
        ("answers against pooled rows: medians, in hundredths of their unit", by_kind(found)),
        ("the same by run", by_run(found)),
    ):
        rows = [_row(name, own) for name, own in groups.items()]
        show(title, _HEADINGS, rows, left=("asked",))
    _show_lookalikes(found, names)
    _show_lists(found)
    _show_changes(found)
    record = {
        "config": {
            "data": names,
            "parties": numbers,
            "epsilons": budgets,
            "seeds": seeds,
            "users": users,
        },
        "lines": {name: asdict(line(own)) for name, own in by_kind(found).items()},
        "runs": [asdict(one) for one in found],
    }
    write_json(json_file, record)


def _row(name: str, figures: Sequence[Figure]) -> tuple[str, ...]:
    own = line(figures)
    return (
        name,
        f"{own.figures:,}",
        f"{own.withheld:,}",
        "-" if own.right is None else f"{own.right:.1%}",
        f"{own.error:.2f}",
        "-" if own.width is None else f"{own.width:.1f}",
        f"{own.seconds:.2f}",
    )


def _show_lookalikes(found: Sequence[Asked], names: Sequence[str]) -> None:
    budgets = dict.fromkeys(one.setting.epsilon for one in found)
    rows = []
    for name, few, epsilon in itertools.product(names, (False, True), budgets):
        own = [
            each
            for one in found
            if (one.setting.data, one.setting.epsilon) == (name, epsilon)
            for each in one.lookalikes
            if each.few == few
        ]
        if own:
            areas = [
                mean_text([getattr(each, field) for each in own])
                for field in ("lift", "own_columns", "all_columns")
            ]
            seconds = mean_text([each.seconds for each in own], digits=2)
            rows.append((name, "20" if few else "half", f"{epsilon:g}", *areas, seconds))
    headings = ("table", "seeds", "epsilon", "lift", "own columns", "pooled columns", "seconds")
    show("hidden members of a group: AUC, 0.5 by chance", headings, rows, left=("table",))


def _show_lists(found: Sequence[Asked]) -> None:
    rows = []
    for epsilon in dict.fromkeys(one.setting.epsilon for one in found):
        own = [each for one in found if one.setting.epsilon == epsilon for each in one.lists]
        if own:
            off = [abs(each.said - each.true) for each in own]
            shares = [
                mean_text([getattr(each, field) for each in own])
                for field in ("said", "true", "reach")
            ]
            rows.append((f"{epsilon:g}", str(len(own)), *shares, f"{np.median(off):.3f}"))
    headings = ("epsilon", "lists", "right, said", "right", "reach", "off, median")
    show("lists of users of a segment, probability 0.5 or more", headings, rows)


def _show_changes(found: Sequence[Asked]) -> None:
    rows = []
    for epsilon in dict.fromkeys(one.setting.epsilon for one in found):
        for shifted in (False, True):
            own = [
                each
                for one in found
                if one.setting.epsilon == epsilon
                for each in one.changes
                if each.shifted == shifted
            ]
            if own:
                total = {
                    field: sum(getattr(each, field) for each in own)
                    for field in ("segments", "right", "real", "found", "false")
                }
                rows.append(
                    (
                        f"{epsilon:g}",
                        "two of three left a segment" if shifted else "none",
                        f"{total['right']} of {total['segments']}",
                        f"{total['found']} of {total['real']}",
                        str(total["false"]),
                    )
                )
    headings = ("epsilon", "change", "intervals right", "real changes found", "false")
    show("what changed between two runs", headings, rows, left=("change",))
