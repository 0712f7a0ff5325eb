"""Attacks on what a party remembers: clocks, limits, backups, copies, two processes (R11, R18)."""

import datetime
import hashlib
import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import (
    BudgetError,
    DataError,
    HomeUnavailable,
    JournalError,
    MailboxError,
    MessageExists,
    ParameterError,
)
from splitmeans.mailbox.open import MailboxLimits, MessagePath
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_tables import HEAD_FILE
from splitmeans.privacy.limits import Limit
from splitmeans.relay.limits import RelayLimits
from splitmeans.relay.store import RelayStore, SlotTaken
from splitmeans.run import home as home_files
from splitmeans.run.drive import Patience
from splitmeans.run.journal import Journal
from splitmeans.run.post import Post
from splitmeans.run.records import RunKey
from splitmeans.table.prepare import prepare_table
from splitmeans.wire.codec import encode
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.slot import SERVER
from tests.scene import N_USERS

from .harness import World, copy_home, restore_home
from .view import ViewError


def test_clock_set_back_and_forth(stage, monkeypatch):
    """Someone sets the machine's clock back and forth by years during the run.

    Gain: a party that gives up too early or never, an entry that sorts before an older one, or a
    message that counts as new because it is dated so.
    Fails: no message has a date, order in the ledger is by number, and waiting uses a clock that
    only goes forward.
    """
    chance = random.Random(3)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(0, 4e9))
    monkeypatch.setattr(
        Ledger.__init__,
        "__kwdefaults__",
        {
            "now": lambda: datetime.datetime.fromtimestamp(chance.randrange(10**9), datetime.UTC),
        },
    )
    assert Patience(timeout=1, say=str).clock is time.monotonic
    world = stage("finished")
    assert world.play(run="2") == {}
    assert [entry.number for entry in world.entries("bank")] == [1, 2]
    assert world.charged("bank") == 8


def limit(world: World, party: str, *, epsilon: float) -> None:
    with Journal.open(world.home(party)) as journal, journal.transaction():
        Ledger(journal.connection).set_limit("customers", Limit(epsilon=epsilon, delta=1e-3))


def declare(world: World, party: str, name: str) -> None:
    with Journal.open(world.home(party)) as journal, journal.transaction():
        Ledger(journal.connection).act("source", source=name, what="some people")


def test_limit_of_the_ledger(stage):
    """The server begins one run after the other on the same data.

    Gain: the noise of many runs averages out.
    Fails: runs add up in the ledger. A run that would pass the limit is refused before anything is
    sent and before the data is opened.
    """
    world = stage("finished")
    limit(world, "bank", epsilon=7)
    before = len(world.box.sent)
    world.opened.clear()
    with pytest.raises(BudgetError, match="limit"):
        world.visit("bank", run="2")
    assert (len(world.box.sent), world.opened) == (before, [])
    assert world.charged("bank") == 4


def test_limit_passed_by_a_run_in_between(stage):
    """The server lets two runs join while the budget is enough for one, then asks in both.

    Gain: two releases for one budget.
    Fails: the charge is made in the transaction that stores the release, and checks again.
    """
    world = stage("prepared")
    limit(world, "bank", epsilon=5)
    world.greet(SERVER, run="2")
    assert world.play("bank", "shop", run="2") == {}
    world.ask_for_releases()
    world.ask_for_releases(run="2")
    assert not world.visit("bank", run="2")
    with pytest.raises(BudgetError, match="limit"):
        world.visit("bank")
    assert len(world.releases("bank")) == 1
    assert world.charged("bank") == 4


