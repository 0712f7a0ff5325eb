"""Three made-up organisations for the demonstration, generated from a seed."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.study import Column, PartySpec


class DemoCustomers(NamedTuple):
    """Three organisations that know different things about the same customers.

    Attributes:
        parties: What the organisations would agree on: columns with public bounds.
        tables: Their tables, in the same order as `parties`; ids in column "id", rows in an order
            of their own.
        segments: The hidden truth: columns "id" and "segment", ordered by id.
    """

    parties: tuple[PartySpec, ...]
    tables: tuple[pa.Table, ...]
    segments: pa.Table


SEGMENTS = (
    "students",
    "young professionals",
    "young families",
    "affluent retirees",
    "thrifty retirees",
)
DEPARTMENTS = ("groceries", "clothing", "electronics", "home and garden")

_SHARES = np.array([0.22, 0.20, 0.26, 0.14, 0.18])

# Typical values, one a segment in the order of SEGMENTS. The bank sees who has money and who has a
# mortgage, the insurer who is young, the retailer who shops for a household. Every one of them is
# needed: only the bank tells students from professionals, only the insurer students from thrifty
# retirees, only the retailer professionals from families.
_INCOME = np.array([1_500, 4_700, 4_600, 3_800, 1_600])
_BALANCE = np.array([2_500, 10_000, 9_000, 50_000, 3_200])
_CARD_PAYMENTS = np.array([26, 58, 60, 36, 24])
_DEBT = np.array([6_000, 165_000, 180_000, 7_000, 5_000])
_AGE = np.array([26, 31, 34, 70, 71])
_CLAIMS = np.array([0.7, 0.8, 1.0, 3.8, 4.0])
_PREMIUM = np.array([560, 640, 700, 1_650, 1_600])
_POLICIES = np.array([1.9, 2.1, 2.4, 5.0, 4.8])
_VISITS = np.array([4.5, 4, 14, 13, 5.5])
_BASKET = np.array([27, 31, 98, 94, 25])
_ONLINE = np.array([0.66, 0.68, 0.28, 0.24, 0.58])
_RETURNS = np.array([0.16, 0.17, 0.07, 0.06, 0.13])
_DEPARTMENT = np.array(
    [
        [0.30, 0.32, 0.30, 0.08],
        [0.28, 0.32, 0.30, 0.10],
        [0.52, 0.14, 0.06, 0.28],
        [0.48, 0.12, 0.06, 0.34],
        [0.38, 0.30, 0.22, 0.10],
    ]
)


def demo_customers(n: int = 20_000, *, seed: int = 2026) -> DemoCustomers:
    """Make up a bank, an insurer and a retailer with the same n customers.

    Five segments differ in what the organisations see, and within a segment a customer's wealth
    moves columns at all three. No organisation, nor any two of them, can find the segments alone.
    """
    _validate.at_least(1, n=n)
    rng = np.random.default_rng(seed)
    segment = rng.choice(len(SEGMENTS), size=n, p=_SHARES)
    wealth = rng.normal(size=n)
    width = max(6, len(str(n)))
    ids = np.array([f"C-{number:0{width}d}" for number in range(1, n + 1)])
    columns = (
        _bank_columns(segment, wealth, rng),
        _insurer_columns(segment, wealth, rng),
        _retailer_columns(segment, wealth, rng),
    )
    tables = []
    for own in columns:
        order = rng.permutation(n)
        tables.append(pa.table({"id": ids[order]} | {k: v[order] for k, v in own.items()}))
    truth = pa.table({"id": ids, "segment": np.array(SEGMENTS)[segment]})
    return DemoCustomers(parties=demo_parties(), tables=tuple(tables), segments=truth)


def demo_parties() -> tuple[PartySpec, ...]:
    """Return the public columns of the demonstration's bank, insurer and retailer."""
    bank = PartySpec(
        name="bank",
        columns=(
            Column(name="monthly_income", low=0, high=8_000),
            Column(name="account_balance", low=0, high=80_000),
            Column(name="card_payments_per_month", low=0, high=100),
            Column(name="loan_debt", low=0, high=300_000),
        ),
    )
    insurer = PartySpec(
        name="insurer",
        columns=(
            Column(name="age", low=18, high=90),
            Column(name="claims_in_five_years", low=0, high=8),
            Column(name="yearly_premium", low=0, high=2_500),
            Column(name="policies_held", low=0, high=8),
        ),
    )
    retailer = PartySpec(
        name="retailer",
        columns=(
            Column(name="store_visits_per_month", low=0, high=25),
            Column(name="basket_value", low=0, high=150),
            Column(name="online_share", low=0, high=100),
            Column(name="returns_share", low=0, high=40),
            # A weight below 1: two departments would else be as far apart as 0 % and 100 % online.
            Column(name="favourite_department", categories=DEPARTMENTS, weight=0.25),
        ),
    )
    return bank, insurer, retailer


def _bank_columns(
    segment: IntArray, wealth: FloatArray, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    return {
        "monthly_income": _amounts(_INCOME[segment], 0.12 * wealth, 0.12, rng, unit=10),
        "account_balance": _amounts(_BALANCE[segment], 0.15 * wealth, 0.20, rng, unit=0.01),
        "card_payments_per_month": rng.poisson(_CARD_PAYMENTS[segment]),
        "loan_debt": _amounts(_DEBT[segment], -0.08 * wealth, 0.18, rng, unit=100),
    }


def _insurer_columns(
    segment: IntArray, wealth: FloatArray, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    return {
        "age": np.clip(np.rint(rng.normal(_AGE[segment], 5)), 18, 99).astype(np.int64),
        "claims_in_five_years": rng.poisson(_CLAIMS[segment]),
        "yearly_premium": _amounts(_PREMIUM[segment], 0.08 * wealth, 0.14, rng, unit=0.01),
        "policies_held": 1 + rng.binomial(7, (_POLICIES[segment] - 1) / 7),
    }


def _retailer_columns(
    segment: IntArray, wealth: FloatArray, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    steps = np.cumsum(_DEPARTMENT, axis=1)[segment]
    department = (rng.uniform(size=(len(segment), 1)) > steps[:, :-1]).sum(axis=1)
    return {
        "store_visits_per_month": rng.poisson(_VISITS[segment]),
        "basket_value": _amounts(_BASKET[segment], 0.10 * wealth, 0.15, rng, unit=0.01),
        "online_share": _percentages(_ONLINE[segment], 40, rng, digits=0),
        "returns_share": _percentages(_RETURNS[segment], 60, rng, digits=1),
        "favourite_department": np.array(DEPARTMENTS)[department],
    }


def _amounts(
    typical: IntArray, shift: FloatArray, spread: float, rng: np.random.Generator, *, unit: float
) -> FloatArray:
    """Draw log-normal amounts around `typical`, rounded to whole units."""
    drawn = typical * np.exp(shift + spread * rng.normal(size=len(typical)))
    return np.round(np.rint(drawn / unit) * unit, 2)


def _percentages(
    mean: FloatArray, concentration: float, rng: np.random.Generator, *, digits: int
) -> FloatArray:
    """Draw beta-distributed shares, in per cent."""
    drawn = rng.beta(mean * concentration, (1 - mean) * concentration)
    return np.round(100 * drawn, digits)
