"""The relay as an application, called without a network."""

import asyncio
import hashlib
import itertools
import json
import os
import shutil
import stat
import typing
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519
from starlette.applications import Starlette

from splitmeans.errors import MailboxError, ParameterError
from splitmeans.mailbox.request_signature import EMPTY_HASH, sign_request
from splitmeans.relay.app import make_app
from splitmeans.relay.limits import RelayLimits
from splitmeans.wire.messages import Message, StageRelease, kinds_of
from splitmeans.wire.sealed import OVERHEAD_BYTES
from splitmeans.wire.slot import Slot, short_name
from splitmeans.wire.ways import BETWEEN_PARTIES, MAX_SMALL_BYTES, kinds_with

STUDY = "5e" * 32
NOW = 1_800_000_000


class Key:
    """A signer and verifier as small as can be."""

    def __init__(self) -> None:
        self.private = ed25519.Ed25519PrivateKey.generate()

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data)

    def verify(self, data: bytes, signature: bytes) -> bool:
        try:
            self.private.public_key().verify(signature, data)
        except InvalidSignature:
            return False
        return True


KEYS = {name: Key() for name in ("server", "bob", "carol")}


def slot_path(sender: str = "server", receiver: str = "bob", *, run: str = "run-1") -> str:
    kind = "PartyRelease" if receiver == "server" else "KeyContribution"
    kind = "PublishedResult" if sender == "server" else kind
    return Slot(study_hash=STUDY, run=run, sender=sender, receiver=receiver, kind=kind).path


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Relay:
    """A relay with its clock."""

    app: Starlette
    folder: Path
    clock: Clock

    def ask(self, method: str, path: str, **settings: Any) -> "Answer":
        return asyncio.run(self.ask_later(method, path, **settings))

    async def ask_later(
        self,
        method: str,
        path: str,
        *,
        who: str = "server",
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        length: int | None = None,
        receive: Callable[[], Awaitable[dict[str, Any]]] | None = None,
        target: str | None = None,
    ) -> "Answer":
        if headers is None:
            headers = self.headers(method, path, who=who, body=body)
        if length is not None:
            headers["content-length"] = str(length)
        elif method == "PUT":
            headers["transfer-encoding"] = "chunked"
        answer = Answer()
        parts = iter([body[i : i + 1000] for i in range(0, len(body), 1000)] + [b""])

        async def next_part() -> dict[str, Any]:
            answer.steps.append("receive")
            part = next(parts, b"")
            answer.n_received += len(part)
            return {"type": "http.request", "body": part, "more_body": part != b""}

        async def send(message: dict[str, Any]) -> None:
            answer.steps.append("send")
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                answer.body += message.get("body", b"")

        target = target if target is not None else f"/v1/messages/{path}"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": target,
            "raw_path": target.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
        }
        await self.app(scope, receive or next_part, send)  # type: ignore[arg-type]
        return answer

    def headers(
        self, method: str, path: str, *, who: str = "server", body: bytes = b""
    ) -> dict[str, str]:
        return sign_request(
            method,
            path,
            body_hash=hashlib.sha256(body).hexdigest(),
            participant=who,
            signer=KEYS[who],
            time=int(self.clock()),
        )

    def visible(self) -> list[Path]:
        return [file for file in (self.folder / "messages").rglob("*") if file.is_file()]

    def arriving(self) -> list[Path]:
        return list((self.folder / "incoming").iterdir())


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    steps: list[str] = field(default_factory=list)
    n_received: int = 0

    @property
    def code(self) -> str:
        return json.loads(self.body)["code"]

    @property
    def error(self) -> str:
        return json.loads(self.body)["error"]


@pytest.fixture
def make_relay(tmp_path: Path) -> Iterable[Callable[..., Relay]]:
    made: list[Starlette] = []

    def make(**limits: Any) -> Relay:
        for app in made:
            app.state.store.close()
        clock = Clock()
        folder = tmp_path / "messages"
        made.append(make_app({STUDY: KEYS}, folder, RelayLimits(**limits), clock=clock))
        return Relay(made[-1], folder, clock)

    yield make
    for app in made:
        app.state.store.close()