def test_two_runs_at_once_and_room_for_one(stage):
    """A second run is begun while the first goes on in another process, and both wait.

    Gain: none for the attacker; the others would be charged in a run that this party cannot pay.
    Fails: what runs that go on will cost counts before joining. A run that nobody drives does not.
    """
    world = stage("prepared")
    limit(world, "bank", epsilon=7)
    with Journal.open(world.home("bank")) as journal:
        journal.hold(RunKey(study_hash=world.study.hash, run="1", participant="bank"))
        before = len(world.box.sent)
        with pytest.raises(BudgetError, match=r"goes on at the moment .run '1' of study .*limit"):
            world.visit("bank", run="2")
        assert len(world.box.sent) == before
        # Another name for the same people is no way around; room for both is no reason to refuse.
        with pytest.raises(ParameterError, match="'other' is a new name, and this home has limits"):
            world.visit("bank", run="3", source="other")
        limit(world, "bank", epsilon=8)
        assert not world.visit("bank", run="4")
        limit(world, "bank", epsilon=7)
    assert not world.visit("bank", run="5")


def test_source_named_anew_between_two_starts(stage):
    """The party's clerk gives the data another name when the run is taken up again.

    Gain: a release whose cost is on a source that has no limit, or on none.
    Fails: where there are limits a new name must be declared. Before the charge the new name is
    what is charged, and its limit holds; after it the charge stays where it is.
    """
    world = stage("prepared")
    limit(world, "bank", epsilon=3)  # of "customers"; too little for the run
    with pytest.raises(BudgetError, match="'customers' would have spent"):
        world.visit("bank")
    with pytest.raises(ParameterError, match="source must be printable text"):
        world.visit("bank", source="no\u00a0break")
    assert world.saved("bank").details["source"] == "customers"
    with pytest.raises(ParameterError, match="'crm' is a new name, and this home has limits"):
        world.visit("bank", source="crm")
    declare(world, "bank", "crm")
    assert not world.visit("bank", source="crm")
    assert "source 'crm' takes the place of 'customers'" in "".join(world.said["bank"])
    assert world.releases("bank") == {}
    world.ask_for_releases()
    assert not world.visit("bank", source="crm")
    assert not world.visit("bank", source="again")
    assert "was charged to source 'crm' and stays with it" in "".join(world.said["bank"])
    charges = [entry.source for entry in world.entries("bank") if entry.kind == "charge"]
    assert charges == ["crm"]


def test_a_source_that_the_ledger_refuses_does_not_join(stage):
    """A file's name holds a character that cannot be printed, such as a no-break space.

    Gain: none for anyone; the other party would be charged for a run that cannot end.
    Fails: the ledger's own rule is applied before anything is sent or opened.
    """
    world = stage("approved")
    for name in ("no\u00a0break", "bell\x07", "\udce9t\udce9", "", "  "):
        with pytest.raises(ParameterError, match="source must be"):
            world.visit("bank", source=name)
    assert (world.box.sent, world.opened) == ([], [])


def test_ledger_put_back_from_a_backup(stage, tmp_path):
    """After a run someone puts the database back as it was before, to forget the charge.

    Gain: a second budget on the same data.
    Fails: the file beside the database has seen more entries; nothing is charged, so nothing is
    released.
    """
    old, world = stage("prepared"), stage("released")
    shutil.copy(old.home("bank") / home_files.DATABASE, world.home("bank") / home_files.DATABASE)
    assert not (world.home("bank") / HEAD_FILE).read_text().startswith("0 ")
    with pytest.raises(BudgetError, match="cut off, or the database was replaced"):
        world.visit("bank", run="2")
    world.ask_for_releases()
    with pytest.raises(BudgetError, match="cut off, or the database was replaced"):
        world.visit("bank")
    assert len(world.releases("bank")) == 1
    world.unchecked["charged"] = "the ledger cannot be read any more, as it should be"


