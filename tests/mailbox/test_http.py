"""The relay's client against answers that are made up."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from splitmeans.errors import MailboxError, MessageRefused, ParameterError, Retryable
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.retries import DEFAULT_PATIENCE, Retries
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot
from tests.mailbox.made_up import MadeUp

STUDY = "ab" * 32
PATH = Slot(study_hash=STUDY, run="run-1", sender="alice", receiver="bob", kind="Letter").path
ABSENT = {"code": "absent", "error": "there is no such message yet"}
KEY = Identity.new()


class Scene:
    """A mailbox whose requests are answered in turn, and the times that it waited."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.box = HttpMailbox(
            "https://relay.example:8443/box",
            participant="bob",
            signer=KEY,
            transport=MadeUp(self.answer),
            retries=Retries(sleep=self.waits.append),
            clock=lambda: 1_800_000_000.9,
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(status: int, code: str, text: str = "why", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "error": text}, headers=headers)


def test_a_request_is_signed_and_plain() -> None:
    scene = Scene(httpx.Response(404, json=ABSENT))
    assert scene.box.get(PATH, max_bytes=10) is None
    (request,) = scene.requests
    assert str(request.url) == f"https://relay.example:8443/box/v1/messages/{PATH}"
    assert request.headers["splitmeans-time"] == "1800000000"
    assert request.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "problem",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.ReadError("closed"),
        refusal(429, "too-many-requests"),
        refusal(503, "busy"),
        httpx.Response(502, text="<html>"),
    ],
)
def test_passing_problems_are_tried_again_and_signed_anew(
    problem: httpx.Response | Exception,
) -> None:
    scene = Scene(problem, problem, httpx.Response(201))
    scene.box.put(PATH, b"sealed")
    assert len(scene.requests) == 3
    assert len({request.headers["splitmeans-nonce"] for request in scene.requests}) == 3
    assert all(request.content == b"sealed" for request in scene.requests)
    assert 0.25 <= scene.waits[0] <= 0.5 <= scene.waits[1] <= 1.0


def test_retry_after_is_kept_within_bounds() -> None:
    scene = Scene(
        refusal(429, "too-many-requests", **{"retry-after": "20"}),
        refusal(429, "too-many-requests", **{"retry-after": "9999999"}),
        refusal(429, "too-many-requests", **{"retry-after": "tomorrow"}),
        httpx.Response(204),
    )
    scene.box.put(PATH, b"sealed")
    assert scene.waits[:2] == [20.0, 60.0]
    assert scene.waits[2] <= 2.0


# The answer, the words, and whether it is tried again.
ENDS: dict[str, tuple[httpx.Response | Exception, str, bool]] = {
    "never there": (httpx.ConnectError("refused"), "no connection .refused.; check address", True),
    "no route": (httpx.ConnectTimeout("x"), "no connection in time; check address, port", True),
    "silent": (httpx.ReadTimeout("x"), "no answer in time", True),
    "breaks": (httpx.ReadError("x"), "the connection broke", True),
    "always busy": (refusal(503, "busy", "too many transfers"), "503: too many transfers", True),
    "proxy": (httpx.Response(502, text="<html>"), "502: a proxy cannot reach the relay", True),
    "stranger": (
        refusal(403, "stranger"),
        "403: this participant's key is not in",
        False,
    ),
    "clock": (refusal(400, "clock", "it is 8 here, 9 there"), "it is 8 here, 9 there; set", False),
    "conflict": (refusal(409, "conflict"), "holds another message of this participant", False),
    "too large": (
        refusal(413, "too-large", "1 byte"),
        "1 byte, this one has 6; .*-message",
        False,
    ),
    "proxy's limit": (
        httpx.Response(413, text="<html>"),
        "a proxy.*client_max_body_size",
        False,
    ),
    "full": (refusal(507, "study-full"), "remove old runs or to allow more .* --max-study", False),
    "moved": (
        httpx.Response(308, headers={"location": "https://x/"}),
        "redirects",
        False,
    ),
    "other site": (httpx.Response(200, text="hello"), "gives no reason; check that the URL", False),
}


@pytest.mark.parametrize(("answer", "words", "is_tried"), ENDS.values(), ids=ENDS.keys())
def test_problems_in_plain_words(
    answer: httpx.Response | Exception, words: str, is_tried: bool
) -> None:
    scene = Scene(answer)
    with pytest.raises(MailboxError, match=words) as found:
        scene.box.put(PATH, b"sealed")
    assert "https://relay.example:8443" in str(found.value)
    assert len(scene.requests) == len(scene.waits) + 1
    if not is_tried:
        assert scene.waits == []
    else:
        assert sum(scene.waits) == pytest.approx(DEFAULT_PATIENCE, abs=2)
        assert "tried for 120 seconds; --patience allows more" in str(found.value)


PASSING = {"never there", "no route", "silent", "breaks", "always busy", "proxy", "full"}


@pytest.mark.parametrize("name", ENDS)
def test_what_may_pass_is_told_from_what_is_final(name: str) -> None:
    with pytest.raises(MailboxError) as found:
        Scene(ENDS[name][0]).box.put(PATH, b"sealed")
    assert isinstance(found.value, Retryable) == (name in PASSING)


def test_an_untrusted_certificate_is_not_tried_again() -> None:
    problem = httpx.ConnectError("certificate verify failed")
    problem.__cause__ = ssl.SSLCertVerificationError()
    problem.__cause__.verify_message = "self-signed certificate"
    scene = Scene(problem)
    with pytest.raises(MailboxError, match=r"not trusted .self-signed certificate.; give .* --ca"):
        scene.box.get(PATH, max_bytes=1)
    assert scene.waits == []


