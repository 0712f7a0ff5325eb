import contextlib
import hashlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitmeans.errors import (
    BudgetError,
    HomeUnavailable,
    JournalError,
    ParameterError,
    ProtocolError,
)
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_tables import GENESIS
from splitmeans.privacy.limits import Limit
from splitmeans.run import home
from splitmeans.run.journal import Journal, Outgoing, RunKey

SOURCE = Path(home.__file__).parents[2]
STUDY = "ab" * 32
KEY = RunKey(study_hash=STUDY, run="first", participant="bank")
SLOT = "study/first/partyrelease.bank.server"
DATA = b"sealed bytes of a release"
DATA_HASH = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    with Journal.open(folder) as journal:
        journal.begin(KEY, details={"mailbox": "folder"}, state=b"state 1")
        yield journal


def release(journal: Journal, data: bytes = DATA) -> None:
    """The step of a run that matters most: message taken, charged, stored, state changed."""
    with journal.transaction():
        journal.accept(KEY, "study/first/runplan.server.bank", sha256="12" * 32)
        Ledger(journal.connection).charge(
            "customers",
            Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=1e-5),
            study_hash=STUDY,
            run=KEY.run,
            party=KEY.participant,
            what="PartyRelease",
            release_sha256=hashlib.sha256(data).hexdigest(),
        )
        journal.queue(KEY, SLOT, data=data)
        journal.save(KEY, stage="Released", state=b"state 2")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_run_from_begin_to_finish(journal: Journal) -> None:
    saved = journal.load(KEY)
    assert saved is not None
    assert (saved.details, saved.stage, saved.state) == (
        {"mailbox": "folder"},
        "begun",
        b"state 1",
    )
    assert (saved.outcome, saved.reason) == (None, None)
    assert "state 1" not in repr(saved)
    journal.save(KEY, stage="Keyed", state=b"state 2")
    journal.finish(KEY, outcome="published", reason="")
    saved = journal.load(KEY)
    assert saved is not None
    assert (saved.stage, saved.state, saved.outcome) == ("Keyed", None, "published")


def test_a_run_begins_once_and_its_end_is_final(journal: Journal) -> None:
    with pytest.raises(JournalError, match="run 'first' of 'bank' in study abababababababab has b"):
        journal.begin(KEY, details={}, state=b"")
    journal.finish(KEY, outcome="failed", reason="nobody came")
    for change in (
        lambda: journal.save(KEY, stage="Keyed", state=b""),
        lambda: journal.finish(KEY, outcome="published", reason=""),
        lambda: journal.accept(KEY, SLOT, sha256=DATA_HASH),
        lambda: journal.queue(KEY, SLOT, data=DATA),
    ):
        with pytest.raises(JournalError, match="is finished and cannot be changed"):
            change()
    with pytest.raises(JournalError, match="has begun already"):
        journal.begin(KEY, details={}, state=b"")


def test_runs_are_told_apart(journal: Journal) -> None:
    other = RunKey(study_hash=STUDY, run="second", participant="bank")
    assert journal.load(other) is None
    with pytest.raises(JournalError, match=r"run 'second' of 'bank' .* has not begun"):
        journal.save(other, stage="Keyed", state=b"")
    journal.begin(other, details={}, state=b"other")
    journal.queue(other, SLOT, data=DATA)
    assert journal.outgoing(KEY) == ()
    with pytest.raises(ParameterError, match="study_hash must be 64 hexadecimal digits"):
        RunKey(study_hash="AB", run="first", participant="bank")
    with pytest.raises(ParameterError, match="run must be 1 to 40 lower-case"):
        RunKey(study_hash=STUDY, run="../x", participant="bank")


def test_everything_survives_reopening(journal: Journal, folder: Path) -> None:
    journal.approve(STUDY, "name = 'study'")
    release(journal)
    journal.close()
    with Journal.open(folder) as again:
        saved = again.load(KEY)
        assert saved is not None
        assert (saved.stage, saved.state) == ("Released", b"state 2")
        (item,) = again.pending(KEY)
        assert again.read(item) == DATA
        assert again.approved(STUDY)
        assert Ledger(again.connection).verify().n_entries == 1