@pytest.mark.parametrize("instant", ["approved", "joined", "prepared"])
def test_home_restored_from_a_backup(stage, tmp_path, instant):
    """The party's whole home is put back as it was before its release, and the server asks again.

    Gain: a second release under the same run key, and a ledger that knows of one.
    Fails: the mailbox still has the first release, under the party's own signature. The party ends
    the run and charges the release that its home has forgotten. (A mailbox that hides it cannot be
    told from one that never had it: see "What is not covered".)
    """
    world = stage(instant)
    backup = copy_home(world, "bank", to=tmp_path / "backup")
    assert world.play("bank", "shop") == {}
    world.ask_for_releases()
    world.play("bank", "shop")
    assert len(world.releases("bank")) == 1
    restore_home(world, "bank", backup=backup)
    assert world.charged("bank") == 0
    with pytest.raises(JournalError, match="this home is older than the mailbox") as found:
        world.visit("bank")
    assert "nobody else did anything wrong" in str(found.value)
    assert "its release was found in the mailbox and is charged now" in str(found.value)
    assert [entry.kind for entry in world.entries("bank")] == ["added"]
    assert world.charged("bank") == 4
    assert world.stage_of("bank") == "failed"
    with pytest.raises(JournalError, match="has failed"):
        world.visit("bank")


def test_twin_without_a_look_at_the_mailbox_is_not_safe(stage, tmp_path, monkeypatch):
    """The check above is needed: without it a restored home shows the mailbox a second release."""
    monkeypatch.setattr(Post, "own_message", lambda self, receiver, kind: None)
    world = stage("prepared")
    world.is_twin = True
    backup = copy_home(world, "bank", to=tmp_path / "backup")
    world.ask_for_releases()
    world.visit("bank")
    restore_home(world, "bank", backup=backup)
    with pytest.raises(JournalError, match="a second copy of this home"):
        world.visit("bank")
    with pytest.raises(ViewError, match="two different partyrelease"):
        world.check_view()


def test_home_restored_and_no_room_for_what_was_released(stage, tmp_path):
    """As above, and meanwhile the limit was set below what the forgotten release cost.

    Gain: a release that the ledger never has, because its charge is refused.
    Fails: what was released is added whatever the limit is, and leaves no room for more.
    """
    world = stage("prepared")
    backup = copy_home(world, "bank", to=tmp_path / "backup")
    world.ask_for_releases()
    assert not world.visit("bank")
    restore_home(world, "bank", backup=backup)
    assert not world.visit("shop")
    with Journal.open(world.home("bank")) as journal, journal.transaction():
        Ledger(journal.connection).set_limit("customers", Limit(epsilon=5, delta=1e-3))
        Ledger(journal.connection).charge(
            "customers",
            Charge(relation=Relation.ADD_OR_REMOVE, epsilon=3.0, delta=0.0),
            study_hash="ab" * 32,
            run="1",
            party="bank",
            what="forgotten run of another study",
            late=True,
        )
    with pytest.raises(JournalError, match="this home is older than the mailbox"):
        world.visit("bank")
    assert world.charged("bank") == 7  # the limit is 5
    with pytest.raises(BudgetError, match="'customers' would have spent"):
        world.visit("bank", run="2")


def test_result_published_from_a_restored_home(stage, tmp_path):
    """The server's home is put back as it was before the result, and the server goes on.

    Gain: a second result of the same run with other noise; the mean of both has less.
    Fails: the mailbox still has the first result, sealed by the server to itself, and it is the one
    that is published again.
    """
    world = stage("prepared")
    assert not world.visit(SERVER)
    backup = copy_home(world, SERVER, to=tmp_path / "backup")
    world.play("bank", "shop")
    assert world.visit(SERVER)
    results = [world.message(SERVER, name, PublishedResult) for name in ("bank", "shop")]
    restore_home(world, SERVER, backup=backup)
    assert world.visit(SERVER)
    for name, first in zip(("bank", "shop"), results, strict=True):
        sent = [
            data
            for path, data in world.box.sent
            if path == world.path(SERVER, name, PublishedResult)
        ]
        assert len(sent) == 2
        for data in sent:
            assert encode(world.read(SERVER, name, PublishedResult, data)) == encode(first)


