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
    cell_shape,
    high_bits_of,
    law_and_widths,
    most_records,
    own_cell_count,
    table_size,
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
    counts = join_counts(
        tuple(messages),
        groups=plan.groups,
        n_local_clusters=plan.bundles.n_labels,
        high_bits=high_bits_of(law, plan),
        presence=plan.presence is not None,
    )
    return DecoyEstimator(
        law=law,
        noisy_tables=add_server_noise(law, counts, noise=noise, presence=plan.presence),
        n_local_clusters=plan.bundles.n_labels,
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
    size = records = 0
    high_bits = high_bits_of(law, plan)
    for group, own, widths in _tables(law, plan):
        if position not in group:
            continue
        # Only the cells in which the party is present have decoys of its own.
        n_cells = own_cell_count(cell_shape(group, n_local_clusters=widths), group.index(position))
        length = most_records(
            own, n_cells, users=users, sample_rate=plan.sample_rate, deviations=deviations
        )
        size += table_size(length, n_clusters=widths[position], high_bits=high_bits)
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
    shape = cell_shape(group, n_local_clusters=plan.bundles.n_labels)
    counts = np.zeros(shape, dtype=np.int64)
    present = tuple(slice(plan.bundles.n_labels[party]) for party in group)
    counts[present] = np.rint(table * plan.sample_rate)
    estimator = DecoyEstimator(
        law=law,
        noisy_tables={group: counts + law.mean},
        n_local_clusters=plan.bundles.n_labels,
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
