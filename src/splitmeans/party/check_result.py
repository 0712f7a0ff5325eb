"""A party looks at the published result before using it.

Who sent it, and for which run, the seal has shown already. Here: that it belongs to the plan that
was run, that it has a result's shape, and that it is built on the centres that this party released.
A server can still publish a wrong result; it costs accuracy, never privacy.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.features import bounds_of, features_of
from splitmeans.wire.envelope import Session
from splitmeans.wire.messages import PublishedResult


def check_result(
    session: Session, result: PublishedResult, *, fingerprint: str, centres: IntArray
) -> None:
    """Refuse a result that cannot come from this run.

    Args:
        session: The party's run.
        result: What the server published.
        fingerprint: Of the plan that the party followed.
        centres: The party's own released centres, shape (k', d).

    Raises:
        ProtocolError: If it does not fit.
    """
    study = session.study
    if result.fingerprint != fingerprint:
        raise ProtocolError("the published result belongs to another plan than was run")
    widths = [len(features_of(party)) for party in study.parties]
    nodes, weights, published = result.nodes, result.weights, result.centres
    shapes = nodes.shape[1:] == (sum(widths),) and weights.shape == nodes.shape[:1]
    if not shapes or published.shape != (study.n_clusters, sum(widths)) or len(nodes) == 0:
        raise ProtocolError(
            f"the published result has nodes of shape {nodes.shape}, weights {weights.shape} and "
            f"centres {published.shape}, which do not fit the study"
        )
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() <= 0:
        raise ProtocolError("the published result has weights that are no counts of users")
    limits = np.concatenate([bounds_of(features_of(party)) for party in study.parties])
    if not np.isfinite(published).all() or np.any(np.abs(nodes) > limits):
        raise ProtocolError("the published result has points outside the study's bounds")
    position = study.party_names.index(session.party)
    start = sum(widths[:position])
    own = np.unique(nodes[:, start : start + widths[position]], axis=0)
    released = {tuple(centre) for centre in centres.tolist()}
    if any(tuple(node) not in released for node in own.tolist()):
        raise ProtocolError(
            f"the published result is not built on the centres that party {session.party!r} "
            "released"
        )