def test_approvals(journal: Journal) -> None:
    assert not journal.approved(STUDY)
    journal.approve(STUDY, "text")
    journal.approve("cd" * 32, "other")
    journal.approve(STUDY, "text again")
    assert journal.approved(STUDY)
    assert journal.approved("cd" * 32)
    kept = journal.connection.execute("SELECT study_hash, study_text FROM approvals ORDER BY rowid")
    assert list(kept) == [(STUDY, "text"), ("cd" * 32, "other")]


def test_a_slot_is_taken_once(journal: Journal) -> None:
    assert journal.accept(KEY, "a/b/c", sha256="12" * 32) is True
    assert journal.accept(KEY, "a/b/c", sha256="12" * 32) is False
    assert journal.accept(KEY, "a/b/d", sha256="34" * 32) is True
    with pytest.raises(ProtocolError, match="slot a/b/c holds another message"):
        journal.accept(KEY, "a/b/c", sha256="34" * 32)


def test_outbox(journal: Journal, folder: Path) -> None:
    first = journal.queue(KEY, SLOT, data=DATA)
    second = journal.queue(KEY, "study/first/ready", data=b"")
    assert first == Outgoing(slot_path=SLOT, sha256=DATA_HASH, size=len(DATA), sent=False)
    assert journal.outgoing(KEY) == journal.pending(KEY) == (first, second)
    assert (folder / "outbox" / DATA_HASH).read_bytes() == journal.read(first) == DATA
    for data in (DATA, b"made anew"):
        with pytest.raises(JournalError, match=f"slot {SLOT} has a stored message: resend"):
            journal.queue(KEY, SLOT, data=data)
    journal.mark_sent(KEY, SLOT)
    journal.mark_sent(KEY, SLOT)
    assert journal.pending(KEY) == (second,)
    assert [item.sent for item in journal.outgoing(KEY)] == [True, False]
    with pytest.raises(JournalError, match="slot nowhere has no stored message"):
        journal.mark_sent(KEY, "nowhere")


def test_a_damaged_or_missing_message_is_not_sent(journal: Journal, folder: Path) -> None:
    item = journal.queue(KEY, SLOT, data=DATA)
    path = folder / "outbox" / DATA_HASH
    path.write_bytes(DATA[:-1])
    with pytest.raises(JournalError, match=f"{DATA_HASH} is damaged; it must not be sent"):
        journal.read(item)
    path.unlink()
    with pytest.raises(JournalError, match=f"{DATA_HASH} cannot be read: No such file"):
        journal.read(item)


def test_files_are_forgotten_when_all_is_done(journal: Journal, folder: Path) -> None:
    other = RunKey(study_hash=STUDY, run="second", participant="bank")
    journal.begin(other, details={}, state=b"")
    item = journal.queue(KEY, SLOT, data=DATA)
    journal.queue(KEY, "own", data=b"own")
    journal.queue(other, SLOT, data=DATA)  # the same bytes, so the same file
    with pytest.raises(JournalError, match="is not finished, or has messages to send"):
        journal.forget_files(KEY)
    journal.finish(KEY, outcome="published", reason="")
    journal.mark_sent(KEY, SLOT)
    with pytest.raises(JournalError, match="is not finished, or has messages to send"):
        journal.forget_files(KEY)
    journal.mark_sent(KEY, "own")
    journal.forget_files(KEY)
    assert [path.name for path in (folder / "outbox").iterdir()] == [DATA_HASH]
    journal.finish(other, outcome="published", reason="")
    journal.mark_sent(other, SLOT)
    with journal.transaction():
        journal.forget_files(other)
    assert [path.name for path in (folder / "outbox").iterdir()] == [DATA_HASH]
    journal.forget_files(other)
    assert list((folder / "outbox").iterdir()) == []
    assert [entry.size for entry in journal.outgoing(KEY)] == [item.size, 3]
    with pytest.raises(JournalError, match="cannot be read"):
        journal.read(item)


