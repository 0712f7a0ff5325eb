"""Drawn tables of the kind that a census office and a bank have: mixed, skewed, with atoms.

Columns hang together through a few hidden causes and through each other, so that there is more to
learn than pairs of columns. No real person is in them.
"""

from typing import Any

import numpy as np

from splitmeans._types import FloatArray, IntArray

Columns = dict[str, Any]

_WORK = ("private", "public", "self-employed", "none")
_SCHOOL = ("basic", "secondary", "some college", "bachelor", "higher")
_STATUS = ("never married", "married", "separated", "widowed")
_JOB = ("office", "manual", "service", "professional", "manager", "none")
_HOUSING = ("rents", "owns", "mortgage")
_EMPLOYMENT = ("permanent", "fixed-term", "self-employed", "retired", "none")
_PURPOSE = ("car", "home", "debts", "travel", "other")


def draw_census(n: int, *, rng: np.random.Generator) -> Columns:
    """Draw people: age, family, school, work, and whether they are rich."""
    age = np.clip(np.rint(17 + rng.gamma(2.6, 9.0, n)), 17, 90)
    ability = rng.normal(size=n)
    male = rng.random(n) < 0.52
    school = _ordered(0.9 * ability + 0.01 * (age - 30) - 0.2, (-1.2, 0.1, 0.9, 1.8), rng)
    retired = rng.random(n) < _logistic((age - 65) / 3)
    away = (rng.random(n) < 0.12) & (age < 25) | (rng.random(n) < np.where(male, 0.05, 0.16))
    idle = retired | away
    married = rng.random(n) < _logistic((age - 28) / 5) * 0.7
    status = np.where(married, 1, np.where(rng.random(n) < _logistic((age - 38) / 6), 2, 0))
    status = np.where(~married & (rng.random(n) < _logistic((age - 70) / 5)), 3, status)
    own = rng.random(n) < _logistic(-2.6 + 0.03 * (age - 35) + 0.4 * male)
    public = rng.random(n) < _logistic(-2.2 + 0.35 * school)
    work = np.where(idle, 3, np.where(own, 2, np.where(public, 1, 0)))
    job = _ordered(0.9 * school + 0.7 * ability + rng.normal(size=n), (0.2, 1.2, 2.4, 4.0), rng)
    job = np.array([1, 2, 0, 3, 4])[job]
    job = np.where((job == 1) & ~male & (rng.random(n) < 0.7), 2, job)
    job = np.where(idle, 5, job)
    full = np.where(rng.random(n) < 0.55, 40, np.rint(rng.normal(43, 9, n)))
    part = np.rint(rng.normal(22, 7, n))
    hours = np.where(rng.random(n) < np.where(male, 0.08, 0.3), part, full) + 6 * (work == 2)
    hours = np.clip(np.where(idle, 0, hours), 0, 99)
    children = rng.poisson(np.where(status == 0, 0.1, np.clip((age - 20) / 9, 0, 2.1)))
    odds = (
        -4.2 + 0.75 * school + 1.5 * married + 0.045 * (hours - 30) + 0.7 * (job >= 3) * (job < 5)
    )
    odds += 0.04 * np.minimum(age - 25, 25) + 0.4 * ability + 0.5 * (work == 2) * (school > 2)
    rich = rng.random(n) < _logistic(odds - 0.7)
    gains = rng.random(n) < _logistic(-3.4 + 1.6 * rich + 0.02 * (age - 40))
    gain = np.where(gains, np.rint(rng.lognormal(8.3 + 0.6 * rich, 0.7, n)), 0)
    origin = np.where(rng.random(n) < 0.82 - 0.08 * (school == 0), 0, 1 + (rng.random(n) < 0.45))
    return {
        "age": age,
        "work": np.array(_WORK)[work],
        "school": np.array(_SCHOOL)[school],
        "status": np.array(_STATUS)[status],
        "job": np.array(_JOB)[job],
        "origin": np.array(("here", "near", "far"))[origin],
        "sex": np.where(male, "male", "female"),
        "capital_gain": np.minimum(gain, 99_999),
        "hours": hours,
        "children": np.minimum(children, 12).astype(np.float64),
        "rich": np.where(rich, "yes", "no"),
    }


