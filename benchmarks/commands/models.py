"""`models`: mixtures, medians and trees from the synopsis beside those of pooled rows."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from benchmarks.models import DATA_SETS, NEED_FILES, TREE_KS, Score, run_models
from splitmeans.cli.console import Quiet

_HEADINGS = ("model", "k", "split, private", "pooled", "k-means instead", "intervals right")


def models(
    data: options.DataNames = "",
    data_dir: options.DataDir = None,
    clusters: options.Counts = "3,5,10",
    eps: options.Epsilon = 1.0,
    seeds: options.Seeds = 3,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Mixtures, k-medians and trees of segments, judged on true rows.

    Example: python -m benchmarks models --data-dir DIR --seeds 3 --json models.json
    """
    there = [name for name in DATA_SETS if data_dir is not None or name not in NEED_FILES]
    names = options.listed("data", data, DATA_SETS) if data else there
    ks = options.numbers("clusters", clusters, int)
    if quick:
        names, ks, seeds = names[:1], ks[:1], 1
    runs = run_models(
        data=names, ks=ks, seeds=seeds, epsilon=eps, data_dir=data_dir, workers=workers
    )
    total = len(names) * seeds
    found = list(itertools.chain(*collected(runs, what="runs", total=total)))
    for name in names:
        part = [one for one in found if one.data == name]
        title = f"{name}, 2 parties, epsilon {eps:g}, {seeds} seeds"
        show(title, _HEADINGS, _lines(part, ks), left=("model",))
    record = {
        "config": {"data": names, "clusters": ks, "epsilon": eps, "seeds": seeds},
        "scores": [asdict(one) for one in found],
    }
    write_json(json_file, record)


def _lines(scores: Sequence[Score], ks: Sequence[int]) -> list[tuple[str, ...]]:
    lines = []
    for model, note, wanted in (
        ("mixture", "log likelihood of a held-out row", ks),
        ("medians", "distance over pooled", ks),
        ("tree", "loss over pooled", TREE_KS),
    ):
        for k in wanted:
            own = [one for one in scores if one.model == model and one.k == k]
            if model == "mixture":
                values = [[one.ours for one in own], [one.pooled for one in own]]
                values.append([one.means for one in own])
            else:
                values = [[one.ours / one.pooled for one in own], [1.0 for _ in own]]
                values.append([one.means / one.pooled for one in own])
            checked = sum(one.intervals for one in own)
            right = f"{sum(one.right for one in own)} of {checked}" if checked else "-"
            texts = [mean_text(column) for column in values]
            lines.append((f"{model}: {note}", str(k), *texts, right))
    return lines
