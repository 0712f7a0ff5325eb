"""Tables of columns at the server: counted with noise of its own, and what they do to a synopsis.

The noise is added before anything is computed from a count (`membership.decoy.estimate`); all the
rest works on released values.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.assign import nearest
from splitmeans.membership.decoy.column_labels import labels_in, problem_of_edges, rules_of
from splitmeans.membership.decoy.column_tables import ColumnTable, label_count
from splitmeans.membership.decoy.estimate import DecoyEstimator, add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import high_bits_of, packed_size
from splitmeans.membership.decoy.tag_lists import bitmap_size
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.coding import coding_of
from splitmeans.synopsis.column_shares import rows_with_shares, shares_of_columns
from splitmeans.synopsis.counted_tables import CountedTable
from splitmeans.synopsis.coupling import coupled, parts_of
from splitmeans.wire.messages import DecoyMessage, PartyRelease

_PAIR = (0, 1)


def problem_of_columns(plan: Plan, position: int, release: PartyRelease) -> str | None:
    """Return what is wrong with a party's part in tables of columns, if anything is."""
    if plan.columns is None:
        some = release.column_edges.size or release.columns is not None
        return "tables of columns, which the plan does not have" if some else None
    if release.columns is None:
        return "no tables of columns"
    lengths, own = release.columns.lengths, plan.columns.of_party(position)
    if lengths.shape != (len(own),) or (lengths < 0).any():
        return f"lengths of {len(lengths)} tables of columns, expected {len(own)}"
    return problem_of_edges(release.column_edges, coding_of(plan.parties[position]))


def count_columns(
    plan: Plan, releases: Sequence[PartyRelease], *, noise: NoiseSource
) -> list[CountedTable]:
    """Return the users in each cell of every table, with all noise.

    Who has no value in one of the columns is left out. Columns are numbered over all parties.

    Raises:
        ProtocolError: If the parts of two parties do not go together.
    """
    assert plan.columns is not None, "the plan has no tables of columns"
    law = plan.columns.law
    assert isinstance(plan.membership, DecoyLaw), "the study was not checked"
    high_bits = high_bits_of(plan.membership, plan)
    parts = [
        _messages(plan, position, one, high_bits=high_bits) for position, one in enumerate(releases)
    ]
    first = _first_columns(plan)
    found = []
    for table in plan.columns.tables:
        messages = [parts[party][table] for party in table.parties]
        try:
            counts = join_counts(
                messages, groups=(_PAIR,), n_local_clusters=table.widths, high_bits=high_bits
            )
        except ProtocolError as problem:
            names = " and ".join(plan.study.party_names[party] for party in table.parties)
            raise ProtocolError(f"tables of columns of {names}: {problem}") from problem
        estimator = DecoyEstimator(
            law=law,
            noisy_tables=add_server_noise(law, counts, noise=noise),
            n_local_clusters=table.widths,
            sample_rate=plan.sample_rate,
        )
        columns = tuple(
            first[party] + column
            for party, column in zip(table.parties, table.columns, strict=True)
        )
        found.append(
            CountedTable(
                columns=(columns[0], columns[1]),
                users=estimator.joint(_PAIR)[:-1, :-1],
                deviation=estimator.deviation(_PAIR),
                in_order=not any(
                    plan.parties[party].columns[column].levels
                    for party, column in zip(table.parties, table.columns, strict=True)
                ),
            )
        )
    return found


