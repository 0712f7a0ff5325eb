"""`--log-format json`: one event a line, and never anything of a table."""

import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from splitmeans.cli import main
from splitmeans.cli.json_log import JsonLog, LogFormat, json_log
from splitmeans.errors import DataError, MailboxUnavailable
from splitmeans.run.notes import EVENTS, Note
from tests.scene import keyed_study

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "logs.md"


@pytest.fixture
def log() -> Iterator[JsonLog]:
    json_log.choose(LogFormat.JSON)
    json_log.begin(keyed_study(), run="q1", participant="bank", quiet=False)
    yield json_log
    json_log.choose(LogFormat.TEXT)


@pytest.fixture
def lines(log: JsonLog, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return read


def test_a_note_is_written_and_a_sentence_is_not(log: JsonLog, lines: Any) -> None:
    log.tell("4,711 rows; ids look like numbers")
    log.tell(Note("took Ready from shop", event="message_taken", sender="shop", stage="Keyed"))
    log.tell(Note("waiting for shop", event="waiting", missing=["shop"]))
    taken, waiting = lines()
    assert taken["event"] == "message_taken"
    assert waiting["stage"] == "Keyed"  # the last one that was told
    assert waiting["missing"] == ["shop"]
    assert waiting["study"] == keyed_study().hash[:32]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", waiting["time"])


def test_an_event_without_a_name_in_the_list_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        Note("x", event="rows_counted")


def test_words_about_a_table_are_withheld(log: JsonLog, lines: Any) -> None:
    log.failed(DataError("bank: column 'income', 17 values in rows 3, 5, 9"), code=2)
    log.failed(MailboxUnavailable("relay https://r: no answer in time"), code=4)
    log.failed(ZeroDivisionError("41 of person-17"), code=1)
    data, mailbox, mistake = lines()
    assert data["error"] == "DataError"
    assert "17" not in data["text"]
    assert "party check" in data["text"]
    assert mailbox["text"] == "relay https://r: no answer in time"
    assert "person-17" not in json.dumps(mistake)
    assert [line["level"] for line in (data, mailbox, mistake)] == ["error"] * 3


def test_only_our_own_warnings_have_words(log: JsonLog, lines: Any) -> None:
    logging.getLogger("splitmeans.run.post").warning("ignored what is in the place of %s", "shop")
    logging.getLogger("paramiko").warning("row 17: Ms Miller")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        json_log.choose(LogFormat.JSON)
        json_log.begin(keyed_study(), run="q1", participant="bank", quiet=False)
        warnings.warn("value 4711", stacklevel=1)
    ours, theirs, _, python = lines()
    assert ours["text"] == "ignored what is in the place of shop"
    assert theirs["logger"] == "paramiko"
    assert "text" not in theirs
    assert "text" not in python


def test_quiet_leaves_warnings_and_errors(log: JsonLog, lines: Any) -> None:
    log.begin(keyed_study(), run="q1", participant="bank", quiet=True)
    log.tell(Note("waiting for shop", event="waiting"))
    log.failed(MailboxUnavailable("no"), code=4)
    assert [line["event"] for line in lines()] == ["failed"]


def test_a_command_that_fails_says_so_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--mailbox", str(tmp_path), "--log-format", "json"]
    words = ["server", "run", str(tmp_path / "none.toml"), *options]
    monkeypatch.setattr(sys, "argv", ["splitmeans", *words])
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        json_log.choose(LogFormat.TEXT)
    assert ended.value.code == 2
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "failed"
    assert line["exit_code"] == 2
    assert "none.toml" in line["text"]


def test_every_event_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert [event for event in EVENTS if f"| `{event}` |" not in page] == []
