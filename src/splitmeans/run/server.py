"""Drive the server through a run over a mailbox.

Until the result is stored the server has drawn no randomness that anyone has seen: after a crash it
takes the same messages again, which are still in the mailbox and must have the same hashes. Its own
noise is drawn once (rule R17), also if its home is put back or runs twice:

- the noise is derived from the server's private key and the releases, so that the same releases get
  the same noise and others get independent noise;
- the result is first sealed to the server itself and put into a slot of its own, which is filled
  once. What lies there is the result, whoever put it there, and all parties get that.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from splitmeans.errors import MailboxUnavailable, ProtocolError
from splitmeans.mailbox.open import Mailbox
from splitmeans.plan.series import SeriesRun
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import ReleasedValues
from splitmeans.privacy.keyed_noise import KeyedNoise
from splitmeans.privacy.noise import NoiseSource, SecureNoise
from splitmeans.result.previous import Previous
from splitmeans.result.signed import Stamp
from splitmeans.result.write import check_place
from splitmeans.run.drive import DONE, Desk, Patience, refuse_failed, taken_note
from splitmeans.run.ending import Ending
from splitmeans.run.greeting import Greeting, refuse_second_home
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.own_keys import check_not_revoked
from splitmeans.run.post import Post, Received, check_own_key
from splitmeans.run.preflight import Preflight
from splitmeans.run.records import RunKey
from splitmeans.run.series import details_of, place_of, previous_for
from splitmeans.server import node
from splitmeans.study import Study
from splitmeans.wire.codec import encode, encoded_parts
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.on_disk import kept_on_disk
from splitmeans.wire.saved_result import dump_result, load_result
from splitmeans.wire.slot import SERVER
from splitmeans.wire.ways import MAX_LARGE_BYTES

_RUNNING, _PROPOSED, _PUBLISHED = "Running", "Proposed", "Published"
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class ServerRun:
    """The server's part in a run; see `run.party_run.PartyRun`."""

    study: Study
    run: str
    identity: Identity
    mailbox: Mailbox
    result_folder: Path
    say: Callable[[str], None]
    rehearse: Callable[[], object] = lambda: None
    going_on: Callable[[], object] = lambda: None
    max_bytes: int = MAX_LARGE_BYTES
    previous: Path | None = None


def run_server(what: ServerRun, home: Path, *, timeout: float | None = None) -> Path:
    """Serve a run until the result is published; return the folder with it.

    The home has what must survive a crash. After `timeout` seconds without news from the parties it
    stops waiting; the same call then goes on later.
    """
    check_own_key(what.study, SERVER, what.identity)
    check_not_revoked(home, what.study)
    key = RunKey(study_hash=what.study.hash, run=what.run, participant=SERVER)
    with Journal.open(home) as journal:
        journal.hold(key)
        post = Post(
            what.study,
            run=what.run,
            participant=SERVER,
            identity=what.identity,
            mailbox=what.mailbox,
            max_bytes=what.max_bytes,
        )
        patience = Patience(timeout=timeout, say=what.say, going_on=what.going_on)
        desk = Desk(key=key, journal=journal, post=post, patience=patience, has_equals=True)
        previous = previous_for(journal, key, what.study, folder=what.previous)
        return _drive(what, desk, previous)


def _drive(what: ServerRun, desk: Desk, previous: Previous | None) -> Path:
    saved = desk.journal.load(desk.key)
    refuse_failed(saved, desk.key)
    this = place_of(desk.journal, desk.key, what.study, previous=previous)
    ending = Ending(
        study=what.study, desk=desk, folder=what.result_folder, say=what.say, series_run=this
    )
    if saved is not None and saved.outcome == DONE:
        return ending.again()
    check_place(what.result_folder)
    greeting = Greeting(
        desk=desk,
        identity=what.identity,
        others=what.study.party_names,
        say=what.say,
        going_on=what.going_on,
    )
    if saved is None:
        preflight = Preflight(
            study=what.study,
            participant=SERVER,
            home=desk.journal.folder,
            result_folder=what.result_folder,
            mailbox=what.mailbox,
        )
        preflight.check()
        refuse_second_home(desk, what.study.party_names)
        what.rehearse()
        what.going_on()
        preflight.reserve(what.run)
        # It approves nothing, so its home has the study's text from here.
        own = {"study": what.study.name, "toml": what.study.to_toml()}
        details = own | details_of(this)
        words = greeting.make()
        with desk.journal.transaction():
            desk.journal.begin(desk.key, details=details, stage=_RUNNING, state=b"{}")
            words.store()
        text = f"serving run {what.run!r} of study {what.study.name!r}"
        what.say(Note(text, event="joined", stage="Gathering"))
    else:
        text = f"taking run {what.run!r} up again ({saved.stage})"
        what.say(Note(text, event="resumed", stage=saved.stage))
        greeting.take_up()
    desk.send_pending(again=saved is not None)
    greeting.complete()
    if saved is None or saved.stage == _RUNNING:
        _collect(what, desk, previous)
    return ending.finish(*_settle(what, desk, this))


