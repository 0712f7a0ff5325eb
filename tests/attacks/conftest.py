"""Worlds at the instants at which attacks begin; each test gets a copy of its own."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from splitmeans.plan import views
from splitmeans.privacy import accountant
from splitmeans.privacy.pld import epsilon_for
from splitmeans.run import home, post
from splitmeans.study import Study
from splitmeans.wire.sealing import OpeningKey
from splitmeans.wire.slot import SERVER
from tests.scene import keyed_study

from .harness import World, recorded_key

Stage = Callable[..., World]


@functools.cache
def _cost(events: tuple[Any, ...], delta: float, interval: float) -> float:
    return epsilon_for(events, delta, interval=interval)


_keys = functools.cache(post.pinned_keys)


@pytest.fixture(autouse=True, scope="module")
def fast() -> Iterator[None]:
    """Work out once what a study alone decides, and let the system write files when it likes.

    Participants compute costs and keys at every start, and there are hundreds of starts. No
    attack here changes what follows from a study, and none pulls the plug: crashes have tests of
    their own.
    """

    def cost(events: Any, delta: float, *, interval: float = accountant.FINE) -> float:
        return _cost(tuple(events), delta, interval)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accountant, "epsilon_for", cost)
        patch.setattr(views, "epsilon_for", cost)
        patch.setattr(post, "pinned_keys", _keys)
        patch.setattr(os, "fsync", lambda _: None)
        patch.setitem(home._SETTINGS, "synchronous", 0)
        patch.setattr(OpeningKey, "new", staticmethod(recorded_key))
        yield


@pytest.fixture(scope="session")
def study() -> Study:
    return keyed_study()


@pytest.fixture(scope="session")
def trio() -> Study:
    """A study of three parties; the first of them releases a noisy number of users."""
    return keyed_study("bank", "shop", "clinic", n_local_clusters="auto")


@pytest.fixture(scope="session", params=["sketch", "decoy"])
def counted(request: pytest.FixtureRequest) -> Study:
    """A study with a stage: the noisy number of users is released first, by the bank."""
    return keyed_study(membership=request.param, n_local_clusters="auto")


@pytest.fixture(scope="session")
def _stages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Study, str], World]:
    """Honest runs up to an instant, made once.

    approved: the server has said its first words. joined: contributions sent. prepared: all
    parties said Ready. released: the server has both releases, nobody has the result. finished:
    everyone has the result.
    """

    @functools.cache
    def at(study: Study, stage: str) -> World:
        root = tmp_path_factory.mktemp("world")
        if stage == "approved":
            world = World(study, root).approve()
            world.visit(SERVER)
            world.box.log.clear()
            return world
        earlier = {"joined": "approved", "prepared": "joined", "released": "prepared"}
        world = at(study, earlier.get(stage, "released")).clone(root)
        if stage == "joined":
            world.join_all().visit(study.party_names[-1])
        elif stage == "prepared":
            assert world.play(*study.party_names) == {}
        elif stage == "released":
            world.visit(SERVER)
            assert world.play(*study.party_names) == {}
        else:
            assert world.play() == {}
        return world

    return at


@pytest.fixture
def stage(_stages: Callable[[Study, str], World], study: Study, tmp_path: Path) -> Iterator[Stage]:
    """A function that returns a world at an instant; afterwards the attacker's view is checked."""
    made: list[World] = []

    def at(name: str = "approved", agreed: Study | None = None) -> World:
        world = _stages(agreed or study, name).clone(tmp_path / f"world-{len(made)}")
        made.append(world)
        return world

    yield at
    for world in made:
        if not world.is_twin:
            world.check_view()
