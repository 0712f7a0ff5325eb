"""A server whose releases all lie on disk: the same run, and nothing of them stays at its home."""

from functools import partial

from splitmeans.run import server
from splitmeans.wire.messages import PartyRelease
from splitmeans.wire.on_disk import kept_on_disk
from splitmeans.wire.slot import SERVER
from tests.evidence.conftest import EVERYONE, play
from tests.scene import KEYS, keyed_study


def test_a_run_whose_releases_are_joined_from_disk(tmp_path, monkeypatch):
    kept = []

    def keep(message, folder):
        found = kept_on_disk(message, folder, held=0)
        kept.append((message, found, folder))
        return found

    monkeypatch.setattr(server, "kept_on_disk", keep)
    ran = play(keyed_study(), tmp_path)
    hashes = {ran.result(name).facts["result_hash"] for name in EVERYONE}
    assert len(hashes) == 1
    releases = [(own, found) for own, found, _ in kept if isinstance(own, PartyRelease)]
    assert len(releases) == 2
    assert all(found is not own for own, found in releases)
    assert all(found.membership.lows.size for _, found in releases)
    # What the server drew follows from the bytes, wherever they lie.
    key = partial(server.draw_key, KEYS[SERVER], ran.study, run="q1")
    in_memory, on_disk = (
        dict(zip(("bank", "shop"), (pair[place] for pair in releases), strict=True))
        for place in (0, 1)
    )
    assert key(releases=in_memory) == key(releases=on_disk)
    home = tmp_path / SERVER
    assert {folder.resolve() for _, _, folder in kept} == {home.resolve()}
    assert not [path for path in home.iterdir() if path.name.startswith("tmp")]
