"""Comparisons that decide a claim: each turns a figure's points into a short text and a verdict.

All take their lines, settings and bounds from `claims.toml`, and return None where the points that
they need are missing.
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmarks.paper import published
from benchmarks.paper.points import Points

YES, PARTLY, NO, NOT_MEASURED = "yes", "partly", "no", "not measured"
Verdict = tuple[str, str] | None

# A statement about most settings holds if it does in this share of them, and partly above half.
_MOST, _HALF = 0.8, 0.5


def by_share(hits: int, of: int) -> str:
    """Judge a statement about most settings."""
    if of == 0:
        return NOT_MEASURED
    share = hits / of
    return YES if share >= _MOST else PARTLY if share > _HALF else NO


def by_range(value: float, yes: Sequence[float], partly: Sequence[float] = (1, 0)) -> str:
    """Judge a figure by the ranges in which a statement holds, and holds partly."""
    if yes[0] <= value <= yes[1]:
        return YES
    return PARTLY if partly[0] <= value <= partly[1] else NO


def number(value: float | None) -> str:
    """Return a number with three significant digits."""
    return "-" if value is None else f"{value:.3g}"


def _settings(
    points: Points,
    *,
    panels: str = "",
    without: str | None = None,
    most: float | None = None,
    first: bool = False,
) -> Iterator[tuple[str, Any]]:
    """Yield panels by a part of their name, and their values of the axis up to `most`."""
    for panel in points.panels:
        if panels in panel and (without is None or without not in panel):
            xs = [x for x in points.xs(panel) if most is None or x <= most]
            yield from ((panel, x) for x in (xs[:1] if first else xs))


def _values(
    points: Points, names: Sequence[str], where: Iterable[tuple[str, Any]], measure: str | None
) -> Iterator[tuple[tuple[str, Any], list[float]]]:
    """Yield the settings where all lines have a value, with the values."""
    for panel, x in where:
        values = [points.get(panel, name, x, measure) for name in names]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            yield (panel, x), known


def _ratio(pairs: Iterable[Sequence[float]]) -> float | None:
    """Return the geometric mean of the first over the second; None without values."""
    ratios = [a / b for a, b in pairs if a > 0 and b > 0]
    return statistics.geometric_mean(ratios) if ratios else None


def _lines(points: Points, names: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield panel and values of each of the lines that has two points or more."""
    for panel, name in itertools.product(points.panels, names):
        line = [p.measures[points.figure.y].value for p in points.line(panel, name)]
        if len(line) > 1:
            yield panel, line


def below(
    points: Points,
    *,
    line: str,
    than: Sequence[str],
    above: bool = False,
    measure: str | None = None,
    **where: Any,
) -> Verdict:
    """In most settings a line is below (or above) each of some others."""
    hits = of = 0
    texts = []
    for other in than:
        found = _values(points, (line, other), _settings(points, **where), measure)
        pairs = [values for _, values in found]
        if pairs:
            good = sum(a > b if above else a < b for a, b in pairs)
            hits, of = hits + good, of + len(pairs)
            place = f"{'above' if above else 'below'} {other} in {good} of {len(pairs)}"
            texts.append(f"{place} ({number(_ratio(pairs))} times on average)")
    return ("; ".join(texts), by_share(hits, of)) if texts else None


def best(
    points: Points,
    *,
    line: str,
    of: Sequence[str],
    highest: bool = False,
    close: float = 0.0,
    measure: str | None = None,
    **where: Any,
) -> Verdict:
    """In most settings a line is the lowest (or highest) of several, or that close to it."""
    sign = -1 if highest else 1
    settings = hits = 0
    behind: dict[str, list[float]] = {}
    found = _values(points, (line, *of), _settings(points, **where), measure)
    for (panel, _), (own, *others) in found:
        settings += 1
        gap = sign * own - min(sign * other for other in others)
        hits += gap <= close
        if gap > close:
            behind.setdefault(panel, []).append(gap)
    if not settings:
        return None
    text = f"{'highest' if highest else 'lowest'} in {hits} of {settings} settings"
    places = [
        f"{panel} ({len(gaps)}, by {max(gaps):.2g} at most)" for panel, gaps in behind.items()
    ]
    return text + (f"; behind on {', '.join(places)}" if places else ""), by_share(hits, settings)


def ratio(
    points: Points,
    *,
    line: str,
    than: str,
    yes: Sequence[float],
    partly: Sequence[float] = (1, 0),
    measure: str | None = None,
    **where: Any,
) -> Verdict:
    """On average a line is so many times another one."""
    found = _ratio(v for _, v in _values(points, (line, than), _settings(points, **where), measure))
    if found is None:
        return None
    return f"{number(found)} times {than} on average", by_range(found, yes, partly)


