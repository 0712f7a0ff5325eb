"""Random studies over every field, with small random tables that fit them.

Everything follows from a seed. Most studies are valid; what is not is refused when the study is
read or planned, before anything would be released.
"""

import itertools
import math
import random
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from splitmeans.study import Study
from tests.studies.names import categories, name, names

Table = dict[str, list[Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A study as the mapping of its TOML, and a table for each party.

    Attributes:
        seed: What the case was drawn from.
        settings: The study, not yet checked.
        tables: For each party its columns by name, the id column among them.
        secure: Draw noise as a real run does, which no seed repeats.
    """

    seed: int
    settings: dict[str, Any]
    tables: dict[str, Table] = field(repr=False)
    secure: bool = False

    def study(self) -> Study:
        """Return the checked study; raises what a reader of the file would be told."""
        return Study.from_mapping(self.settings)

    @property
    def users(self) -> int:
        """The most rows that a party has."""
        return max(len(next(iter(table.values()))) for table in self.tables.values())

    def with_settings(self, **changes: Any) -> "Case":
        return replace(self, settings={**self.settings, **changes})


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(f"splitmeans study {seed}")
    parties = _parties(chance)
    users = _n_users(chance)
    partial = chance.random() < 0.3
    settings: dict[str, Any] = {
        "name": name(chance),
        "parties": parties,
        "n_clusters": _n_clusters(chance),
        "expected_users": max(1, round(users * 10 ** chance.uniform(-2, 2))),
        **_methods(chance, partial=partial, n_parties=len(parties)),
    }
    settings["budget"] = _budget(chance, settings["expected_users"])
    id_type = chance.choice(
        ("as-is", "as-is", "text", "caseless", "integer", "uuid", "email", "phone")
    )
    rules: dict[str, Any] = {"type": id_type}
    if id_type == "phone" and chance.random() < 0.5:
        rules["country"] = "+49"
    if chance.random() < 0.2:
        rules["pattern"] = chance.choice((".+", r"[\s\S]{1,400}"))
    if chance.random() < 0.15:
        settings["ids"] = _several_keys(chance, parties, rules)
    elif partial or rules != {"type": "as-is"}:
        settings["ids"] = rules
    tables = _tables(chance, parties, users=users, partial=partial, id_type=id_type)
    _hide_bounds(random.Random(f"splitmeans bounds {seed}"), settings)
    asks = random.Random(f"splitmeans detail {seed}")
    has_points = settings.get("local", "auto") in ("auto", "guided-lloyd")
    if asks.random() < (0.3 if has_points else 0.02):
        settings["detail"] = {"share": asks.choice((0.05, 0.25, 0.4, 0.8))}
    _run_again_or_count(random.Random(f"splitmeans series {seed}"), settings, tables)
    return Case(seed=seed, settings=settings, tables=tables, secure=chance.random() < 0.05)


def _run_again_or_count(
    chance: random.Random, settings: dict[str, Any], tables: dict[str, Table]
) -> None:
    """Make some studies a series of runs, and some a study of counts alone."""
    if chance.random() < 0.1 and ("detail" not in settings or chance.random() < 0.05):
        settings["renewal"] = {"runs": chance.choice((2, 2, 3, 8, 40))}
        if chance.random() < 0.5:
            settings["renewal"]["every"] = "3 months"
    if settings.get("user_sets") != "partial" or chance.random() < 0.9:
        return
    for field_name in ("local", "grid", "population", "n_local_clusters", "sketch", "detail"):
        settings.pop(field_name, None)
    settings.pop("bounds", None)
    settings.get("decoy", {}).pop("collusion_epsilon", None)
    settings.update(n_clusters=1, membership="decoy")
    for party in settings["parties"]:
        for column in party["columns"]:
            tables[party["name"]].pop(column["name"])
        party["columns"] = []


def _hide_bounds(chance: random.Random, settings: dict[str, Any]) -> None:
    """Have a run learn some bounds and categories, in some studies; the values stay what they are.

    With the few users of these tables what is learned is mostly noise, which must stop nothing: the
    study expects more, so that it is not refused.
    """
    if settings["budget"]["epsilon"] < 0.5 or chance.random() < 0.7:
        return
    settings["expected_users"] = max(settings["expected_users"], 50_000)
    settings["budget"]["delta"] = min(settings["budget"]["delta"], 1e-6)
    if chance.random() < 0.3:
        settings["bounds"] = "private"
    for column in (column for party in settings["parties"] for column in party["columns"]):
        if "categories" in column and chance.random() < 0.5:
            listed = column["categories"]
            column["categories"] = listed[: chance.randrange(len(listed))] or "open"
            column["others"] = "open"
        if "low" in column and chance.random() < 0.6:
            column["bounds"] = "private"
            usual = max(abs(column["low"]), abs(column["high"]), 1e-3)
            too_close = column["high"] - column["low"] < 1e-6 * usual
            for end in ("low", "high"):
                if too_close or abs(column[end]) > 1e15 or chance.random() < 0.6:
                    del column[end]


def _parties(chance: random.Random) -> list[dict[str, Any]]:
    n_parties = chance.choice((2,) * 10 + (3,) * 5 + (4, 4, 5, 6, 7, 8, 10, 13, 16))
    most = 60 if n_parties == 2 else 12
    return [
        {
            "name": party,
            "id_column": id_column,
            "columns": _columns(chance, names(chance, _n_columns(chance, most), taken={id_column})),
        }
        for party in names(chance, n_parties, taken={"server"})
        for id_column in (chance.choice(("id", "id", name(chance))),)
    ]


def _several_keys(
    chance: random.Random, parties: list[dict[str, Any]], rules: dict[str, Any]
) -> dict[str, Any]:
    """Give parties several keys, one of which all of them have: that of their id column."""
    shared, other = names(chance, 2, taken=set())
    keys = [{"name": shared, **rules}, {"name": other, "type": "text"}]
    chance.shuffle(keys)
    for place, party in enumerate(parties):
        party["id_columns"] = [{"key": shared, "column": party["id_column"]}]
        if place and chance.random() < 0.5:
            taken = {party["id_column"], *(column["name"] for column in party["columns"])}
            (column,) = names(chance, 1, taken=taken)
            party["id_columns"].insert(0, {"key": other, "column": column})
    return {"keys": keys}


def _n_columns(chance: random.Random, most: int) -> int:
    return chance.choice((1, 1, 2, 2, 3, 4, 5, chance.randint(1, most)))


def _columns(chance: random.Random, called: list[str]) -> list[dict[str, Any]]:
    columns = [_column(chance, one) for one in called]
    if all(column.get("missing") == "skip" for column in columns) and chance.random() < 0.9:
        del columns[0]["missing"]  # refused: somebody could be without any value
    features = sum(
        len(column.get("categories", " ")) + (column.get("missing") == "level")
        for column in columns
    )
    # Distances are exact up to about this weight; now and then a study asks for more.
    most = math.sqrt(2000 / features) if chance.random() < 0.95 else 44
    for column in columns:
        if chance.random() < 0.25:
            wanted = chance.choice((0.001, 0.5, 2, 7, 44, 10 ** chance.uniform(-3, 1.64)))
            column["weight"] = min(wanted, most)
    return columns


def _column(chance: random.Random, called: str) -> dict[str, Any]:
    column: dict[str, Any] = {"name": called}
    if chance.random() < 0.25:
        column["categories"] = categories(
            chance, chance.choice((2, 2, 3, 5, chance.randint(2, 40)))
        )
        if chance.random() < 0.3:
            column["missing"] = chance.choice(("level", "spread", "skip"))
        return column
    column["low"], column["high"] = _bounds(chance)
    if chance.random() < 0.3:
        column["missing"] = chance.choice(("midpoint", "skip", 0.0, column["low"], 1e300, -3.5))
    return column


def _bounds(chance: random.Random) -> tuple[float, float]:
    kind = chance.random()
    if kind < 0.5:
        low = chance.choice((-100.0, -1.0, 0.0, 0.0, 18.0))
        return low, low + chance.choice((1.0, 2.0, 82.0, 1e4))
    if kind < 0.75:
        middle, width = chance.uniform(-1, 1), 10 ** chance.uniform(-12, 12)
        return middle * width, middle * width + width
    return chance.choice(
        (
            (0.0, 5e-324),
            (-1e-310, 1e-310),
            (1e-300, 2e-300),
            (1.0, 1.0 + 2**-52),
            (1e16, 1e16 + 4),
            (-8e307, 9e307),
            (0.0, 1.7e308),
            (-1.7e308, -1e308),
            (2.0**53, 2.0**53 + 2**10),
        )
    )


def _n_users(chance: random.Random) -> int:
    return chance.choice((1, 2, 3, 5, 17, 40, 100, 100, 200, 300, chance.randint(1, 1500)))


def _n_clusters(chance: random.Random) -> int:
    return chance.choice((2, 2, 3, 3, 4, 5, 5, 6, 8, 12, chance.randint(2, 40), 200))


def _budget(chance: random.Random, expected_users: int) -> dict[str, Any]:
    # A few values most of the time, so that a long run calibrates most noise once (`planning`).
    epsilon = chance.choice((0.01, 0.1, 0.5, 1.0, 1.0, 2.0, 8.0, 12.0))
    if chance.random() < 0.05:
        epsilon = 10 ** chance.uniform(-2, math.log10(12))
    small = 10.0 ** min(-5, -1 - math.ceil(math.log10(expected_users)))
    delta = chance.choice((small, small, small, 1e-10))
    if chance.random() < 0.05:
        delta = 10 ** chance.uniform(-10, -5)
    budget = {"epsilon": epsilon, "delta": delta}
    if chance.random() < 0.1:
        budget["party_epsilon"] = epsilon * chance.choice((1.0, 2.0))
    return budget


def _methods(chance: random.Random, *, partial: bool, n_parties: int) -> dict[str, Any]:
    """Return the methods; now and then a combination that a study refuses."""
    membership = chance.choice(
        ("decoy", "decoy", "decoy", "sketch" if n_parties == 2 else "decoy")
        if partial and chance.random() < 0.95
        else ("decoy",) * 10 + ("sketch",) * 5
    )
    chosen: dict[str, Any] = {"membership": membership}
    if partial:
        chosen["user_sets"] = "partial"
    if chance.random() < 0.35:
        grids = ["pairs", "many"]
        if n_parties > 2 and chance.random() < 0.95:
            # What a study of many parties allows.
            grids = ["auto"] if partial else grids
        chosen["grid"] = chance.choice(grids)
    if partial and chance.random() < 0.4:
        able = n_parties > 2 and membership == "decoy"
        chosen["population"] = "everyone" if able else "shared"
    if chance.random() < 0.4:
        chosen["n_local_clusters"] = chance.choice(
            (2, 3, 4, 5, 8, chance.randint(2, 30), chance.randint(2, 250) if n_parties == 2 else 6)
        )
    if membership == "sketch":
        chosen["sketch"] = _sketch(chance)
    if membership == "decoy" and chance.random() < 0.35:
        chosen["decoy"] = _decoy(chance)
    return chosen


def _sketch(chance: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {"repetitions": chance.choice((16, 17, 64, 100, 256, 1024, 4096))}
    if chance.random() < 0.4:
        options["gamma"] = chance.choice((0.01, 0.1, 0.5, 1, 3, chance.uniform(0.01, 3)))
    if chance.random() < 0.3:
        options["estimator"] = chance.choice(("calibrated", "printed"))
    return options


def _decoy(chance: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if chance.random() < 0.5:
        options["max_users"] = chance.choice((1000, 1500, 20_000))
    if chance.random() < 0.6:
        options["collusion_epsilon"] = chance.choice((1e-3, 0.1, 1, 3, 10, 40, 800))
    return options


def _tables(
    chance: random.Random,
    parties: list[dict[str, Any]],
    *,
    users: int,
    partial: bool,
    id_type: str,
) -> dict[str, Table]:
    ids = _ids(chance, 2 * users, id_type)
    overlap = chance.choice(("all", "most", "some", "none")) if partial else "all"
    firsts = itertools.count()
    tables = {}
    for party in parties:
        own = _own_ids(chance, ids, users=users, overlap=overlap, place=next(firsts))
        table: Table = {party["id_column"]: own}
        groups = [chance.random() for _ in own]
        for column in party["columns"]:
            table[column["name"]] = _values(chance, column, groups)
        tables[party["name"]] = table
    return tables


def _own_ids(
    chance: random.Random, ids: list[Any], *, users: int, overlap: str, place: int
) -> list[Any]:
    if overlap == "none":
        # Every party has a part of its own; with more parties than ids some share one.
        own = ids[place::16] or ids[:1]
    elif overlap == "all":
        own = ids[:users]
    else:
        share = 0.8 if overlap == "most" else 0.3
        own = [one for one in ids[:users] if chance.random() < share] or ids[:1]
    own = list(own)
    chance.shuffle(own)
    return own


def _ids(chance: random.Random, count: int, id_type: str) -> list[Any]:
    if id_type == "uuid":
        return [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(count)]
    numbers = chance.sample(range(10 * count), count)
    if id_type == "email":
        return [f"Person.{number}@Example.org" for number in numbers]
    if id_type == "phone":
        return [f"+49 (0)30 {number:07}" for number in numbers]
    if id_type == "integer" or chance.random() < 0.5:
        return numbers
    form = chance.choice(("{:06}", "user-{}", "Größe {}", "{} 🙂", "x" * 300 + "{}", 'a,"{}"'))
    return [form.format(number) for number in numbers]


def _values(chance: random.Random, column: dict[str, Any], groups: list[float]) -> list[Any]:
    """Return a column's values: groups of users, one value for all, noise, or out of bounds."""
    missing = 0.1 if column.get("missing", "error") != "error" else 0.0
    kind = chance.choice(("groups", "groups", "constant", "uniform", "ends", "outside"))
    if "categories" in column:
        listed = column["categories"]
        pick = {
            "groups": lambda group: listed[int(group * 3) % len(listed)],
            "constant": lambda group: listed[-1],
        }.get(kind, lambda group: chance.choice(listed))
    else:
        low, high = column["low"], column["high"]
        same = chance.random()

        def between(share: float) -> float:
            return min(max(low * (1 - share) + high * share, low), high)

        pick = {
            "groups": lambda group: between(min(1.0, (int(group * 3) + chance.random() / 5) / 3)),
            "constant": lambda group: between(same),
            "uniform": lambda group: between(chance.random()),
            "ends": lambda group: chance.choice((low, high)),
            "outside": lambda group: (
                chance.choice((-1.0, 1.0)) * chance.choice((1e308, 1e-320, 7.0))
            ),
        }[kind]
    return [None if chance.random() < missing else pick(group) for group in groups]
