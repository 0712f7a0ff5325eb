"""Plain labels at the party: one byte per user (paper, section 3.2)."""

import numpy as np

from splitmeans._types import LabelArray
from splitmeans.errors import ParameterError
from splitmeans.membership.exact.law import MAX_LOCAL_CLUSTERS, PlainLabels
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
