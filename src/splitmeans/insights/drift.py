"""What changed between two results over the same columns: sizes, shares, where segments went.

Sizes are compared like for like: the segments of the OLD result, by its centres and its distances,
counted in both. Users of a segment are who is nearest to its centre, so a change is a change of the
people, not of where k-means happened to put a centre. Its 95 % interval has both runs' noise: their
half widths are added as squares, because the noises are independent.

Then OLD's and NEW's segments are matched: each OLD centre with the NEW one that makes the sum of
distances least (each once), and the places of OLD's people under NEW's centres say into which NEW
segments an OLD one went, which were split and which came together.

Guarantee: computed from published values of both results, so it costs no privacy.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.intervals.overlap import Count
from splitmeans.intervals.sizes import SizeIntervals, size_intervals
from splitmeans.kmeans.distances import squared_distances
from splitmeans.result.intervals import plan_of
from splitmeans.result.result import Result
from splitmeans.study.features import GRID_UNITS, Feature, to_own_units
from splitmeans.synopsis.segments import assign_nodes
from splitmeans.synopsis.synopsis import Synopsis

# A segment that sends this share of its people to each of two others was split; one that gets more
# than the second share of each of two others is where they came together.
_SPLIT, _MERGED = 0.25, 0.5
# The smallest share of people that is named among where a segment went.
_NAMED = 0.05
WORDS = (
    "The segments of the old result, by its centres, counted in both: users nearest to each centre "
    "then and now. Intervals are 95 % and have the noise of both runs."
)
NO_INTERVALS = "For at least one of the two results sizes have no intervals, so changes have none."


@dataclass(frozen=True, kw_only=True)
class Change:
    """A figure then and now.

    Attributes:
        old: What it was.
        new: What it is.
        low: Lower end of the 95 % interval of the change; None where it is not known.
        high: Upper end.
    """

    old: float
    new: float
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        """New minus old."""
        return self.new - self.old

    @property
    def is_clear(self) -> bool:
        """Whether the interval has no zero in it: noise alone does not explain the change."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


