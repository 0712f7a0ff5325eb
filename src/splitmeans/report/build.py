"""From a result to the data of its report."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans._version import __version__
from splitmeans.insights.drift import drift
from splitmeans.insights.own_labels import own_labels
from splitmeans.insights.partners import partners
from splitmeans.insights.two_columns import two_columns
from splitmeans.insights.why import reasons
from splitmeans.intervals.sizes import SizeIntervals
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.report.data import ColumnInfo, MapInfo, ReportData, SegmentationInfo, SegmentInfo
from splitmeans.report.facts import run_facts
from splitmeans.report.projection import Plane, fit_plane
from splitmeans.result.intervals import intervals_of, plan_of
from splitmeans.result.names import checked_names
from splitmeans.result.result import Result, Segmentation
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.choose_k import ChooseK
from splitmeans.synopsis.synopsis import Synopsis

DEFAULT_KS = range(2, 13)

# Of cells the largest are drawn; of pseudo-users, who are about equal, some that stand for all.
_MAP_CELLS, _MAP_USERS = 250, 400
_AXIS_COLUMNS = 3
# A column that is less than this share of an axis does not explain it.
_AXIS_LOADING = 0.2


def build_report(
    result: Result,
    *,
    ks: Iterable[int] = DEFAULT_KS,
    names: Mapping[str, str] | None = None,
    title: str | None = None,
    compared_with: Result | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> ReportData:
    """Work out everything that the report shows; costs no privacy.

    Args:
        result: The result of a run.
        ks: Numbers of segments to offer; those beyond the number of different places with users
            are left out, and the published one is always there.
        names: Names of published segments, by letter, beside those that the result has.
        title: What the page is called; made from the parties' names by default.
        compared_with: An earlier result over the same columns: the page says what changed.
        progress: Told what is being worked out.
    """
    synopsis = result.synopsis
    if synopsis.total <= 0 or result.study.counts_only:
        return _nobody(result, title=title, compared_with=compared_with)
    names = checked_names({**result.names, **(names or {})}, result.published.letters)
    wanted = sorted({*(k for k in ks if k <= result.most_segments), result.published.k})
    found = []
    for k in wanted:
        progress(f"{k} segments")
        item = result.segments(k)
        if item.k == k:  # noise may leave a place that no segment takes
            found.append(item)
    wanted = [item.k for item in found]
    progress("how well each number of segments fits")
    curve = result.compare_k(wanted)
    progress("how far the sizes may be off, what each party adds")
    intervals = intervals_of(result, found)
    progress("which columns of different parties go together")
    together = two_columns(synopsis)
    plane = fit_plane(synopsis.seen(synopsis.scaled_nodes), synopsis.weights)
    shown, users = _shown(synopsis)
    columns = _columns(synopsis)
    segmentations = tuple(
        _segmentation(
            item,
            curve,
            synopsis=synopsis,
            plane=plane,
            shown=shown,
            intervals=intervals.found[at],
            names=names if item.published else {},
        )
        for at, item in enumerate(found)
    )
    return ReportData(
        **_about(result, title=title, compared_with=compared_with),
        users_interval=intervals.users,
        columns=columns,
        columns_left_out=0,
        segmentations=segmentations,
        suggested_k=curve.suggested,
        map=_map(synopsis, plane, shown, users),
        uncertainty=intervals.words,
        partners=partners(synopsis, result.published),
        own_labels=own_labels(synopsis, result.published),
        two_columns=together,
    )


def _about(result: Result, *, title: str | None, compared_with: Result | None) -> dict[str, Any]:
    """Return what does not depend on the segments."""
    synopsis = result.synopsis
    counted = len(result.presence) and plan_of(result) is not None
    what = "Shared users of" if result.study.counts_only else "Segments across"
    return {
        "title": title or f"{what} {_listed(synopsis.party_names)}",
        "origin": result.origin,
        "remark": result.remark,
        "asked": result.study.n_clusters,
        "parties": synopsis.party_names,
        "users": synopsis.total,
        "n_columns": synopsis.n_columns,
        "overlap": result.overlap() if counted else None,
        "drift": None if compared_with is None else drift(compared_with, result),
        # The page lists no columns, of which there may be thousands.
        "privacy": dataclasses.replace(result.privacy, columns=(), extra=None),
        "statement": result.statement,
        "facts": run_facts(result),
        "version": __version__,
    }


def _nobody(result: Result, *, title: str | None, compared_with: Result | None) -> ReportData:
    """Return the report of a run without segments: counts alone, or nobody was counted."""
    none: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    return ReportData(
        **_about(result, title=title, compared_with=compared_with),
        users_interval=None,
        columns=(),
        columns_left_out=0,
        segmentations=(),
        suggested_k=0,
        map=MapInfo(
            x=(),
            y=(),
            users=(),
            users_shown=0.0,
            pseudo_users=False,
            explained=(0.0, 0.0),
            towards=(none, none),
        ),
        uncertainty="",
        partners=None,
        own_labels=(),
        two_columns=None,
    )


def _shown(synopsis: Synopsis) -> tuple[IntArray, FloatArray]:
    """Return which nodes the map shows, and how many users each stands for."""
    weights = synopsis.weights
    if synopsis.has_places:
        # The seed only makes two reports of one result alike.
        drawn = draw_evenly(weights, _MAP_USERS, rng=np.random.default_rng(0))
        return drawn, np.full(_MAP_USERS, synopsis.total / _MAP_USERS)
    order = np.argsort(-weights, kind="stable")[:_MAP_CELLS].astype(np.int64)
    largest = np.asarray(order[weights[order] > 0])
    return largest, weights[largest]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def _columns(synopsis: Synopsis) -> tuple[ColumnInfo, ...]:
    features = tuple(feature for group in synopsis.features for feature in group)
    means, spreads = _moments(synopsis)
    own_means = to_own_units(features, means)
    places = [
        (party, name, category)
        for position, party in enumerate(synopsis.party_names)
        for name, category in _names(synopsis, position)
    ]
    return tuple(
        ColumnInfo(
            party=party,
            name=name,
            category=category,
            low=feature.low,
            high=feature.high,
            mean=float(mean),
            spread=float(spread) / feature.weight * (feature.high / 2 - feature.low / 2),
        )
        for (party, name, category), feature, mean, spread in zip(
            places, features, own_means, spreads, strict=True
        )
    )


def _moments(synopsis: Synopsis) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation over the weighted nodes, in distance units."""
    shares = synopsis.weights / synopsis.total
    means = shares @ synopsis.scaled_nodes
    return means, np.sqrt(shares @ np.square(synopsis.scaled_nodes - means))


