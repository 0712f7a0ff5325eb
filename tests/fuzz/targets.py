"""What is fuzzed: one function for each decoder of bytes that come from outside.

A target takes any bytes and returns. Errors that the decoder promises are caught here; whatever
else comes out (another error, a warning, a result that is not finite) is a finding. A parameter
error is not one of the promised errors where the input is another participant's message: the
driver ends a run on `ProtocolError` alone.
"""

import atexit
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans.errors import (
    DataError,
    JournalError,
    MessageRefused,
    ParameterError,
    PrivacyError,
    ProtocolError,
    SplitmeansError,
    StudyError,
)
from splitmeans.mailbox.open import MessagePath
from splitmeans.mailbox.request_signature import SignedRequest, _signed_text
from splitmeans.party import node as party_node
from splitmeans.party.check_result import check_result
from splitmeans.party.saved_state import dump_state, load_state
from splitmeans.party.session import Session
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.relay.access import Access, Refused
from splitmeans.relay.limits import RelayLimits
from splitmeans.result.publish import read_published
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import prepare_table
from splitmeans.table.sources.open import open_source
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity, PublicIdentity
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.saved_result import dump_result, load_result
from splitmeans.wire.sealed import MAGIC as SEALED_MAGIC
from splitmeans.wire.sealed import (
    OVERHEAD_BYTES,
    _info,
    _marks,
    _to_sign,
    open_sealed,
)
from splitmeans.wire.slot import SERVER
from tests.fuzz import corpus

Target = Callable[[bytes], None]


class Finding(Exception):
    """A decoder let something through that it must not."""


def codec(data: bytes) -> None:
    """Any message: what decodes has one form of bytes that decodes to the same."""
    try:
        message = decode(data)
    except ProtocolError:
        return
    repr(message)
    again = encode(message)
    if encode(decode(again)) != again:
        raise Finding("a message changes on its way")


def sealed(data: bytes) -> None:
    """Mode 0: any bytes. Mode 1: any ciphertext, rightly signed by its sender."""
    body = data[1:]
    sender, receiver = corpus.identity("org0"), corpus.identity("org1")
    if data[:1] == b"\1":
        marks = _marks(corpus.SLOT, sender=sender.public, receiver=receiver.public)
        length = 5 + 8 + sum(map(len, marks)) + 32 + len(body) + 64
        sealed_to = receiver.public.sealing_key.digest
        header = SEALED_MAGIC + b"\2" + length.to_bytes(8, "little") + b"".join(marks) + sealed_to
        info = _info(
            corpus.SLOT, sender=sender.public, receiver=receiver.public, sealed_to=sealed_to
        )
        body = header + body + sender.sign(_to_sign(info, header, body))
    try:
        payload = open_sealed(
            body,
            slot=corpus.SLOT,
            sender=sender.public,
            receiver=receiver.public,
            opener=receiver.opening_key,
            max_bytes=OVERHEAD_BYTES + 1024,
        )
    except MessageRefused:
        return
    if payload != b"payload":
        raise Finding("a message that nobody sealed was opened")


def identity(data: bytes) -> None:
    """Mode 0: any text. Mode 1: any keys, with the checksum that fits."""
    text = data[1:].decode(errors="surrogateescape")
    if data[:1] == b"\1":
        keys = data[1:1249].ljust(1248, b"\0")
        text = _Keys(signing=keys[:32], sealing=keys[32:]).to_text()
    try:
        public = PublicIdentity.from_text(text)
    except ParameterError:
        return
    if public.to_text() != text.strip():
        raise Finding("two texts stand for one identity")
    public.verify(b"data", b"\0" * 64)
    public.sealing_key.encrypt(b"data", info=b"")


class _Keys(PublicIdentity):
    """Keys that nobody checked, to write the text of any bytes."""

    def __post_init__(self) -> None:
        pass


def key_file(data: bytes) -> None:
    """Any key file, without its passphrase."""
    path = _file("key", data)
    try:
        Identity.is_protected(path)
        own = Identity.load(path)
    except ParameterError as problem:
        _refuse_long(problem)
        return
    own.sign(b"data")


def saved_result(data: bytes) -> None:
    """Any stored result."""
    try:
        released, result = load_result(data)
    except JournalError:
        return
    _check_values(released)
    load_result(dump_result(released, result))


