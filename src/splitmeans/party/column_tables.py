"""A party's part in tables of columns: one label of each user for every column, among decoys."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from splitmeans._types import IntArray
from splitmeans.local.bins import at_most
from splitmeans.local.detail import Shapes
from splitmeans.membership.decoy.column_labels import labels_in, padded_edges, rules_of
from splitmeans.membership.decoy.column_tables import MAX_BINS, ColumnTable, ColumnTables
from splitmeans.membership.decoy.encode import encode, joined_messages
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import high_bits_of
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.coding import Coding
from splitmeans.table.walk.interface import Table, Users
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage, no_records


class ColumnRecords(NamedTuple):
    """What a release carries of tables of columns; see `wire.messages.PartyRelease`."""

    edges: IntArray
    records: DecoyMessage | None

    @classmethod
    def none(cls) -> "ColumnRecords":
        """Nothing, where a study has no such tables."""
        return cls(edges=np.zeros(0, dtype=np.int64), records=None)


def encode_columns(
    plan: Plan,
    position: int,
    table: Table,
    *,
    shapes: Shapes,
    points: IntArray,
    coding: Coding,
    run_key: bytes,
    noise: NoiseSource,
) -> ColumnRecords:
    """Return the records of every table of columns that this party has a part in.

    Guarantee: `plan.columns.event` covers the messages of all parties together. Each table is a
    group of two parties in `membership.decoy.encode`, with all keys from one of its own; a user's
    label is a function of the user's row, of points and of edges, which come from releases that
    are charged.

    `shapes` is what its detail has released; `points` are its released points, coded, shape (n,
    columns). Decoys need none of the party's own noise.
    """
    assert plan.columns is not None, "the plan has no tables of columns"
    assert isinstance(plan.membership, DecoyLaw), "the study was not checked"
    edges = padded_edges(_label_edges(shapes, coding), coding)
    rules = rules_of(edges, points, coding)
    users: dict[int, Users] = {}
    parts = [no_records()]
    high_bits = high_bits_of(plan.membership, plan)
    for one in plan.columns.of_party(position):
        side = one.parties.index(position)
        column = one.columns[side]
        if column not in users:
            own = partial(labels_in, column=column, rule=rules[column], coding=coding)
            users[column] = table.labelled(own)
        parts.append(
            encode_table(
                plan.columns,
                one,
                side=side,
                users=users[column],
                run_key=run_key,
                high_bits=high_bits,
                sample_rate=plan.sample_rate,
                noise=noise,
            )
        )
    return ColumnRecords(edges=edges, records=joined_messages(parts))


def encode_table(
    columns: ColumnTables,
    table: ColumnTable,
    *,
    side: int,
    users: Users,
    run_key: bytes,
    high_bits: int,
    sample_rate: float,
    noise: NoiseSource,
) -> DecoyMessage:
    """Return the records of one table: its first party (side 0) or its second one (side 1)."""
    return encode(
        columns.law,
        users=users,
        position=side,
        groups=((0, 1),),
        n_local_clusters=table.widths,
        run_key=keys.subkey(run_key, keys.COLUMNS, group=table.place),
        high_bits=high_bits,
        sample_rate=sample_rate,
        noise=noise,
    )


def _label_edges(shapes: Shapes, coding: Coding) -> Sequence[IntArray]:
    """Return the edges of wide bins, of which each has whole narrow ones."""
    return [
        own if n else at_most(own, shares, n_bins=MAX_BINS)
        for own, shares, n in zip(shapes.edges, shapes.shares, coding.levels, strict=True)
    ]
