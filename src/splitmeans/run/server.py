"""Drive the server through a run over a mailbox.

Until the result is stored the server has drawn no randomness that anyone has seen: after a crash it
takes the same messages again, which are still in the mailbox and must have the same hashes. Its own
noise is drawn once, and the result is on disk before anyone gets it (rule R17).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans.errors import JournalError
from splitmeans.grid.clustering import about_found
from splitmeans.kernels.warm_up import warm_up
from splitmeans.plan import make_plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.run.drive import DONE, FAILED, Desk, refuse_failed
from splitmeans.run.journal import Journal
from splitmeans.run.mailbox import Mailbox
from splitmeans.run.post import Post, Received, check_own_key
from splitmeans.run.preflight import Preflight
from splitmeans.run.records import RunKey
from splitmeans.run.result_folder import check_place, write_result
from splitmeans.run.waiting import Patience
from splitmeans.server import node
from splitmeans.signed_result import Stamp
from splitmeans.study import Study
from splitmeans.wire.envelope import SERVER
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import MAX_LARGE_BYTES, PublishedResult
from splitmeans.wire.saved_result import dump_result, load_result

_RUNNING, _PUBLISHED = "Running", "Published"


@dataclass(frozen=True, kw_only=True)
class ServerRun:
    """The server's part in a run; see `run.party.PartyRun`."""

    study: Study
    run: str
    identity: Identity
    mailbox: Mailbox
    result_folder: Path
    say: Callable[[str], None]
    rehearse: Callable[[], object] = lambda: None
    max_bytes: int = MAX_LARGE_BYTES


def run_server(what: ServerRun, home: Path, *, timeout: float | None = None) -> Path:
    """Serve a run until the result is published; return the folder with it.

    Args:
        what: The run.
        home: The server's own folder, with what must survive a crash.
        timeout: Seconds without news from the parties after which to stop waiting; the same call
            then goes on later.
    """
    check_own_key(what.study, SERVER, what.identity)
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
        patience = Patience(timeout=timeout, say=what.say)
        desk = Desk(key=key, journal=journal, post=post, patience=patience)
        return _drive(what, desk)


def _drive(what: ServerRun, desk: Desk) -> Path:
    saved = desk.journal.load(desk.key)
    refuse_failed(saved, desk.key)
    if saved is not None and saved.outcome == DONE:
        desk.journal.forget_files(desk.key)  # a crash may have come before
        what.say(f"run {what.run!r} is finished; see {what.result_folder}")
        return what.result_folder
    check_place(what.result_folder)
    warm_up(what.say)
    if saved is None:
        Preflight(
            study=what.study,
            participant=SERVER,
            home=desk.journal.folder,
            result_folder=what.result_folder,
            mailbox=what.mailbox,
        ).check()
        what.rehearse()
        desk.journal.begin(
            desk.key, details={"study": what.study.name}, stage=_RUNNING, state=b"{}"
        )
    desk.send_pending(again=saved is not None)
    if saved is not None and saved.stage == _PUBLISHED:
        assert saved.state is not None
        noisy_count, result = load_result(saved.state)
    else:
        noisy_count, result = _collect(what, desk)
    desk.send_pending()
    write_result(
        what.result_folder,
        make_plan(what.study, noisy_count=noisy_count),
        result,
        run=what.run,
        participant=SERVER,
        transcript=desk.transcript(),
        secure_noise=SecureNoise().secure,
    )
    desk.journal.finish(desk.key, outcome=DONE, reason="")
    desk.journal.forget_files(desk.key)
    what.say(f"published; the result is in {what.result_folder}")
    if remark := about_found(len(result.sizes), asked=what.study.n_clusters):
        what.say(remark)
    return what.result_folder


def _collect(what: ServerRun, desk: Desk) -> tuple[int | None, PublishedResult]:
    """Take messages until the result is stored."""
    state = node.start(what.study, run=what.run)
    while not isinstance(state, node.Done):
        desk.send_pending()
        with desk.ending_on_protocol_errors():
            state = _step(what, desk, state, desk.next_message(node.expects(state)))
    saved = desk.journal.load(desk.key)
    assert saved is not None
    assert saved.state is not None
    return load_result(saved.state)


def _step(
    what: ServerRun, desk: Desk, state: node.ServerState, received: Received
) -> node.ServerState:
    envelope = received.envelope
    next_state, envelopes = node.step(
        state,
        envelope,
        noise=SecureNoise(),
        rng=np.random.default_rng(),
        stamp=Stamp(sign=what.identity.sign),
    )
    # After a restart the plan was sent already, and it is the same.
    stored = {item.slot_path for item in desk.journal.outgoing(desk.key)}
    messages = [message for message in desk.seal(envelopes) if message.path not in stored]
    if isinstance(next_state, node.Done):
        _refuse_second_result(what, desk)
    with desk.journal.transaction():
        desk.journal.accept(desk.key, received.slot.path, sha256=received.sha256)
        desk.queue(messages)
        if isinstance(next_state, node.Done):
            data = dump_result(next_state.plan.noisy_count, next_state.published)
            desk.journal.save(desk.key, stage=_PUBLISHED, state=data)
    what.say(f"took {type(envelope.message).__name__} from {envelope.sender}")
    return next_state


def _refuse_second_result(what: ServerRun, desk: Desk) -> None:
    """End the run if the mailbox has a result of it that this home has forgotten (R17)."""
    if all(
        desk.post.own_message(party, PublishedResult) is None for party in what.study.party_names
    ):
        return
    reason = "this home is older than the mailbox, which has a result of this run"
    desk.journal.finish(desk.key, outcome=FAILED, reason=reason)
    raise JournalError(
        f"{desk.key}: {reason} that it does not know. The home was put back from a backup, or the "
        "run was served from another copy of it. The parties have that result, and a second "
        "one with other noise must not follow; begin another run with a new name"
    )