@pytest.fixture
def relay(make_relay: Callable[..., Relay]) -> Relay:
    return make_relay()


def test_a_message_passes(relay: Relay) -> None:
    body = os.urandom(700_000)
    assert relay.ask("GET", slot_path(), who="bob").status == 404
    stored = relay.ask("PUT", slot_path(), body=body)
    assert (stored.status, stored.body) == (201, b"")
    fetched = relay.ask("GET", slot_path(), who="bob")
    assert (fetched.status, fetched.body) == (200, body)
    assert fetched.headers["content-length"] == "700000"
    assert fetched.headers["cache-control"] == "no-store"
    assert relay.arriving() == []


def test_an_empty_message_passes(relay: Relay) -> None:
    assert relay.ask("PUT", slot_path(), body=b"").status == 201
    fetched = relay.ask("GET", slot_path(), who="bob")
    assert (fetched.status, fetched.body) == (200, b"")


def test_a_slot_is_written_once(relay: Relay) -> None:
    assert relay.ask("PUT", slot_path(), body=b"first").status == 201
    assert relay.ask("PUT", slot_path(), body=b"first").status == 204
    for other in (b"other", b"first and more", b""):
        refused = relay.ask("PUT", slot_path(), body=other)
        assert (refused.status, refused.code) == (409, "conflict")
    assert relay.ask("GET", slot_path(), who="bob").body == b"first"
    assert relay.arriving() == []


def forged(relay: Relay) -> dict[str, str]:
    """Headers that bob signed in the name of the server."""
    headers = relay.headers("PUT", slot_path(), who="bob", body=b"x")
    return headers | {"splitmeans-participant": short_name("server")}


def altered(relay: Relay, name: str, value: str) -> dict[str, str]:
    return relay.headers("PUT", slot_path(), body=b"x") | {f"splitmeans-{name}": value}


STRANGERS: dict[str, Callable[[Relay], dict[str, str]]] = {
    "no headers": lambda relay: {},
    "forged": forged,
    "unknown name": lambda relay: altered(relay, "participant", short_name("mallory")),
    "other time": lambda relay: altered(relay, "time", str(NOW + 1)),
    "other nonce": lambda relay: altered(relay, "nonce", "0" * 32),
    "other body": lambda relay: altered(relay, "body", EMPTY_HASH),
    "no signature": lambda relay: altered(relay, "signature", "0" * 128),
    "short signature": lambda relay: altered(relay, "signature", "00"),
    "strange time": lambda relay: altered(relay, "time", "1e9"),
    "other digits": lambda relay: altered(relay, "time", "١٢"),
    "other method": lambda relay: relay.headers("GET", slot_path(), body=b"x"),
    "other path": lambda relay: relay.headers("PUT", slot_path(run="run-2"), body=b"x"),
}


@pytest.mark.parametrize("make", STRANGERS.values(), ids=STRANGERS.keys())
def test_strangers_get_one_answer_before_any_body(
    relay: Relay, make: Callable[[Relay], dict[str, str]]
) -> None:
    headers = {k: v.encode().decode("latin-1") for k, v in make(relay).items()}
    answer = relay.ask("PUT", slot_path(), headers=headers, body=b"x")
    assert answer.status == 403
    assert answer.body == relay.ask("PUT", slot_path(), headers={}).body
    assert len(answer.body) < 200
    assert answer.steps[:2] == ["send", "send"]
    assert answer.headers["connection"] == "close"
    assert relay.visible() == relay.arriving() == []


def test_little_of_a_strangers_body_is_taken(relay: Relay) -> None:
    answer = relay.ask("PUT", slot_path(), headers={}, body=b"x" * 5_000_000)
    assert answer.n_received <= (1 << 20) + 1000


def test_another_study_is_strange(relay: Relay) -> None:
    path = slot_path().replace("5e", "5f", 1)
    assert relay.ask("PUT", path, body=b"x").code == "stranger"


