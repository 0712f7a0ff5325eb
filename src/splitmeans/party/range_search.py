"""From noisy counts of a column's values to bounds: which bins to count next, and what they tell.

Nothing here sees a row. A search begins with bins of all scales, a factor of two each, and finds
where the values are. Then it counts in bins of equal width, and zooms in as long as nearly all
values are in a small part of them (dates, 10^9 plus a little, amounts with a few huge ones). The
rounds that are left look at the same bins again, and bounds are quantiles of all of them together.
Whatever the counts are, a search ends with two finite bounds.

Where most users share one value, bounds are of the others, and hold that value too: later rounds
do not count it. Zero is a bin of scale of its own; to any other value the search zooms in first,
and looks at the others in the last round.

The constants are by measurement (docs/accuracy.md, "Bounds that the run learns").
"""

import math
import statistics
from dataclasses import dataclass, field, replace

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.plan.bounds_stage import FOUND, NARROW, ROUNDS, UNCLEAR, LearnedBounds

# Bins of scale: zero, and both signs of 2^-30 to 2^50; what is beyond is in the outermost ones.
LEAST_POWER, MOST_POWER = -30, 50
POWERS = MOST_POWER - LEAST_POWER
SCALE_BINS = 2 * POWERS + 1
# Bins of equal width; more of them where values are close together and far from zero.
FINE_BINS, EQUAL_BINS = 128, 64

# A place has values if so many deviations are counted there (4.5 took noise for values in one
# column of a thousand, far away); a bin beside such a place, if these are.
_SEED_DEVIATIONS, _BESIDE_DEVIATIONS = 5.0, 2.5
# The same where most users share one value: bounds by chance do no harm that none would not do,
# but others are looked for further away from such a place.
_OTHERS_SEED, _OTHERS_BESIDE = 4.5, 3.0
_SEED_WINDOWS = (1, 2, 4, 8)
# A value is shared by most users if it has this part of all values; bounds are then of the others.
# With fewer others than so many deviations they are rough, which is said.
_SHARED, _FEW_DEVIATIONS = 0.85, 40.0
# Values that span no more bins of scale than this, without zero, get fine bins.
_NARROW_BINS = 2
# A window to zoom in on must have every bin with so many deviations, and this share of the values:
# of fine bins up to noise, as long as noise hides no more than the last share leaves; of others
# beyond noise, because a tail that is cut off there is lost.
_ZOOM_BIN = 5.5
_FINE_SHARE, _FINE_NOISE, _FINE_LEAST = 0.97, -2.5, 0.7
_EQUAL_SHARE, _EQUAL_NOISE = 0.98, 1.0
_LAST_WINDOW = 8
# Bounds are at these quantiles from both ends, or further in where noise is larger, stretched then;
# scales beyond them are left to clipping.
_QUANTILE, _QUANTILE_OF_OTHERS = 0.02, 0.01
_MOST_QUANTILE, _QUANTILE_NOISE = 0.25, 2.0
_MOST_STRETCH = 3.0
# Counts below so many deviations are noise, if the others have this share of the values.
_NOISE_DEVIATIONS, _CLEAR_SHARE = 2.0, 0.98


