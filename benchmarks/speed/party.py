"""Stages at a party: read and check the table, hash ids, cluster locally, encode memberships."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.speed.inputs import Inputs, fresh_key
from benchmarks.speed.measure import Task
from benchmarks.speed.stage import Stage
from splitmeans._types import IntArray, WordArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.siphash import hash_ids
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.party.release import encode_membership
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import plan_for
from splitmeans.privacy.noise import SecureNoise
from splitmeans.study.features import GRID_UNITS, bounds_of, features_of
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.ids.canonical import canonical_text, repeated_ids
from splitmeans.table.prepare import prepare_table
from splitmeans.table.walk.interface import UserBlock
from splitmeans.wire.codec import encode
from splitmeans.wire.messages import MembershipMessage

# k' of the stages, and the precision of one local clustering at epsilon 1 and two parties.
LOCAL_CLUSTERS = 5
_MU = 0.12

# Membership methods with the options of the study that uses them.
METHODS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "decoy": {"membership": "decoy"},
        "decoy, tags": {"membership": "decoy", "ids": AS_IS},
        "sketch": {"membership": "sketch"},
        "sketch, gamma 1": {"membership": "sketch", "gamma": 1.0},
    }
)


def plan_of(inputs: Inputs, method: str, *, k: int = LOCAL_CLUSTERS, n_parties: int = 2) -> Plan:
    """Return the plan of a run with one of `METHODS`."""
    study = inputs.study(**METHODS[method], n_local_clusters=k, n_parties=n_parties)
    return plan_for(study, users=inputs.n)


def encode_party(inputs: Inputs, plan: Plan, position: int, *, run_key: bytes) -> MembershipMessage:
    """Return what a party tells about its users' labels."""
    users = inputs.users(position, k=plan.n_local_clusters[position])
    return encode_membership(plan, position, users, run_key=run_key, noise=SecureNoise())


def some_centres(n_columns: int, *, k: int) -> IntArray:
    """Return points within the bounds, for stages that need centres and no clustering."""
    rng = np.random.default_rng(k)
    return rng.integers(-GRID_UNITS, GRID_UNITS, size=(k, n_columns), endpoint=True)


def _read(inputs: Inputs) -> Task:
    party = inputs.study().parties[0]
    return lambda: prepare_table(party, pq.read_table(inputs.parquet))


def _check(inputs: Inputs) -> Task:
    return partial(prepare_table, inputs.study().parties[0], inputs.arrow(0))


def _canonical(inputs: Inputs) -> Task:
    return partial(canonical_text, inputs.ids(0))


def _duplicates(inputs: Inputs) -> Task:
    return partial(repeated_ids, inputs.users(0, k=LOCAL_CLUSTERS))


def _hash(inputs: Inputs) -> Task:
    users, key = inputs.users(0, k=LOCAL_CLUSTERS), fresh_key()[:16]
    return lambda: list(users.each(partial(_hash_block, key=key)))


def _hash_block(block: UserBlock, *, key: bytes) -> WordArray:
    return hash_ids(key, block.ids)


def _local(inputs: Inputs) -> Task:
    bounds = tuple(bounds_of(features_of(inputs.study().parties[0])).tolist())
    mechanism = GuidedLloyd(n_clusters=LOCAL_CLUSTERS, bounds=bounds, mu=_MU)
    rows = inputs.tables()[0].rows
    return lambda: mechanism.release(rows, noise=SecureNoise(), rng=np.random.default_rng())


def _label(inputs: Inputs) -> Task:
    centres = some_centres(len(inputs.study().parties[0].columns), k=LOCAL_CLUSTERS)
    return partial(inputs.tables()[0].labelled, partial(nearest, centres=centres))


def _encode(inputs: Inputs, *, method: str) -> Task:
    plan, run_key = plan_of(inputs, method), fresh_key()
    users = inputs.users(0, k=LOCAL_CLUSTERS)
    noise = SecureNoise()
    return lambda: len(encode(encode_membership(plan, 0, users, run_key=run_key, noise=noise)))


PARTY_STAGES = (
    Stage(name="read parquet and check", group="read", prepare=_read),
    Stage(name="check and quantise", group="read", prepare=_check),
    Stage(name="canonical ids", group="ids", prepare=_canonical),
    Stage(name="duplicate check", group="ids", prepare=_duplicates),
    Stage(name="hash ids", group="ids", prepare=_hash),
    Stage(name="local guided-lloyd", group="local", prepare=_local),
    Stage(name="label rows", group="local", prepare=_label),
    *(
        Stage(name=f"encode {method}", group="encode", prepare=partial(_encode, method=method))
        for method in METHODS
    ),
)
