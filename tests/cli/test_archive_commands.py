"""`splitmeans archive` as it is typed."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from splitmeans.cli.archive import app
from splitmeans.errors import EvidenceError, ParameterError
from splitmeans.wire.key_change import revocation_text
from tests.evidence.conftest import Ran, bundle, ran  # noqa: F401
from tests.scene import KEYS


def call(*arguments: object) -> SimpleNamespace:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    return SimpleNamespace(code=done.exit_code, out=done.stdout, problem=done.exception)


@pytest.fixture
def files(ran: Ran, tmp_path: Path) -> SimpleNamespace:  # noqa: F811
    study, home = tmp_path / "study.toml", ran.home("bank")
    study.write_text(ran.study.to_toml())
    key = home / "key.json"
    if not key.exists():
        KEYS["bank"].save(key)
    return SimpleNamespace(study=study, home=home, result=home / "result", zip=tmp_path / "a.zip")


def test_make_and_verify(files: SimpleNamespace, bundle: bytes) -> None:  # noqa: F811
    made = call(files.result, "-o", files.zip, "--home", files.home)
    assert made.code == 0, made.problem
    assert made.out == f"{files.zip}\n"
    assert files.zip.read_bytes() == bundle
    again = call("make", files.result, "-o", files.zip, "--home", files.home)
    assert "no archive replaces another" in str(again.problem)
    for pin in (
        ("--study", files.study),
        ("--key", KEYS["bank"].public.to_text()),
        ("--home", files.home),
    ):
        found = call("verify", files.zip, *pin)
        assert found.code == 0, found.problem
        assert found.out.endswith("\nverified\n")
    told = json.loads(call("verify", files.zip, "--study", files.study, "--json").out)
    assert (told["verified"], told["pinned"], told["participant"]) == (True, True, "bank")
    assert told["epsilon_at_least"] <= told["epsilon"] <= told["budget_epsilon"]


@pytest.mark.parametrize("who", ["bank", "server"])
def test_a_key_that_was_revoked(
    files: SimpleNamespace,
    bundle: bytes,  # noqa: F811
    tmp_path: Path,
    who: str,
) -> None:
    files.zip.write_bytes(bundle)
    word = tmp_path / "word.revoked"
    for time in ("2001-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"):
        word.write_text(revocation_text(KEYS[who], reason="stolen", time=time))
        found = call("verify", files.zip, "--study", files.study, "--revoked", word)
        if time < "2002":
            assert isinstance(found.problem, EvidenceError)
            assert f"the key of '{who}' was revoked on 2001-01-01 (stolen), before" in str(
                found.problem
            )
        else:
            assert found.code == 0, found.problem
            assert f"CAUTION: the key of '{who}' was revoked on 2999-01-01" in found.out
    word.write_text(revocation_text(KEYS["shop"], reason="x", time="2001-01-01T00:00:00+00:00"))
    told = call("verify", files.zip, "--study", files.study, "--revoked", word)
    assert told.code == 0
    assert "CAUTION" not in told.out


def test_without_a_pin_people_are_told(files: SimpleNamespace, bundle: bytes) -> None:  # noqa: F811
    files.zip.write_bytes(bundle)
    found = call("verify", files.zip)
    assert found.code == 0
    assert "Whose keys these are was NOT checked" in found.out


def test_what_does_not_verify(files: SimpleNamespace, bundle: bytes, tmp_path: Path) -> None:  # noqa: F811
    files.zip.write_bytes(bundle[:-40] + b"x" + bundle[-39:])
    assert isinstance(call("verify", files.zip).problem, EvidenceError)
    files.zip.write_bytes(bundle)
    assert "somebody else made it" in str(
        call("verify", files.zip, "--key", KEYS["shop"].public.to_text()).problem
    )
    for wrong in (("--key", "hello"), ("--study", files.study, "--home", files.home)):
        assert isinstance(call("verify", files.zip, *wrong).problem, ParameterError)
    assert "cannot be read" in str(call("verify", tmp_path / "none.zip").problem)
