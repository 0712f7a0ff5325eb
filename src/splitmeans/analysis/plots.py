"""The report's pictures with matplotlib, for those who want to change or combine them.

matplotlib is optional: `pip install 'splitmeans[plots]'`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from splitmeans.errors import ParameterError
from splitmeans.report.data import ReportData, SegmentationInfo, SegmentInfo
from splitmeans.report.words import colour_of
from splitmeans.synopsis.choose_k import ChooseK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As in report.css.
_COLOURS = (
    *("#1f5fa8", "#b04a00", "#00755e", "#a8327a", "#6247aa", "#6b6a00"),
    *("#0a6c86", "#b3261e", "#4a5568", "#7a4b2a", "#3c7021", "#7d2e68"),
)
# Further from the mean a colour does not grow.
_SPREADS = 2.0


def _axes(ax: "Axes | None", *, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as problem:
        raise ParameterError("plots need matplotlib: pip install 'splitmeans[plots]'") from problem
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _of(data: ReportData, k: int) -> SegmentationInfo:
    return next(item for item in data.segmentations if item.k == k)


def _called(segment: SegmentInfo) -> str:
    return f"{segment.letter} {segment.name}" if segment.name else segment.letter


def plot_map(data: ReportData, k: int, *, ax: "Axes | None" = None) -> "Axes":
    """Plot nodes of the grid on the plane of most differences, in their segments' colours."""
    axes, item = _axes(ax, size=(7, 5)), _of(data, k)
    places = np.column_stack([data.map.x, data.map.y])
    areas = 4000 * np.array(data.map.users) / sum(data.map.users)
    for at, segment in enumerate(item.segments):
        own = np.array(item.of_node) == at
        colour = _COLOURS[colour_of(segment.letter)]
        axes.scatter(*places[own].T, s=np.maximum(areas[own], 3), color=colour, alpha=0.4, lw=0)
        axes.annotate(
            segment.letter,
            (segment.x, segment.y),
            ha="center",
            va="center",
            color="white",
            weight="bold",
            bbox={"boxstyle": "circle", "facecolor": colour, "edgecolor": "white"},
        )
        axes.scatter([], [], color=colour, label=f"{_called(segment)} ({segment.share:.0%})")
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(frameon=False, fontsize="small")
    axes.set_title(f"{k} segments; the plane shows {sum(data.map.explained):.0%} of differences")
    result: Axes = axes
    return result


def plot_sizes(data: ReportData, k: int, *, ax: "Axes | None" = None) -> "Axes":
    """Plot sizes with their 95 % intervals, where these are known."""
    item = _of(data, k)
    axes = _axes(ax, size=(7, 0.5 * k + 1))
    names = [_called(segment) for segment in item.segments]
    sizes = np.array([segment.size for segment in item.segments])
    errors = None
    if all(segment.interval is not None for segment in item.segments):
        ends = np.array([segment.interval for segment in item.segments])
        errors = np.abs(ends - sizes[:, np.newaxis]).T
    colours = [_COLOURS[colour_of(segment.letter)] for segment in item.segments]
    axes.barh(range(k), sizes, xerr=errors, color=colours, ecolor="black", capsize=3)
    axes.set_yticks(range(k), names)
    axes.invert_yaxis()
    axes.set_xlabel("users (noisy estimate)" + ("" if errors is None else ", 95 % interval"))
    result: Axes = axes
    return result


def plot_columns(data: ReportData, k: int, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the centres against the overall mean, in spreads of each column."""
    item = _of(data, k)
    axes = _axes(ax, size=(1.5 + 0.9 * k, 1.2 + 0.3 * len(data.columns)))
    values = np.array([segment.difference for segment in item.segments]).T
    image = axes.imshow(values, cmap="RdBu_r", vmin=-_SPREADS, vmax=_SPREADS, aspect="auto")
    axes.set_xticks(range(k), [_called(segment) for segment in item.segments])
    axes.set_yticks(range(len(data.columns)), [f"{one.party}: {one.label}" for one in data.columns])
    axes.figure.colorbar(image, ax=axes, label="spreads from the mean")
    result: Axes = axes
    return result


def plot_k(curve: ChooseK, *, published: int, ax: "Axes | None" = None) -> "Axes":
    """Plot the silhouette against k, with the published and the suggested number."""
    axes = _axes(ax, size=(6, 3.5))
    axes.plot(curve.ks, curve.silhouettes, marker="o", color=_COLOURS[0])
    axes.axvline(curve.suggested, color=_COLOURS[1], ls="--", label=f"suggested {curve.suggested}")
    axes.axvline(published, color="gray", ls=":", label=f"published {published}")
    axes.set_xticks(curve.ks)
    axes.set_xlabel("number of segments")
    axes.set_ylabel("silhouette")
    axes.legend(frameon=False)
    result: Axes = axes
    return result