def saved_state(data: bytes) -> None:
    """The first byte picks the stage; the rest is any stored state."""
    stages = [*corpus.saved_stages(), "Unknown"]
    stage = stages[data[0] % len(stages)] if data else "Unknown"
    study = corpus.study_of("counted")
    session = Session(study=study, run="1", party="org0")
    try:
        state = load_state(stage, data[1:], session=session, open_table=_table)
    except (DataError, JournalError):
        return
    party_node.expects(state)
    dump_state(state)
    _check_values(getattr(state, "released", ()))


def _check_values(released: Any) -> None:
    if any(type(value) is not int for stage in released for own in stage for value in own):
        raise Finding("a stored value of a stage is not a whole number")


@functools.cache
def _table() -> Any:
    party = corpus.study_of("counted").parties[0]
    return prepare_table(party, corpus.table_of(party, seed=0))


def study_toml(data: bytes) -> None:
    """Any study file."""
    path = _file("study.toml", data)
    try:
        study = Study.read(path)
    except StudyError:
        return
    _same_study(study)


def study_mapping(data: bytes) -> None:
    """Any plain values; JSON stands for them."""
    study = _study_from_json(data)
    if study is not None:
        _same_study(study)


def _study_from_json(data: bytes) -> Study | None:
    try:
        mapping = json.loads(data)
    except (ValueError, RecursionError):
        return None
    try:
        return Study.from_mapping(mapping)
    except StudyError:
        return None


def _same_study(study: Study) -> None:
    again = Study.from_toml(study.to_toml())
    if again.hash != study.hash:
        raise Finding("a study changes when it is written and read")


def plan(data: bytes) -> None:
    """The plan of any study."""
    study = _study_from_json(data)
    if study is None:
        return
    try:
        settled = make_plan(study)
    except (ParameterError, PrivacyError):
        return
    _ = settled.fingerprint


def message_path(data: bytes) -> None:
    """Any path of a message: what passes names a file below the folder."""
    path = data.decode(errors="surrogateescape")
    try:
        parts = MessagePath.parse(path).parts
    except ParameterError as problem:
        _refuse_long(problem)
        return
    if "/".join(parts) != path or not path.isascii() or ".." in path or "\n" in path:
        raise Finding("a path that is not a slot's was taken")


