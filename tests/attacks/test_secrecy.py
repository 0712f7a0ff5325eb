"""Keys of runs: what a stolen identity opens, and first words that are swapped or old."""

import contextlib
import shutil
from collections.abc import Iterator

import pytest
from cryptography.exceptions import InvalidTag

from splitmeans.errors import JournalError, MessageRefused, ProtocolError
from splitmeans.mailbox.open import MessagePath
from splitmeans.run import drive, ending, run_keys
from splitmeans.run.greeting import Greeting, Words
from splitmeans.run.home import RUN_KEYS
from splitmeans.run.journal import Journal, RunKey
from splitmeans.wire import sealed
from splitmeans.wire.codec import decode
from splitmeans.wire.envelope import PROTOCOL, Envelope
from splitmeans.wire.messages import Confirmation, Hello, KeyContribution, PublishedResult
from splitmeans.wire.slot import SERVER, short_name
from tests.scene import KEYS

from .harness import OPENINGS, World
from .view import KINDS

PARTIES = ("bank", "shop")
EVERYONE = (*PARTIES, SERVER)


def run_key(world: World, name: str, run: str = "1") -> RunKey:
    return RunKey(study_hash=world.study.hash, run=run, participant=name)


def opened_with_identities(world: World) -> Iterator[type]:
    """Kinds of recorded messages that open with what is in the participants' key files.

    The thief does not keep to rules: whatever the header says, every identity is tried on the
    ciphertext too.
    """
    names = {short_name(name): name for name in EVERYONE}
    for path, data in dict.fromkeys(world.box.sent):
        place = MessagePath.parse(path)
        kind = KINDS[place.kind]
        sender, receiver = names[place.sender], names[place.receiver]
        with contextlib.suppress(MessageRefused):
            payload = sealed.open_sealed(
                data,
                slot=world.slot(sender, receiver, kind),
                sender=KEYS[sender].public,
                receiver=KEYS[receiver].public,
                opener=KEYS[receiver].opening_key,
                max_bytes=2**30,
            )
            assert isinstance(decode(payload), kind)
            yield kind
            continue
        slot = world.slot(sender, receiver, kind)
        ends = {"sender": KEYS[sender].public, "receiver": KEYS[receiver].public}
        info = sealed._info(slot, **ends, sealed_to=data[125:157])
        for thief in KEYS.values():
            with contextlib.suppress(InvalidTag, ValueError):
                thief.opening_key.decrypt(data[157:-64], info=info)
                yield kind


def seeds_on_disk(world: World) -> list[str]:
    """Files that have a key of a run in them, plain or as it is stored."""
    known = [key.seed for key in OPENINGS.values()]
    files = [path for path in world.root.rglob("*") if path.is_file()]
    found = [str(path) for path in files if any(seed in path.read_bytes() for seed in known)]
    return found + [str(path) for path in world.root.glob(f"*/{RUN_KEYS}/*")]


def test_identities_stolen_after_the_run(stage):
    """Years later a thief has everyone's key files and homes, and a record of all messages.

    Gain: contributions to the run key, so the key; with it decoys are told from users in releases.
    Fails: all but the first words was sealed to keys that were made for the run and erased when it
    ended, and the first words say public keys.
    """
    world = stage("finished")
    assert set(opened_with_identities(world)) == {Hello}
    assert seeds_on_disk(world) == []
    for name in EVERYONE:
        with pytest.raises(JournalError, match="its key is not at"):
            run_keys.load_key(world.home(name), run_key(world, name), identity=KEYS[name])


def test_twin_that_seals_to_identities_is_opened(stage, monkeypatch):
    """The check above can fail: participants whose key of the run is that of their identity."""

    def make(self: Greeting) -> Words:
        opening, own = self.identity.opening_key, self.desk.key.participant
        word = Hello(protocol=bytes([PROTOCOL]), sealing=opening.public.data)
        to_all = [Envelope(sender=own, receiver=other, message=word) for other in self.others]
        self.desk.post.use_key(opening)
        return Words(greeting=self, opening=opening, messages=self.desk.seal(to_all))

    monkeypatch.setattr(Greeting, "make", make)
    world = stage("approved")
    world.is_twin = True
    world.box.files.clear()
    world.box.log.clear()
    shutil.rmtree(world.home(SERVER))
    assert world.play() == {}
    assert {KeyContribution, Confirmation, PublishedResult} <= set(opened_with_identities(world))


def test_home_stolen_without_its_passphrase(stage):
    """A thief takes the bank's home in the middle of a run; its key file has a passphrase.

    Gain: the key of the run, and with it what the others have sealed to the bank.
    Fails: it is stored encrypted under a secret of the identity, for this run and participant.
    """
    world = stage("prepared")
    home, own = world.home("bank"), run_key(world, "bank")
    key = run_keys.load_key(home, own, identity=KEYS["bank"])
    assert key.seed not in (home / RUN_KEYS / own.lock_name).read_bytes()
    with pytest.raises(JournalError, match="is damaged, or of another identity or run"):
        run_keys.load_key(home, own, identity=KEYS["shop"])
    other = run_key(world, "bank", run="2")
    shutil.copy(home / RUN_KEYS / own.lock_name, home / RUN_KEYS / other.lock_name)
    with pytest.raises(JournalError, match="is damaged, or of another identity or run"):
        run_keys.load_key(home, other, identity=KEYS["bank"])
    assert world.play() == {}