def _collect(what: ServerRun, desk: Desk, previous: Previous | None) -> None:
    """Take messages until a result is stored."""
    state = node.start(what.study, run=what.run, previous=previous)
    while not isinstance(state, node.Done):
        desk.send_pending()
        with desk.ending_on_protocol_errors():
            state = _step(what, desk, state, _next(desk, node.expects(state)))


def _next(desk: Desk, expected: frozenset[tuple[str, str]]) -> Received:
    """Wait for a message; a large one is then on disk, so that memory holds one at a time."""
    received = desk.next_message(expected)
    envelope = received.envelope
    kept = kept_on_disk(envelope.message, desk.journal.folder)
    return replace(received, envelope=replace(envelope, message=kept))


def _step(
    what: ServerRun, desk: Desk, state: node.ServerState, received: Received
) -> node.ServerState:
    envelope = received.envelope
    noise, rng = _randomness(what, state, envelope)
    next_state, envelopes = node.step(
        state, envelope, noise=noise, rng=rng, stamp=Stamp(sign=what.identity.sign)
    )
    if isinstance(next_state, node.Done):
        own = next_state.published
        envelopes = [Envelope(sender=SERVER, receiver=SERVER, message=own)]
    # After a restart the plan was sent already, and it is the same.
    stored = {item.slot_path for item in desk.journal.outgoing(desk.key)}
    messages = [message for message in desk.seal(envelopes) if message.path not in stored]
    what.going_on()
    with desk.journal.transaction():
        desk.journal.accept(desk.key, received.slot.path, sha256=received.sha256)
        desk.queue(messages)
        if isinstance(next_state, node.Done):
            data = dump_result(next_state.plan.released, next_state.published)
            desk.journal.save(desk.key, stage=_PROPOSED, state=data)
    what.say(taken_note(envelope, stage=type(next_state).__name__))
    return next_state


def _settle(
    what: ServerRun, desk: Desk, this: SeriesRun | None
) -> tuple[ReleasedValues, PublishedResult]:
    """Let the server's own slot decide which result this run has, and send that to everyone."""
    desk.send_pending()
    saved = desk.journal.load(desk.key)
    assert saved is not None
    assert saved.state is not None
    released, result = load_result(saved.state)
    if saved.stage == _PUBLISHED:
        return released, result
    decided = _decided(desk)
    if encode(decided) != encode(result):
        what.say("the mailbox has a result of this run from before; it is published as it is")
    result = decided
    with desk.ending_on_protocol_errors():
        plan = make_plan(what.study, released=released, series_run=this)
        if result.fingerprint != plan.fingerprint:
            raise ProtocolError(
                "the mailbox has a result of this run that follows from another plan; was it "
                "published by another version of splitmeans? Begin another run"
            )
    to_parties = [
        Envelope(sender=SERVER, receiver=party, message=result) for party in what.study.party_names
    ]
    messages = desk.seal(to_parties)
    with desk.journal.transaction():
        desk.queue(messages)
        desk.journal.save(desk.key, stage=_PUBLISHED, state=dump_result(released, result))
    desk.send_pending()
    return released, result


def _decided(desk: Desk) -> PublishedResult:
    """Return what lies in the server's own slot, which has been filled.

    Raises:
        MailboxUnavailable: Somebody keeps changing it.
    """
    for _ in range(_ATTEMPTS):
        received = desk.post.fetch(SERVER, PublishedResult.TAG)
        if received is not None:
            assert isinstance(received.envelope.message, PublishedResult)
            return received.envelope.message
        desk.send_pending(again=True)  # taken away, or replaced by junk
    raise MailboxUnavailable(
        "the mailbox does not keep the server's own copy of the result, without which another "
        "server could publish another one; nothing was published"
    )


def _randomness(
    what: ServerRun, state: node.ServerState, envelope: Envelope
) -> tuple[NoiseSource, np.random.Generator]:
    """Return the noise, and the randomness of the clustering, that a step may use."""
    if isinstance(state, node.Collecting) and isinstance(envelope.message, PartyRelease):
        releases = {**state.releases, envelope.sender: envelope.message}
        if len(releases) == len(what.study.parties):
            key = draw_key(what.identity, what.study, run=what.run, releases=releases)
            noise = KeyedNoise(key)
            seed = noise.spawn("clustering").words(4)
            return noise, np.random.default_rng(seed)
    return SecureNoise(), np.random.default_rng()


def draw_key(
    identity: Identity, study: Study, *, run: str, releases: Mapping[str, PartyRelease]
) -> bytes:
    """Return the secret that a run's draw follows from.

    It names all releases: were one of them another, the same noise would show by how much the
    results differ.
    """
    digest = hashlib.sha256(f"splitmeans draw 1\n{study.hash}\n{run}\n".encode())
    for party in study.party_names:
        release = hashlib.sha256()
        for part in encoded_parts(releases[party]):
            release.update(part)
        digest.update(release.digest())
    return identity.derive(b"splitmeans server draw 1\0" + digest.digest())
