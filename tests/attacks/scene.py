"""Keys, small studies and tables that all attacks use."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.prepare import prepare_table
from splitmeans.table.walk.interface import Table
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER

N_USERS = 300


def key_of(name: str) -> Identity:
    """An identity that is the same in every test run."""
    seeds = [hashlib.sha256(f"{use} of {name}".encode()).digest() for use in ("sign", "seal")]
    return Identity(signing=seeds[0], sealing=seeds[1])


KEYS = {name: key_of(name) for name in ("bank", "shop", "clinic", SERVER, "mallory")}


def make_study(*names: str, **changes: Any) -> Study:
    """A small study of these parties, with everyone's keys."""
    columns = (Column(name="x", low=0, high=100), Column(name="y", low=0, high=100))
    facts: dict[str, Any] = {
        "name": "segments",
        "parties": tuple(
            PartySpec(name=name, columns=columns, public_key=KEYS[name].public.to_text())
            for name in names or ("bank", "shop")
        ),
        "n_clusters": 3,
        "budget": Budget(epsilon=4, delta=1e-4),
        "n_local_clusters": 4,
        "expected_users": N_USERS,
        "ids": AS_IS,
        "server_key": KEYS[SERVER].public.to_text(),
    }
    return Study(**facts | changes)


def with_key(study: Study, party: str, key: Identity) -> Study:
    """The study with another key for one party."""
    text = key.public.to_text()
    parties = tuple(
        dataclasses.replace(spec, public_key=text) if spec.name == party else spec
        for spec in study.parties
    )
    return dataclasses.replace(study, parties=parties)


def make_table(study: Study, party: str, *, seed: int = 5) -> Table:
    """A party's rows: the same users everywhere."""
    rng = np.random.default_rng([seed, *party.encode()])
    ids = [f"user-{number}" for number in range(N_USERS)]
    return prepare_table(study.party(party), rng.uniform(0, 100, (N_USERS, 2)), ids=ids)
