"""What public code asks of the decoy join; see `membership.method`."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from splitmeans._types import FloatArray, NoiseLine
from splitmeans.membership.decoy.auto_clusters import decoy_clusters, decoy_labels
from splitmeans.membership.decoy.direct_labels import inverse_support
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import TRUNCATION_SHARE, DecoyLaw, decoy_law
from splitmeans.membership.decoy.layout import (
    cell_count,
    cell_shape,
    law_and_widths,
    packed_size,
)
from splitmeans.membership.method import Group, MembershipMethod, RunFacts
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.split import Precisions
from splitmeans.study import Study
from splitmeans.study.methods import DECOY
from splitmeans.wire.messages import DecoyMessage


def _law_at(study: Study, precisions: Precisions, n_releases: int) -> DecoyLaw:
    share = TRUNCATION_SHARE * study.budget.delta / (n_releases * study.n_runs)
    own = None if precisions.server is None else 1 / precisions.server
    return decoy_law(precisions.membership, delta_share=share, server_sigma=own)


def _estimator(
    law: DecoyLaw, plan: RunFacts, messages: Sequence[DecoyMessage], noise: NoiseSource
) -> DecoyEstimator:
    equal_sets = plan.study.user_sets == "equal"
    counts = join_counts(
        tuple(messages),
        groups=plan.groups,
        n_local_clusters=plan.bundles.n_labels,
        equal_sets=equal_sets,
        presence=plan.presence is not None,
    )
    return DecoyEstimator(
        law=law,
        noisy_tables=add_server_noise(
            law, counts, equal_sets=equal_sets, noise=noise, presence=plan.presence
        ),
        n_local_clusters=plan.bundles.n_labels,
        equal_sets=equal_sets,
        sample_rate=plan.sample_rate,
        collusion=plan.collusion_laws,
        presence_law=plan.presence,
    )


def _tables(law: DecoyLaw, plan: RunFacts) -> Iterator[tuple[Group, DecoyLaw, tuple[int, ...]]]:
    """Yield every group with its law and how many labels every party has in it."""
    for group in plan.groups:
        own, widths = law_and_widths(
            group, law, plan.presence, n_local_clusters=plan.bundles.n_labels
        )
        yield group, own, widths


def _noise_lines(law: DecoyLaw, plan: RunFacts) -> Iterator[NoiseLine]:
    if plan.study.counts_only:
        yield "decoys in each count", math.sqrt(law.variance), "users"
        yield "the server's noise on each count", law.server_sigma, "users"
        return
    yield "decoys in each cell", math.sqrt(law.variance), "users"
    yield "the server's noise on each cell", law.server_sigma, "users"
    if plan.presence is not None:
        yield "decoys in each cell of presence", math.sqrt(plan.presence.variance), "users"
        yield "the server's noise on each of them", plan.presence.server_sigma, "users"
    for response in {response for response in plan.collusion_laws if response is not None}:
        yield "misreported labels", 1 - float(response.true_support), "probability"


def _message_size(
    law: DecoyLaw, plan: RunFacts, position: int, users: int, deviations: int
) -> tuple[int, int]:
    equal_sets = plan.study.user_sets == "equal"
    size = records = 0
    for group, own, widths in _tables(law, plan):
        if position not in group:
            continue
        width = widths[position]
        shape = cell_shape(group, n_local_clusters=widths, equal_sets=equal_sets)
        n_cells = cell_count(shape, equal_sets=equal_sets)
        if not equal_sets:
            # Only the cells in which the party is present are decoys of its own.
            n_cells = n_cells + 1 - (n_cells + 1) // (width + 1)
        length = round(users * plan.sample_rate) + n_cells * own.mean
        # Hoeffding's bound for the sampled users; the scale bounds the decoys.
        spread = math.sqrt(n_cells) * own.sigma
        if plan.sample_rate < 1:
            spread += math.sqrt(users / 4)
        length = min(length + math.ceil(deviations * spread), users + 2 * n_cells * own.truncation)
        tags = 0 if equal_sets else 16 * length
        size += 8 + tags + packed_size(length, n_clusters=width)
        records += length
    return size, records


def _cell_error(law: DecoyLaw, plan: RunFacts, users: int) -> float:
    """See `DecoyEstimator.deviation`, with expected numbers for estimated ones."""
    per_cell = float(law.variance) + law.server_sigma**2
    amplification = 1.0
    for party in plan.groups[0]:
        response = plan.collusion_laws[party]
        if response is not None:
            amplification *= float(np.square(inverse_support(response)[:, 0]).sum())
    rate = plan.sample_rate
    cells = int(max(plan.bundles.n_labels) ** len(plan.groups[0]))
    from_users = (amplification / rate - 1) * users / cells
    return math.sqrt(per_cell * amplification / rate**2 + from_users)


def _deviation(law: DecoyLaw, plan: RunFacts, group: Group, table: FloatArray) -> float:
    """Return the standard deviation of a cell of the group, as the server would estimate it."""
    equal_sets = plan.study.user_sets == "equal"
    shape = cell_shape(group, n_local_clusters=plan.bundles.n_labels, equal_sets=equal_sets)
    counts = np.zeros(shape, dtype=np.int64)
    present = tuple(slice(plan.bundles.n_labels[party]) for party in group)
    counts[present] = np.rint(table * plan.sample_rate)
    estimator = DecoyEstimator(
        law=law,
        noisy_tables={group: counts + law.mean},
        n_local_clusters=plan.bundles.n_labels,
        equal_sets=equal_sets,
        sample_rate=plan.sample_rate,
        collusion=plan.collusion_laws,
    )
    return estimator.deviation(group)


METHOD: MembershipMethod[DecoyLaw, DecoyMessage] = MembershipMethod(
    facts=DECOY,
    law=DecoyLaw,
    message=DecoyMessage,
    default_labels=decoy_labels,
    clusters_of=decoy_clusters,
    law_at=_law_at,
    estimator=_estimator,
    noise_lines=_noise_lines,
    message_size=_message_size,
    cell_error=_cell_error,
    deviation=_deviation,
    server_noise=lambda law: law.server_sigma,
    table_hash=lambda law: law.table_hash,
)