@dataclass(frozen=True, kw_only=True)
class SegmentDrift:
    """One segment of the old result.

    Attributes:
        letter: Its letter there.
        name: A name that people gave it.
        size: Users nearest to its centre.
        share: The same as a part of all users.
        match: The segment of the new result that it is matched with; None if there are fewer.
        moved: How far its centre is from that one's, in spreads of the old result's users (root
            mean square over columns).
        goes_to: New segments that its people's places belong to, with shares, largest first.
    """

    letter: str
    name: str | None
    size: Change
    share: Change
    match: str | None
    moved: float | None
    goes_to: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class ColumnDrift:
    """The mean of a column, or the share of a category, over all users; without an interval.

    `spreads` is the change in standard deviations of the old result's users.
    """

    column: str
    old: float
    new: float
    spreads: float


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What changed between two results.

    Attributes:
        old: Which result is the old one.
        new: Which one is the new one.
        users: All users that the segments are of.
        segments: The old result's segments, in its order.
        unmatched: Segments of the new result that match none of the old.
        split: Old segments whose people are in several new ones now, with those.
        merged: New segments in which several old ones came together, with those.
        columns: Means of all columns, those that moved most first.
        overlap: Users at exactly these parties, then and now; none where a run does not count it.
        words: What the changes are of, and whether they have intervals.
    """

    old: str
    new: str
    users: Change
    segments: tuple[SegmentDrift, ...]
    unmatched: tuple[str, ...]
    split: tuple[tuple[str, tuple[str, ...]], ...]
    merged: tuple[tuple[str, tuple[str, ...]], ...]
    columns: tuple[ColumnDrift, ...]
    overlap: tuple[tuple[str, Change], ...]
    words: str


def drift(old: Result, new: Result) -> Drift:
    """Compare two results over the same columns; costs no privacy.

    Columns are found by party and name, in any order. Bounds may differ: values are compared in the
    columns' own units, distances are those of the old result.

    Raises:
        ParameterError: If the two have other columns, or one of them has no segments; it says what.
    """
    if old.study.counts_only != new.study.counts_only:
        raise ParameterError(
            f"{old.where} and {new.where}: one is a study of counts alone, which has no segments "
            "to compare with the other's"
        )
    overlap = _overlap(old, new)
    named = {"old": _named(old), "new": _named(new)}
    if old.study.counts_only:
        if not overlap:
            raise ParameterError(
                f"{old.where} and {new.where}: the two studies have other parties, so their counts "
                "cannot be compared"
            )
        changed = _counted(old.overlap().everyone, new.overlap().everyone)
        return Drift(
            **named,
            users=changed,
            segments=(),
            unmatched=(),
            split=(),
            merged=(),
            columns=(),
            overlap=overlap,
            words="Users at each combination of parties. Intervals are 95 % and have both noises.",
        )
    for result in (old, new):
        if result.published.k == 0:
            raise ParameterError(f"{result.where}: {result.remark}, so there is nothing to compare")
    order = _same_columns(old, new)
    centres = np.empty((old.published.k, len(order)))
    centres[:, order] = old.published.centres
    seen = _with_distances_of(old, new, order)
    scaled = seen.scaled_centres(centres)
    before, after = (
        _intervals(old, old.synopsis, old.published.scaled_centres),
        _intervals(new, seen, scaled),
    )
    sizes = assign_nodes(seen, scaled)[1]
    known = before is not None and after is not None
    users, shares = _changes(old, new, sizes, before, after)
    goes = _goes_to(old, new, order)
    matches, moved = _matched(old, new, order)
    letters = new.published.letters
    segments = tuple(
        SegmentDrift(
            letter=letter,
            name=old.names.get(letter),
            size=users[at],
            share=shares[at],
            match=None if matches[at] < 0 else letters[matches[at]],
            moved=None if matches[at] < 0 else float(moved[at, matches[at]]),
            goes_to=tuple(
                (letters[to], float(goes[at, to]))
                for to in np.argsort(-goes[at], kind="stable")
                if goes[at, to] >= _NAMED
            ),
        )
        for at, letter in enumerate(old.published.letters)
    )
    return Drift(
        **named,
        users=_total(old, new, before, after),
        segments=segments,
        unmatched=tuple(name for at, name in enumerate(letters) if at not in matches.tolist()),
        split=tuple(
            (letter, tuple(letters[to] for to in np.flatnonzero(goes[at] >= _SPLIT)))
            for at, letter in enumerate(old.published.letters)
            if (goes[at] >= _SPLIT).sum() > 1
        ),
        merged=tuple(
            (letter, tuple(old.published.letters[at] for at in np.flatnonzero(column >= _MERGED)))
            for letter, column in zip(letters, goes.T, strict=True)
            if (column >= _MERGED).sum() > 1
        ),
        columns=_columns(old, new, order),
        overlap=overlap,
        words=WORDS if known else f"{WORDS.split(' Intervals')[0]} {NO_INTERVALS}",
    )


def _named(result: Result) -> str:
    return f"study {result.study.name!r}, run {result.facts['run']!r}, " + (
        f"published {result.facts['published_at']}"
    )


def _same_columns(old: Result, new: Result) -> IntArray:
    """Return where each feature of the old result is among those of the new one."""
    ours, theirs = old.synopsis.feature_names, new.synopsis.feature_names
    gone = [name for name in ours if name not in theirs]
    come = [name for name in theirs if name not in ours]
    if gone or come:
        parts = [f"only the old one has {_some(gone)}"] if gone else []
        parts += [f"only the new one has {_some(come)}"] if come else []
        raise ParameterError(
            f"{old.where} and {new.where} must be over the same columns and categories to be "
            f"compared: {'; '.join(parts)}"
        )
    return np.array([theirs.index(name) for name in ours])


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _units(synopsis: Synopsis) -> FloatArray:
    """Return by how much a step of one own unit counts in distances, for each feature."""
    features: list[Feature] = [item for group in synopsis.features for item in group]
    steps = np.array([2 * item.weight / (item.high - item.low) for item in features])
    return steps if synopsis.stretch is None else steps * synopsis.stretch


def _with_distances_of(old: Result, new: Result, order: IntArray) -> Synopsis:
    """Return the new synopsis, which sees distances as the old one does."""
    plain = dataclasses.replace(new.synopsis, stretch=None)
    stretch = np.empty(len(order))
    stretch[order] = _units(old.synopsis)
    return dataclasses.replace(plain, stretch=stretch / _units(plain))


def _intervals(result: Result, synopsis: Synopsis, centres: FloatArray) -> SizeIntervals | None:
    plan = plan_of(result)
    if plan is None:
        return None
    # The seed only makes two comparisons of the same results alike.
    found = size_intervals(plan, synopsis, [centres], rng=np.random.default_rng(0))
    return None if found is None else found[0]


def _changes(
    old: Result,
    new: Result,
    sizes: FloatArray,
    before: SizeIntervals | None,
    after: SizeIntervals | None,
) -> tuple[list[Change], list[Change]]:
    """Return changes of sizes and of shares, with intervals where both are known."""
    first, second = old.synopsis.total, new.synopsis.total
    users, shares = [], []
    for at, (was, now) in enumerate(zip(old.published_sizes, sizes, strict=True)):
        if before is None or after is None:
            users.append(Change(old=float(was), new=float(now)))
            shares.append(Change(old=float(was) / first, new=float(now) / second))
            continue
        halves = np.array([before.high[at] - was, after.high[at] - now])
        users.append(_change(float(was), float(now), float(np.linalg.norm(halves))))
        # Of a share the whole has noise too.
        wholes = np.array([before.total[1] - first, after.total[1] - second])
        parts = np.array([was / first, now / second])
        own = np.hypot(halves, parts * wholes) / np.array([first, second])
        shares.append(_change(float(parts[0]), float(parts[1]), float(np.linalg.norm(own))))
    return users, shares


def _change(was: float, now: float, half: float) -> Change:
    return Change(old=was, new=now, low=now - was - half, high=now - was + half)


def _total(
    old: Result, new: Result, before: SizeIntervals | None, after: SizeIntervals | None
) -> Change:
    was, now = old.synopsis.total, new.synopsis.total
    if before is None or after is None:
        return Change(old=was, new=now)
    half = float(np.hypot(before.total[1] - was, after.total[1] - now))
    return _change(was, now, half)


def _goes_to(old: Result, new: Result, order: IntArray) -> FloatArray:
    """Return the share of each old segment's people whose places belong to each new segment."""
    places = np.empty((len(old.synopsis.weights), len(order)))
    places[:, order] = old.synopsis.nodes
    seen = new.synopsis.seen
    nodes = seen(new.synopsis.scaled_centres(places))
    to = squared_distances(nodes, seen(new.published.scaled_centres)).argmin(axis=1)
    shared = np.zeros((old.published.k, new.published.k))
    np.add.at(shared, (old.published.of_node, to), old.synopsis.weights)
    return np.asarray(shared / np.maximum(shared.sum(axis=1, keepdims=True), 1e-9))


