"""Exit codes: whether a script should try again, wait, or call somebody."""

import sys
from pathlib import Path

import pytest

import splitmeans.protocol
from splitmeans import errors
from splitmeans.cli import main
from splitmeans.errors import Retryable, SplitmeansError, exit_code

CODES = {
    "SplitmeansError": 1,
    "ParameterError": 2,
    "StudyError": 2,
    "DataError": 2,
    "PrivacyError": 1,
    "UnaccountableBudget": 2,
    "BudgetError": 1,
    "ProtocolError": 1,
    "MessageRefused": 1,
    "OtherRunKey": 1,
    "EngineError": 1,
    "EvidenceError": 1,
    "JournalError": 1,
    "HomeUnavailable": 4,
    "MailboxError": 1,
    "MailboxUnavailable": 4,
    "MessageExists": 1,
    "RehearsalError": 1,
    "WaitingError": 3,
}
ERRORS = {
    name: found
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, SplitmeansError)
}


def test_every_error_has_its_code():
    assert {name: exit_code(found("why")) for name, found in ERRORS.items()} == CODES
    retryable = {name for name, found in ERRORS.items() if issubclass(found, Retryable)}
    assert retryable == {name for name, code in CODES.items() if code == 4}


@pytest.mark.parametrize("name", ERRORS)
def test_a_command_ends_with_it(name, monkeypatch, capsys, tmp_path):
    def broken(*_: object, **__: object) -> None:
        raise ERRORS[name]("why")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(splitmeans.protocol, "run", broken)
    monkeypatch.setattr(sys, "argv", ["splitmeans", "demo", "--users", "1000"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == CODES[name]
    said = capsys.readouterr().err
    assert "why" in said
    assert ("try the same command again later" in said) == (CODES[name] == 4)


def test_the_codes_are_documented(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["splitmeans", "--help"])
    with pytest.raises(SystemExit):
        main()
    shown = " ".join(capsys.readouterr().out.split())
    page = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
    table = page.read_text().split("## Exit codes")[1].split("\n## ")[0]
    for code in (0, 1, 2, 3, 4, 130):
        assert f"| {code} |" in table
        assert f" {code} " in shown.partition("Exit codes:")[2]
