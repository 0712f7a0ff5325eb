"""The server's own noise: one draw over all restarts, copies and old homes of the server."""

import dataclasses
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from splitmeans.mailbox.files import FileMailbox
from splitmeans.privacy.noise import SecureNoise
from splitmeans.run import server as driver
from splitmeans.wire.codec import encode
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.slot import SERVER, short_name
from tests.scene import KEYS

from .harness import World, copy_home, restore_home

PARTIES = ("bank", "shop")


class Killed(Exception):
    """The server's machine is gone."""


def published(world: World) -> list[bytes]:
    """What the parties can read in their slots."""
    return [encode(world.message(SERVER, name, PublishedResult)) for name in PARTIES]


def all_published(world: World) -> set[bytes]:
    """Every result that was ever sent to a party, opened."""
    return {
        encode(world.read(SERVER, name, PublishedResult, data))
        for name in PARTIES
        for path, data in world.box.sent
        if path == world.path(SERVER, name, PublishedResult)
    }


def serve_from_before(world: World, *, n_puts: int, is_stored: bool) -> None:
    """Serve until the n-th message, lose the machine, and put its home back as it was before."""
    sent: list[str] = []
    before = copy_home(world, SERVER, to=world.root / "before")

    def dies(path: str, data: bytes) -> bytes | None:
        if f".{short_name(SERVER)}." in path and "/hello." not in path:
            sent.append(path)
            if len(sent) == n_puts:
                if is_stored:
                    world.box.files.setdefault(path, data)
                raise Killed
        return data

    world.box.on_put = dies

    def serve() -> None:
        for name in (SERVER, *PARTIES, SERVER, *PARTIES):
            world.visit(name)

    with pytest.raises(Killed):
        serve()
    world.box.on_put = lambda path, data: data
    restore_home(world, SERVER, backup=before)


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("n_puts", [1, 2, 3, 4, 5])
def test_server_restarted_from_an_old_home(stage, n_puts, is_stored):
    """The server's machine is lost at any message, and put back as it was when the run began.

    Gain: a second result with fresh noise; the mean of many shows what the parties must not see.
    Fails: the result is first put into a slot of the server's own, which is filled once; the new
    server finds it there and sends that. Its noise would be the same in any case.
    """
    world = stage("prepared")
    serve_from_before(world, n_puts=n_puts, is_stored=is_stored)
    assert world.play() == {}
    first, second = published(world)
    assert first == second
    assert all_published(world) == {first}


def test_server_restarted_and_its_messages_deleted(stage):
    """As above, and whoever keeps the mailbox deletes all that the server has ever put into it.

    Gain: as above; nothing remembers the first result.
    Fails: the noise is derived from the server's key and the releases. The result is the same but
    for its date.
    """
    world = stage("prepared")
    before = copy_home(world, SERVER, to=world.root / "before")
    results = []
    assert world.play() == {}
    for _ in range(3):
        results.append(world.message(SERVER, "bank", PublishedResult))
        restore_home(world, SERVER, backup=before)
        for path in [path for path in world.box.files if f".{short_name(SERVER)}." in path]:
            if path.split("/")[-1].startswith(("publishedresult", "runplan")):
                del world.box.files[path]
        assert world.visit(SERVER)
    for name in ("weights", "centres", "sizes", "labels", "local_centres"):
        values = [getattr(result, name) for result in results]
        assert all(np.array_equal(value, values[0]) for value in values)


def test_twin_that_draws_again_is_caught(stage, monkeypatch):
    """The two checks above can fail: fresh noise and no slot of its own give another result."""
    monkeypatch.setattr(driver, "_randomness", lambda *_: (SecureNoise(), np.random.default_rng(1)))
    world = stage("prepared")
    before = copy_home(world, SERVER, to=world.root / "before")
    assert world.play() == {}
    first = world.message(SERVER, "bank", PublishedResult)
    restore_home(world, SERVER, backup=before)
    world.box.files = {
        path: data for path, data in world.box.files.items() if "/publishedresult." not in path
    }
    assert world.visit(SERVER)
    second = world.message(SERVER, "bank", PublishedResult)
    assert not np.array_equal(first.weights, second.weights)
    world.is_twin = True


def test_two_servers_with_one_key(stage, tmp_path):
    """Two servers serve the same run at the same moment from copies of one home.

    Gain: two results with two draws of noise, one for each half of the parties.
    Fails: the slot of the server's own decides; both send the result that lies there.
    """
    world = stage("approved")
    for trial in range(4):
        root = tmp_path / f"trial-{trial}"
        folder = root / "shared"
        shutil.copytree(world.root, root / "world", symlinks=True)
        folder.mkdir()
        copied = World(world.study, root / "world")
        for name in (SERVER, *PARTIES * 3, SERVER, *PARTIES):
            copied.visit(name, mailbox=FileMailbox(str(folder)))
        shutil.copytree(copied.home(SERVER), root / "second", symlinks=True)
        assert [copied.stage_of(name) for name in PARTIES] == ["Released", "Released"]
        start = threading.Barrier(2, timeout=60)

        def serve(home: Path, copied=copied, folder=folder, start=start) -> bool:
            start.wait()
            return copied.visit(SERVER, home=home, mailbox=FileMailbox(str(folder)))

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(serve, (copied.home(SERVER), root / "second"))) == [True, True]
        found = set()
        for name in PARTIES:
            data = (folder / copied.path(SERVER, name, PublishedResult)).read_bytes()
            found.add(encode(copied.read(SERVER, name, PublishedResult, data)))
            assert copied.visit(name, mailbox=FileMailbox(str(folder)))
        assert len(found) == 1
        homes = [copied.home(SERVER), root / "second", *map(copied.home, PARTIES)]
        files = [home / "results" / "1" / "synopsis.parquet" for home in homes]
        assert len({file.read_bytes() for file in files}) == 1
    world.unchecked["confirmed"] = world.unchecked["charged"] = "the folder has no log"


def test_another_release_for_the_same_noise(stage):
    """A party replaces its release, which the mailbox lets it do, and the server starts anew.

    Gain: two results with the same noise, whose difference has none.
    Fails: the noise follows from all releases, so other releases have independent noise; and the
    slot of the server's own still has the first result.
    """
    world = stage("prepared")
    before = copy_home(world, SERVER, to=world.root / "before")
    assert world.play() == {}
    first = published(world)
    releases = {name: world.message(name, SERVER, PartyRelease) for name in PARTIES}
    others = {
        name: dataclasses.replace(own, centres=own.centres[::-1].copy())
        for name, own in releases.items()
    }
    keys = {
        driver.draw_key(KEYS[SERVER], world.study, run="1", releases=releases),
        driver.draw_key(KEYS[SERVER], world.study, run="2", releases=releases),
        driver.draw_key(Identity.new(), world.study, run="1", releases=releases),
        *(
            driver.draw_key(KEYS[SERVER], world.study, run="1", releases=releases | {name: other})
            for name, other in others.items()
        ),
        driver.draw_key(
            KEYS[SERVER],
            dataclasses.replace(world.study, name="another"),
            run="1",
            releases=releases,
        ),
    }
    assert len(keys) == 4 + len(PARTIES)
    path, data = world.sealed(SERVER, others["shop"], sender="shop")
    world.box.files[path] = data
    for name in PARTIES:  # what the parties got may be gone as well
        del world.box.files[world.path(SERVER, name, PublishedResult)]
    restore_home(world, SERVER, backup=before)
    assert world.visit(SERVER)
    assert published(world) == first