class Relayed:
    """The relay's own store as a mailbox, which may hide from a sender what it sent."""

    def __init__(self, world: World, folder: Path, *, reader: str, hides_own: bool) -> None:
        self.hides_own = hides_own
        self.world, self.store = world, RelayStore(folder, RelayLimits())
        self.reader = MessagePath.parse(world.path(SERVER, reader, PartyRelease)).receiver

    def put(self, path: str, data: bytes, **how: Any) -> None:
        upload = self.store.begin(MessagePath.parse(path))
        try:
            upload.write(data)
            upload.commit(body_hash=hashlib.sha256(data).hexdigest())
        except SlotTaken as problem:
            raise MessageExists(str(problem)) from problem
        finally:
            upload.discard()
        self.world.box.put(path, data, **how)

    def get(self, path: str, *, max_bytes: int) -> bytes | None:
        if self.hides_own and MessagePath.parse(path).receiver != self.reader:
            return None
        return self.world.box.get(path, max_bytes=max_bytes)

    def limits(self, study_hash: str) -> MailboxLimits:
        return self.world.box.limits(study_hash)

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        pass

    def close(self) -> None:
        self.store.close()


def test_home_restored_from_a_backup_behind_a_relay(stage, tmp_path):
    """As above over a relay.

    Gain: as above.
    Fails: the relay shows a sender its own messages, so the release is found as in a folder.
    """
    world = stage("prepared")
    backup = copy_home(world, "bank", to=tmp_path / "backup")
    world.ask_for_releases()
    world.mailbox = Relayed(world, tmp_path / "relay", reader="bank", hides_own=False)
    assert not world.visit("bank")
    restore_home(world, "bank", backup=backup)
    with pytest.raises(JournalError, match="this home is older than the mailbox"):
        world.visit("bank")
    assert [len(versions) for versions in world.releases("bank").values()] == [1]
    assert world.charged("bank") == 4
    world.mailbox.close()


def test_home_restored_behind_a_relay_that_denies_the_release(stage, tmp_path):
    """As above, and the relay says that there is no message of the party's.

    Gain: as above.
    Fails: a slot of the relay is written once. The second release is refused and never reaches the
    server; it has been charged, so the ledger is right as well, and the run ends.
    """
    world = stage("prepared")
    backup = copy_home(world, "bank", to=tmp_path / "backup")
    world.ask_for_releases()
    world.mailbox = Relayed(world, tmp_path / "relay", reader="bank", hides_own=True)
    assert not world.visit("bank")
    restore_home(world, "bank", backup=backup)
    with pytest.raises(JournalError, match="a second copy of this home takes part in the run"):
        world.visit("bank")
    assert [len(versions) for versions in world.releases("bank").values()] == [1]
    assert world.charged("bank") == 4
    assert world.stage_of("bank") == "failed"
    world.mailbox.close()
    world.unchecked["charged"] = "the ledger has the hash of the release that was refused"


def test_two_processes_on_one_home(stage):
    """Someone starts the party twice at once, so that both answer the server.

    Gain: two releases, one from each process.
    Fails: a run is locked by the process that drives it. (Another run of the home is not: it has a
    charge of its own.)
    """
    world = stage("prepared")
    world.ask_for_releases()
    with Journal.open(world.home("bank")) as journal:
        journal.hold(RunKey(study_hash=world.study.hash, run="1", participant="bank"))
        with pytest.raises(HomeUnavailable, match="in use by another splitmeans process"):
            world.visit("bank")
        assert world.releases("bank") == {}
        assert not world.visit("bank", run="2")
    assert not world.visit("bank")
    assert len(world.releases("bank")) == 1


