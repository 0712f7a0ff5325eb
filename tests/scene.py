"""The small study that most suites start from, its participants' keys, and their tables.

A suite that needs another study passes what differs: `make_study(n_local_clusters=3)`.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from splitmeans.study import Budget, Column, PartySpec, SketchOptions, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER

N_USERS = 300


def key_of(name: str) -> Identity:
    """An identity that is the same in every test run."""
    seeds = [hashlib.sha256(f"{use} of {name}".encode()).digest() for use in ("sign", "seal")]
    return Identity(signing=seeds[0], sealing=seeds[1])


KEYS = {name: key_of(name) for name in ("bank", "shop", "clinic", SERVER, "mallory")}


def numbers(*names: str, low: float = 0, high: float = 100) -> tuple[Column, ...]:
    """Columns of numbers with these names."""
    return tuple(Column(name=name, low=low, high=high) for name in names)


def make_study(
    membership: str = "decoy",
    n_parties: int = 2,
    *,
    names: Sequence[str] = (),
    columns: tuple[Column, ...] = numbers("x", "y"),
    **changes: Any,
) -> Study:
    """A study for simulations: everyone has the same columns, nobody has a key.

    Args:
        membership: The membership method.
        n_parties: Number of parties org0, org1, and so on.
        names: The parties' names instead.
        columns: Of each party.
        changes: Anything else of a study.
    """
    given = names or [f"org{number}" for number in range(n_parties)]
    facts: dict[str, Any] = {
        "name": "small",
        "parties": tuple(PartySpec(name=name, columns=columns) for name in given),
        "n_clusters": 3,
        "budget": Budget(epsilon=4, delta=1e-4),
        "membership": membership,
        "n_local_clusters": 4,
        "expected_users": N_USERS,
        "sketch": SketchOptions(repetitions=64),
        "ids": AS_IS,
    }
    return Study(**facts | changes)


def keyed_study(*names: str, **changes: Any) -> Study:
    """A study between organisations: parties of `KEYS`, and the server's key."""
    columns = numbers("x", "y")
    parties = tuple(
        PartySpec(name=name, columns=columns, public_key=KEYS[name].public.to_text())
        for name in names or ("bank", "shop")
    )
    server_key = KEYS[SERVER].public.to_text()
    return make_study(**{"parties": parties, "server_key": server_key} | changes)


def with_key(study: Study, party: str, key: Identity) -> Study:
    """The study with another key for one party."""
    text = key.public.to_text()
    parties = tuple(
        dataclasses.replace(spec, public_key=text) if spec.name == party else spec
        for spec in study.parties
    )
    return dataclasses.replace(study, parties=parties)


def make_table(
    study: Study, party: str, *, n_users: int = N_USERS, ids: Sequence[str] = ()
) -> PartyTable:
    """A party's table: the same users everywhere, values spread evenly between the bounds."""
    spec = study.party(party)
    rng = np.random.default_rng([n_users, *party.encode()])
    bounds = np.array([(column.low, column.high) for column in spec.columns])
    rows = rng.uniform(*bounds.T, (n_users, len(spec.columns)))
    return prepare_table(spec, rows, ids=ids or [f"user-{number}" for number in range(n_users)])


def make_tables(study: Study, **facts: Any) -> list[PartyTable]:
    """Every party's table, in the study's order."""
    return [make_table(study, party, **facts) for party in study.party_names]