def _names(synopsis: Synopsis, position: int) -> list[tuple[str, str | None]]:
    """Return column and category of each feature of a party."""
    if synopsis.columns is None:
        return [(feature.name, None) for feature in synopsis.features[position]]
    names: list[tuple[str, str | None]] = []
    for column in synopsis.columns[position]:
        names += [(column.name, category) for category in column.levels or (None,)]
    return names


def _segmentation(
    item: Segmentation,
    curve: ChooseK,
    *,
    synopsis: Synopsis,
    plane: Plane,
    shown: IntArray,
    intervals: SizeIntervals | None,
    names: Mapping[str, str],
) -> SegmentationInfo:
    means, spreads = _moments(synopsis)
    # A column that is the same everywhere differs nowhere.
    same = spreads < 1e-9
    differences = np.where(same, 0.0, (item.scaled_centres - means) / np.where(same, 1.0, spreads))
    places = plane.place(synopsis.seen(item.scaled_centres))
    telling = reasons(synopsis, item)
    segments = tuple(
        SegmentInfo(
            letter=item.letters[at],
            name=names.get(item.letters[at]),
            size=float(item.sizes[at]),
            share=float(item.sizes[at]) / synopsis.total,
            interval=None
            if intervals is None
            else (float(intervals.low[at]), float(intervals.high[at])),
            centre=tuple(item.centres[at].tolist()),
            difference=tuple(differences[at].tolist()),
            standing_out=tuple(reason.feature for reason in telling[at]),
            x=float(places[at, 0]),
            y=float(places[at, 1]),
        )
        for at in range(item.k)
    )
    position = curve.ks.index(item.k)
    return SegmentationInfo(
        k=item.k,
        published=item.published,
        loss=curve.losses[position],
        silhouette=curve.silhouettes[position],
        segments=segments,
        of_node=tuple(item.of_node[shown].tolist()),
    )


def _map(synopsis: Synopsis, plane: Plane, shown: IntArray, users: FloatArray) -> MapInfo:
    places = plane.place(synopsis.seen(synopsis.scaled_nodes[shown]))
    towards = []
    for axis in plane.axes:
        order = np.argsort(-np.abs(axis), kind="stable")[: 2 * _AXIS_COLUMNS]
        strong = [int(at) for at in order if abs(axis[at]) >= _AXIS_LOADING]
        grows = tuple(at for at in strong if axis[at] > 0)[:_AXIS_COLUMNS]
        falls = tuple(at for at in strong if axis[at] < 0)[:_AXIS_COLUMNS]
        towards.append((grows, falls))
    return MapInfo(
        x=tuple(places[:, 0].tolist()),
        y=tuple(places[:, 1].tolist()),
        users=tuple(users.tolist()),
        users_shown=float(users.sum() / synopsis.total),
        pseudo_users=synopsis.has_places,
        explained=(float(plane.explained[0]), float(plane.explained[1])),
        towards=tuple(towards),
    )
