"""A backup of a home: what is in it and what is not; a ledger never goes back in time."""

import hashlib
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest

from splitmeans.errors import BudgetError, JournalError, ParameterError
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.limits import Limit
from splitmeans.run import backup as module
from splitmeans.run.backup import backup, restore
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from tests.crash.instants import Stopped, watched
from tests.scene import KEYS

STUDY = "ab" * 32
SECRET = b"the key of a run that goes on"


def key(run: str) -> RunKey:
    return RunKey(study_hash=STUDY, run=run, participant="bank")


def pay(home: Path, run: str) -> None:
    cost = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=1e-5)
    with Journal.open(home) as journal, journal.transaction():
        Ledger(journal.connection).charge(
            "customers",
            cost,
            study_hash=STUDY,
            run=run,
            party="bank",
            what="PartyRelease",
            release_sha256="cd" * 32,
        )


def add(home: Path, kind: str, **facts: object) -> None:
    with Journal.open(home) as journal, journal.transaction():
        Ledger(journal.connection).act(kind, **facts)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a charge, a limit, a key, and a run that goes on with a message to send."""
    folder = tmp_path / "bank"
    with Journal.open(folder) as journal:
        journal.approve(STUDY, "the study")
        journal.begin(key("2"), details={}, state=SECRET)
        journal.queue(key("2"), "slot", data=b"a message that waits")
    with Journal.open(folder) as journal, journal.transaction():
        Ledger(journal.connection).set_limit("customers", Limit(epsilon=2.0, delta=1e-3))
    pay(folder, "1")
    KEYS["bank"].save(folder / "key.json")
    return folder


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    backup(home, tmp_path / "backup.zip")
    return tmp_path / "backup.zip"


def test_what_is_in_it_and_what_is_not(home: Path, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        data = b"".join(archive.read(name) for name in names)
    assert names == {"manifest.json", "splitmeans.sqlite", "ledger.head", "key.json"}
    assert SECRET not in data
    assert b"a message that waits" not in data
    with Journal.open(home) as journal:  # the home itself goes on
        saved = journal.load(key("2"))
        assert saved is not None
        assert saved.state == SECRET
    with pytest.raises(ParameterError, match=r"backup .*backup.zip exists"):
        backup(home, file)


def test_keys_can_be_left_out(home: Path, tmp_path: Path) -> None:
    backup(home, tmp_path / "open.zip", with_keys=False)
    with zipfile.ZipFile(tmp_path / "open.zip") as archive:
        assert "key.json" not in archive.namelist()


def test_a_restored_home_charges_nothing_until_it_is_recovered(file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    restore(file, again)
    with Journal.open(again) as journal:
        assert journal.approved(STUDY)
        saved = journal.load(key("2"))
        assert saved is not None
        assert (saved.state, saved.outcome) == (None, "failed")
        assert journal.pending(key("2")) == ()
    with pytest.raises(BudgetError, match=r"was restored from a backup of .*, 2 entries: what was"):
        pay(again, "3")
    with Journal.open(again) as journal, journal.transaction():  # a forgotten charge is found
        Ledger(journal.connection).charge(
            "customers",
            Charge(relation=Relation.ADD_OR_REMOVE, epsilon=0.5, delta=1e-5),
            study_hash=STUDY,
            run="2",
            party="bank",
            what="found in the mailbox",
            late=True,
        )
    add(again, "recovered", what="compared with the shop")
    with pytest.raises(BudgetError, match=r"would have spent epsilon 2\.5"):
        pay(again, "3")


def test_a_ledger_never_goes_back_in_time(home: Path, file: Path) -> None:
    pay(home, "3")
    with pytest.raises(JournalError, match="ledger of 3 entries, and the backup ends at entry 2"):
        restore(file, home)
    (home / "splitmeans.sqlite").unlink()  # the head alone tells it as well
    with pytest.raises(JournalError, match="ledger never goes back in time"):
        restore(file, home)


def test_over_an_older_home(home: Path, tmp_path: Path) -> None:
    older = Path(shutil.copytree(home, tmp_path / "older"))
    pay(home, "3")
    backup(home, tmp_path / "newer.zip")
    restore(tmp_path / "newer.zip", older)
    with Journal.open(older) as journal:
        assert Ledger(journal.connection).verify().n_entries == 4
    with pytest.raises(BudgetError, match="was restored"):
        pay(older, "4")


def test_another_homes_backup(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    add(other, "source", source="suppliers", what="suppliers")
    with pytest.raises(JournalError, match="or is of another home"):
        restore(file, other)


def test_damaged_files(file: Path, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bit.zip").write_bytes(data)
    (tmp_path / "text.zip").write_bytes(b"no backup")
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents["manifest.json"])
    for name, change in {
        "less.zip": {"key.json": None},
        "more.zip": {"../evil": b"x"},
        "other.zip": {"ledger.head": b"0 " + b"0" * 64},
        "kind.zip": {"manifest.json": json.dumps(manifest | {"format": "x"}).encode()},
    }.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for path, content in (contents | change).items():
                if content is not None:
                    archive.writestr(path, content)
    for name in ("bit.zip", "text.zip", "less.zip", "more.zip", "other.zip", "kind.zip"):
        with pytest.raises(ParameterError, match=rf"{name} is (damaged|no backup)"):
            restore(tmp_path / name, tmp_path / "again")
    assert not (tmp_path / "evil").exists()


def test_a_restore_that_is_killed_at_any_instant_charges_nothing(
    file: Path, tmp_path: Path
) -> None:
    number = stops = 0
    while True:
        again = tmp_path / f"again-{number}"
        count = 0

        def stop(instant: str, number: int = number) -> None:
            nonlocal count
            count += 1
            if count > number:
                raise Stopped

        try:
            with watched(stop):
                restore(file, again)
        except Stopped:
            stops += 1
            number += 6
            if (again / "splitmeans.sqlite").exists():
                with pytest.raises((BudgetError, JournalError)) as told:
                    pay(again, "3")
                assert "limit" not in str(told.value)
            continue
        break
    assert stops > 8


def test_a_twin_without_the_mark_is_caught(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_marked", lambda contents, manifest: {})
    restore(file, tmp_path / "again")
    pay(tmp_path / "again", "3")  # what the real one refuses


def test_backup_and_restore_need_no_temporary_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None can stay behind, also of a process that is killed: there is no place for any."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    file, other = tmp_path / "backup.zip", tmp_path / "other"
    backup(home, file)
    restore(file, other)
    restore(file, home)  # it is as old as the backup
    with pytest.raises(JournalError, match="a ledger never goes back in time"):
        restore(file, other)


def test_a_backup_of_something_else_than_a_database(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["splitmeans.sqlite"] = b"no database" * 1000
    manifest = json.loads(contents["manifest.json"])
    manifest["files"]["splitmeans.sqlite"] = hashlib.sha256(
        contents["splitmeans.sqlite"]
    ).hexdigest()
    contents["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with pytest.raises(ParameterError, match=r"the backup's splitmeans.sqlite cannot be read"):
        restore(tmp_path / "other.zip", tmp_path / "other")
    assert not (tmp_path / "other" / "ledger.head").exists()