def test_party_started_from_a_second_home(stage, tmp_path):
    """The party joins the same run a second time from an empty home, with the same key file.

    Gain: a second release in the run from the same data.
    Fails: the mailbox has messages of the run under the party's own signature, so the second home
    does not even join; it charges what was released.
    """
    world = stage("released")
    second = tmp_path / "second"
    with Journal.open(second) as journal:
        journal.approve(world.study.hash, world.study.to_toml())
    before = len(world.box.sent)
    with pytest.raises(JournalError, match="this home is older than the mailbox"):
        world.visit("bank", home=second)
    assert len(world.box.sent) == before
    with Journal.open(second) as journal:
        (entry,) = Ledger(journal.connection).entries()
    assert (entry.kind, entry.epsilon) == ("added", 4.0)
    assert entry.release_sha256 == world.entries("bank")[0].release_sha256


def test_users_changed_between_two_starts(stage):
    """The table gets other users after the parties compared theirs, and before the release.

    Gain: records that no longer fit together show who was removed.
    Fails: a digest of the users is stored and compared when the table is opened again, from the
    instant at which the party has joined.
    """
    for instant in ("approved", "prepared"):
        world = stage(instant)
        world.visit("bank")
        world.ask_for_releases()
        ids = [f"user-{number}" for number in range(1, N_USERS + 1)]
        rows = np.random.default_rng(1).uniform(0, 100, (N_USERS, 2))
        world.tables["bank"] = prepare_table(world.study.party("bank"), rows, ids=ids)
        with pytest.raises(DataError, match="users of party 'bank' changed"):
            world.visit("bank")
        assert world.releases("bank") == {}


def test_stored_release_changed_on_disk(stage):
    """Someone changes the stored release before it is sent.

    Gain: a release that is not the one that was charged; or one made anew because the old is bad.
    Fails: stored bytes are named by their hash; what does not fit is neither sent nor made anew.
    """
    world = stage("prepared")
    world.ask_for_releases()

    def broken(path: str, data: bytes) -> bytes | None:
        if "/partyrelease." in path:
            raise MailboxError("no connection")
        return data

    world.box.on_put = broken
    with pytest.raises(MailboxError, match="no connection"):
        world.visit("bank")
    world.box.log = [entry for entry in world.box.log if "/partyrelease." not in entry[1]]
    world.box.on_put = lambda path, data: data
    (release,) = (
        file
        for file in (world.home("bank") / home_files.OUTBOX).iterdir()
        if file.name == world.entries("bank")[0].release_sha256
    )
    release.write_bytes(release.read_bytes()[:-1] + b"?")
    with pytest.raises(JournalError, match="must not be sent or made anew"):
        world.visit("bank")
    assert world.releases("bank") == {}


def test_ledger_entry_changed_on_disk(stage):
    """Someone lowers the epsilon of an old charge in the database.

    Gain: room for another run.
    Fails: entries are chained by hash; nothing is charged to a ledger that is not sound.
    """
    world = stage("finished")
    with Journal.open(world.home("bank")) as journal:
        journal.connection.execute("DROP TRIGGER ledger_update")
        journal.connection.execute("UPDATE ledger SET epsilon = '0.1'")
    before = len(world.box.sent)
    with pytest.raises(BudgetError, match="entry 1 was changed"):
        world.visit("bank", run="2")
    assert len(world.box.sent) == before
    world.unchecked["charged"] = "the ledger cannot be read any more, as it should be"


def test_run_key_found_on_disk_after_the_release(stage):
    """Someone takes the party's disk after its release and looks for the run key.

    Gain: with the key all decoys can be told from users.
    Fails: the key is erased with the state that held it. (The sealed contributions that others sent
    stay in the mailbox; what opens them is erased when the run ends.)
    """
    before, world = stage("prepared"), stage("released")
    saved = before.saved("bank")
    assert saved is not None
    assert saved.state is not None
    key = json.loads(saved.state)["run_key"].encode()
    assert len(bytes.fromhex(key.decode())) == 32
    assert any(key in file.read_bytes() for file in before.home("bank").iterdir() if file.is_file())
    for file in world.home("bank").rglob("*"):
        assert not file.is_file() or key not in file.read_bytes(), file