def put_together(
    plan: Plan,
    releases: Sequence[PartyRelease],
    labels: IntArray,
    nodes: IntArray,
    *,
    counted: Sequence[CountedTable],
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Return labels, shape (u, S), and places, (u, D), of persons whose tables are as counted.

    Args:
        plan: The plan.
        releases: What the parties sent, in order.
        labels: The cluster of each person at each party.
        nodes: The place of each person, in grid integers; each stands for equally many users.
        counted: The tables.
        rng: Draws what is tried.
    """
    nodes = _persons(plan, nodes, rng=rng.spawn(1)[0])
    spans: list[slice] = []
    columns: list[IntArray] = []
    parts: list[IntArray] = []
    parties: list[int] = []
    deviations: list[float] = []
    start = 0
    for position, (spec, release) in enumerate(zip(plan.parties, releases, strict=True)):
        coding = coding_of(spec)
        codes = coding.codes(nodes[:, start : start + len(coding.bounds)])
        rules = rules_of(release.column_edges, release.points.astype(np.int64), coding)
        for place, rule in enumerate(rules):
            own = labels_in(codes, place, rule, coding).astype(np.int64)
            columns.append(own)
            parts.append(own if coding.levels[place] else parts_of(codes[:, place], own))
            spans.append(slice(start + coding.starts[place], start + coding.starts[place + 1]))
            deviation = plan.detail[position].label_deviation(
                coding.levels[place], labels=label_count(coding, place) - 1
            )
            deviations.append(deviation)
        columns.append(labels[:, position])
        parts.append(labels[:, position])
        spans.append(slice(0, 0))
        deviations.append(np.inf)
        parties += [position] * (len(rules) + 1)
        start += len(coding.bounds)
    all_labels, of_party = np.stack(columns, axis=1), np.array(parties)
    shares = shares_of_columns(all_labels, counted, deviations=np.array(deviations))
    rows = rows_with_shares(all_labels, parties=of_party, shares=shares, rng=rng)[of_party]
    all_labels, narrow = (
        np.take_along_axis(own, rows.T, axis=0) for own in (all_labels, np.stack(parts, axis=1))
    )
    more = coupled(all_labels, narrow, parties=of_party, tables=counted, rng=rng)
    rows = np.take_along_axis(rows, more, axis=1)
    placed = nodes.copy()
    for span, own in zip(spans, rows, strict=True):
        placed[:, span] = nodes[own, span]
    return _clusters(plan, releases, placed), placed


def _persons(plan: Plan, nodes: IntArray, *, rng: np.random.Generator) -> IntArray:
    """Return nodes with one level of each column of categories.

    Where a local cluster has no point its users are at its centre, with shares of several levels.
    Single columns go from one person to another, so what a person has must not depend on a cluster.
    """
    found = []
    start = 0
    for coding in map(coding_of, plan.parties):
        stop = start + len(coding.bounds)
        found.append(coding.with_levels(nodes[:, start:stop], rng=rng))
        start = stop
    return np.concatenate(found, axis=1)


def _clusters(plan: Plan, releases: Sequence[PartyRelease], nodes: IntArray) -> IntArray:
    """Return the local cluster of each place at each party: the one whose centre is nearest."""
    found = []
    start = 0
    for release in releases:
        stop = start + release.centres.shape[1]
        own = np.ascontiguousarray(nodes[:, start:stop])
        found.append(nearest(own, release.centres).astype(np.int64))
        start = stop
    return np.stack(found, axis=1)


def _first_columns(plan: Plan) -> list[int]:
    """Return the number of each party's first column; after its last one comes its cluster."""
    counts = [len(party.columns) + 1 for party in plan.parties]
    return [sum(counts[:place]) for place in range(len(counts))]


def _messages(
    plan: Plan, position: int, release: PartyRelease, *, high_bits: int
) -> dict[ColumnTable, DecoyMessage]:
    """Take a party's records apart by table; what is too short or too long shows at the join."""
    assert plan.columns is not None, "the plan has no tables of columns"
    sent = release.columns
    assert sent is not None, "the release was not checked"
    own = plan.columns.of_party(position)
    found = {}
    tag = mark = label = 0  # where each table begins
    for number, (table, length) in enumerate(zip(own, sent.lengths.tolist(), strict=True), 1):
        width = table.widths[table.parties.index(position)]
        # The last one has the rest, so that bytes too many show.
        last = number == len(own)
        ends = (
            tag + length,
            mark + bitmap_size(length, high_bits=high_bits),
            label + packed_size(length, n_clusters=width),
        )
        spans = [
            slice(start, None if last else end)
            for start, end in zip((tag, mark, label), ends, strict=True)
        ]
        found[table] = DecoyMessage(
            lengths=np.array([length], dtype=np.int64),
            lows=sent.lows[spans[0]],
            bitmaps=sent.bitmaps[spans[1]],
            labels=sent.labels[spans[2]],
        )
        tag, mark, label = ends
    return found
