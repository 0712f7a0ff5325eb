"""A participant's own key of a run: on disk while the run goes on, and nowhere afterwards."""

import os
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitmeans.cli.home_backup import app
from splitmeans.errors import JournalError
from splitmeans.run.backup import backup, restore
from splitmeans.run.home import RUN_KEYS
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from splitmeans.run.run_keys import erase_key, keep_key, load_key
from splitmeans.wire.sealing import OpeningKey
from tests.attacks.harness import World
from tests.scene import KEYS, keyed_study

RUN = RunKey(study_hash="ab" * 32, run="q1", participant="bank")
OTHER = RunKey(study_hash="ab" * 32, run="q2", participant="bank")
OPENING = OpeningKey(bytes(range(32)))


def begin(journal: Journal, run: RunKey) -> Path:
    with journal.transaction():
        journal.begin(run, details={}, state=b"")
        keep_key(journal.folder, run, OPENING, identity=KEYS["bank"])
    return journal.folder / RUN_KEYS / run.lock_name


def test_it_is_read_back_and_overwritten_when_it_is_erased(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "home") as journal:
        file = begin(journal, RUN)
        assert load_key(journal.folder, RUN, identity=KEYS["bank"]).seed == OPENING.seed
        assert file.stat().st_mode & 0o777 == 0o600
        stored = file.read_bytes()
        assert OPENING.seed not in stored
        os.link(file, tmp_path / "the same blocks")
        erase_key(journal.folder, RUN)
        assert not file.exists()
        left = (tmp_path / "the same blocks").read_bytes()
        assert len(left) == len(stored)
        assert (
            sum(one == two for one, two in zip(left, stored, strict=True)) < 8
        )  # by chance 60/256
        erase_key(journal.folder, RUN)  # nothing happens
        with pytest.raises(JournalError, match="its key is not at"):
            load_key(journal.folder, RUN, identity=KEYS["bank"])


def test_opening_a_home_erases_keys_of_runs_that_do_not_go_on(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "home") as journal:
        going_on, ended = begin(journal, RUN), begin(journal, OTHER)
        orphan = journal.folder / RUN_KEYS / "a crash came before its run"
        orphan.write_bytes(b"x")
        journal.finish(OTHER, outcome="failed", reason="made up")
    Journal.open(tmp_path / "home").close()
    assert [path.exists() for path in (going_on, ended, orphan)] == [True, False, False]


@pytest.mark.parametrize("damage", [b"", b"short", bytes(60)])
def test_a_damaged_key_is_refused(tmp_path: Path, damage: bytes) -> None:
    with Journal.open(tmp_path / "home") as journal:
        begin(journal, RUN).write_bytes(damage)
        with pytest.raises(JournalError, match="is damaged, or of another identity or run"):
            load_key(journal.folder, RUN, identity=KEYS["bank"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The bank and the shop are ready; nothing is released."""
    world = World(keyed_study(), tmp_path / "world").approve()
    for name in ("server", *("bank", "shop") * 4):
        world.visit(name)
    assert world.stage_of("bank") == "Prepared"
    return world


def test_a_backup_has_no_key_of_a_run_and_a_restored_home_neither(
    world: World, tmp_path: Path
) -> None:
    home, again = world.home("bank"), tmp_path / "again"
    (key,) = (home / RUN_KEYS).iterdir()
    backup(home, tmp_path / "home.zip")
    with zipfile.ZipFile(tmp_path / "home.zip") as archive:
        assert not [name for name in archive.namelist() if "run-keys" in name]
        assert all(key.read_bytes() not in archive.read(name) for name in archive.namelist())
    restore(tmp_path / "home.zip", again)
    assert list((again / RUN_KEYS).iterdir()) == []
    with pytest.raises(JournalError, match="must not go on from one"):
        world.visit("bank", home=again)
    restore(tmp_path / "home.zip", home)  # over the home that it is of
    assert list((home / RUN_KEYS).iterdir()) == []


def test_a_run_that_is_abandoned_has_no_key_any_more(world: World, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(world.study.to_toml())
    own = ["abandon", str(file), "--home", str(world.home("bank")), "--party", "bank", "--run"]
    done = CliRunner().invoke(app, [*own, "1", "--reason", "the shop left"])
    assert done.exit_code == 0, done.output
    assert "its key is erased; nothing was charged" in done.stderr
    assert list((world.home("bank") / RUN_KEYS).iterdir()) == []
    with pytest.raises(JournalError, match=r"has failed \(abandoned: the shop left\)"):
        world.visit("bank")
    for run, words in (("1", "has ended already"), ("2", "knows no run '2' of 'bank'")):
        refused = CliRunner().invoke(app, [*own, run])
        assert words in str(refused.exception)