def _matched(old: Result, new: Result, order: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the new segment of each old one, -1 for none, and distances of all pairs."""
    # Imported on first use: it takes long to load.
    from scipy.optimize import linear_sum_assignment

    spreads = _moments(old.synopsis)[1]
    # A feature that everybody had alike has no measure of its own, and tells nothing apart.
    scale = np.divide(1.0, spreads, out=np.zeros_like(spreads), where=spreads > 0)
    theirs = new.published.centres[:, order] * scale
    squared = squared_distances(old.published.centres * scale, theirs)
    distances = np.sqrt(squared / len(order))
    found = np.full(old.published.k, -1)
    rows, columns = linear_sum_assignment(distances)
    found[rows] = columns
    return found, distances


def _moments(synopsis: Synopsis) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of every feature in own units."""
    features = tuple(item for group in synopsis.features for item in group)
    shares = synopsis.weights / synopsis.total
    means = shares @ synopsis.scaled_nodes
    spreads = np.sqrt(shares @ np.square(synopsis.scaled_nodes - means))
    # What is below a grid step is a rounding error: everybody has the same.
    spreads = np.where(spreads > 1 / GRID_UNITS, spreads, 0.0)
    steps = np.array([2 * item.weight / (item.high - item.low) for item in features])
    return to_own_units(features, means), np.asarray(spreads / steps)


def _columns(old: Result, new: Result, order: IntArray) -> tuple[ColumnDrift, ...]:
    was, spreads = _moments(old.synopsis)
    now = _moments(new.synopsis)[0][order]
    moved = np.divide(now - was, spreads, out=np.zeros_like(was), where=spreads > 0)
    names = old.synopsis.feature_names
    return tuple(
        ColumnDrift(
            column=names[at], old=float(was[at]), new=float(now[at]), spreads=float(moved[at])
        )
        for at in np.argsort(-np.abs(moved), kind="stable")
    )


def _overlap(old: Result, new: Result) -> tuple[tuple[str, Change], ...]:
    """Return users at exactly these parties then and now, where both results say so."""
    same = set(old.study.party_names) == set(new.study.party_names)
    if not (same and len(old.presence) and len(new.presence)):
        return ()
    after = new.overlap()
    return tuple(
        (" and ".join(count.parties), _counted(count, after.exactly(*count.parties)))
        for count in old.overlap().patterns
    )


def _counted(was: Count, now: Count) -> Change:
    half = float(np.hypot(was.high - was.users, now.high - now.users))
    return _change(was.users, now.users, half)
