"""The length of a release, as everybody sees it who carries messages or lists a shared folder."""

from pathlib import Path

import pytest

from splitmeans.plan.message_sizes import message_sizes, padded_length, release_length
from splitmeans.plan.settle import make_plan
from splitmeans.run import post
from splitmeans.study import DecoyOptions, Study
from splitmeans.wire.messages import PartyRelease
from splitmeans.wire.sealed import OVERHEAD_BYTES
from splitmeans.wire.slot import SERVER
from tests.scene import N_USERS, keyed_study, make_table

from .harness import World

STUDIES: dict[str, dict[str, object]] = {
    "equal sets": {},
    "partial sets": {},
    "sampled": {"decoy": DecoyOptions(max_users=1000), "expected_users": 3000},
    "sketch": {"membership": "sketch"},
}


def length_of(study: Study, root: Path, n_users: int) -> int:
    """Bytes of the bank's release in a run on tables of so many users."""
    world = World(study, root).approve()
    world.tables = {name: make_table(study, name, n_users=n_users) for name in study.party_names}
    path = world.path("bank", SERVER, PartyRelease)
    for _ in range(12):
        for name in ("bank", "shop", SERVER):
            world.visit(name)
        if path in world.box.files:
            break
    assert world.message("bank", SERVER, PartyRelease).centres.shape[1] == 2
    return len(world.box.files[path])


@pytest.mark.parametrize("kind", STUDIES)
def test_length_of_a_release(tmp_path, kind):
    """A carrier, or a fellow party that can list the folder, looks at the size of a release.

    Gain: the number of users of a party, which with partial sets is more than the statement allows.
    Fails: a release is padded to a length that follows from the plan for up to 1.5 times the
    expected users; neighbouring tables, and tables of 10 to 1.4 times the users, look the same.
    """
    study = keyed_study(**STUDIES[kind])
    expected = study.expected_users
    sizes = (10, expected - 1, expected, expected + 1, 7 * expected // 5)
    found = {n_users: length_of(study, tmp_path / str(n_users), n_users) for n_users in sizes}
    assert len(set(found.values())) == 1, found
    plan = make_plan(study)
    assert set(found.values()) == {OVERHEAD_BYTES + release_length(plan, "bank")}
    assert message_sizes(plan, users=expected).releases["bank"] == found[expected]


@pytest.mark.parametrize("kind", ["equal sets", "partial sets"])
def test_twin_without_padding_shows_the_users(tmp_path, monkeypatch, kind):
    """The test above can fail: without padding the length grows with the users."""
    monkeypatch.setattr(post, "padded_length", lambda size, length: size)
    study = keyed_study(**STUDIES[kind])
    found = [length_of(study, tmp_path / str(n), n) for n in (N_USERS, 7 * N_USERS // 5)]
    assert found[0] != found[1]


def test_length_of_a_release_beyond_the_headroom(tmp_path):
    """As above, on a table of more than 1.5 times the expected users.

    Gain: as above.
    Fails: the length is doubled, so it tells the number of users to a factor of two and no more.
    """
    study = keyed_study(expected_users=N_USERS)
    base = release_length(make_plan(study), "bank")
    found = {length_of(study, tmp_path / str(n), n) for n in (2000, 2001, 2200)}
    (length,) = found
    assert (length - OVERHEAD_BYTES) % base == 0
    assert length - OVERHEAD_BYTES == padded_length(length - OVERHEAD_BYTES, base)
