"""Segments as tables on a terminal and as plain values, for all commands that show some."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.table import Table

from splitmeans._types import FloatArray
from splitmeans.cli.console import new_table, out, print_table
from splitmeans.cli.result_options import called
from splitmeans.figures import number, percent, users
from splitmeans.insights.own_labels import own_labels
from splitmeans.insights.partners import partners
from splitmeans.insights.why import reasons
from splitmeans.intervals.sizes import SizeIntervals
from splitmeans.result.result import Result, Segmentation
from splitmeans.study.features import to_own_units

# So many fit a terminal of 80 columns, with a column's name and its mean.
_SEGMENTS_A_TABLE = 7


def say(text: str) -> None:
    """Print a sentence of the answer."""
    out.print(text, markup=False, soft_wrap=True)


def print_segments(
    result: Result, item: Segmentation, intervals: SizeIntervals | None = None
) -> None:
    """Print segments: sizes, and centres by column."""
    if result.remark is not None:
        say(f"note: {result.remark}")
    for start in range(0, item.k, _SEGMENTS_A_TABLE):
        shown = slice(start, start + _SEGMENTS_A_TABLE)
        print_table(_segment_table(result, item, shown, intervals=intervals))


def _segment_table(
    result: Result, item: Segmentation, shown: slice, *, intervals: SizeIntervals | None
) -> Table:
    table = new_table(f"{called(item)} (centres in the columns' own units)")
    table.add_column("column", overflow="fold")
    table.add_column("mean", justify="right", no_wrap=True)
    for letter in item.letters[shown]:
        table.add_column(letter, justify="right", no_wrap=True)
    total = result.synopsis.total
    shares = item.sizes / total if total > 0 else np.zeros(item.k)
    table.add_row("users (noisy)", number(total), *(users(size) for size in item.sizes[shown]))
    if intervals is not None:
        for name, ends, all_users in (
            ("95 % from", intervals.low, intervals.total[0]),
            ("95 % to", intervals.high, intervals.total[1]),
        ):
            table.add_row(name, number(all_users), *(users(end) for end in ends[shown]))
    table.add_row("share", "", *(percent(each, 1) for each in shares[shown]), end_section=True)
    means = _means(result)
    for at, name in enumerate(result.synopsis.feature_names):
        centres = (number(value) for value in item.centres[shown, at])
        table.add_row(name, number(means[at]), *centres)
    return table


def origin_table(result: Result, item: Segmentation) -> Table:
    """Where the users of each segment are among the published ones."""
    published = result.published
    shared = np.zeros((item.k, published.k))
    np.add.at(shared, (item.of_node, published.of_node), result.synopsis.weights)
    shares = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1e-9)
    table = new_table("where its users are among the published segments")
    table.add_column("segment")
    for letter in published.letters:
        table.add_column(letter, justify="right")
    for letter, row in zip(item.letters, shares, strict=True):
        table.add_row(letter, *(percent(share) if share >= 0.005 else "" for share in row))
    return table


def _means(result: Result) -> FloatArray:
    """Return the mean of all users in own units, found in distance units: own ones may be huge."""
    synopsis = result.synopsis
    weights = synopsis.weights if synopsis.total > 0 else np.ones(len(synopsis.weights))
    features = tuple(feature for group in synopsis.features for feature in group)
    return to_own_units(features, weights @ synopsis.scaled_nodes / weights.sum())


def segments_mapping(
    result: Result, item: Segmentation, intervals: SizeIntervals | None = None
) -> dict[str, Any]:
    """Return segments as plain values."""
    names = result.names_for(item)
    ends: list[list[float] | None] = [None] * item.k
    if intervals is not None:
        pairs = zip(intervals.low.tolist(), intervals.high.tolist(), strict=True)
        ends = [[low, high] for low, high in pairs]
    return {
        "study": result.study.name,
        "study_hash": result.study.hash,
        "run": result.facts["run"],
        "result_hash": result.facts["result_hash"],
        "published_at": result.facts["published_at"],
        "written_at": result.facts["written_at"],
        "signed": result.signed,
        "not_signed": ["written_at", *(["name"] if names else [])],
        "remark": result.remark,
        "asked": result.study.n_clusters,
        "k": item.k,
        "published": item.published,
        "loss": item.loss,
        "users": result.synopsis.total,
        "users_interval": None if intervals is None else list(intervals.total),
        "columns": list(result.synopsis.feature_names),
        "means": _means(result).tolist(),
        "segments": [
            {
                "segment": letter,
                "name": names.get(letter),
                "size": float(size),
                "size_interval": interval,
                "centre": centre.tolist(),
            }
            for letter, size, interval, centre in zip(
                item.letters, item.sizes, ends, item.centres, strict=True
            )
        ],
    }


def insight_lines(result: Result, item: Segmentation) -> Iterator[str]:
    """Yield lines of text; none if nobody was counted."""
    if item.k == 0:
        return
    yield "why each segment:"
    for name, telling in zip(
        named_letters(result, item), reasons(result.synopsis, item), strict=True
    ):
        yield f"  {name}: {'; '.join(str(one) for one in telling)}"
    yield "what each party adds:"
    for line in str(partners(result.synopsis, item)).splitlines():
        yield f"  {line}"
    labels = own_labels(result.synopsis, item)
    if labels:
        yield "how well each party can label its users (an estimate):"
        for one in labels:
            yield f"  {one}"


def insights_mapping(result: Result, item: Segmentation) -> dict[str, Any]:
    """Return the same as plain values."""
    if item.k == 0:
        return {"why": {}, "partners": None, "own_labels": []}
    telling = reasons(result.synopsis, item)
    return {
        "why": {
            letter: [dataclasses.asdict(one) for one in own]
            for letter, own in zip(item.letters, telling, strict=True)
        },
        "partners": dataclasses.asdict(partners(result.synopsis, item)),
        "own_labels": [dataclasses.asdict(one) for one in own_labels(result.synopsis, item)],
    }


def named_letters(result: Result, item: Segmentation) -> tuple[str, ...]:
    """Return the letters, with the names that people gave."""
    return tuple(
        letter if name == letter else f"{letter} ({name})"
        for letter, name in zip(item.letters, result.called(item), strict=True)
    )