def test_404_of_another_site_is_no_absent_message() -> None:
    for answer in (httpx.Response(404, text="<html>"), httpx.Response(404, json=["absent"])):
        with pytest.raises(MailboxError, match="is not a splitmeans relay; check the URL"):
            Scene(answer).box.get(PATH, max_bytes=10)


class Endless(httpx.SyncByteStream):
    """A body without end that counts what was taken."""

    n_taken = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.n_taken += 1000
            yield b"x" * 1000


def test_a_body_without_end_is_cut() -> None:
    body = Endless()
    with pytest.raises(MessageRefused, match="sends more than 5000 bytes"):
        Scene(httpx.Response(200, stream=body)).box.get(PATH, max_bytes=5000)
    assert body.n_taken == 6000


def test_a_long_body_is_refused_by_its_length() -> None:
    body = Endless()
    answer = httpx.Response(200, stream=body, headers={"content-length": "5001"})
    with pytest.raises(MessageRefused, match="sends more than 5000 bytes"):
        Scene(answer).box.get(PATH, max_bytes=5000)
    assert body.n_taken == 0


def test_a_download_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitmeans.mailbox.http_client.TRANSFER_SECONDS", -1.0)
    with pytest.raises(MailboxError, match="a download took too long"):
        Scene(httpx.Response(200, stream=Endless())).box.get(PATH, max_bytes=10**6)


def test_an_endless_refusal_is_cut() -> None:
    body = Endless()
    with pytest.raises(MailboxError, match="answered 403"):
        Scene(httpx.Response(403, stream=body)).box.get(PATH, max_bytes=10**6)
    assert body.n_taken < 10_000


def test_a_refusals_text_cannot_write_to_the_terminal() -> None:
    scene = Scene(refusal(400, "odd", "a\x1b[2Jb\nc" + "d" * 1000))
    with pytest.raises(MailboxError, match=r"400: a\[2Jbcd{200,300}$"):
        scene.box.put(PATH, b"x")


def test_a_compressing_proxy_is_named() -> None:
    answer = httpx.Response(200, stream=Endless(), headers={"content-encoding": "gzip"})
    with pytest.raises(MailboxError, match="a proxy changes messages"):
        Scene(answer).box.get(PATH, max_bytes=10)


def box_at(url: str, **settings: object) -> HttpMailbox:
    return HttpMailbox(url, participant="bob", signer=KEY, **settings)  # type: ignore[arg-type]


BAD_URLS: dict[str, Callable[[], HttpMailbox]] = {
    "has the form https://host:port": lambda: box_at("https://me:hunter2@relay.example"),
    "without user name": lambda: box_at("https://relay.example?key=hunter2"),
    "needs https://": lambda: box_at("http://relay.example"),
}


@pytest.mark.parametrize(("words", "make"), BAD_URLS.items(), ids=BAD_URLS.keys())
def test_urls_that_are_refused(words: str, make: Callable[[], HttpMailbox]) -> None:
    with pytest.raises(ParameterError, match=words) as found:
        make()
    assert "hunter2" not in str(found.value)


def test_plain_http_to_this_machine() -> None:
    box_at("http://127.0.0.1:1").close()


def test_a_bad_ca_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for file in (tmp_path / "ca.pem", tmp_path / "absent.pem"):
        with pytest.raises(ParameterError, match=rf"{file.name}: no certificates in PEM form"):
            box_at("https://relay.example", ca=file)


TOLD = {"message_bytes": 600, "free_bytes": 0, "time": 1_800_000_042}


def test_limits_are_read_with_the_difference_of_the_clocks() -> None:
    scene = Scene(refusal(503, "busy"), httpx.Response(200, json=TOLD))
    told = scene.box.limits(STUDY)
    assert (told.max_message_bytes, told.free_bytes) == (600, 0)
    assert told.clock_offset == pytest.approx(41.1)
    assert [str(request.url) for request in scene.requests] == [
        f"https://relay.example:8443/box/v1/studies/{STUDY[:32]}/limits"
    ] * 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            refusal(404, "no-page"),
            "does not tell its limits or keep room: it is of an older version; its oper",
        ),
        (httpx.Response(404, text="<html>"), "is not a splitmeans relay; check the URL"),
        (httpx.Response(200, text="<html>"), "is not a splitmeans relay; check the URL"),
        (httpx.Response(200, json=[]), "is not a splitmeans relay"),
        (httpx.Response(200, json=TOLD | {"free_bytes": -1}), "is not a splitmeans relay"),
        (httpx.Response(200, json=TOLD | {"message_bytes": True}), "is not a splitmeans relay"),
        (httpx.Response(200, json=TOLD | {"time": 10**400}), "is not a splitmeans relay"),
        (refusal(403, "stranger"), "this participant's key is not in the study"),
        (refusal(400, "clock", "8 here, 9 there"), "8 here, 9 there; set this machine's clock"),
    ],
)
def test_a_relay_that_does_not_tell_its_limits(answer: httpx.Response, words: str) -> None:
    with pytest.raises(MailboxError, match=words):
        Scene(answer).box.limits(STUDY)


def test_too_large_names_the_option_and_the_way_out() -> None:
    with pytest.raises(MailboxError) as found:
        Scene(refusal(413, "too-large", "a message may have 600 bytes")).box.put(
            PATH, bytes(2**20 + 1)
        )
    said = str(found.value)
    assert "a message may have 600 bytes, this one has 1048577" in said
    assert "relay serve --max-message 2M" in said
    assert "the same command goes on" in said
    assert "over a folder" in said
