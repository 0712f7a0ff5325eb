"""What the relay tells of itself: health, metrics, and a log that nobody can make grow."""

import asyncio
import io
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitmeans.relay.access import Refused
from splitmeans.relay.app import make_app
from splitmeans.relay.log import JsonLines, LineLimit, TextLines, tell
from splitmeans.relay.metrics import STEP_SECONDS, Metrics
from splitmeans.relay.replies import Refusal
from tests.relay.test_app import KEYS, STUDY, Clock, Relay, slot_path


class Seconds:
    """A clock that only goes forward, by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def relay(tmp_path: Path, seconds: Seconds) -> Iterator[Relay]:
    clock = Clock()
    metrics = Metrics(clock=seconds, now=clock)
    app = make_app({STUDY: KEYS}, tmp_path / "messages", clock=clock, metrics=metrics)
    yield Relay(app, tmp_path / "messages", clock)
    app.state.store.close()


def page(relay: Relay, name: str) -> tuple[int, str]:
    answer = relay.ask("GET", "", headers={}, target=name)
    return answer.status, answer.body.decode()


def values(relay: Relay) -> dict[str, float]:
    """Read `/metrics` as Prometheus does."""
    status, text = page(relay, "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_every_metric_is_described(relay: Relay) -> None:
    _, text = page(relay, "/metrics")
    described = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}
    typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert described == typed == {name.split("{")[0] for name in values(relay)}


def test_what_participants_do_is_told_in_steps(relay: Relay, seconds: Seconds) -> None:
    stored = 'splitmeans_relay_participant_requests_total{answer="stored"}'
    polled = 'splitmeans_relay_participant_requests_total{answer="not_there"}'
    for number in range(3):
        relay.ask("PUT", slot_path(run=f"run-{number}"), body=b"sealed")
    for _ in range(123):
        assert relay.ask("GET", slot_path(run="later")).status == 404
    assert values(relay)[stored] == 0  # until the ten minutes are over
    seconds.now += STEP_SECONDS - 1
    assert values(relay)[stored] == 0
    seconds.now += 1
    assert values(relay)[stored] == 3
    assert values(relay)[polled] == 120
    relay.ask("PUT", slot_path(run="run-4"), body=b"sealed")
    assert values(relay)[stored] == 3


def test_a_step_has_what_came_in_it_and_nothing_later(relay: Relay, seconds: Seconds) -> None:
    """A count that is asked for late must not hold what came after the step."""
    stored = 'splitmeans_relay_participant_requests_total{answer="stored"}'
    relay.ask("PUT", slot_path(run="one"), body=b"sealed")
    seconds.now += STEP_SECONDS + 100
    relay.ask("PUT", slot_path(run="two"), body=b"sealed")
    assert values(relay)[stored] == 1


def test_strangers_are_counted_at_once(relay: Relay) -> None:
    strangers = 'splitmeans_relay_stranger_requests_total{code="stranger"}'
    for _ in range(7):
        relay.ask("PUT", slot_path(), headers={}, body=b"junk")
    assert values(relay)[strangers] == 7


@pytest.mark.parametrize("name", ["/metrics", "/health", "/"])
def test_pages_do_not_depend_on_lengths(tmp_path: Path, name: str) -> None:
    """What anyone may read is the same whether messages are short or long."""
    seen = []
    for length in (1, 50_000):
        clock, seconds = Clock(), Seconds()
        metrics = Metrics(clock=seconds, now=clock)
        folder = tmp_path / str(length)
        app = make_app({STUDY: KEYS}, folder, clock=clock, metrics=metrics)
        relay = Relay(app, folder, clock)
        relay.ask("PUT", slot_path(), body=b"x" * length)
        relay.ask("GET", slot_path(), who="bob")
        seconds.now += STEP_SECONDS
        seen.append(page(relay, name))
        app.state.store.close()
    assert seen[0] == seen[1]
    told = seen[0][1]
    assert not any(word in told for word in (STUDY[:12], *(set(KEYS) - {"server"})))


def test_health_tells_a_folder_that_is_gone(relay: Relay) -> None:
    assert page(relay, "/health")[0] == 200
    shutil.rmtree(relay.folder / "messages")
    status, text = page(relay, "/health")
    assert status == 503
    assert json.loads(text)["status"] == "the folder of messages is gone"


@pytest.fixture
def logged() -> Iterator[Callable[..., io.StringIO]]:
    """Write the relay's log to a text, as `log.set_up` writes it to stderr."""
    log = logging.getLogger("splitmeans.relay")
    before, level = list(log.handlers), log.level

    def begin(limit: LineLimit, formatter: logging.Formatter) -> io.StringIO:
        text = io.StringIO()
        handler = logging.StreamHandler(text)
        handler.setFormatter(formatter)
        handler.addFilter(limit)
        log.handlers = [handler]
        log.setLevel(logging.INFO)
        return text

    yield begin
    log.handlers, log.level = before, level