def test_an_error_undoes_the_whole_step(journal: Journal, folder: Path) -> None:
    def fail_at_the_end() -> None:
        with journal.transaction():
            journal.queue(KEY, SLOT, data=DATA)
            journal.save(KEY, stage="Released", state=b"state 2")
            raise ZeroDivisionError("at the end")

    with pytest.raises(ZeroDivisionError, match="at the end"):
        fail_at_the_end()
    assert_before(journal)
    assert (folder / "outbox" / DATA_HASH).exists()  # until the next open
    (folder / "outbox" / ".x.part").write_bytes(b"half")
    (folder / ".ledger.head.x.part").write_bytes(b"half")
    (folder / "outbox" / "notes.txt").write_bytes(b"someone's own")
    journal.close()
    with Journal.open(folder) as again:
        assert_before(again)
        release(again)
        assert_after(again)
    assert sorted(path.name for path in (folder / "outbox").iterdir()) == [DATA_HASH, "notes.txt"]
    assert not list(folder.glob(".*"))


def test_a_refused_charge_undoes_the_whole_step(journal: Journal) -> None:
    with journal.transaction():
        Ledger(journal.connection).set_limit("customers", Limit(epsilon=0.5, delta=0.1))
    with pytest.raises(BudgetError, match=r"'customers' would have spent epsilon 1\.0"):
        release(journal)
    saved = journal.load(KEY)
    assert saved is not None
    assert saved.stage == "begun"
    assert journal.outgoing(KEY) == ()
    assert journal.accept(KEY, "study/first/runplan.server.bank", sha256="34" * 32)


def test_a_second_release_is_refused(journal: Journal) -> None:
    release(journal)
    with pytest.raises(BudgetError, match="has released 'PartyRelease' already"):
        release(journal)
    with pytest.raises(BudgetError, match="has released 'PartyRelease' already"):
        release(journal, b"made anew")
    assert_after(journal)


def test_transactions_do_not_nest_and_do_not_outlive_an_error(journal: Journal) -> None:
    def nest() -> None:
        with journal.transaction(), journal.transaction():
            pass

    def end_early(*, go_on: bool) -> None:
        with journal.transaction():
            journal.connection.execute("ROLLBACK")  # as SQLite itself does when the disk is full
            if go_on:
                journal.save(KEY, stage="Released", state=b"")

    with pytest.raises(JournalError, match="do not nest"):
        nest()
    with pytest.raises(JournalError, match="earlier error has ended"):
        end_early(go_on=True)
    with pytest.raises(JournalError, match=r"splitmeans\.sqlite: .*no transaction is active"):
        end_early(go_on=False)
    assert_before(journal)


def test_only_the_owner_can_read(journal: Journal, folder: Path) -> None:
    release(journal)
    seen = {str(path.relative_to(folder)): mode_of(path) for path in folder.rglob("*")}
    assert mode_of(folder) == 0o700
    assert seen == {
        "splitmeans.sqlite": 0o600,
        "splitmeans.lock": 0o600,
        "ledger.head": 0o600,
        "locks": 0o700,
        "run-keys": 0o700,
        "outbox": 0o700,
        "spool": 0o700,
        f"outbox/{DATA_HASH}": 0o600,
    }


def test_rollback_journal_is_private_too(journal: Journal, folder: Path) -> None:
    with journal.transaction():
        journal.save(KEY, stage="Keyed", state=b"x" * 100_000)
        assert mode_of(folder / "splitmeans.sqlite-journal") == 0o600


def test_places_that_others_can_read_are_refused(journal: Journal, folder: Path) -> None:
    journal.close()
    for path, opened, fix in (
        (folder, 0o750, "chmod 700"),
        (folder / "outbox", 0o701, "chmod 700"),
        (folder / "locks", 0o750, "chmod 700"),
        (folder / "splitmeans.sqlite", 0o604, "chmod 600"),
    ):
        before = mode_of(path)
        path.chmod(opened)
        with pytest.raises(JournalError, match=f"{path.name} is open to other users: {fix}"):
            Journal.open(folder)
        path.chmod(before)
    Journal.open(folder).close()