@dataclass(frozen=True, kw_only=True)
class Bins:
    """What is counted in a round: bins of scale, or so many of equal width between two numbers.

    Values from one to the other end of `apart` are in no bin.
    """

    low: float = 0.0
    high: float = 0.0
    number: int = 0
    apart: tuple[float, float] | None = None

    @property
    def of_scale(self) -> bool:
        """Whether they are the bins of scale."""
        return self.number == 0

    @property
    def length(self) -> int:
        """How many bins."""
        return self.number or SCALE_BINS


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeSearch:
    """A search after so many rounds; `bins` are those of the next one.

    Attributes:
        low: No bound is below; None if the study sets no limit.
        high: No bound is above; the same.
        bins: What to count next. Of bins of equal width the outermost have outsiders alone.
        values: About how many values there are, once it is known.
        rounds: How many rounds are left.
        zooming: Whether the next counts may tell to zoom in; never those of the last round.
        state: `UNCLEAR` if nothing was above the noise, `NARROW` if one value alone was.
        apart: Where the value is that most users share; the search is for bounds of the others.
        others: The search for them, where most values are in one bin of scale other than zero.
        back: What to go on with if the bin that is looked into holds no such value.
        counts: Of the rounds that had these bins, weighted by their precision.
        precision: Sum of the weights, one over the squared deviation of each round.
    """

    low: float | None
    high: float | None
    bins: Bins = Bins()
    values: float = 1.0
    rounds: int = len(ROUNDS)
    zooming: bool = True
    state: int = FOUND
    apart: tuple[float, float] | None = None
    others: "RangeSearch | None" = None
    back: "RangeSearch | None" = None
    counts: FloatArray = field(default_factory=lambda: np.zeros(EQUAL_BINS))
    precision: float = 0.0

    def after(self, noisy_counts: FloatArray, *, deviation: float) -> "RangeSearch":
        """Return the search that knows the noisy counts of its bins."""
        following = self._after(noisy_counts, deviation=deviation)
        zooming = following.zooming and self.rounds > 2
        number = following.bins.number if zooming else EQUAL_BINS
        bins = replace(following.bins, number=number, apart=following.apart)
        return replace(following, bins=bins, zooming=zooming, rounds=self.rounds - 1)

    def _after(self, noisy_counts: FloatArray, *, deviation: float) -> "RangeSearch":
        if self.bins.of_scale:
            return self._scaled(noisy_counts, deviation=deviation)
        if not self.zooming:
            return self._counted(noisy_counts, deviation=deviation)
        following = self.back
        if following is None or following.zooming:
            following = self._zoomed(noisy_counts, deviation=deviation) or following
        following = following or self._counted(noisy_counts, deviation=deviation)
        heaviest = int(noisy_counts.argmax())
        if self.others is None or noisy_counts[heaviest] < _SHARED * self.values:
            return following
        # Most values are in one bin: nearer to it, until the last round but one tells that it is
        # one value, or as good as one; then the last round is for the others.
        low, high = self._part(heaviest, 1)
        if self.rounds > 2:
            return replace(self, bins=_with_room(low, high, number=FINE_BINS), back=following)
        others = self.values - float(noisy_counts[heaviest])
        if self.others.state == UNCLEAR and others < _SEED_DEVIATIONS * deviation:
            return replace(following, state=NARROW)
        others = max(others, self.others.values)
        return replace(self.others, apart=(low, high), values=others, state=FOUND, zooming=False)

    def _counted(self, noisy_counts: FloatArray, *, deviation: float) -> "RangeSearch":
        """Return a search whose bins stay what they are; fine ones become wider first."""
        if self.bins.number != EQUAL_BINS:
            return replace(self, zooming=False)
        weight = deviation**-2
        return replace(
            self,
            zooming=False,
            counts=self.counts + weight * noisy_counts,
            precision=self.precision + weight,
        )

    @property
    def found(self) -> LearnedBounds:
        """The bounds, after the last round."""
        low, high = self._quantiles()
        if self.apart is not None:
            shared = (self.apart[0] + self.apart[1]) / 2
            low, high = min(low, shared), max(high, shared)
        # As far apart as bounds are at least: there is no spread to see.
        alike = self.state == FOUND and high - low <= 1.01 * self._least
        state = UNCLEAR if self._few else NARROW if alike else self.state
        low, high = self._within_limits(*_rounded(low, high))
        return LearnedBounds(low=low, high=high, state=state)

    @property
    def _least(self) -> float:
        return 2 * (self.bins.high - self.bins.low) / self.bins.number

    @property
    def _few(self) -> bool:
        """Whether users who do not share the value of most are too few for their quantiles."""
        return self.apart is not None and self.values < _FEW_DEVIATIONS * self.precision**-0.5

    @property
    def _outer(self) -> float:
        return _QUANTILE if self.apart is None else _QUANTILE_OF_OTHERS

    def _scaled(self, noisy_counts: FloatArray, *, deviation: float) -> "RangeSearch":
        following = self._placed(noisy_counts, deviation=deviation)
        heaviest = int(noisy_counts.argmax())
        if following.state == UNCLEAR or noisy_counts[heaviest] < _SHARED * following.values:
            return following
        rest = np.where(np.arange(SCALE_BINS) == heaviest, 0.0, noisy_counts)
        others = replace(self, apart=(_edge(heaviest), _edge(heaviest + 1)))
        others = others._placed(rest, deviation=deviation, shared=heaviest)
        if heaviest != POWERS:
            return replace(following, others=others)
        return replace(following, state=NARROW) if others.state == UNCLEAR else others

    def _placed(
        self, noisy_counts: FloatArray, *, deviation: float, shared: int | None = None
    ) -> "RangeSearch":
        """Return a search where bins of scale have values, and where most users share one."""
        few = shared is not None
        first, last, clear = _occupied(noisy_counts, deviation=deviation, few=few)
        values = max(float(noisy_counts[first : last + 1].sum()), 2 * deviation, 1.0)
        least = (_OTHERS_BESIDE if few else _BESIDE_DEVIATIONS) * deviation
        seen = np.where(noisy_counts > least, noisy_counts, 0.0)
        first, last = _without_ends(seen, first, last, most=self._outer * values)
        if shared is not None:
            if least > self._outer * values:
                # Noise may hide a scale on either side.
                first, last = max(first - 1, 0), min(last + 1, SCALE_BINS - 1)
            first, last = (min(first, shared), max(last, shared)) if clear else (shared, shared)
        narrow = last - first < _NARROW_BINS and not first <= POWERS <= last
        low, high = _edge(first), _edge(last + 1)
        if not narrow:
            # One sign: amounts from zero on.
            low, high = min(low, 0.0), max(high, 0.0)
        number = FINE_BINS if narrow else EQUAL_BINS
        return replace(
            self,
            bins=_with_room(*self._within_limits(low, high), number=number),
            values=values,
            state=FOUND if clear else UNCLEAR,
        )

    def _zoomed(self, noisy_counts: FloatArray, *, deviation: float) -> "RangeSearch | None":
        """Return a search in a part of the bins, None if no part has nearly all values."""
        number = self.bins.number
        window = _smallest_window(noisy_counts, values=self.values, deviation=deviation)
        if window is None:
            return None
        low, high = self._part(*window)
        # Numbers that floats can hardly tell apart are not zoomed in on further.
        more = high - low > 1e-12 * max(abs(low), abs(high))
        if number == FINE_BINS:
            more = more and window[1] <= _LAST_WINDOW
        following = FINE_BINS if number == FINE_BINS and more else EQUAL_BINS
        bins = _with_room(low, high, number=following)
        return replace(self, bins=bins, zooming=more, back=None)

    def _part(self, start: int, width: int) -> tuple[float, float]:
        """Return where so many bins are, with half of their width on both sides."""
        step = (self.bins.high - self.bins.low) / self.bins.number
        low = self.bins.low + step * (start - width / 2)
        return self._within_limits(low, low + 2 * step * width)

    def _quantiles(self) -> tuple[float, float]:
        """Return bounds at quantiles of the counts of equal bins."""
        noisy_counts, deviation = self.counts / self.precision, self.precision**-0.5
        clear = np.where(noisy_counts > _NOISE_DEVIATIONS * deviation, noisy_counts, 0.0)
        kept = clear if clear.sum() >= _CLEAR_SHARE * self.values else noisy_counts
        shares = project_to_simplex(kept, total=self.values) / self.values
        share = min(max(self._outer, _QUANTILE_NOISE * deviation / self.values), _MOST_QUANTILE)
        edges = np.linspace(self.bins.low, self.bins.high, self.bins.number + 1)
        below = np.concatenate([[0.0], np.cumsum(shares)])
        low = _quantile(edges, below, share)
        # From the other end, so that a flat piece in between counts for neither.
        high = -_quantile(-edges[::-1], 1 - below[::-1], share)
        if share > self._outer:
            normal = statistics.NormalDist()
            stretch = normal.inv_cdf(self._outer) / min(normal.inv_cdf(share), -1e-9)
            reach = (high - low) / 2 * min(stretch, _MOST_STRETCH)
            middle = (low + high) / 2
            low, high = middle - reach, middle + reach
        if high - low < self._least:
            middle = (low + high) / 2
            low, high = middle - self._least / 2, middle + self._least / 2
        return max(low, self.bins.low), min(high, self.bins.high)

    def _within_limits(self, low: float, high: float) -> tuple[float, float]:
        """Return a range that keeps the study's limits and is not empty."""
        least = -math.inf if self.low is None else self.low
        most = math.inf if self.high is None else self.high
        low, high = min(max(low, least), most), max(min(high, most), least)
        # As far apart as floats tell from each other with some grid between.
        apart = max(1e-9 * max(abs(low), abs(high)), 2.0**LEAST_POWER)
        if high - low < apart:
            low, high = max(low - apart, least), min(high + apart, most)
        return low, high


