"""Decoys in tables, and the server's noise on them, have the laws that the plan accounts for.

Parties have no users, so what a server counts are decoys. The code is that of a run, from a party's
message to the tables that a server computes everything from; the server's noise is keyed, as in a
run. What is measured is compared with the events of the plan: those of the server's view for
decoys, those of a fellow party's view for the server's noise. `noise_laws.py` says how often tests
fail by chance.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from audits.noise_twins import Silence
from splitmeans._types import FloatArray
from splitmeans.membership.decoy.estimate import DecoyEstimator
from splitmeans.membership.methods import method_of
from splitmeans.party.column_tables import encode_table
from splitmeans.party.release import encode_membership
from splitmeans.plan.plan import Plan
from splitmeans.plan.views import party_events
from splitmeans.privacy.events import CountGaussianEvent, Event, ShiftEvent
from splitmeans.privacy.keyed_noise import KeyedNoise
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.pld import flatten
from splitmeans.server.column_tables import count_columns
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire.messages import PartyRelease
from tests.statistical.noise_laws import TAIL, Release, errors_of, p_gaussian, p_table
from tests.statistical.noisy_studies import plan_of

NOBODY = MemoryUsers(ids=pa.array([], pa.large_string()), labels=np.zeros(0, dtype=np.int32))
# As many cells of each kind are measured, at least. A scale that is off by this factor is noticed
# for certain: its square is off by a third or more, and measured with a deviation of 2.8 %.
CELLS, NOTICED = 2500, 1.25
# With tables of pairs, of presence, or of both.
JOINED = ("presence and pairs", "presence with a bound", "counts alone", "against collusion")
WITH_COLUMNS = ("detail and tables of columns", "the same with a bound towards parties")


class Tables(NamedTuple):
    """Tables of one kind: their events, and what counts them, given a run key."""

    name: str
    decoys: Event
    server: CountGaussianEvent
    count: Callable[[bytes], Release]


def cases() -> Iterator[Tables]:
    for name in (
        "presence and pairs",
        "presence with a bound",
        "counts alone",
        "against collusion",
    ):
        plan = plan_of(name)
        events = flatten((plan.membership_event,))
        by_group = dict(zip(plan.groups, events, strict=True))
        server = server_events(plan)
        for size in sorted({len(group) for group in plan.groups}):
            groups = [group for group in plan.groups if len(group) == size]
            (decoys,) = {by_group[group] for group in groups}
            yield Tables(
                f"{name}, tables of {size} parties",
                decoys,
                # Those of pairs come first.
                server[0] if size == 2 else server[-1],
                lambda key, plan=plan, groups=groups: count_groups(plan, groups, run_key=key),
            )
    for name in WITH_COLUMNS:
        plan = plan_of(name)
        assert plan.columns is not None
        decoys, *_ = flatten((plan.columns.event,))
        yield Tables(
            name,
            decoys,
            server_events(plan)[-1],
            lambda key, plan=plan: count_tables(plan, run_key=key),
        )


def server_events(plan: Plan) -> list[CountGaussianEvent]:
    """What a fellow party is charged for the server's noise: pairs, then presence or columns."""
    view = flatten(party_events(plan)[0])
    return [event for event in view if isinstance(event, CountGaussianEvent)]


def count_groups(plan: Plan, groups: list[tuple[int, ...]], *, run_key: bytes) -> Release:
    """What a server counts of groups whose parties have no users."""
    messages = [
        encode_membership(plan, place, NOBODY, run_key=run_key, noise=Silence())
        for place in range(len(plan.study.parties))
    ]

    def count(noise: NoiseSource) -> FloatArray:
        made = method_of(plan.study).estimator(plan.membership, plan, messages, noise)
        assert isinstance(made, DecoyEstimator)
        # Nobody is absent everywhere, so the last cell is none where user sets differ.
        end = -1 if plan.study.user_sets == "partial" else None
        return np.concatenate([made.noisy_tables[group].ravel()[:end] for group in groups])

    return count


def count_tables(plan: Plan, *, run_key: bytes) -> Release:
    """What a server counts of tables of columns, but for the cells of missing values."""
    columns = plan.columns
    assert columns is not None
    releases = []
    for side in range(2):
        parts = [
            encode_table(
                columns,
                table,
                side=side,
                users=NOBODY,
                run_key=run_key,
                sample_rate=plan.sample_rate,
                noise=Silence(),
            )
            for table in columns.tables
        ]
        release = PartyRelease(
            centres=np.zeros((1, 0), dtype=np.int64),
            points=np.zeros((0, 0), dtype=np.int32),
            membership=parts[0],
            column_lengths=np.concatenate([part.lengths for part in parts]),
            column_labels=np.concatenate([part.labels for part in parts]),
        )
        releases.append(release)
    first, *_ = flatten((columns.event,))
    assert isinstance(first, ShiftEvent)
    mean = len(first.weights) // 2  # which the server subtracts

    def count(noise: NoiseSource) -> FloatArray:
        tables = count_columns(plan, releases, noise=noise)
        return np.concatenate([table.users.ravel() for table in tables]) + mean

    return count


def test_decoys_are_as_many_as_their_event_says() -> None:
    for case in cases():
        assert isinstance(case.decoys, ShiftEvent)
        drawn = np.zeros(0)
        while drawn.size < CELLS:
            drawn = np.append(drawn, case.count(os.urandom(32))(Silence()))
        counts = np.rint(drawn).astype(np.int64)
        assert p_table(counts, case.decoys.weights) > TAIL, case.name


def test_the_servers_noise_is_that_of_the_cost_towards_parties() -> None:
    for case in cases():
        count = case.count(os.urandom(32))
        times = max(CELLS // np.size(count(Silence())), 2)
        errors = errors_of(count, times, lambda: KeyedNoise(os.urandom(32)))
        assert p_gaussian(errors, case.server.scale) > TAIL, case.name
        assert p_gaussian(errors, case.server.scale * NOTICED) < TAIL, case.name
        assert p_gaussian(errors, case.server.scale / NOTICED) < TAIL, case.name
