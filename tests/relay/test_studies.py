"""Studies of a relay that come and go while it runs."""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from splitmeans.cli.relay import app as relay_commands
from splitmeans.errors import MailboxUnavailable, ParameterError
from splitmeans.mailbox.open import MessagePath
from splitmeans.mailbox.request_signature import EMPTY_HASH, sign_request
from splitmeans.relay import purge as purging
from splitmeans.relay.app import make_app
from splitmeans.relay.limits import RelayLimits
from splitmeans.relay.purge import purge, take_requests
from splitmeans.relay.store import RelayStore, RunPurged, SenderRun
from splitmeans.relay.study_files import StudyWatch, add_study, roster_of
from splitmeans.study import Study
from splitmeans.wire.key_change import revocation_text
from splitmeans.wire.slot import Slot, short_name
from tests.relay.test_app import Clock, Relay, slot_path
from tests.scene import KEYS as IDENTITIES
from tests.scene import keyed_study, make_study


@pytest.fixture(scope="module")
def study() -> Study:
    return keyed_study("bank", "shop")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RelayStore]:
    made = RelayStore(tmp_path / "relay", RelayLimits())
    yield made
    made.close()


def put(store: RelayStore, path: str, body: bytes = b"sealed") -> None:
    upload = store.begin(MessagePath.parse(path))
    upload.write(body)
    assert upload.commit(body_hash=hashlib.sha256(body).hexdigest())
    upload.discard()


def path_of(path: str) -> MessagePath:
    return MessagePath.parse(path)


def test_a_study_is_taken_up_and_let_go(tmp_path: Path, study: Study) -> None:
    watch = StudyWatch([tmp_path / "studies"], fixed={})
    assert watch.look() == {}
    assert watch.look() is None
    assert add_study(tmp_path, study)
    assert not add_study(tmp_path, study)
    assert watch.look() == {study.hash: roster_of(study)}
    assert watch.look() is None
    next((tmp_path / "studies").iterdir()).unlink()
    assert watch.look() == {}


