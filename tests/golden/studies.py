"""The studies of the golden runs, by name: the agreed settings and every party's tables.

Tables come from fixed generators. Settings are those of a study file and leave out everything that
has a default, so that a change of the optional methods does not touch this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Settings = dict[str, Any]
Tables = dict[str, pa.Table]
Values = npt.NDArray[np.float64]

_NAMES = ("bank", "shop", "clinic", *(f"party{at}" for at in range(3, 16)))
_REGIONS = np.array(["north", "south", "east", "west"])
_TARIFFS = np.array(["basic", "plus", "family", "business"])
# Small tables of many parties need more than the others to find anything.
_HIGH = {"epsilon": 4.0, "delta": 1e-5}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A study with its tables.

    Attributes:
        settings: The study, as the mapping of its file.
        runs: Every party's table in each run of the series; one entry for a study of one run.
    """

    settings: Settings
    runs: tuple[Tables, ...]


def _people(seed: int, users: int, width: int, groups: int) -> Values:
    """Return values of users in clear groups of different sizes, between 0 and 100."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(10, 90, (groups, width))
    odds = np.arange(groups + 1, 1, -1)
    group = rng.choice(groups, size=users, p=odds / odds.sum())
    return np.clip(centres[group] + rng.normal(0, 6, (users, width)), 0, 100)


def _numbers(width: int, **more: Any) -> list[Settings]:
    return [{"name": f"x{at}", "low": 0.0, "high": 100.0, **more} for at in range(width)]


def _study(columns: Mapping[str, list[Settings]], users: int, **more: Any) -> Settings:
    parties = [{"name": name, "id_column": "id", "columns": own} for name, own in columns.items()]
    return {
        "name": "golden",
        "parties": parties,
        "n_clusters": 5,
        "budget": {"epsilon": 2.0, "delta": 1e-5},
        "expected_users": users,
        **more,
    }


def numbers(seed: int, n_parties: int, *, users: int = 4000, width: int = 2, **more: Any) -> Case:
    """Every party has the same users, in its own order, and columns of numbers."""
    values = _people(seed, users, n_parties * width, more.get("n_clusters", 5))
    rng = np.random.default_rng([seed, 1])
    tables = {}
    for at, name in enumerate(_NAMES[:n_parties]):
        order = rng.permutation(users)
        own = {f"x{j}": values[order, at * width + j] for j in range(width)}
        tables[name] = pa.table({"id": [f"user-{number}" for number in order], **own})
    settings = _study({name: _numbers(width) for name in tables}, users, **more)
    return Case(settings=settings, runs=(tables,))


def partly(seed: int, n_parties: int, **more: Any) -> Case:
    """As `numbers`, but each party lacks one user in six."""
    case = numbers(seed, n_parties, ids={"type": "as-is"}, **more)
    rng = np.random.default_rng([seed, 2])
    (tables,) = case.runs
    some = {
        name: table.filter(pa.array(rng.random(len(table)) < 5 / 6))
        for name, table in tables.items()
    }
    return replace(case, runs=(some,))


def mixed(seed: int, n_parties: int, *, users: int = 4000, **more: Any) -> Case:
    """Numbers and categories, missing values under every rule, and a column that counts more."""
    case = numbers(seed, n_parties, users=users)
    rng = np.random.default_rng([seed, 3])
    (plain,) = case.runs
    tables: Tables = {}
    columns: dict[str, list[Settings]] = {}
    for at, (name, table) in enumerate(plain.items()):
        first = table["x0"].to_numpy()
        level = np.digitize(first + rng.normal(0, 5, users), (30, 50, 70))
        shuffled = np.where(rng.random(users) < 0.7, level, rng.integers(4, size=users))
        given = {
            "x0": first,
            "x1": table["x1"].to_numpy(),
            "region": _REGIONS[level],
            "tariff": _TARIFFS[shuffled],
        }
        own = {key: pa.array(value, mask=rng.random(users) < 0.05) for key, value in given.items()}
        tables[name] = pa.table({"id": table["id"], **own})
        odd = at % 2 == 1
        columns[name] = [
            {"name": "x0", "low": 0.0, "high": 100.0, "missing": "midpoint", "weight": 1.5},
            {"name": "x1", "low": 0.0, "high": 100.0, "missing": "skip" if odd else 40.0},
            {"name": "region", "categories": _REGIONS.tolist(), "missing": "level"},
            {
                "name": "tariff",
                "categories": _TARIFFS.tolist(),
                "missing": "skip" if odd else "spread",
            },
        ]
    return Case(settings=_study(columns, users, **more), runs=(tables,))


def learned(seed: int) -> Case:
    """The run learns bounds of numbers, all categories of one column, and more of another."""
    case = mixed(seed, 2, users=6000, budget=_HIGH)
    columns = {
        party["name"]: [
            {"name": "x0", "bounds": "private", "missing": "midpoint"},
            {"name": "x1", "low": 0.0, "bounds": "private", "missing": "midpoint"},
            {"name": "region", "categories": "open", "missing": "level"},
            {
                "name": "tariff",
                "categories": ["basic", "plus"],
                "others": "open",
                "missing": "skip",
            },
        ]
        for party in case.settings["parties"]
    }
    return replace(case, settings=_study(columns, 6000, budget=_HIGH))


def series(seed: int) -> Case:
    """Two runs under one budget; the second has other users, and values that moved."""
    case = numbers(seed, 2, users=5000, width=3, renewal={"runs": 2}, expected_users=4000)
    (tables,) = case.runs
    # Both parties keep the same users: ids end in the user's number.
    number = {
        name: np.array([int(text.split("-")[1]) for text in table["id"].to_pylist()])
        for name, table in tables.items()
    }
    first = {name: table.filter(number[name] < 4000) for name, table in tables.items()}
    second = {name: table.filter(number[name] >= 1000) for name, table in tables.items()}
    for name, table in second.items():
        moved = np.minimum(table["x0"].to_numpy() + 5, 100)
        second[name] = table.set_column(1, "x0", pa.array(moved))
    return replace(case, runs=(first, second))


def counts_alone(seed: int) -> Case:
    """How many users are at which of three parties, and nothing else."""
    case = partly(seed, 3, n_clusters=1, expected_users=4000)
    (tables,) = case.runs
    settings = case.settings | {
        "parties": [party | {"columns": []} for party in case.settings["parties"]]
    }
    return Case(
        settings=settings, runs=({name: table.select(["id"]) for name, table in tables.items()},)
    )


def users_counted(seed: int) -> Case:
    """Nobody says how many users there are: the parties release noisy numbers first."""
    case = numbers(seed, 3)
    settings = {key: value for key, value in case.settings.items() if key != "expected_users"}
    return replace(case, settings=settings)


# The study that is run over a folder mailbox; all others run in one process.
MAILBOX = "mailbox"

_TOWARDS = {"epsilon": 4.0, "delta": 1e-5, "party_epsilon": 4.0, "coalition_epsilon": 6.0}

STUDIES: Mapping[str, Callable[[], Case]] = {
    "two": partial(numbers, 1, 2, width=3),
    "two-partial": partial(partly, 2, 2, width=3),
    "two-mixed": partial(mixed, 3, 2),
    "three": partial(users_counted, 4),
    "three-partial": partial(partly, 5, 3),
    "three-everyone": partial(partly, 6, 3, population="everyone"),
    "three-mixed": partial(mixed, 7, 3, scaling="equal"),
    "eight": partial(numbers, 8, 8),
    "eight-bundled": partial(numbers, 20, 8, n_clusters=14),
    "eight-partial": partial(partly, 9, 8, width=1, budget=_HIGH),
    "sixteen": partial(numbers, 10, 16, users=3000, width=1, budget=_HIGH),
    "learned": partial(learned, 11),
    "series": partial(series, 12),
    "detail": partial(mixed, 13, 2, detail={"share": 0.4}),
    "counts-alone": partial(counts_alone, 14),
    "sketch": partial(
        numbers, 15, 2, membership="sketch", sketch={"repetitions": 512}, budget=_HIGH
    ),
    "sketch-three": partial(
        numbers, 16, 3, membership="sketch", sketch={"repetitions": 512}, budget=_HIGH
    ),
    "coalition": partial(numbers, 17, 2, decoy={"collusion_epsilon": 2.0}, budget=_TOWARDS),
    "sampled": partial(numbers, 18, 2, decoy={"max_users": 2000}),
    MAILBOX: partial(partly, 19, 3),
}