PATHS = {
    "up": "../../../etc/passwd",
    "up inside": slot_path().replace("/run-1/", "/../"),
    "absolute": "//etc/passwd",
    "root": "/etc/passwd",
    "zero": slot_path() + "\0",
    "line": slot_path() + "\n",
    "more": slot_path() + "/more",
    "backslash": slot_path().replace("/", "\\"),
    "double coded": slot_path().replace("/run-1/", "/%2e%2e/"),
    "empty": "",
    "folder": slot_path().rpartition("/")[0],
    "incoming": "../incoming/x",
}


@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_other_paths_are_strange_even_if_signed(relay: Relay, path: str, method: str) -> None:
    before = sorted(relay.folder.parent.rglob("*"))
    answer = relay.ask(method, path, body=b"x" if method == "PUT" else b"")
    assert (answer.status, answer.code) == (403, "stranger")
    assert sorted(relay.folder.parent.rglob("*")) == before


def test_a_request_works_once(relay: Relay) -> None:
    put = relay.headers("PUT", slot_path(), body=b"x")
    assert relay.ask("PUT", slot_path(), headers=dict(put), body=b"x").status == 201
    again = relay.ask("PUT", slot_path(), headers=dict(put), body=b"x")
    assert (again.status, again.code) == (403, "repeated")
    get = relay.headers("GET", slot_path(), who="bob")
    assert relay.ask("GET", slot_path(), headers=dict(get)).status == 200
    assert relay.ask("GET", slot_path(), headers=dict(get)).code == "repeated"


def test_the_clock_must_be_near(relay: Relay) -> None:
    for seconds, is_good in ((-300, True), (300, True), (-301, False), (301, False)):
        relay.clock.now = NOW + seconds
        headers = relay.headers("GET", slot_path(), who="bob")
        relay.clock.now = NOW
        answer = relay.ask("GET", slot_path(), headers=headers)
        assert answer.status == (404 if is_good else 400)
    assert answer.code == "clock"
    assert "2027-01-15 08:05:01 UTC" in answer.error
    assert "2027-01-15 08:00:00 UTC" in answer.error


def test_a_signed_time_beyond_the_calendar_is_refused(relay: Relay) -> None:
    relay.clock.now = 999_999_999_999
    headers = relay.headers("GET", slot_path(), who="bob")
    relay.clock.now = NOW
    answer = relay.ask("GET", slot_path(), headers=headers)
    assert (answer.status, answer.code) == (400, "clock")


def test_an_old_nonce_is_forgotten_only_with_its_time(relay: Relay) -> None:
    relay.clock.now = NOW + 300
    early = relay.headers("GET", slot_path(), who="bob")  # signed by a clock that is ahead
    relay.clock.now = NOW
    assert relay.ask("GET", slot_path(), headers=dict(early)).status == 404
    relay.clock.now = NOW + 600
    assert relay.ask("GET", slot_path(), headers=dict(early)).code == "repeated"
    relay.clock.now = NOW + 601
    assert relay.ask("GET", slot_path(), headers=dict(early)).code == "clock"


@pytest.mark.parametrize(("method", "who"), [("PUT", "bob"), ("PUT", "carol"), ("GET", "carol")])
def test_only_ones_own_slots(relay: Relay, method: str, who: str) -> None:
    answer = relay.ask(method, slot_path("server", "bob"), who=who)
    assert (answer.status, answer.code) == (403, "not-yours")


@pytest.mark.parametrize("length", [None, 2_000_000])
def test_too_large(make_relay: Callable[..., Relay], length: int | None) -> None:
    relay = make_relay(message_bytes=1_000_000)
    body = b"x" * 2_000_000
    answer = relay.ask("PUT", slot_path(), body=body, length=length)
    assert (answer.status, answer.code) == (413, "too-large")
    assert "1000000 bytes" in answer.error
    if length is not None:
        assert answer.steps[:2] == ["send", "send"]  # before any of the body
    else:
        assert answer.steps.index("send") <= 1002  # with the first part that is too much
    assert relay.visible() == relay.arriving() == []
    assert relay.ask("PUT", slot_path(), body=body[:1_000_000]).status == 201