async def _ask_from(relay: Relay, address: str, refused: Refused) -> None:
    """Have the relay answer a request from an address."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: object) -> None: ...

    scope = {"type": "http", "client": (address, 999), "headers": [], "app": relay.app}
    await Refusal(refused)(scope, receive, send)  # type: ignore[arg-type]


STRANGER = Refused("who is that", status=403, code="stranger", is_stranger=True)


def test_a_flood_does_not_fill_the_log(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    limit = LineLimit(60, clock=seconds)
    text = logged(limit, TextLines())

    async def flood() -> None:
        for number in range(20_000):
            seconds.now += 0.003  # a minute in all
            await _ask_from(relay, f"10.0.{number % 300 // 256}.{number % 256}", STRANGER)

    asyncio.run(flood())
    seconds.now += 60
    limit.flush()
    written = text.getvalue()
    assert len(written) < 12_000  # 2.3 MB a minute without the bound
    lines = written.splitlines()
    assert len([line for line in lines if "refused: stranger, from 10.0.0.1" in line]) >= 1
    assert len([line for line in lines if "refused" in line and "left out" not in line]) == 60
    (summary,) = [line for line in lines if "left out" in line]
    assert "left out 19940 more lines of the kind 'refused stranger'" in summary
    assert "256 or more addresses" in summary


def test_other_kinds_of_lines_still_come_during_a_flood(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    text = logged(LineLimit(5, clock=seconds), TextLines())
    for _ in range(50):
        asyncio.run(_ask_from(relay, "10.0.0.1", STRANGER))
    relay.ask("PUT", slot_path(), body=b"sealed")
    assert "stored publishedresult of server for bob, run run-1" in text.getvalue()


def test_a_refusal_names_who_and_from_where(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    text = logged(LineLimit(60, clock=seconds), JsonLines())
    headers = relay.headers("GET", slot_path(), who="carol")  # a message between two others
    assert relay.ask("GET", slot_path(), headers=headers).status == 403
    line = json.loads(text.getvalue())
    assert line["event"] == "refused"
    assert line["code"] == "not-yours"
    assert line["participant"] == "carol"
    assert line["study"] == STUDY[:32]
    assert line["address"] == "unknown"  # this request came over no network


def test_what_a_proxy_passes_on_is_an_address_or_unknown(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    text = logged(LineLimit(60, clock=seconds), TextLines())
    for address in ("2001:db8::1", "x\ninjected line"):
        asyncio.run(_ask_from(relay, address, STRANGER))
    assert text.getvalue().count("\n") == 2
    assert "from 2001:db8::1" in text.getvalue()
    assert "injected" not in text.getvalue()


def test_json_lines_hold_no_sizes(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    text = logged(LineLimit(60, clock=seconds), JsonLines())
    relay.ask("PUT", slot_path(), body=b"x" * 4321)
    tell("odd", "an {address}", address="1.2.3.4")
    stored, odd = (json.loads(line) for line in text.getvalue().splitlines())
    assert set(stored) == {
        *("time", "level", "event", "participant", "kind", "receiver"),
        *("run", "study", "address"),
    }
    assert "4321" not in text.getvalue()
    assert odd["event"] == "odd"


def test_a_message_that_is_not_there_yet_is_not_logged(
    relay: Relay, seconds: Seconds, logged: Callable[..., io.StringIO]
) -> None:
    text = logged(LineLimit(60, clock=seconds), TextLines())
    relay.ask("GET", slot_path())
    assert text.getvalue() == ""
