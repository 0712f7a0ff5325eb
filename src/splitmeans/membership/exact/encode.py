"""Plain labels at the party: one byte per user (paper, section 3.2)."""

from functools import partial

import numpy as np

from splitmeans._types import LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.exact.law import MAX_LOCAL_CLUSTERS, PlainLabels
from splitmeans.membership.method import RunFacts
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import Records, UserBlock, Users
from splitmeans.wire.keys import USER_ORDER, subkey
from splitmeans.wire.messages import PlainLabelsMessage


def encode(law: PlainLabels, *, labels: LabelArray) -> PlainLabelsMessage:
    """Return the message that tells every user's cluster.

    Guarantee: none; see the law.

    Args:
        law: The public parameters.
        labels: Each user's cluster, in the user order that all parties share, shape (n,).
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < MAX_LOCAL_CLUSTERS:
        raise ParameterError(f"labels must be between 0 and {MAX_LOCAL_CLUSTERS - 1}")
    return PlainLabelsMessage(labels=labels.astype(np.uint8))


def release(
    law: PlainLabels,
    plan: RunFacts,
    position: int,
    users: Users,
    *,
    run_key: bytes,
    noise: NoiseSource,
) -> PlainLabelsMessage:
    """Return the message of a party of a plan; see `encode`."""
    return encode(law, labels=in_secret_order(users, run_key))


def in_secret_order(users: Users, run_key: bytes) -> LabelArray:
    """Return labels in the order that all parties share and that says nothing about the ids."""
    records_of = partial(_order_records, key=subkey(run_key, USER_ORDER))
    return np.concatenate(list(users.in_tag_order(records_of, finish=_labels_in_order)))


def _order_records(block: UserBlock, *, key: bytes) -> Records:
    return hash_ids(key, block.ids), block.labels


def _labels_in_order(records: Records) -> LabelArray:
    return records[1]