def test_a_file_that_is_no_study_is_left_out(
    tmp_path: Path, study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    add_study(tmp_path, study)
    (tmp_path / "studies" / "notes.toml").write_text("hello = 1\n")
    (tmp_path / "studies" / "alone.toml").write_text(make_study().to_toml())
    assert list(StudyWatch([tmp_path / "studies"], fixed={}).look() or {}) == [study.hash]
    assert "left out" in caplog.text
    assert "notes.toml" in caplog.text
    assert "has no keys" in caplog.text


def test_requests_under_a_revoked_key_are_refused(
    tmp_path: Path, study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    """As soon as the operator puts the owner's signed word into the folder; nobody else's."""
    add_study(tmp_path, study)
    folder = tmp_path / "studies"
    watch = StudyWatch([folder], fixed={})
    bank, text = IDENTITIES["bank"], b"a request"
    before = (watch.look() or {})[study.hash]
    assert before["bank"].verify(text, bank.sign(text))
    word = revocation_text(bank, reason="stolen", time="2026-05-03T10:00:00+00:00")
    (folder / "forged.revoked").write_text(word.replace("stolen", "sold"))
    assert (watch.look() or {})[study.hash] == before
    assert "forged.revoked" in caplog.text
    (folder / "bank.revoked").write_text(word)
    after = (watch.look() or {})[study.hash]
    assert not after["bank"].verify(text, bank.sign(text))
    assert after["shop"] == before["shop"]
    assert watch.look() is None


def test_a_fixed_study_stays(tmp_path: Path, study: Study) -> None:
    watch = StudyWatch([tmp_path / "studies"], fixed={study.hash: study})
    assert list(watch.look() or {}) == [study.hash]


def test_a_running_relay_serves_what_was_added(tmp_path: Path, study: Study) -> None:
    watch = StudyWatch([tmp_path / "studies"], fixed={})
    app = make_app(watch.look() or {}, tmp_path, clock=Clock(), studies=watch)
    relay = Relay(app, tmp_path, Clock())
    path = Slot(
        study_hash=study.hash, run="1", sender="bank", receiver="shop", kind="KeyContribution"
    ).path

    def signed() -> dict[str, str]:
        return sign_request(
            "GET",
            path,
            body_hash=EMPTY_HASH,
            participant="bank",
            signer=IDENTITIES["bank"],
            time=int(relay.clock()),
        )

    async def live() -> list[int]:
        seen = []
        async with app.router.lifespan_context(app):
            seen.append((await relay.ask_later("GET", path, headers=signed())).status)
            add_study(tmp_path, study)
            for _ in range(60):
                await asyncio.sleep(0.05)
                answer = await relay.ask_later("GET", path, headers=signed())
                if answer.status != 403:
                    break
            seen.append(answer.status)
            thread = threading.Thread(target=purge, args=(tmp_path, study.hash[:32]))
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.05)
            for _ in range(60):
                answer = await relay.ask_later("GET", path, headers=signed())
                if answer.status == 403:
                    break
                await asyncio.sleep(0.05)
            seen.append(answer.status)
        return seen

    # A stranger; a participant whose message is not there yet; a stranger again.
    assert asyncio.run(live()) == [403, 404, 403]


def test_a_purged_run_is_gone_and_not_empty(store: RelayStore) -> None:
    """A home that has forgotten its release must not be told that there was none."""
    kept, gone = slot_path(run="kept"), slot_path(run="gone")
    put(store, kept)
    put(store, gone)
    place = path_of(gone)
    store.reserve(SenderRun(study=place.study, run="gone", sender=place.sender), 1000)
    store.purge(place.study, "gone")
    there = store.open(path_of(kept))
    assert there is not None
    there.close()
    for refused in (
        lambda: store.open(place),
        lambda: store.begin(place),
        lambda: store.reserve(SenderRun(study=place.study, run="gone", sender="x"), 5),
    ):
        with pytest.raises(RunPurged, match="begin another one with a new name"):
            refused()
    assert store.runs(place.study) == ("kept",)


def test_an_upload_that_is_under_way_does_not_come_back(store: RelayStore) -> None:
    upload = store.begin(path_of(slot_path()))
    upload.write(b"sealed")
    store.purge(path_of(slot_path()).study, "run-1")
    with pytest.raises(RunPurged):
        upload.commit(body_hash=hashlib.sha256(b"sealed").hexdigest())
    upload.discard()
    assert store.runs(path_of(slot_path()).study) == ()


def test_a_purged_run_stays_gone_after_a_restart(store: RelayStore, tmp_path: Path) -> None:
    put(store, slot_path())
    store.purge(path_of(slot_path()).study, "run-1")
    store.close()
    again = RelayStore(tmp_path / "relay", RelayLimits())
    with pytest.raises(RunPurged):
        again.open(path_of(slot_path()))
    again.close()


def test_purging_gives_room_back(tmp_path: Path) -> None:
    study = path_of(slot_path()).study
    store = RelayStore(tmp_path / "relay", RelayLimits(study_bytes=1000), participants={study: 1})
    sender = short_name("server")
    put(store, slot_path(), b"x" * 600)
    assert store.free_bytes(study, sender) == 400
    store.purge(study, "run-1")
    assert store.free_bytes(study, sender) == 1000
    store.close()


def test_purge_by_request_and_directly(store: RelayStore, tmp_path: Path, monkeypatch) -> None:
    folder, digits = tmp_path / "relay", path_of(slot_path()).study
    put(store, slot_path())
    put(store, slot_path(run="run-2"))
    # The relay has the folder: it takes requests, or the command gives up.
    monkeypatch.setattr(purging, "_PATIENCE", 0.2)
    with pytest.raises(MailboxUnavailable, match="did not take the request"):
        purge(folder, digits, run="run-1")
    thread = threading.Thread(target=purge, args=(folder, digits), kwargs={"run": "run-1"})
    monkeypatch.setattr(purging, "_PATIENCE", 20)
    thread.start()
    end = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < end:
        take_requests(store)
        time.sleep(0.02)
    thread.join()
    assert store.runs(digits) == ("run-2",)
    store.close()  # without a relay the command does it itself
    purge(folder, digits)
    assert not list((folder / "messages").iterdir())


def test_requests_that_are_none_are_told_and_removed(
    store: RelayStore, caplog: pytest.LogCaptureFixture
) -> None:
    place = store.folder / "requests"
    place.mkdir()
    for number, text in enumerate(("{", "[]", '{"study": "../..", "run": null}', "null")):
        (place / f"{number}.json").write_text(text)
    put(store, slot_path())
    take_requests(store)
    assert not list(place.iterdir())
    assert caplog.text.count("is no request") == 4
    assert store.runs(path_of(slot_path()).study) == ("run-1",)


def test_commands(tmp_path: Path, study: Study) -> None:
    file, folder = tmp_path / "study.toml", tmp_path / "relay"
    file.write_text(study.to_toml())
    runner = CliRunner()

    def call(*arguments: str) -> SimpleNamespace:
        done = runner.invoke(relay_commands, ["study", *arguments, "--folder", str(folder)])
        return SimpleNamespace(code=done.exit_code, out=done.stdout, problem=done.exception)

    assert call("add", str(file)).out == f"{study.hash[:32]}\n"
    store = RelayStore(folder, RelayLimits())
    path = Slot(
        study_hash=study.hash, run="q1", sender="bank", receiver="shop", kind="KeyContribution"
    ).path
    put(store, path)
    store.close()
    (listed,) = json.loads(call("list", "--json").out)
    assert listed["name"] == study.name
    assert listed["participants"] == ["bank", "shop", "server"]
    assert listed["runs"] == ["q1"]
    assert "q1" in call("list").out
    assert call("purge", study.hash[:12], "--run", "q1", "--yes").code == 0
    assert json.loads(call("list", "--json").out)[0]["runs"] == []
    assert call("purge", str(file), "--yes").code == 0
    assert json.loads(call("list", "--json").out) == []
    wrong = call("purge", "0" * 12, "--yes").problem
    assert isinstance(wrong, ParameterError)
    assert "0 studies" in str(wrong)
