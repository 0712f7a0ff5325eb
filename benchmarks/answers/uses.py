"""What people do with a result: overlap, lookalikes, a list for a campaign, what changed.

Lookalikes: a hidden group is one of eight k-means clusters of the pooled columns. Half of it, or 20
of its members, are the seed that a party has; the others are to be found among all its users.
Beside the lift stands a classifier that tells seeds from others, once by the party's own columns,
which needs no partner, and once by all columns, which nobody has in practice. Drift: a second run
on nine of ten of the rows, and one where two of three users of a segment are gone besides, each
with noise of its own.
"""

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from typer.testing import CliRunner

from benchmarks.answers.questions import Figure, timed
from benchmarks.answers.whole_runs import Pooled, Scene, features, party_name, run
from splitmeans import cli
from splitmeans._types import FloatArray
from splitmeans.errors import DataError
from splitmeans.insights.drift import Change

_GROUPS, _TRIED, _FEW = 8, 3, 20
_AT_LEAST = 0.5
_STAY = 1 / 3
# A change of a segment's share by less than this is nothing that anybody looks for.
_REAL = 0.02


@dataclass(frozen=True, kw_only=True)
class Lookalikes:
    """How well hidden members of a group rank: areas under the curve, 0.5 by chance.

    `few` says whether the seed is 20 members instead of half of them.
    """

    few: bool
    lift: float
    own_columns: float
    all_columns: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class List:
    """A list for a campaign: users, and the share of them that is right, as said and in truth."""

    users: int
    said: float
    true: float
    reach: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Changes of segments' shares between two runs.

    Attributes:
        shifted: Whether people left one of the segments.
        segments: How many segments have an interval of their change.
        right: How many of these intervals hold the true change.
        real: Changes by 2 % of all users or more, in truth.
        found: How many of them are clear: their interval has no zero and is on the right side.
        false: How many intervals are on the wrong side of zero.
        seconds: Processor time of the comparison.
    """

    shifted: bool
    segments: int
    right: int
    real: int
    found: int
    false: int
    seconds: float


def overlaps(scene: Scene) -> Iterator[Figure]:
    """Yield the counts of `result overlap` of a run with partial sets."""
    found, seconds = timed(scene.result.overlap)
    present = scene.present
    names = [party_name(at) for at in range(present.shape[1])]
    for kind, counts in (
        ("overlap: exactly at", found.patterns),
        ("overlap: both", found.pairs),
        ("overlap: at a party", found.parties),
    ):
        for count in counts:
            at = np.array([name in count.parties for name in names])
            exact = kind == "overlap: exactly at"
            here = (present == at).all(axis=1) if exact else present[:, at].all(axis=1)
            yield Figure(
                kind=kind,
                question=", ".join(count.parties),
                value=count.users,
                low=count.low,
                high=count.high,
                truth=float(here.sum()),
                unit=float(present.any(axis=1).sum()),
                seconds=seconds,
            )


def lookalikes(scene: Scene) -> Iterator[Lookalikes]:
    """Yield how hidden members of the largest groups rank at the first party."""
    seed = scene.setting.seed
    rows = features(scene.pooled, scene.pooled.frame)
    places = scene.result.synopsis.scaled_centres(rows)
    groups = KMeans(_GROUPS, n_init=2, random_state=seed).fit_predict(places)
    sizes = np.bincount(groups)
    own = places[:, scene.result.synopsis.columns_of(party_name(0))]
    table = scene.own_table(0)
    rng = np.random.default_rng([seed, 0xD8])
    for group, few in itertools.product(np.argsort(-sizes)[:_TRIED], (False, True)):
        member = groups == group
        chosen = rng.permutation(np.flatnonzero(member))
        is_seed = np.zeros(len(member), dtype=bool)
        is_seed[chosen[: _FEW if few else len(chosen) // 2]] = True
        ranked, seconds = timed(
            scene.result.similar,
            table,
            seed=np.flatnonzero(is_seed).tolist(),
            party=party_name(0),
        )
        others = ~is_seed
        hidden = member[others]
        yield Lookalikes(
            few=few,
            lift=float(roc_auc_score(hidden, ranked["lift"].to_numpy()[others])),
            own_columns=float(roc_auc_score(hidden, _classified(own, is_seed)[others])),
            all_columns=float(roc_auc_score(hidden, _classified(places, is_seed)[others])),
            seconds=seconds,
        )


def _classified(places: FloatArray, is_seed: npt.NDArray[np.bool_]) -> FloatArray:
    """Return how like a seed every row is by a classifier that was not trained on it."""
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    found = cross_val_predict(model, places, is_seed, cv=3, method="predict_proba")
    return np.asarray(found[:, 1])


def campaign(scene: Scene) -> Iterator[List]:
    """Yield what `result audience` writes for the two largest segments, each alone."""
    letters = scene.result.published.letters
    truth = np.array(letters)[scene.segments(scene.pooled.frame)]
    with tempfile.TemporaryDirectory() as place:
        folder, data = Path(place) / "result", Path(place) / "own.parquet"
        scene.result.save(folder)
        scene.own_table(0).to_parquet(data)
        for letter in letters[:2]:
            output = Path(place) / f"{letter}.csv"
            words = ["result", "audience", str(folder), "--party", party_name(0)]
            words += ["--data", str(data), "--segments", letter, "-o", str(output)]
            words += ["--at-least", str(_AT_LEAST)]
            done, seconds = timed(CliRunner().invoke, cli.app, words)
            if done.exit_code:
                raise DataError(f"result audience did not run: {done.exception!r}")
            listed = pd.read_csv(output)
            if len(listed) == 0:
                continue
            right = truth[listed["id"].to_numpy()] == letter
            yield List(
                users=len(listed),
                said=float(listed["probability"].mean()),
                true=float(right.mean()),
                reach=float(right.sum() / max(1, (truth == letter).sum())),
                seconds=seconds,
            )


def drift(scene: Scene) -> Iterator[Changes]:
    """Yield what `result compare` says of a run without and with a shift."""
    setting, k = scene.setting, scene.result.published.k
    rng = np.random.default_rng([setting.seed, 0xE9])
    before = _shares(scene, scene.pooled.frame)
    for shifted in (False, True):
        stays = rng.random(len(scene.pooled.frame)) < 0.9
        if shifted and k > 1:
            leaves = scene.segments(scene.pooled.frame) == int(np.argsort(-before)[1])
            stays &= ~leaves | (rng.random(len(leaves)) < _STAY)
        frame = scene.pooled.frame[stays].reset_index(drop=True)
        pooled = Pooled(frame=frame, columns=scene.pooled.columns, split=scene.pooled.split)
        again = run(setting, pooled, noise=1_000 + setting.seed)
        found, seconds = timed(again.result.compare, scene.result)
        changes = [one.share for one in found.segments]
        truth = _shares(scene, frame) - before
        yield changes_of(changes, truth, shifted=shifted, seconds=seconds)


def _shares(scene: Scene, rows: pd.DataFrame) -> FloatArray:
    found = np.bincount(scene.segments(rows), minlength=scene.result.published.k)
    return np.asarray(found / len(rows))


def changes_of(
    changes: Sequence[Change], truth: FloatArray, *, shifted: bool, seconds: float
) -> Changes:
    """Count how many changes of shares are right, found and false.

    Args:
        changes: As they were told.
        truth: True changes.
        shifted: Whether people left a segment.
        seconds: What it took.
    """
    known = [
        (one, one.low, one.high, float(true))
        for one, true in zip(changes, truth, strict=True)
        if one.low is not None and one.high is not None
    ]
    seen = [one.is_clear and one.change * true > 0 for one, _, _, true in known]
    real = [abs(true) >= _REAL for _, _, _, true in known]
    return Changes(
        shifted=shifted,
        segments=len(known),
        right=sum(low <= true <= high for _, low, high, true in known),
        real=sum(real),
        found=sum(a and b for a, b in zip(real, seen, strict=True)),
        false=sum(one.is_clear and not side for (one, *_), side in zip(known, seen, strict=True)),
        seconds=seconds,
    )