@pytest.mark.parametrize("forger", [SERVER, "mallory"])
def test_key_of_the_run_swapped_on_its_way(stage, forger):
    """The server or the mailbox tells the bank a key of its own as the shop's.

    Gain: the bank seals its contribution to the attacker, who passes on what it likes.
    Fails: first words count if the identity that the study pins has signed them, and no other.
    """
    world = stage("approved")
    word = Hello(protocol=bytes([PROTOCOL]), sealing=KEYS[forger].public.sealing)
    world.forge("bank", word, sender="shop", key=KEYS[forger])
    forged = world.box.files[world.path("shop", "bank", Hello)]
    assert not world.visit("bank")
    assert world.sent_by("bank") == []
    world.visit("shop")  # its own word takes the place of what it never signed
    assert world.box.files[world.path("shop", "bank", Hello)] != forged
    assert world.play() == {}


def test_key_of_an_older_run(stage):
    """The mailbox answers the second run's request with the shop's first words of the first run.

    Gain: contributions of two runs under one key; where that leaked, both are open.
    Fails: first words are signed for study, run, sender and receiver.
    """
    world = stage("finished")
    old = world.box.files[world.path("shop", "bank", Hello)]
    target = world.path("shop", "bank", Hello, run="2")
    world.box.on_get = lambda path, data: old if path == target else data
    assert world.play(run="2") == {}
    assert world.stage_of("bank", run="2") == "Joined"
    assert world.entries("bank") == world.entries("bank")[:1]
    world.box.on_get = lambda path, data: data
    assert world.play(run="2") == {}
    told = {run: world.sealing_of("shop", told_to="bank", run=run) for run in "12"}
    assert told["1"] != told["2"]


def test_second_key_told_in_the_middle_of_a_run(stage):
    """After the bank has taken the shop's key the shop says another one, and mail is late.

    Gain: a release that is sealed to a key which others hold.
    Fails: a key is taken once, with the step that took it, and never asked for again.
    """
    world = stage("prepared")
    word = Hello(protocol=bytes([PROTOCOL]), sealing=KEYS["mallory"].public.sealing)
    second = dict(world.sealed("bank", word, sender=sender) for sender in ("shop", SERVER))
    assert set(second) <= set(world.box.files)
    world.box.on_get = lambda path, data: second.get(path, data)
    assert world.play() == {}
    sealed_to = {data[125:157] for _, data in world.box.sent}
    assert KEYS["mallory"].public.sealing_key.digest not in sealed_to


@pytest.mark.parametrize("end", ["done", "failed", "crashed"])
def test_keys_of_ended_runs_looked_for_on_disk(stage, monkeypatch, end):
    """A thief takes all homes after a run has ended, well or not, or was killed at its last step.

    Gain: keys that open what was recorded.
    Fails: they are erased with the end, and by the next command if a crash came in between.
    """
    world = stage("prepared")
    assert len(list(world.root.glob(f"*/{RUN_KEYS}/*"))) == 3
    if end == "failed":
        for name in PARTIES:
            world.forge(name, world.plan_message(fingerprint="00" * 32))
        with monkeypatch.context() as patch:  # whoever looks at a home opens it
            patch.setattr(run_keys, "erase_ended", lambda *args: None)
            assert set(world.play(*PARTIES)) == set(PARTIES)
        left = [path.parent.parent.name for path in world.root.glob(f"*/{RUN_KEYS}/*")]
        assert left == [SERVER]
        assert [world.stage_of(name) for name in PARTIES] == ["failed", "failed"]
        return
    if end == "crashed":
        with monkeypatch.context() as patch:
            for module in (drive, ending):
                patch.setattr(module, "erase_key", lambda *args: None)
            patch.setattr(run_keys, "erase_ended", lambda *args: None)
            assert world.play() == {}
        assert len(list(world.root.glob(f"*/{RUN_KEYS}/*"))) == 3
        for name in EVERYONE:
            Journal.open(world.home(name)).close()
    else:
        assert world.play() == {}
    assert seeds_on_disk(world) == []


def test_server_set_up_again_with_its_identity_alone(stage):
    """The server's machine is lost after the parties released, and set up again with its key file.

    Gain: a second server with the same identity that opens releases and publishes once more.
    Fails: the key of the run was in the lost home. The new server says so and sends nothing. (So
    the run has no result: keep the server's home on a disk that lasts.)
    """
    world = stage("released")
    shutil.rmtree(world.home(SERVER))
    sent = len(world.box.sent)
    with pytest.raises(JournalError, match="begun from another home, which alone has the key"):
        world.visit(SERVER)
    # Also if the mailbox hides the first words: what was sealed to the other key stays closed.
    hidden = f"/hello.{short_name(SERVER)}."
    world.box.on_get = lambda path, data: None if hidden in path else data
    world.box.files = {path: data for path, data in world.box.files.items() if hidden not in path}
    with pytest.raises(ProtocolError, match="sealed to a key that is not here"):
        world.visit(SERVER)
    kinds = {KINDS[MessagePath.parse(path).kind] for path, _ in world.box.sent[sent:]}
    assert kinds <= {Hello}