def test_links_and_other_files_are_refused(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (tmp_path / "elsewhere").write_bytes(b"")
    (folder / "splitmeans.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match=r"splitmeans\.sqlite must be a plain file"):
        Journal.open(folder)
    (folder / "splitmeans.sqlite").unlink()
    (folder / "splitmeans.lock").unlink()
    (folder / "splitmeans.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="home cannot be used: Too many levels"):
        Journal.open(folder)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(JournalError, match="file cannot be used: File exists"):
        Journal.open(tmp_path / "file")


def test_databases_of_others_and_of_other_versions_are_refused(
    journal: Journal, folder: Path
) -> None:
    path = folder / "splitmeans.sqlite"
    journal.connection.execute("PRAGMA user_version = 4")
    journal.close()
    with pytest.raises(JournalError, match="has format 4, this version of splitmeans knows 5"):
        Journal.open(folder)
    database = sqlite3.connect(path)
    database.execute("PRAGMA application_id = 7")
    database.close()
    with pytest.raises(JournalError, match="is another program's database"):
        Journal.open(folder)
    path.write_bytes(b"no database at all, but long enough to look like one" * 20)
    with pytest.raises(JournalError, match="cannot be used: file is not a database"):
        Journal.open(folder)
    path.write_bytes(b"")
    Journal.open(folder).close()  # nothing was ever charged, so nothing is lost


def test_settings(journal: Journal) -> None:
    settings = {
        name: journal.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
    }
    assert settings == {
        "journal_mode": "delete",
        "synchronous": 3,
        "secure_delete": 1,
        "foreign_keys": 1,
    }
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        journal.connection.execute("INSERT INTO accepted VALUES (99, 'slot', 'hash')")


def test_finished_and_replaced_states_leave_no_bytes_behind(journal: Journal, folder: Path) -> None:
    secrets = [b"%d-SECRET-KEY" % number * 800 for number in range(4)]
    for secret in secrets[1:]:
        journal.save(KEY, stage="Keyed", state=secret)
    assert b"3-SECRET-KEY" in (folder / "splitmeans.sqlite").read_bytes()
    journal.finish(KEY, outcome="published", reason="")
    assert b"SECRET" not in (folder / "splitmeans.sqlite").read_bytes()
    assert not (folder / "splitmeans.sqlite-journal").exists()


def test_a_damaged_state_is_not_used(journal: Journal) -> None:
    journal.connection.execute("UPDATE runs SET state = 'state 9'")
    journal.connection.execute("UPDATE runs SET state = CAST(state AS BLOB)")
    with pytest.raises(JournalError, match=r"saved state of run 'first' .* is damaged"):
        journal.load(KEY)


def test_the_head_file_follows_the_ledger(journal: Journal, folder: Path) -> None:
    head = folder / "ledger.head"
    assert head.read_text() == f"0 {GENESIS}\n"
    release(journal)
    assert head.read_text() == f"1 {Ledger(journal.connection).verify().head}\n"
    head.write_text(f"0 {GENESIS}\n")  # as if the process had died right after the commit
    journal.close()
    with Journal.open(folder) as again:
        assert head.read_text() == f"1 {Ledger(again.connection).verify().head}\n"


def test_an_older_database_is_found_out(
    journal: Journal, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal.close()
    old = (folder / "splitmeans.sqlite").read_bytes()
    with Journal.open(folder) as later:
        release(later)
    head = (folder / "ledger.head").read_text()
    (folder / "splitmeans.sqlite").write_bytes(old)
    with Journal.open(folder) as again:
        with pytest.raises(BudgetError, match=r"ledger\.head is from a ledger of 1 entries or mo"):
            release(again)
        assert (folder / "ledger.head").read_text() == head
    (folder / "splitmeans.sqlite").unlink()
    with pytest.raises(JournalError, match=r"is missing or empty, but .*ledger\.head says that"):
        Journal.open(folder)


@pytest.mark.parametrize("text", [None, "", "1\n", "-1 x\n", f"x {GENESIS}\n", "0 é\n"])
def test_a_missing_or_damaged_head_file_stops_charges(
    journal: Journal, folder: Path, text: str | None
) -> None:
    (folder / "ledger.head").unlink()
    if text is not None:
        (folder / "ledger.head").write_text(text)
    with pytest.raises(BudgetError, match=r"ledger\.head is missing or damaged"):
        release(journal)
    journal.save(KEY, stage="Keyed", state=b"")  # what costs nothing goes on


def test_a_head_of_another_ledger_stops_charges(journal: Journal, folder: Path) -> None:
    (folder / "ledger.head").write_text(f"0 {'00' * 32}\n")
    with pytest.raises(BudgetError, match="is from a ledger of 0 entries or more that is not"):
        release(journal)


def test_the_ledger_can_be_read_while_a_run_goes_on(journal: Journal, folder: Path) -> None:
    release(journal)
    uri = f"file:{folder / 'splitmeans.sqlite'}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as reader, journal.transaction():
        journal.save(KEY, stage="Finished", state=b"")
        assert Ledger(reader).verify().n_entries == 1


def test_a_full_disk_ends_the_step(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(JournalError, match=f"{DATA_HASH} cannot be written: No space left"):
            release(journal)
    assert_before(journal)
    assert list((journal.folder / "outbox").iterdir()) == []
    (pages,) = journal.connection.execute("PRAGMA page_count").fetchone()
    journal.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(JournalError, match="database or disk is full"), journal.transaction():
        journal.save(KEY, stage="Keyed", state=b"x" * 1_000_000)
    assert_before(journal)


def test_a_head_file_that_cannot_be_written_does_not_undo_a_charge(
    journal: Journal,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real = home.write_file

    def refuse_head(path: Path, data: bytes) -> None:
        if path.name == "ledger.head":
            raise OSError(28, "No space left on device")
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(home, "write_file", refuse_head)
        release(journal)
    assert "ledger.head cannot be written: No space left" in caplog.text
    assert (folder / "ledger.head").read_text() == f"0 {GENESIS}\n"
    assert_after(journal)
    journal.mark_sent(KEY, SLOT)  # the next commit of any kind
    assert (folder / "ledger.head").read_text().startswith("1 ")


def test_unfit_systems_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(home._SETTINGS, "secure_delete", 7)
        with pytest.raises(JournalError, match="this SQLite cannot set secure_delete to 7"):
            Journal.open(folder)
    user = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: user + 1)
        with pytest.raises(JournalError, match="home belongs to another user"):
            Journal.open(folder)
    Journal.open(folder).close()


# Two processes, and processes that die.


CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_journal import *

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, point = Path(sys.argv[2]), sys.argv[3]
journal = Journal.open(folder)
journal.hold(KEY)
if point == "hold":
    print("open", flush=True)
    sys.stdin.read()
if point == "fork":
    if os.fork() == 0:
        print("open", flush=True)
        sys.stdin.read()
        os._exit(0)
    die()
if point == "begin":
    journal.connection.set_trace_callback(lambda text: text.startswith("BEGIN") and die())
if point == "charge":
    Ledger.charge = die
if point == "part":
    os.replace = die
if point == "file":
    os.replace = lambda *names: (os.rename(*names), die())
if point == "save":
    Journal.save = die
if point == "spilled":
    # A tiny cache makes SQLite write pages into the database before the commit.
    journal.connection.execute("PRAGMA cache_size = 1")
    journal.connection.execute("PRAGMA cache_spill = 1")
    save = Journal.save
    def save_and_die(self, key, **values):
        save(self, key, stage="Released", state=b"state 2" * 100_000)
        assert (folder / "splitmeans.sqlite-journal").stat().st_size > 512
        die()
    Journal.save = save_and_die
if point == "commit":
    journal.connection.set_trace_callback(lambda text: text.startswith("COMMIT") and die())
if point == "head":
    Journal._keep_head = die
release(journal)
raise SystemExit("still alive")
"""


def start_child(folder: Path, point: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(folder), point],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def assert_before(journal: Journal) -> None:
    saved = journal.load(KEY)
    assert saved is not None
    assert (saved.stage, saved.state) == ("begun", b"state 1")
    assert journal.outgoing(KEY) == ()
    assert Ledger(journal.connection).verify().n_entries == 0


def assert_after(journal: Journal, *, data: bytes = DATA) -> None:
    saved = journal.load(KEY)
    assert saved is not None
    assert (saved.stage, saved.state) == ("Released", b"state 2")
    (item,) = journal.outgoing(KEY)
    assert journal.read(item) == data
    (entry,) = Ledger(journal.connection).entries()
    assert entry.release_sha256 == item.sha256
    assert Ledger(journal.connection).verify().n_entries == 1


OTHER = RunKey(study_hash=STUDY, run="second", participant="bank")


def test_two_processes_cannot_drive_one_run(folder: Path) -> None:
    with start_child(folder, "hold") as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "open\n"
            with Journal.open(folder) as journal:
                with pytest.raises(HomeUnavailable, match=r"run 'first' of 'bank' .* is in use by"):
                    journal.hold(KEY)
                journal.hold(OTHER)  # another run of the same home goes on beside it
        finally:
            child.send_signal(signal.SIGKILL)
    with Journal.open(folder) as journal:
        journal.hold(KEY)


@pytest.mark.parametrize(
    "other",
    [
        RunKey(study_hash="ac" * 32, run="first", participant="bank"),
        RunKey(study_hash=STUDY, run="first-2", participant="bank"),
        RunKey(study_hash=STUDY, run="first", participant="server"),
    ],
)
def test_a_run_is_held_once_and_others_beside_it(
    journal: Journal, folder: Path, other: RunKey
) -> None:
    journal.hold(KEY)
    with Journal.open(folder) as again:
        with pytest.raises(HomeUnavailable, match="is in use"):
            again.hold(KEY)
        again.hold(other)
        journal.close()
        journal.close()
        again.hold(KEY)


def test_a_worker_that_outlives_its_parent_does_not_hold_the_run(folder: Path) -> None:
    with start_child(folder, "fork") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        # The grandchild sits on this pipe; only its parent is dead.
        assert child.wait() == -signal.SIGKILL
        with Journal.open(folder) as journal:
            journal.hold(KEY)


def test_opening_waits_for_another_ones_step(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored message has no row before its step is committed; nobody may sweep it away."""
    swept = threading.Event()
    real = home.sweep

    def sweep(*args: object, **names: object) -> None:
        swept.set()
        real(*args, **names)  # type: ignore[arg-type]

    monkeypatch.setattr(home, "sweep", sweep)
    opening = threading.Thread(target=lambda: Journal.open(folder).close())
    with journal.transaction():
        item = journal.queue(KEY, SLOT, data=DATA)
        opening.start()
        assert not swept.wait(0.3)  # an error here can only pass, never fail
    opening.join()
    assert swept.is_set()
    assert journal.read(item) == DATA


def test_a_home_that_stays_busy_says_so(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "BUSY_SECONDS", 0.05)
    with (
        journal.transaction(),
        pytest.raises(HomeUnavailable, match=r"sqlite is in use by another"),
    ):
        Journal.open(folder)
    with home.brief_lock(folder), pytest.raises(HomeUnavailable, match="home is in use by another"):
        Journal.open(folder)
    with Journal.open(folder) as again, journal.transaction():
        for write in (
            lambda: again.save(KEY, stage="Keyed", state=b""),
            lambda: Ledger(again.connection).set_limit("customers", Limit(epsilon=1.0, delta=0.0)),
        ):
            with pytest.raises(HomeUnavailable, match="is in use"), again.transaction():
                write()
    assert_before(journal)


RACER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_journal import *

folder, name = Path(sys.argv[2]), sys.argv[3]
with Journal.open(folder) as journal:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(N_EACH):
        key = RunKey(study_hash=STUDY, run=f"{name}-{number}", participant="bank")
        journal.hold(key)
        journal.begin(key, details={}, state=b"state")
        data = str(key).encode()
        try:
            with journal.transaction():
                Ledger(journal.connection).charge(
                    "customers", Charge(relation=Relation.ADD_OR_REMOVE, epsilon=1.0, delta=0.0),
                    study_hash=STUDY, run=key.run, party="bank", what="PartyRelease",
                    release_sha256=hashlib.sha256(data).hexdigest())
                item = journal.queue(key, SLOT + key.run, data=data)
        except BudgetError:
            assert journal.pending(key) == ()
            continue
        assert journal.read(item) == data
        print(key.run, flush=True)
        if number % 3 == 0:
            journal.mark_sent(key, item.slot_path)
            journal.finish(key, outcome="done", reason="")
            journal.forget_files(key)  # sweeps while the others write
"""
N_PROCESSES, N_EACH, ROOM = 3, 8, 17


def test_processes_that_race_for_the_last_budget(folder: Path) -> None:
    """The limit holds for all runs of a home together; what is charged is stored as well."""
    with Journal.open(folder) as journal, journal.transaction():
        Ledger(journal.connection).set_limit("customers", Limit(epsilon=ROOM, delta=1e-3))
    command = [sys.executable, "-c", RACER, str(Path(__file__).parent), str(folder)]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    with contextlib.ExitStack() as running:
        racers = [
            running.enter_context(
                subprocess.Popen(
                    [*command, f"racer{number}"],
                    env=env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(N_PROCESSES)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        charged = [racer.communicate()[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * N_PROCESSES
    with Journal.open(folder) as journal:
        book = Ledger(journal.connection)
        verified = book.verify()
        assert book.spent("customers").epsilon == ROOM
        runs = [entry.run for entry in book.entries() if entry.kind == "charge"]
        assert sorted(runs) == sorted(name for names in charged for name in names)
        assert len(runs) == ROOM
    assert (folder / "ledger.head").read_text() == f"{ROOM + 1} {verified.head}\n"
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize(
    "point", ["begin", "charge", "part", "file", "save", "spilled", "commit", "head"]
)
def test_a_killed_process_leaves_all_of_a_step_or_nothing(
    journal: Journal, folder: Path, point: str
) -> None:
    journal.close()
    with start_child(folder, point) as child:
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    if point == "spilled":
        assert (folder / "splitmeans.sqlite-journal").exists()
    with Journal.open(folder) as again:
        if point == "head":
            assert_after(again)
            return
        assert_before(again)
        assert list((folder / "outbox").iterdir()) == []
        release(again, b"made after the crash")
        assert_after(again, data=b"made after the crash")


def test_a_copy_at_any_moment_holds_all_of_a_step_or_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk as another process sees it around each statement and file operation."""
    copies: list[Path] = []

    def copy(*_: object) -> None:
        with monkeypatch.context() as patch:  # copying opens files as well
            for name, function in real.items():
                patch.setattr(os, name, function)
            copies.append(tmp_path / f"copy{len(copies)}")
            shutil.copytree(folder, copies[-1])

    def watched(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **names: object) -> object:
            copy()
            result = function(*args, **names)
            copy()
            return result

        return call

    real = {name: getattr(os, name) for name in ("open", "fsync", "replace", "close")}
    with Journal.open(folder) as journal:
        journal.begin(KEY, details={}, state=b"state 1")
        journal.connection.set_trace_callback(copy)
        with monkeypatch.context() as patch:
            for name, function in real.items():
                patch.setattr(os, name, watched(function))
            release(journal)
        journal.connection.set_trace_callback(None)
        copy()
    is_after = []
    for place in copies:
        with Journal.open(place) as again:
            is_after.append(bool(again.outgoing(KEY)))
            if is_after[-1]:
                assert_after(again)
            else:
                assert_before(again)
                assert list((place / "outbox").iterdir()) == []
    assert is_after == sorted(is_after)  # what was committed stays
    assert is_after.count(False) > 20
    assert is_after.count(True) > 10