def closing(points: Points, *, line: str, to: str, close: float) -> Verdict:
    """A line nears another one along the axis, and is that close (as a ratio) at its end."""
    xs = sorted({x for panel in points.panels for x in points.xs(panel)})
    first, last = (
        _ratio(v for _, v in _values(points, (line, to), [(p, x) for p in points.panels], None))
        for x in (xs[0], xs[-1])
    )
    if first is None or last is None:
        return None
    text = f"{number(first)} times {to} at {xs[0]:g}, {number(last)} times at {xs[-1]:g}"
    return text, NO if first <= last else YES if last < close else PARTLY


def change(points: Points, *, line: str, yes: Sequence[float] = (0, 0)) -> Verdict:
    """From the first to the last value of the axis a line changes by a factor."""
    by_parties: dict[str, list[tuple[float, float]]] = {}
    for panel, values in _lines(points, [line]):
        by_parties.setdefault(panel.rsplit(", ", 1)[-1], []).append((values[-1], values[0]))
    whole = _ratio(itertools.chain(*by_parties.values()))
    if whole is None:
        return None
    texts = [f"{number(_ratio(ends))} at {name}" for name, ends in by_parties.items()]
    return f"last over first: {', '.join(texts)}", by_range(whole, yes)


def rising(points: Points, *, lines: Sequence[str]) -> Verdict:
    """Most lines are higher at the end of the axis than at its start."""
    ends = [(values[0], values[-1]) for _, values in _lines(points, lines)]
    if not ends:
        return None
    rises = sum(last > first for first, last in ends)
    text = ", ".join(f"{number(first)} to {number(last)}" for first, last in ends)
    return f"{rises} of {len(ends)} lines: {text}", by_share(rises, len(ends))


def steady(points: Points, *, line: str, within: float) -> Verdict:
    """Along the axis a line stays within a factor, in every panel."""
    found = dict(_lines(points, [line]))
    if not found:
        return None
    text = "; ".join(f"{panel} {' / '.join(map(number, v))}" for panel, v in found.items())
    return text, by_range(max(max(v) / min(v) for v in found.values()), (0, within))


def lower_mean(points: Points, *, lines: Sequence[str], on: str, panels: str) -> Verdict:
    """The mean of some lines is lower on one data set than on every other one."""
    means: dict[str, list[float]] = {}
    for panel, x in _settings(points, panels=panels):
        values = [points.get(panel, name, x) for name in lines]
        means.setdefault(panel, []).extend(value for value in values if value is not None)
    found = {panel: statistics.fmean(values) for panel, values in means.items() if values}
    own = next((mean for panel, mean in found.items() if on in panel), None)
    others = [mean for panel, mean in found.items() if on not in panel]
    if own is None or not others:
        return None
    text = f"mean {number(own)} on {on}, {', '.join(map(number, others))} on the other data"
    return text, YES if own < min(others) else NO


def closest_part(points: Points, *, whole: str, part: str, other: str, panels: str) -> Verdict:
    """One private part alone is closer to the whole loss than the other part alone."""
    found = list(_values(points, (whole, part, other), _settings(points, panels=panels), None))
    if not found:
        return None
    hits = sum(abs(w - a) < abs(w - b) for _, (w, a, b) in found)
    return f"closer in {hits} of {len(found)} settings", by_share(hits, len(found))


def growing_part(
    points: Points, *, part: str, other: str, base: str, few: str, many: str, yes: Sequence[float]
) -> Verdict:
    """A part's share in the two parts' losses above a base grows, and is in a range at the end."""
    means = []
    for panels in (few, many):
        shares = []
        for _, (own, rest, plain) in _values(
            points, (part, other, base), _settings(points, panels=panels), None
        ):
            costs = max(own - plain, 0.0), max(rest - plain, 0.0)
            if sum(costs):
                shares.append(costs[0] / sum(costs))
        if not shares:
            return None
        means.append(statistics.fmean(shares))
    text = f"its share is {means[0]:.2g} at {few}, {means[1]:.2g} at {many}"
    return text, by_range(means[1], yes, (0, 1)) if means[1] > means[0] else NO


def _best_x(points: Points) -> dict[tuple[str, str], Any]:
    """Return where each line is lowest, for lines with a mark."""
    marked = {(point.panel, point.series) for point in points if point.x is None}
    return {
        (panel, name): min(line, key=lambda p: p.measures[points.figure.y].value).x
        for panel, name in itertools.product(points.panels, points.series)
        if (panel, name) in marked and (line := points.line(panel, name))
    }


def near_rule(points: Points, *, within: float, loss: float) -> Verdict:
    """The value of the axis where a line is lowest is near the one that the rule takes."""
    lowest = _best_x(points)
    near = cheap = 0
    for point in points:
        if point.x is None and (x := lowest.get((point.panel, point.series))) is not None:
            near += abs(point.measures[points.figure.x].value - x) <= within
            least = points.get(point.panel, point.series, x) or 0.0
            cheap += point.measures[points.figure.y].value <= loss * least
    text = f"within {within:g} in {near} of {len(lowest)} cases; the rule's loss at most {loss:g}"
    return f"{text} times the best in {cheap}", by_share(near, len(lowest))