def draw_credit(n: int, *, rng: np.random.Generator) -> Columns:
    """Draw borrowers: means, the credit, their record, and whether they default."""
    age = np.clip(np.rint(rng.normal(44, 14, n)), 18, 88)
    care = rng.normal(size=n)
    means = rng.normal(size=n) + 0.02 * np.minimum(age - 40, 15)
    retired = rng.random(n) < _logistic((age - 64) / 2)
    job = _ordered(0.5 * care + 0.4 * means + rng.normal(size=n), (-2.0, -0.9, 1.7), rng)
    employment = np.where(retired, 3, np.array([4, 1, 0, 2])[job])
    pay = np.array([0.25, -0.15, 0.3, -0.2, -0.9])[employment]
    income = np.rint(np.exp(7.75 + 0.35 * means + pay + 0.2 * rng.normal(size=n)) / 10) * 10
    home = _ordered(0.05 * (age - 45) + 0.8 * means + rng.normal(size=n), (0.5, 1.6), rng)
    housing = np.array([0, 2, 1])[home]
    purpose = np.where(
        rng.random(n) < 0.35,
        2,
        np.array([0, 1, 3, 4])[
            np.minimum((rng.random(n) * 4 + 0.6 * (housing == 0)).astype(int), 3)
        ],
    )
    scale = np.array([14_000, 22_000, 9_000, 4_000, 6_000])[purpose]
    amount = np.rint(scale * np.exp(0.25 * means + 0.5 * rng.normal(size=n)) / 500) * 500
    months = 12 * np.clip(np.rint(amount / 5_000 + rng.normal(1.5, 1.2, n)), 1, 10)
    cards = rng.poisson(np.exp(0.7 + 0.25 * means - 0.1 * care))
    level = -0.3 - 0.7 * care - 0.25 * means + 0.8 * rng.normal(size=n)
    utilisation = np.where(cards == 0, 0, np.round(1.1 * _logistic(level), 2))
    late = rng.poisson(np.exp(-1.4 - 0.9 * care - 0.2 * means))
    known = np.clip(np.rint((age - 18) * 12 * rng.beta(2, 1.6, n)), 0, 480)
    score = care + 0.3 * means - 0.35 * late + 0.003 * known + 0.4 * rng.normal(size=n)
    rating = 3 - _ordered(score, (-1.0, 0.1, 1.2), rng, spread=0.0)
    burden = amount / months / np.maximum(income, 300)
    odds = -3.4 + 0.5 * rating + 6 * np.minimum(burden, 0.5) + 0.25 * np.minimum(late, 4)
    odds += 0.7 * (employment == 4) + 0.8 * (utilisation > 0.8) - 0.5 * care
    default = rng.random(n) < _logistic(odds)
    return {
        "age": age,
        "income": income,
        "housing": np.array(_HOUSING)[housing],
        "employment": np.array(_EMPLOYMENT)[employment],
        "amount": amount,
        "months": months,
        "purpose": np.array(_PURPOSE)[purpose],
        "utilisation": utilisation,
        "cards": cards.astype(np.float64),
        "late_payments": late.astype(np.float64),
        "months_known": known,
        "rating": np.array(("A", "B", "C", "D"))[rating],
        "default": np.where(default, "yes", "no"),
    }


def _logistic(values: Any) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-values)))


def _ordered(
    scores: FloatArray, cuts: tuple[float, ...], rng: np.random.Generator, *, spread: float = 0.6
) -> IntArray:
    """Return how many of the cuts a score with some chance is above."""
    noisy = scores + spread * rng.normal(size=len(scores))
    return np.asarray(np.searchsorted(np.array(cuts), noisy), dtype=np.int64)
