"""Nodes of a published result as codes: exact there and back, short, and refused where wrong."""

import numpy as np
import pytest

from splitmeans import protocol
from splitmeans.errors import ProtocolError
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.node_codes import AT_CENTRE, n_codes, to_codes, to_nodes
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.features import bounds_of, features_of
from splitmeans.table.prepare import prepare_table
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import PublishedResult

BANK = PartySpec(
    name="bank",
    columns=(
        Column(name="plan", categories=("gold", "plus", "basic")),
        Column(name="income", low=0, high=100),
    ),
)
SHOP = PartySpec(name="shop", columns=(Column(name="visits", low=0, high=9),))
PARTIES = (BANK, SHOP)
TOP = int(bounds_of(features_of(BANK))[0])

# The second cluster of the bank has no point: half of it has each of two plans.
CENTRES = [
    np.array([[TOP, -TOP, -TOP, 5], [-TOP, 0, 0, 7]]),
    np.array([[-3], [4]]),
]
LABELS = np.array([[0, 0], [1, 1], [1, 0]], dtype=np.int32)
NODES = np.array(
    [
        [-TOP, TOP, -TOP, -1, 3],  # at the level "plus"; -1 is a number like any other
        [-TOP, 0, 0, 7, 4],  # at the shares of its local centre
        [-TOP, -TOP, TOP, 7, -3],
    ]
)


def test_codes_of_a_small_case_by_hand() -> None:
    codes = to_codes(PARTIES, NODES, LABELS, CENTRES)
    assert n_codes(PARTIES) == 3
    np.testing.assert_array_equal(codes, [[1, -1, 3], [AT_CENTRE, 7, 4], [2, 7, -3]])
    np.testing.assert_array_equal(to_nodes(PARTIES, codes, LABELS, CENTRES), NODES)


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        ((0, 0), 3, "with levels that no category has"),
        ((0, 0), -2, "with levels that no category has"),
        ((0, 0), 2**31 - 1, "with levels that no category has"),
        ((0, 1), 2**31 - 1, "outside the study's bounds"),
        ((2, 2), -(2**31), "outside the study's bounds"),
    ],
)
def test_codes_that_stand_for_nothing_are_refused(
    place: tuple[int, int], value: int, rule: str
) -> None:
    codes = to_codes(PARTIES, NODES, LABELS, CENTRES)
    codes[place] = value
    with pytest.raises(ProtocolError, match=rule):
        to_nodes(PARTIES, codes, LABELS, CENTRES)


def test_a_column_of_many_levels_makes_no_long_result() -> None:
    """The message has one number for it, and the synopsis of every reader is the server's."""
    levels = tuple(f"level {at}" for at in range(120))
    parties = (
        PartySpec(name="bank", columns=(Column(name="branch", categories=levels),)),
        PartySpec(name="shop", columns=(Column(name="visits", low=0, high=9),)),
    )
    study = Study(
        name="many levels",
        parties=parties,
        n_clusters=3,
        budget=Budget(epsilon=1.0, delta=1e-6),
        expected_users=500,
    )
    rng = np.random.default_rng(4)
    ids = np.arange(500).astype(str)
    tables = [
        prepare_table(parties[0], {"id": ids, "branch": rng.choice(levels, 500)}),
        prepare_table(parties[1], {"id": ids, "visits": rng.integers(0, 10, 500)}),
    ]
    sent: list[tuple[PublishedResult, int]] = []

    def watch(envelope: Envelope, size: int) -> None:
        if isinstance(envelope.message, PublishedResult):
            sent.append((envelope.message, size))

    found = protocol.run(study, tables, noise=InsecureSeededNoise(1), rng=rng, on_message=watch)
    message, size = sent[0]
    nodes = len(message.labels)
    assert message.nodes.shape == (nodes, 2)
    # Labels of two parties, a weight and two codes for each node.
    assert size < nodes * (2 + 8 + 2 * 4) + 100_000
    assert size <= message_sizes(found.plan, users=500).result
