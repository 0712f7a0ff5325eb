"""`partial`: users at some parties only, three parties or more."""

import dataclasses

from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from benchmarks.partial import POPULATIONS, SETTINGS, PartialScore, run_partial
from splitmeans.cli.console import Quiet

_HEADINGS = ("setting", "population", "users", "k'", "ratio", "worst", "total off", "kB", "seconds")
_EPSILON = 1.0


def partial(
    seeds: options.Seeds = 10,
    data_dir: options.DataDir = None,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Loss over central non-private k-means and totals, for users at all parties and for everyone.

    Example: python -m benchmarks partial --data-dir DIR --seeds 10 --json partial.json
    """
    there = [one for one in SETTINGS if data_dir is not None or one.data == "mixed-gaussian"]
    settings = there[:1] if quick else there
    runs = run_partial(settings, epsilon=_EPSILON, seeds=seeds, data_dir=data_dir, workers=workers)
    total = len(settings) * len(POPULATIONS) * seeds
    scores = collected(runs, what="runs", total=total)
    rows = [
        _row([s for s in scores if (s.setting, s.population) == (setting.name, population)])
        for setting in settings
        for population in POPULATIONS
    ]
    title = f"epsilon {_EPSILON:g}, mean over {seeds} seeds; total off: root mean square"
    show(title, _HEADINGS, rows, left=("setting", "population"))
    write_json(json_file, {"scores": list(map(dataclasses.asdict, scores))})


def _row(scores: list[PartialScore]) -> list[str]:
    """Runs that publish no segments for want of users are told by their number."""
    first, found = scores[0], [score for score in scores if score.counted > 0]
    off = [(score.counted / score.users - 1) ** 2 for score in found]
    spread = f"{100 * (sum(off) / len(off)) ** 0.5:.1f} %" if off else "-"
    refused = f" ({len(scores) - len(found)} refused)" if len(found) < len(scores) else ""
    return [
        first.setting,
        first.population,
        mean_text([score.users for score in scores], digits=0),
        str(first.n_local_clusters),
        mean_text([score.loss_ratio for score in found]) + refused,
        f"{max(score.loss_ratio for score in found):.3f}" if found else "-",
        spread,
        mean_text([score.kilobytes for score in scores], digits=0),
        mean_text([score.seconds for score in scores], digits=1),
    ]