def moving_best(points: Points, *, change: Sequence[str], up: bool) -> Verdict:
    """Where lines are lowest moves up (or not up) when one part of a name is replaced."""
    lowest, (old, new) = _best_x(points), change
    pairs = [
        (x, lowest[moved])
        for (panel, name), x in lowest.items()
        if (moved := (panel.replace(old, new), name.replace(old, new))) in lowest
        and moved != (panel, name)
    ]
    hits = sum(after >= before if up else after <= before for before, after in pairs)
    text = f"so in {hits} of {len(pairs)} cases"
    return (text, by_share(hits, len(pairs))) if pairs else None


def levelling(
    points: Points, *, line: str, panels: str, at: Sequence[float], bar: float
) -> Verdict:
    """Lines fall by more than the bar up to one value of the axis, and by less to the next."""
    early, late = [], []
    for panel, first in _settings(points, panels=panels, first=True):
        for name in points.series:
            values = [points.get(panel, name, x) for x in (first, *at)]
            if name.startswith(line) and all(values):
                low, middle, high = (value or 0.0 for value in values)
                early.append(1 - middle / low)
                late.append(1 - high / middle)
    if not early:
        return None
    before, after = statistics.fmean(early), statistics.fmean(late)
    text = f"{before:.0%} less up to {at[0]}, {after:.0%} less from there to {at[1]}"
    return text, YES if after < bar < before else PARTLY if after < before else NO


def _beside_paper(points: Points, measure: str) -> Iterator[tuple[str, str, Any, float, float]]:
    """Yield panel, line, x, our value and the paper's, wherever the paper prints one."""
    for panel, x in _settings(points):
        for name in points.series:
            ours, paper = (
                points.get(panel, name, x, measure),
                published.value(panel, name, x, measure),
            )
            if ours is not None and paper is not None:
                yield panel, name, x, ours, paper


def times_paper(
    points: Points,
    *,
    lines: Sequence[str],
    measure: str,
    yes: Sequence[float],
    partly: Sequence[float] = (1, 0),
    scale: float = 1.0,
) -> Verdict:
    """Our figures are so many times the paper's. All lines are taken where none is named."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _, name, _, ours, paper in _beside_paper(points, measure):
        if not lines or name in lines:
            found.setdefault(name, []).append((ours * scale, paper))
    whole = _ratio(itertools.chain(*found.values()))
    if whole is None:
        return None
    texts = [f"{name} {number(_ratio(pairs))}" for name, pairs in found.items()]
    text = f"ours over the paper's: {number(whole)} ({'; '.join(texts)})"
    return text, by_range(whole, yes, partly)


def same_order(points: Points, *, lines: Sequence[str], measure: str) -> Verdict:
    """Lines are in the paper's order."""
    found: dict[tuple[str, Any], list[tuple[float, float]]] = {}
    for panel, name, x, ours, paper in _beside_paper(points, measure):
        if name in lines:
            found.setdefault((panel, x), []).append((ours, paper))
    cases = [pairs for pairs in found.values() if len(pairs) == len(lines)]
    hits = sum(sorted(pairs) == sorted(pairs, key=lambda pair: pair[1]) for pairs in cases)
    text = f"the same in {hits} of {len(cases)} cases"
    return (text, by_share(hits, len(cases))) if cases else None


def falling_halves(points: Points, *, line: str, panels: Sequence[str]) -> Verdict:
    """The mean over the first half of the axis is above that over the second."""
    found = [values for panel, values in _lines(points, [line]) if panel in panels]
    if not found:
        return None
    halves = [(v[: len(v) // 2], v[len(v) // 2 :]) for v in found]
    hits = sum(statistics.fmean(small) > statistics.fmean(large) for small, large in halves)
    return f"so on {hits} of {len(found)} data sets", by_share(hits, len(found))


def peaked(points: Points, *, line: str, panels: Sequence[str], at: Sequence[float]) -> Verdict:
    """A line is highest in a range of the axis, or has a peak there at least."""
    highest, inner, texts = [], [], []
    for panel in (name for name in panels if name in points.panels):
        values = {p.x: p.measures[points.figure.y].value for p in points.line(panel, line)}
        xs = sorted(values)
        peaks = [
            x
            for before, x, after in zip(xs, xs[1:], xs[2:], strict=False)
            if values[before] <= values[x] >= values[after]
        ]
        top = max(xs, key=lambda x: values[x])
        highest.append(at[0] <= top <= at[1])
        inner.append(any(at[0] <= x <= at[1] for x in peaks))
        texts.append(f"{panel}: highest at {top}, peaks at {', '.join(map(str, peaks)) or 'none'}")
    if not texts:
        return None
    return "; ".join(texts), YES if all(highest) else PARTLY if all(inner) else NO


JUDGES: dict[str, Callable[..., Verdict]] = {
    judge.__name__: judge
    for judge in (
        *(below, best, ratio, closing, change, rising, steady, lower_mean, closest_part),
        *(growing_part, near_rule, moving_best, levelling, times_paper, same_order),
        *(falling_halves, peaked),
    )
}