def _occupied(noisy_counts: FloatArray, *, deviation: float, few: bool) -> tuple[int, int, bool]:
    """Return the first and last bin of scale with values, and whether they are above the noise.

    Of few values tails may be clear in the widest windows alone.
    """
    least = _OTHERS_SEED if few else _SEED_DEVIATIONS
    first, last = len(noisy_counts), -1
    best: tuple[float, int, int] = (-math.inf, 0, 0)
    for width in _SEED_WINDOWS:
        sums = np.convolve(noisy_counts, np.ones(width), mode="valid")
        clear = np.flatnonzero(sums > least * math.sqrt(width) * deviation)
        if len(clear):
            first, last = min(first, int(clear[0])), max(last, int(clear[-1]) + width - 1)
            if not few:
                break
        strongest = int(sums.argmax())
        best = max(best, (float(sums[strongest]) / math.sqrt(width), strongest, width))
    if last < 0:
        return best[1], best[1] + best[2] - 1, False
    beside = noisy_counts > _BESIDE_DEVIATIONS * deviation
    while first > 0 and beside[first - 1]:
        first -= 1
    while last < len(noisy_counts) - 1 and beside[last + 1]:
        last += 1
    return first, last, True


def _edge(number: int) -> float:
    """Return where a bin of scale begins; bins are in ascending order, zero in the middle."""
    if number <= POWERS:
        return -(2.0 ** (MOST_POWER - number))
    return 2.0 ** (LEAST_POWER + number - POWERS - 1)


