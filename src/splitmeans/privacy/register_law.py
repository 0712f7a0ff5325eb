"""The law of a sketch register: the maximum of n geometric values, raised to a floor.

One value exceeds v with probability t_v = (1+gamma)^-v (paper, section 4.2), so a register of n
values is at most v with probability F(v)^n, F(v) = 1 - t_v. A user raises n by one, and a large n
makes the two laws almost equal; everything here is arranged so that their difference keeps full
relative precision in doubles. The accountant and the sketch's estimator both read the law from
this module.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.privacy.events import CellSketchEvent

# A word of 64 bits resolves no probability below this one.
_WORD = 2.0**-64
# Values whose probability is below this are left out: they change no sum of doubles.
_NEGLIGIBLE = 1e-290
# Below this the series of x - log(1 + x) is exact to a double and the formula is not.
_SERIES = 1e-3


def register_pmfs(event: CellSketchEvent) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the two laws of one row that a user of a cell without others moves between.

    The tables that registers are drawn from differ from these laws by `table_slack`.

    Returns:
        The values v, shape (V,), their probabilities p under F^phantoms (the user is away) and q
        under F^(phantoms + 1) (the user is there). Values below the floor count as the floor, and
        values that even phantoms + 1 elements exceed with probability below 2^-64 as the last.
    """
    values, p, change = _without_and_change(event)
    return values, p, p * (1 + change)


def row_divergences(event: CellSketchEvent) -> tuple[float, float]:
    """Return the Kullback-Leibler divergences D(p || q) and D(q || p) of `register_pmfs`."""
    _, p, x = _without_and_change(event)
    # p and q = p (1 + x) both sum to one, so sums of p x are zero and may be added to leave
    # only terms of one sign: x - log(1+x) = x^2/2 - ..., and (1+x) log(1+x) - x = x^2/2 - ...
    log = np.log1p(x)
    away = np.where(abs(x) < _SERIES, x**2 * (1 / 2 - x / 3 + x**2 / 4 - x**3 / 5), x - log)
    there = np.where(
        abs(x) < _SERIES, x**2 * (1 / 2 - x / 6 + x**2 / 12 - x**3 / 20), (1 + x) * log - x
    )
    return math.fsum(p * away), math.fsum(p * there)


def table_slack(event: CellSketchEvent) -> float:
    """Bound the total variation between drawn and accounted registers, all rows together.

    Registers are drawn by looking 64-bit words up in integer tables. A table of L thresholds is
    within (L + 1) 2^-65 of its law. The view of one user's presence depends on one draw a row from
    the phantom table and, if the user is there, on the draws of the user: one count, and for each
    of M t_floor rows on average a row number (uniform up to M 2^-64) and a value. Add
    (1 + e^epsilon) times this to a delta.
    """
    m = event.repetitions
    log_growth = math.log1p(event.gamma)
    value_entries = math.ceil(65 * math.log(2) / log_growth) + 1
    phantom_entries = math.ceil((65 * math.log(2) + math.log(event.phantoms)) / log_growth) + 1
    draws = m * math.exp(-event.floor * log_growth)
    phantom_part = m * (phantom_entries + 1) / 2
    user_part = (m + 1) / 2 + draws * (m + (value_entries + 1) / 2)
    # `register_pmfs` counts rare values as its last one: once more 2^-64 a row.
    return (phantom_part + user_part + m) * _WORD


def log_cdf(values: IntArray, *, gamma: float) -> FloatArray:
    """Return log F(v) for v >= 1, precise for every v."""
    x = -values * math.log1p(gamma)
    # The two forms of log(1 - e^x): each is precise on its side of log 2.
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(x > -0.69, np.log(-np.expm1(x)), np.log1p(-np.exp(x))))


def log_cdf_step(values: IntArray, *, gamma: float) -> FloatArray:
    """Return log F(v) - log F(v - 1) for v >= 1, precise for every v; infinite at v = 1."""
    log_growth = math.log1p(gamma)
    with np.errstate(divide="ignore"):
        before = np.abs(np.expm1((1 - values) * log_growth))  # F(v - 1)
        odds = gamma * np.exp(-values * log_growth) / before
    return np.asarray(np.log1p(odds))


def _without_and_change(event: CellSketchEvent) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the values, p, and the relative change (q - p) / p."""
    n, gamma = event.phantoms, event.gamma
    log_growth = math.log1p(gamma)
    # Every register is at least 1, so a floor of 0 is a floor of 1.
    floor = max(event.floor, 1)
    last = max(math.ceil((math.log(n + 1) - math.log(_WORD)) / log_growth), floor + 1)
    values = np.arange(floor, last + 1)
    tail = np.exp(-values * log_growth)
    log_f = log_cdf(values, gamma=gamma)
    step = log_cdf_step(values, gamma=gamma)
    step[0] = math.inf  # the floor takes everything below it

    # p(v) = F(v)^n - F(v-1)^n, and with e = (F(v) / F(v-1))^n - 1, from t_(v-1) = (1+gamma) t_v,
    # q(v) / p(v) - 1 = t_v (gamma / e - 1).
    p = np.exp(n * log_f) * -np.expm1(-n * step)
    with np.errstate(over="ignore"):
        change = tail * (gamma / np.expm1(n * step) - 1)
    # The last value stands for all from there on: 1 - F(v-1)^n, and t (1 - p) / p for the change.
    before = log_cdf(values[-1:] - 1, gamma=gamma)[0]
    p[-1] = -math.expm1(n * before)
    change[-1] = tail[-2] * math.exp(n * before) / p[-1]
    kept = p > _NEGLIGIBLE
    return values[kept], p[kept], change[kept]