def request(data: bytes) -> None:
    """Method, path and headers of a request, one a line; mode 1 signs what they say."""
    lines = data[1:].decode("latin-1").split("\n")
    method, path = lines[0], lines[1] if len(lines) > 1 else ""
    headers = {}
    for line in lines[2:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    asked = SignedRequest.read(headers)
    names = ("org0", "org1")
    if data[:1] == b"\1" and asked is not None:
        text = _signed_text(
            method,
            path,
            body_hash=asked.body_hash,
            time=asked.time,
            nonce=asked.nonce,
            participant=asked.participant,
        )
        signer = corpus.identity(names[data[-1] % 2])
        headers["splitmeans-signature"] = signer.sign(text).hex()
    roster = {name: corpus.identity(name).public for name in names}
    access = Access({corpus.SLOT.study_hash: roster}, RelayLimits(), clock=lambda: corpus.NOW)
    try:
        caller = access.admit(method, path, headers)
    except Refused as problem:
        _refuse_long(problem)
        return
    with access.transfer(caller):
        pass
    try:
        access.admit(method, path, headers)
    except Refused:
        return
    raise Finding("the same request was taken twice")


def synopsis(data: bytes) -> None:
    """Any synopsis file: what is read can be used."""
    path = _file("synopsis.parquet", data)
    try:
        read = Synopsis.from_parquet(path)
    except ParameterError as problem:
        _refuse_long(problem)
        return
    repr(read.feature_names)
    clustering = read.cluster(2, random_state=1)
    _finite(read.nodes, clustering.centres, clustering.sizes, clustering.loss, read.total)


def release(data: bytes) -> None:
    """A party's release, as the last one that the server waits for.

    The first byte picks the case, the second the party, the rest is the message. The run ends in a
    protocol error, or in a result that is finite and that every other party would take.
    """
    if len(data) < 2:
        return
    try:
        message = decode(data[2:])
    except ProtocolError:
        return
    if not isinstance(message, PartyRelease):
        return
    run = corpus.played(list(corpus.CASES)[data[0] % len(corpus.CASES)])
    names = run.study.party_names
    sender = names[data[1] % len(names)]
    others = {name: own for name, own in run.releases.items() if name != sender}
    state = server_node.Collecting(plan=run.plan, releases=others)
    _server_takes(state, sender, message)


def _server_takes(state: server_node.ServerState, sender: str, message: Any) -> None:
    envelope = Envelope(sender=sender, receiver=SERVER, message=message)
    try:
        after, sent = server_node.step(
            state, envelope, noise=InsecureSeededNoise(3), rng=np.random.default_rng(3)
        )
    except ProtocolError as problem:
        _refuse_long(problem)
        return
    if not isinstance(after, server_node.Done):
        return
    found = after.clustering
    _finite(found.centres, found.scaled_centres, found.sizes, found.loss, after.synopsis.total)
    _finite(after.synopsis.nodes, 0.0 if after.weights is None else after.weights)
    result = decode(encode(sent[0].message))
    _finite(read_published(after.plan, result).total, result.centres, result.sizes)


def result(data: bytes) -> None:
    """A server's result, at the party that the second byte picks; see `release`."""
    if len(data) < 2:
        return
    try:
        message = decode(data[2:])
    except ProtocolError:
        return
    if not isinstance(message, PublishedResult):
        return
    run = corpus.played(list(corpus.CASES)[data[0] % len(corpus.CASES)])
    names = run.study.party_names
    party = names[data[1] % len(names)]
    own = run.releases[party].centres
    # A damaged fingerprint would hide everything that is checked after it.
    message = replace(message, fingerprint=run.plan.fingerprint)
    try:
        session = Session(study=run.study, run="1", party=party)
        check_result(session, run.plan, message, released_centres=own, secure_noise=False)
    except ProtocolError as problem:
        _refuse_long(problem)
        return
    found = read_published(run.plan, message)
    _finite(found.total, found.nodes, message.centres, message.sizes)


def server_step(data: bytes) -> None:
    """Case, state and sender by one byte each, then any message to the server."""
    step = _step_of(data, "server_states")
    if step is not None:
        _server_takes(*step)


def party_step(data: bytes) -> None:
    """Case, state and sender by one byte each, then any message to a party."""
    step = _step_of(data, "party_states")
    if step is None:
        return
    state, sender, message = step
    envelope = Envelope(sender=sender, receiver=state.session.party, message=message)
    try:
        after, sent = party_node.step(
            state, envelope, noise=InsecureSeededNoise(3), rng=np.random.default_rng(3)
        )
    except ProtocolError as problem:
        _refuse_long(problem)
        return
    party_node.expects(after)
    for item in sent:
        encode(item.message)


def _step_of(data: bytes, states: str) -> tuple[Any, str, Any] | None:
    if len(data) < 3:
        return None
    try:
        message = decode(data[3:])
    except ProtocolError:
        return None
    run = corpus.played(corpus.STEPPED[data[0] % len(corpus.STEPPED)])
    choices = getattr(run, states)
    senders = [*run.study.party_names, SERVER, "stranger"]
    return choices[data[1] % len(choices)], senders[data[2] % len(senders)], message


def source_csv(data: bytes) -> None:
    """Any csv file as a party's table."""
    _source("table.csv", data)


def source_parquet(data: bytes) -> None:
    """Any parquet file as a party's table."""
    _source("table.parquet", data)


def source_arrow(data: bytes) -> None:
    """Any Arrow file as a party's table."""
    _source("table.arrow", data)


def _source(name: str, data: bytes) -> None:
    party = corpus.study_of("decoy").parties[0]
    try:
        with open_source(
            party, _file(name, data), options=SourceOptions(progress=lambda *_: None)
        ) as table:
            len(table)
    except DataError as problem:
        _refuse_long(problem)


@functools.cache
def _folder() -> Path:
    # In memory where there is such a place: a disk would be the slowest part of the run.
    shared = "/dev/shm"
    name = tempfile.mkdtemp(prefix="fuzz-", dir=shared if os.access(shared, os.W_OK) else None)
    atexit.register(shutil.rmtree, name, ignore_errors=True)
    return Path(name)


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _finite(*values: Any) -> None:
    for value in values:
        if not np.isfinite(value).all():
            raise Finding("a result is not finite")


def _refuse_long(problem: SplitmeansError) -> None:
    """An error text ends in terminals and journals; the input must not be able to fill them."""
    if len(str(problem)) > 4000:
        raise Finding(f"the text of a {type(problem).__name__} has {len(str(problem))} characters")


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        codec,
        sealed,
        identity,
        key_file,
        saved_result,
        saved_state,
        study_toml,
        study_mapping,
        plan,
        message_path,
        request,
        synopsis,
        release,
        result,
        server_step,
        party_step,
        source_csv,
        source_parquet,
        source_arrow,
    )
}
