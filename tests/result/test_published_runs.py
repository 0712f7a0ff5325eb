"""What whole runs leave behind: signed folders, and words where there is little or nothing."""

import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from splitmeans.cli import app
from splitmeans.errors import ParameterError
from splitmeans.result.intervals import MAYBE_NOBODY
from splitmeans.result.result import Result
from splitmeans.result.signed import Stamp
from splitmeans.server import node
from splitmeans.synopsis.clustering import NOBODY
from splitmeans.wire.slot import SERVER
from tests.attacks.harness import World
from tests.scene import KEYS, keyed_study

EVERYONE = ("bank", "shop", SERVER)


@pytest.fixture(scope="module")
def study() -> Any:
    return keyed_study(n_local_clusters="auto")


def played(study: Any, root: Path) -> World:
    world = World(study, root).approve()
    assert world.play() == {}
    return world


def folders(world: World) -> dict[str, Path]:
    return {name: world.home(name) / "results" / "1" for name in EVERYONE}


def command(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments], catch_exceptions=False, env={"COLUMNS": "400"})
    assert done.exit_code == 0, done.output
    return done.output


def test_every_participant_has_the_same_signed_result(study, tmp_path):
    world = played(study, tmp_path)
    read = {name: Result.read(folder) for name, folder in folders(world).items()}
    assert all(result.signed for result in read.values())
    for fact in ("result_hash", "published_at", "plan", "run"):
        assert len({result.facts[fact] for result in read.values()}) == 1
    assert {name: result.facts["participant"] for name, result in read.items()} == {
        name: name for name in EVERYONE
    }
    shown = command("result", "show", str(folders(world)["bank"]))
    assert f"signed with the key {KEYS[SERVER].public.fingerprint}" in shown
    assert "the signature fits the key in study.toml" in shown
    assert f"published {read['bank'].facts['published_at']}" in shown


def test_a_published_result_is_stored_with_its_date_and_signature(study, tmp_path, monkeypatch):
    """A server that stops after storing publishes the same bytes when it goes on (rule R17)."""
    world = World(study, tmp_path).approve()

    class Stop(BaseException):
        pass

    monkeypatch.setattr(
        "splitmeans.run.ending.write_result", lambda *_, **__: (_ for _ in ()).throw(Stop())
    )
    with pytest.raises(Stop):
        world.play()
    monkeypatch.undo()
    later = functools.partial(Stamp, now=lambda: "2099-01-01T00:00:00Z")
    monkeypatch.setattr("splitmeans.run.server.Stamp", later)
    assert world.play() == {}
    read = [Result.read(folder) for folder in folders(world).values()]
    assert len({result.facts["result_hash"] for result in read}) == 1
    assert not read[0].facts["published_at"].startswith("2099")


def altered(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `combine` with another outcome, as the noise could have it."""
    combine = node.combine

    @functools.wraps(combine)
    def other(*arguments: Any, **options: Any) -> Any:
        found = combine(*arguments, **options)
        changed = dataclasses.replace(found.synopsis, weights=change(found.synopsis.weights))
        return found._replace(synopsis=changed)

    return other


def test_a_run_that_counts_nobody_ends_with_those_words(study, tmp_path, monkeypatch):
    monkeypatch.setattr(node, "combine", altered(np.zeros_like))
    world = played(study, tmp_path)
    for name, folder in folders(world).items():
        assert world.said[name][-1] == NOBODY
        assert Result.read(folder).remark == NOBODY
        assert NOBODY in command("result", "show", str(folder))
        page = tmp_path / f"{name}.html"
        command("report", str(folder), "-o", str(page))
        assert NOBODY in page.read_text()


def test_fewer_segments_than_asked_for_are_said_everywhere(study, tmp_path, monkeypatch):
    def one_place(weights: Any) -> Any:
        few = np.zeros_like(weights)
        few[3], few[0] = 40.0, 60.0
        return few

    monkeypatch.setattr(node, "combine", altered(one_place))
    world = played(study, tmp_path)
    words = f"asked for k = {study.n_clusters}, found 2 with users"
    for name, folder in folders(world).items():
        assert world.said[name][-1].startswith(words)
        result = Result.read(folder)
        assert result.published.letters == ("A", "B")
        assert result.published.sizes.tolist() == [60, 40]
        assert words in command("result", "show", str(folder))
        lines = (folder / "centres.csv").read_text().splitlines()
        assert [line.split(",")[0] for line in lines] == ["segment", "A", "B"]
        page = tmp_path / f"{name}.html"
        command("report", str(folder), "-o", str(page))
        assert words in page.read_text()


@pytest.mark.parametrize("name", EVERYONE)
@pytest.mark.parametrize("damage", ["gone", "file gone", "changed", "another run's"])
def test_a_result_that_is_lost_is_written_again_and_costs_nothing(study, tmp_path, name, damage):
    """The same command says that the run is finished only if its result is there whole."""
    world = played(study, tmp_path)
    folder = folders(world)[name]
    before = Result.read(folder).facts["result_hash"]
    if damage == "gone":
        shutil.rmtree(folder)
    elif damage == "file gone":
        (folder / "statement.txt").unlink()
    elif damage == "changed":
        (folder / "centres.csv").write_text("x\n1\n")
    else:
        shutil.rmtree(folder)
        assert world.play(run="2") == {}
        shutil.copytree(folder.with_name("2"), folder)
    assert world.visit(name)
    assert f"its result is written to {folder} again" in world.said[name][-1]
    found = Result.read(folder)
    assert (found.facts["result_hash"], found.facts["run"]) == (before, "1")
    assert world.visit(name)
    assert world.said[name][-1].endswith(f"run '1' is finished; see {folder}")
    if name != SERVER:
        runs = 2 if damage == "another run's" else 1
        assert world.charged(name) == runs * study.budget.epsilon


def test_what_lies_at_the_place_of_a_lost_result_is_not_removed(study, tmp_path):
    world = played(study, tmp_path)
    folder = folders(world)["bank"]
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "letters.txt").write_text("mine")
    with pytest.raises(ParameterError, match="holds something else than a result"):
        world.visit("bank")
    assert (folder / "letters.txt").read_text() == "mine"


def test_a_run_taken_up_again_with_another_folder_has_it_checked_before_the_charge(
    study, tmp_path, monkeypatch
):
    world = World(study, tmp_path).approve()
    assert not world.visit("bank")  # joined, waits for the shop
    monkeypatch.setattr(
        "splitmeans.run.preflight.Preflight._result_problems",
        lambda *_: ["the result cannot be written"],
    )
    with pytest.raises(ParameterError, match=r"nothing was charged yet: the result cannot"):
        world.visit("bank")
    monkeypatch.undo()
    assert world.play() == {}


@pytest.mark.parametrize(("users", "said"), [(3.0, True), (1e6, False)])
def test_a_total_that_may_be_noise_alone_is_said_where_sizes_are_shown(
    users, said, tmp_path, monkeypatch
):
    """Sixty rows where thousands were expected looked like a success."""

    def in_three_cells(weights: Any) -> Any:
        few = np.zeros_like(weights)
        few[:3] = users / 3
        return few

    monkeypatch.setattr(node, "combine", altered(in_three_cells))
    folder = folders(played(keyed_study(), tmp_path))["bank"]
    assert (MAYBE_NOBODY in command("result", "show", str(folder))) == said
    page = tmp_path / "page.html"
    command("report", str(folder), "-o", str(page))
    assert (MAYBE_NOBODY in page.read_text()) == said
