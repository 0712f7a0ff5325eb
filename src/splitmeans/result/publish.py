"""The published result: from a synopsis to its message, and from the message to a synopsis.

The message has the local centres and, for every node, which of them it combines and where it is.
Whoever has the plan can rebuild the synopsis exactly; nothing in the message was not derived from
releases.
"""

import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.message_sizes import most_nodes
from splitmeans.plan.plan import Plan
from splitmeans.result.node_codes import n_codes, to_codes, to_nodes
from splitmeans.result.signed import SignedFacts, Stamp, facts_of, is_date
from splitmeans.study.category_shares import shares_are_valid
from splitmeans.study.features import GRID_UNITS, bounds_of, features_of
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.checks import MOST_USERS
from splitmeans.synopsis.clustering import Clustering
from splitmeans.synopsis.plan_precision import with_precision
from splitmeans.synopsis.presence_counts import presence_length
from splitmeans.synopsis.scaling import scaled_as_agreed
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.messages import PublishedResult

# Means of points on the border may lie beyond it by a rounding error.
_ROUNDING = 1 + 1e-6


def publish(
    plan: Plan,
    synopsis: Synopsis,
    clustering: Clustering,
    local_centres: list[IntArray],
    *,
    presence: IntArray,
    run: str,
    stamp: Stamp,
    secure_noise: bool,
) -> PublishedResult:
    """Return the message that tells everyone the result, dated and signed by the stamp.

    `presence` says how many users are at which parties (`synopsis/presence_counts.py`).
    """
    assert synopsis.labels is not None
    unsigned = PublishedResult(
        fingerprint=plan.fingerprint,
        local_centres=np.concatenate([centres.ravel() for centres in local_centres]),
        labels=synopsis.labels.astype(np.uint8),
        weights=synopsis.weights,
        nodes=_coded_nodes(plan, synopsis, local_centres),
        centres=clustering.scaled_centres,
        sizes=clustering.sizes,
        published_at=stamp.now(),
        signature=b"",
        presence=presence,
    )
    if stamp.sign is None:
        return unsigned
    privacy = PrivacyFacts.of(plan, secure_noise=secure_noise)
    facts = published_facts(plan, privacy, synopsis, unsigned, run=run)
    return replace(unsigned, signature=stamp.sign(facts.data))


def published_facts(
    plan: Plan, privacy: PrivacyFacts, synopsis: Synopsis, result: PublishedResult, *, run: str
) -> SignedFacts:
    """Return what the signature of a result covers."""
    return facts_of(
        plan,
        privacy,
        with_precision(synopsis, plan, result.presence),
        centres=result.centres,
        sizes=result.sizes,
        presence=result.presence,
        run=run,
        published_at=result.published_at,
    )


def read_published(plan: Plan, result: PublishedResult) -> Synopsis:
    """Check that a result fits the plan and return its synopsis.

    Raises:
        ProtocolError: If it is not a result of a run with this plan.
    """
    study = plan.study
    if result.fingerprint != plan.fingerprint:
        raise ProtocolError("the published result belongs to another plan than was run")
    n_columns = sum(len(features_of(party)) for party in plan.parties)
    parts = (result.labels, result.weights, result.centres, result.sizes)
    shapes = tuple(part.shape for part in parts)
    points, k = len(result.labels), len(result.centres)
    fitting = ((points, len(study.parties)), (points,), (k, n_columns), (k,))
    if shapes != fitting or points == 0:
        raise ProtocolError(
            f"the published result has labels, weights, centres and sizes of shapes {shapes}, "
            f"expected {fitting}"
        )
    # However long the message is.
    if points > most_nodes(plan):
        raise ProtocolError(f"the published result has {points} nodes, more than its plan")
    placed = bool(study.n_points)
    expected_nodes = (points if placed else 0, n_codes(plan.parties))
    if result.nodes.shape != expected_nodes:
        raise ProtocolError(
            f"the published result has nodes of shape {result.nodes.shape}, "
            f"expected {expected_nodes}"
        )
    weights = result.weights
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() > MOST_USERS:
        raise ProtocolError("the published result has weights that are no counts of users")
    # No segment is right only where nobody was counted.
    least = 1 if np.any(weights > 0) and not study.counts_only else 0
    most = 0 if study.counts_only else study.n_clusters
    if not least <= k <= most:
        raise ProtocolError(f"the published result has {k} segments, the study asks for {most}")
    if not (np.isfinite(result.centres).all() and np.isfinite(result.sizes).all()):
        raise ProtocolError("the published result has centres or sizes that are no numbers")
    if np.any((result.sizes < 0) | (result.sizes > MOST_USERS)):
        raise ProtocolError("the published result has sizes that are no counts of users")
    if result.presence.shape != (presence_length(plan),):
        raise ProtocolError(
            f"the published result has {result.presence.size} counts of who is at which parties, "
            f"expected {presence_length(plan)}"
        )
    if np.any((result.presence > MOST_USERS) | (result.presence < -MOST_USERS)):
        raise ProtocolError("the published result has counts that no table can have")
    if not is_date(result.published_at):
        raise ProtocolError("the published result has no date")
    limits = np.concatenate([bounds_of(features_of(party)) for party in plan.parties])
    if np.any(np.abs(result.centres) > limits / GRID_UNITS * _ROUNDING):
        raise ProtocolError("the published result has centres outside the study's bounds")
    if np.any(result.labels >= np.array(plan.n_local_clusters)):
        raise ProtocolError("the published result has labels beyond the parties' local clusters")
    centres = local_centres_of(plan, result)
    for party, own in zip(plan.parties, centres, strict=True):
        bounds = bounds_of(features_of(party))
        # Both sides apart: the absolute value of -2^63 is negative in 64 bits.
        if np.any((own > bounds) | (own < -bounds)):
            raise ProtocolError("the published result has points outside the study's bounds")
        if not shares_are_valid(party, own):
            raise ProtocolError(
                "the published result has points whose shares of categories do not add up to 1"
            )
    labels = result.labels.astype(np.int32)
    nodes = to_nodes(plan.parties, result.nodes, labels, centres) if placed else None
    synopsis = build_synopsis_from_points(labels, weights, centres, plan.parties, nodes=nodes)
    return with_precision(scaled_as_agreed(synopsis, study), plan, result.presence)


def _coded_nodes(
    plan: Plan, synopsis: Synopsis, local_centres: list[IntArray]
) -> npt.NDArray[np.int32]:
    """Return the codes of the nodes; none where every node is at its local centres."""
    if not plan.study.n_points:
        return np.empty((0, n_codes(plan.parties)), dtype=np.int32)
    assert synopsis.labels is not None
    # Nodes are whole numbers over a power of two.
    on_grid = np.rint(synopsis.scaled_nodes * GRID_UNITS).astype(np.int64)
    return to_codes(plan.parties, on_grid, synopsis.labels, local_centres)


def local_centres_of(plan: Plan, result: PublishedResult) -> list[IntArray]:
    """Return the local centres of each party in grid integers, each of shape (k'_l, d_l)."""
    shapes = [
        (clusters, len(features_of(party)))
        for clusters, party in zip(plan.n_local_clusters, plan.parties, strict=True)
    ]
    edges = list(itertools.accumulate((rows * columns for rows, columns in shapes), initial=0))
    if result.local_centres.shape != (edges[-1],):
        raise ProtocolError(
            f"the published result has {result.local_centres.size} coordinates of local centres, "
            f"expected {edges[-1]}"
        )
    return [
        result.local_centres[start:end].reshape(shape)
        for (start, end), shape in zip(itertools.pairwise(edges), shapes, strict=True)
    ]