def test_a_body_without_end_is_cut(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(message_bytes=1_000_000)
    received = 0

    async def endless() -> dict[str, Any]:
        nonlocal received
        received += 65_536
        return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

    assert relay.ask("PUT", slot_path(), receive=endless).code == "too-large"
    assert received < 300 << 20


@pytest.mark.parametrize(
    ("limit", "pause"),
    [("idle_seconds", 60), ("idle_seconds", 0.002), ("transfer_seconds", 0.001)],
    ids=["stands still", "below the least rate", "takes too long"],
)
def test_a_slow_body_ends(
    make_relay: Callable[..., Relay], limit: str, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splitmeans.relay.replies._KNOWN_SECONDS", 0.05)
    relay = make_relay(**{limit: 0.05})

    async def drip() -> dict[str, Any]:
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": b"x", "more_body": True}

    answer = relay.ask("PUT", slot_path(), receive=drip)
    assert (answer.status, answer.code) == (408, "too-slow")
    assert relay.visible() == relay.arriving() == []


def test_a_broken_upload_leaves_nothing(relay: Relay) -> None:
    parts = iter(
        [{"type": "http.request", "body": b"x" * 500_000, "more_body": True}]
        + [{"type": "http.disconnect"}] * 3
    )

    async def broken() -> dict[str, Any]:
        return next(parts)

    relay.ask("PUT", slot_path(), receive=broken)
    assert relay.visible() == relay.arriving() == []
    assert relay.ask("PUT", slot_path(), body=b"x").status == 201


def test_the_body_must_be_the_signed_one(relay: Relay) -> None:
    headers = relay.headers("PUT", slot_path(), body=b"signed")
    answer = relay.ask("PUT", slot_path(), headers=headers, body=b"another")
    assert (answer.status, answer.code) == (400, "body")
    assert relay.visible() == relay.arriving() == []


def test_requests_a_minute(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(requests_per_minute=3)
    for _ in range(3):
        assert relay.ask("GET", slot_path(), who="bob").status == 404
    answer = relay.ask("GET", slot_path(), who="bob")
    assert (answer.status, answer.headers["retry-after"]) == (429, "20")
    assert relay.ask("GET", slot_path("bob", "server"), who="server").status == 404
    relay.clock.now += 20
    assert relay.ask("GET", slot_path(), who="bob").status == 404
    assert relay.ask("GET", slot_path(), who="bob").status == 429
    relay.clock.now -= 10  # the clock is set back: nothing is gained, nothing breaks
    assert relay.ask("GET", slot_path(), who="bob").status == 429


def test_strangers_do_not_use_up_anyones_rate(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(requests_per_minute=2)
    for _ in range(5):
        relay.ask("PUT", slot_path(), headers=forged(relay), body=b"x")
    assert relay.ask("PUT", slot_path(), body=b"x").status == 201


def test_transfers_at_once(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(transfers_per_participant=1, transfers=2)

    async def scene() -> None:
        go_on = asyncio.Event()

        async def waiting() -> dict[str, Any]:
            await go_on.wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        def upload(who: str, run: str) -> "asyncio.Task[Answer]":
            path = slot_path(who, "server" if who == "carol" else "carol", run=run)
            return asyncio.create_task(
                relay.ask_later("PUT", path, who=who, receive=waiting, length=0)
            )

        first = upload("server", "run-1")
        while not relay.arriving():
            await asyncio.sleep(0.001)
        second = await upload("server", "run-2")
        assert (second.status, second.code, second.headers["retry-after"]) == (503, "busy", "1")
        third = upload("bob", "run-1")
        while len(relay.arriving()) < 2:
            await asyncio.sleep(0.001)
        fourth = await upload("carol", "run-1")
        assert fourth.status == 503
        go_on.set()
        assert [(await task).status for task in (first, third)] == [201, 201]
        assert (await upload("server", "run-2")).status == 201

    asyncio.run(scene())


def test_what_a_participant_may_store(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(study_bytes=3000, sender_runs=3)  # three participants
    assert relay.ask("PUT", slot_path(run="a"), body=b"x" * 600).status == 201
    full = relay.ask("PUT", slot_path(run="b"), body=b"x" * 401)
    assert (full.status, full.code) == (507, "study-full")
    assert relay.ask("PUT", slot_path(run="b"), body=b"x" * 400).status == 201
    assert relay.ask("PUT", slot_path(run="a"), body=b"x" * 600).status == 204  # as before
    assert relay.ask("PUT", slot_path(run="c"), body=b"").status == 201
    assert relay.ask("PUT", slot_path(run="d"), body=b"").code == "study-full"
    # Whatever one of them stores, another has all of its own share.
    assert json.loads(ask_limits(relay, who="bob").body)["free_bytes"] == 1000
    body = b"x" * 1000
    assert relay.ask("PUT", slot_path("bob", "server"), who="bob", body=body).status == 201
    again = make_relay(study_bytes=3000, sender_runs=3)  # counts what it finds
    assert again.ask("PUT", slot_path(run="d"), body=b"").code == "study-full"
    assert json.loads(ask_limits(again, who="carol").body)["free_bytes"] == 1000
    assert make_relay(sender_runs=4).ask("PUT", slot_path(run="d"), body=b"x").status == 201


def room(relay: Relay, n_bytes: object, *, run: str = "run-1", **settings: Any) -> "Answer":
    path = f"{STUDY[:32]}/runs/{run}/room/{n_bytes}"
    target = f"/v1/studies/{STUDY[:32]}/runs/{run}/room/{n_bytes}"
    return relay.ask("PUT", path, target=target, **settings)


def test_room_that_was_reserved_is_there(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(study_bytes=3000, sender_runs=2)
    assert room(relay, 1001).code == "study-full"
    assert room(relay, 700).status == 204
    assert room(relay, 700).status == 204
    assert json.loads(ask_limits(relay).body)["free_bytes"] == 300
    # Another run of the same sender cannot use it, nor what it reserves itself.
    assert relay.ask("PUT", slot_path(run="b"), body=b"x" * 301).code == "study-full"
    assert room(relay, 301, run="b").code == "study-full"
    assert relay.ask("PUT", slot_path(run="b"), body=b"x" * 300).status == 201
    again = make_relay(study_bytes=3000, sender_runs=2)  # remembers
    assert json.loads(ask_limits(again).body)["free_bytes"] == 0
    assert again.ask("PUT", slot_path(), body=b"x" * 701).code == "study-full"
    assert again.ask("PUT", slot_path(), body=b"x" * 700).status == 201
    assert json.loads(ask_limits(again).body)["free_bytes"] == 0
    assert room(again, 1, run="c").code == "study-full"


@pytest.mark.parametrize("n_bytes", ["-1", "1e3", "x", "9" * 19, "\u0663"])
def test_room_is_a_number(relay: Relay, n_bytes: str) -> None:
    answer = room(relay, quote(n_bytes))
    assert answer.status in (400, 403)


def test_room_is_kept_for_participants_only(relay: Relay) -> None:
    assert room(relay, 10, headers={}).code == "stranger"
    signed = relay.headers("PUT", f"{STUDY[:32]}/runs/run-1/room/10")
    assert room(relay, 11, headers=signed).code == "stranger"


def test_only_messages_that_a_run_has(relay: Relay) -> None:
    """Each kind on its own way, and nothing else: 20 names that a key could fill with junk."""
    kinds = {*kinds_of(typing.get_args(Message)), "StageRelease", "StageRelease_10"} | {
        "Letter",
        "DecoyMessage",
    }
    allowed: dict[tuple[str, str], set[str]] = {}
    for sender, receiver in itertools.product((*KEYS, "stranger"), repeat=2):
        for kind in kinds:
            slot = Slot(study_hash=STUDY, run="r", sender=sender, receiver=receiver, kind=kind)
            answer = relay.ask("PUT", slot.path, who=sender if sender in KEYS else "bob", body=b"x")
            if answer.status == 201:
                allowed.setdefault((sender, receiver), set()).add(kind)
            else:
                assert (answer.status, answer.code) in {
                    (403, "no-such-message"),
                    (403, "not-yours"),
                }
    between = set(kinds_with(BETWEEN_PARTIES))
    to_server = {"Hello", "Ready", *kinds_of((StageRelease,)), "PartyRelease"}
    from_server = {"Hello", "RunPlan", "PublishedResult"}
    assert between >= {"KeyContribution", "Confirmation", "PlanConfirmation_1", "StageRelease_9"}
    assert between & (from_server | {"Ready", "PartyRelease"}) == {"Hello"}
    assert allowed == {
        ("bob", "carol"): between,
        ("carol", "bob"): between,
        ("bob", "server"): to_server,
        ("carol", "server"): to_server,
        ("server", "bob"): from_server,
        ("server", "carol"): from_server,
        ("server", "server"): {"PublishedResult"},
    }


def test_small_kinds_are_small(relay: Relay) -> None:
    path = slot_path("bob", "carol")
    most = MAX_SMALL_BYTES + OVERHEAD_BYTES
    assert relay.ask("PUT", path, who="bob", body=b"x" * (most + 1)).code == "too-large"
    assert relay.ask("PUT", path, who="bob", body=b"x" * most).status == 201


LIMITS = f"{STUDY[:32]}/limits"


def ask_limits(relay: Relay, **settings: Any) -> "Answer":
    return relay.ask("GET", LIMITS, target=f"/v1/studies/{LIMITS}", **settings)


def test_limits_are_told_to_participants(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(message_bytes=600, study_bytes=3000)
    for who in KEYS:
        told = ask_limits(relay, who=who)
        assert (told.status, told.headers["cache-control"]) == (200, "no-store")
        assert json.loads(told.body) == {"message_bytes": 600, "free_bytes": 1000, "time": NOW}
    relay.ask("PUT", slot_path(), body=b"x" * 400)
    assert json.loads(ask_limits(relay).body)["free_bytes"] == 600
    assert json.loads(ask_limits(relay, who="bob").body)["free_bytes"] == 1000


def test_nobody_is_told_of_the_disk(
    make_relay: Callable[..., Relay],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the disk has left is what others have stored; the operator's log alone has it."""
    relay = make_relay()
    before = [ask_limits(relay).body, relay.ask("GET", "", headers={}, target="/health").body]
    usage = shutil.disk_usage(relay.folder)._replace(free=77)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    after = [ask_limits(relay).body, relay.ask("GET", "", headers={}, target="/health").body]
    assert after[0] == before[0]
    assert json.loads(after[1])["status"] == json.loads(before[1])["status"] == "ok"
    make_relay()
    assert "a study may store 0 bytes" in caplog.text


def test_limits_are_told_to_nobody_else(relay: Relay) -> None:
    unsigned = ask_limits(relay, headers={})
    for_a_message = ask_limits(relay, headers=relay.headers("GET", slot_path("bob", "server")))
    other = "ab" * 16
    elsewhere = relay.ask("GET", f"{other}/limits", target=f"/v1/studies/{other}/limits")
    for answer in (unsigned, for_a_message, elsewhere):
        assert (answer.status, answer.code) == (403, "stranger")
    # A signature for the limits is none for a message.
    signed = relay.headers("GET", LIMITS, who="bob")
    assert relay.ask("GET", slot_path(), headers=signed).code == "stranger"


def test_asking_for_limits_counts_as_a_request(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(requests_per_minute=2)
    signed = relay.headers("GET", LIMITS)
    assert ask_limits(relay, headers=dict(signed)).status == 200
    assert ask_limits(relay, headers=dict(signed)).code == "repeated"
    assert ask_limits(relay).status == 200
    assert ask_limits(relay).code == "too-many-requests"
    relay.clock.now += 600
    assert ask_limits(relay, headers=relay.headers("GET", LIMITS)).status == 200
    relay.clock.now += 600
    assert ask_limits(relay, headers=signed).code == "clock"


def test_an_upload_that_fails_takes_no_room(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay(study_bytes=3000, sender_runs=1)
    for _ in range(3):
        headers = relay.headers("PUT", slot_path(), body=b"signed")
        assert relay.ask("PUT", slot_path(), headers=headers, body=b"x" * 900).code == "body"
    assert relay.ask("PUT", slot_path(), body=b"x" * 1000).status == 201


def test_on_disk_before_it_has_its_name(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_rename(old: Path, new: Path) -> None:
        steps.append("rename")
        rename(old, new)

    relay.ask("PUT", slot_path(), body=b"x")  # makes the folders
    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    relay.ask("PUT", slot_path("server", "carol"), body=b"x")
    assert steps == ["file", "rename", "folder"]


def test_a_restart_keeps_messages_and_clears_remains(make_relay: Callable[..., Relay]) -> None:
    relay = make_relay()
    relay.ask("PUT", slot_path(), body=b"kept")
    (relay.folder / "incoming" / "remains").write_bytes(b"half")
    again = make_relay()
    assert again.ask("GET", slot_path(), who="bob").body == b"kept"
    assert again.ask("PUT", slot_path(), body=b"kept").status == 204
    assert again.arriving() == []


def test_a_full_disk_is_told(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    answer = relay.ask("PUT", slot_path(), body=b"x")
    assert (answer.status, answer.code) == (507, "disk-full")
    assert relay.visible() == relay.arriving() == []


def test_one_relay_to_a_folder(relay: Relay, tmp_path: Path) -> None:
    with pytest.raises(MailboxError, match="another relay uses this folder"):
        make_app({STUDY: KEYS}, relay.folder)
    with pytest.raises(ParameterError, match="the relay cannot keep messages there"):
        make_app({STUDY: KEYS}, tmp_path / "no" / "such")


def test_messages_are_for_the_relays_user_only(relay: Relay) -> None:
    relay.ask("PUT", slot_path(), body=b"x")
    for file in relay.folder.rglob("*"):
        if file.name != "lock":
            assert file.stat().st_mode & 0o077 == 0, file


def test_two_studies_with_one_prefix_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="the same first 32 digits"):
        make_app({STUDY: KEYS, STUDY[:-1] + "0": KEYS}, tmp_path)


def test_health_and_page(relay: Relay) -> None:
    health = relay.ask("GET", "", headers={}, target="/health")
    state = json.loads(health.body)
    assert set(state) == {"status", "version", "uptime_seconds"}
    assert state["status"] == "ok"
    page = relay.ask("GET", "", headers={}, target="/")
    assert b"splitmeans relay" in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for secret in (STUDY[:32], short_name("server"), str(relay.folder)):
        assert secret.encode() not in page.body + health.body


@pytest.mark.parametrize("target", ["/docs", "/openapi.json", "/v1", "/v1/messages", "/%2e%2e/"])
def test_nothing_else_is_served(relay: Relay, target: str) -> None:
    answer = relay.ask("GET", "", headers={}, target=target)
    assert (answer.status, answer.code) == (404, "no-page")
    assert relay.ask("DELETE", slot_path(), headers={}).status == 405


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("HEAD", "/health"),
        ("HEAD", "/"),
        ("HEAD", "/metrics"),
        ("PUT", "/metrics"),
        ("HEAD", f"/v1/messages/{slot_path()}"),
        ("HEAD", f"/v1/studies/{STUDY[:32]}/limits"),
        ("POST", f"/v1/messages/{slot_path()}"),
        ("PUT", f"/v1/studies/{STUDY[:32]}/limits"),
        ("GET", f"/v1/studies/{STUDY[:32]}/runs/1/room/1"),
        ("PUT", "/health"),
        ("OPTIONS", "/"),
    ],
)
def test_no_other_method_is_served(relay: Relay, method: str, target: str) -> None:
    """Also none that a framework adds by itself, such as HEAD to whatever answers GET."""
    answer = relay.ask(method, "", headers={}, target=target)
    assert (answer.status, answer.code) == (405, "no-page")


@pytest.mark.parametrize("target", ["/health/", "//health", f"/v1/messages/{slot_path()}/"])
def test_no_slash_is_mended(relay: Relay, target: str) -> None:
    """A client that signs a path gets no redirect to another one."""
    answer = relay.ask("GET", "", headers={}, target=target)
    assert answer.status in (403, 404)
    assert "location" not in answer.headers