def _smallest_window(
    noisy_counts: FloatArray, *, values: float, deviation: float
) -> tuple[int, int] | None:
    """Return start and width of the smallest window with nearly all values; None without one.

    With half of its width on both sides it is at most half of all bins.
    """
    is_fine = len(noisy_counts) == FINE_BINS
    share, times = (_FINE_SHARE, _FINE_NOISE) if is_fine else (_EQUAL_SHARE, _EQUAL_NOISE)
    must = np.flatnonzero(noisy_counts[1:-1] > _ZOOM_BIN * deviation) + 1
    for width in range(2, len(noisy_counts) // 4 + 1):
        needed = share * values + times * math.sqrt(width) * deviation
        if needed < _FINE_LEAST * values:
            return None
        sums = np.convolve(noisy_counts, np.ones(width), mode="valid")
        if len(must):
            sums[must[0] + 1 :] = -math.inf
            sums[: max(must[-1] - width + 1, 0)] = -math.inf
        best = int(sums.argmax())
        if sums[best] > needed:
            return best, width
    return None


def _without_ends(counts: FloatArray, first: int, last: int, *, most: float) -> tuple[int, int]:
    """Leave bins at both ends out as long as they have no more than so many values together."""
    below = above = 0.0
    while first < last and below + counts[first] <= most:
        below += float(counts[first])
        first += 1
    while last > first and above + counts[last] <= most:
        above += float(counts[last])
        last -= 1
    return first, last


def _with_room(low: float, high: float, *, number: int) -> Bins:
    """Return bins over a range, with one at either end for what is outside."""
    step = (high - low) / (number - 2)
    return Bins(low=low - step, high=high + step, number=number)


def _quantile(edges: FloatArray, below: FloatArray, share: float) -> float:
    """Return where a share of the values lies below, evenly within a bin."""
    at = int(np.searchsorted(below, share, side="right"))
    at = min(max(at, 1), len(edges) - 1)
    inside = below[at] - below[at - 1]
    part = (share - below[at - 1]) / inside if inside > 0 else 0.0
    return float(edges[at - 1] + min(max(part, 0.0), 1.0) * (edges[at] - edges[at - 1]))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return a range with few digits that holds another, wider by a fiftieth at most."""
    width = high - low
    if not 1e-12 < width < 1e17:
        return low, high
    step = 10.0 ** (math.floor(math.log10(width)) - 2)
    whole = math.floor(low / step), math.ceil(high / step)
    if max(abs(end) for end in whole) > 2**50:
        return low, high
    # Dividing by a whole number keeps 0.1 what people write, where multiplying does not.
    if step < 1:
        return whole[0] / round(1 / step), whole[1] / round(1 / step)
    return whole[0] * step, whole[1] * step
