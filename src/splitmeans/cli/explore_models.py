"""Other models of a result on the terminal: a table over k, or the tree of segments."""

import json as json_format
from collections.abc import Sequence
from typing import Any

import typer

from splitmeans.cli.console import err, new_table, print_table
from splitmeans.cli.segments_shown import say
from splitmeans.figures import digits, fixed, percent, users
from splitmeans.result.intervals import intervals_of_tree
from splitmeans.result.model_segments import MIXTURE
from splitmeans.result.result import Result
from splitmeans.synopsis.models.medians import Medians
from splitmeans.synopsis.models.mixture import Mixture
from splitmeans.synopsis.models.tree import SegmentTree
from splitmeans.synopsis.models.tree_text import tree_rows


def print_models(read: Result, model: str, ks: Sequence[int], *, json: bool) -> None:
    """Print how well medians or mixtures fit for each k."""
    read.check_segments()
    tried = [k for k in ks if k <= read.most_segments] or list(ks[:1])
    with err.status("fitting"):
        found = [read.segments(k, model=model).model for k in tried]
    if model == MIXTURE:
        _print_mixtures([one for one in found if isinstance(one, Mixture)], json=json)
    else:
        _print_medians([one for one in found if isinstance(one, Medians)], json=json)


def _print_mixtures(found: Sequence[Mixture], *, json: bool) -> None:
    best = min(found, key=lambda one: one.bic)
    if json:
        rows = [
            {
                "k": one.k,
                "covariance": one.covariance,
                "log_likelihood": one.log_likelihood,
                "bic": one.bic,
            }
            for one in found
        ]
        typer.echo(json_format.dumps({"model": MIXTURE, "suggested": best.k, "ks": rows}, indent=1))
        return
    table = new_table("mixtures of how many Gaussians")
    for name in ("k", "log likelihood", "BIC", "covariances"):
        table.add_column(name, justify="right")
    table.add_column("")
    for one in found:
        mark = "suggested" if one is best else ""
        row = (fixed(one.log_likelihood, 3), fixed(one.bic, 0), one.covariance, mark)
        table.add_row(str(one.k), *row)
    print_table(table)
    say("log likelihood: mean of a user, columns scaled to [-1, 1]; BIC: the least is suggested")


def _print_medians(found: Sequence[Medians], *, json: bool) -> None:
    if json:
        rows = [{"k": one.k, "distance": one.loss} for one in found]
        typer.echo(json_format.dumps({"model": "medians", "ks": rows}, indent=1))
        return
    table = new_table("how many segments around medians")
    for name in ("k", "distance"):
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(str(one.k), digits(one.loss, 4))
    print_table(table)
    say("distance: mean over users of the absolute differences to the nearest centre, added up")


def print_tree(read: Result, most: int, *, json: bool) -> None:
    """Print the tree of segments that grows from the published ones."""
    tree = read.tree(most)
    ends, words = intervals_of_tree(read, tree)
    if json:
        typer.echo(json_format.dumps(_tree_mapping(read, tree, ends), indent=1))
        return
    table = new_table(f"tree of segments, grown from the {tree.given} published")
    table.add_column("segment", no_wrap=True)
    table.add_column("users", justify="right", no_wrap=True)
    if ends is not None:
        for heading in ("95 % from", "95 % to"):
            table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("splits at k", justify="right", no_wrap=True)
    table.add_column("unlike its sibling in", overflow="fold")
    for row in tree_rows(tree):
        branch, size = tree.branches[row.branch], tree.sizes[row.branch]
        interval = () if ends is None else (users(ends[0][row.branch]), users(ends[1][row.branch]))
        name = read.names.get(row.name)
        table.add_row(
            f"{row.stem}{row.name}" if name is None else f"{row.stem}{row.name} ({name})",
            users(size),
            *interval,
            percent(size / read.synopsis.total, 1),
            "" if branch.until is None else str(branch.until),
            row.differs,
        )
    print_table(table)
    say(words)


def _tree_mapping(read: Result, tree: SegmentTree, ends: Any) -> dict[str, Any]:
    names = [branch.name for branch in tree.branches]
    sizes, rows = tree.sizes.tolist(), {row.branch: row for row in tree_rows(tree)}
    return {
        "model": "tree",
        "given": tree.given,
        "most": tree.most,
        "losses": {str(k): tree.cut(k).loss for k in range(1, tree.most + 1)},
        "branches": [
            {
                "segment": branch.name,
                "name": read.names.get(branch.name),
                "parent": None if branch.parent is None else names[branch.parent],
                "children": [names[child] for child in branch.children or ()],
                "since": branch.since,
                "until": branch.until,
                "size": sizes[at],
                "size_interval": None if ends is None else [float(end[at]) for end in ends],
                "unlike_sibling": rows[at].differs or None,
                "centre": centre,
            }
            for at, (branch, centre) in enumerate(
                zip(tree.branches, tree.centres.tolist(), strict=True)
            )
        ],
    }
