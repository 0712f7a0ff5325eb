"""The list of releases, by hand for each kind of method."""

import pytest

from splitmeans.plan.releases import EVERYONE, releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    ShiftEvent,
)
from splitmeans.study import Budget, Column, PartySpec, SketchOptions, Study


def listed(membership: str, *, n_parties: int = 2) -> list[tuple]:
    names = ("bank", "shop", "clinic")[:n_parties]
    study = Study(
        name="releases",
        parties=tuple(
            PartySpec(name=name, columns=(Column(name="c", low=0, high=1),)) for name in names
        ),
        n_clusters=3,
        budget=Budget(epsilon=2, delta=9e-5),
        membership=membership,
        n_local_clusters=3,
        sketch=SketchOptions(repetitions=64),
    )
    return [(r.party, r.what, r.message, r.event) for r in releases_of(make_plan(study))]


def without_events(rows: list[tuple]) -> list[tuple]:
    return [row[:3] for row in rows]


LOCAL = [
    ("bank", "local clusters", "PartyRelease"),
    ("shop", "local clusters", "PartyRelease"),
]


@pytest.mark.parametrize(
    ("membership", "event"), [("decoy", ShiftEvent), ("sketch", CellSketchEvent)]
)
def test_methods_with_a_shared_key_release_memberships_once_for_all(membership, event):
    rows = listed(membership)
    assert without_events(rows) == [*LOCAL, (EVERYONE, "memberships", "PartyRelease")]
    composed = rows[-1][3]
    assert isinstance(composed, ComposedEvent)
    assert [type(part) for part in composed.parts] == [event]


def test_each_pair_of_three_parties_costs_one_event_and_so_does_presence():
    rows = listed("decoy", n_parties=3)
    assert [row[0] for row in rows] == ["bank", "shop", "clinic", EVERYONE]
    assert [type(part) for part in rows[-1][3].parts] == [ShiftEvent] * 4
