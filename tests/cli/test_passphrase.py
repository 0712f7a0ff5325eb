"""Where a passphrase comes from, as a unit file or a container gives it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitmeans.cli.passphrase import PASSPHRASE, PASSPHRASE_FILE, given_passphrase, new_passphrase
from splitmeans.errors import ParameterError
from splitmeans.wire import identity
from splitmeans.wire.identity import Identity


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(identity, "_COST", 2**15)
    monkeypatch.delenv(PASSPHRASE, raising=False)
    monkeypatch.delenv(PASSPHRASE_FILE, raising=False)
    Identity.new().save(tmp_path / "key.json", "öffne dich")
    return tmp_path / "key.json"


def stored(folder: Path, data: bytes, mode: int = 0o600) -> Path:
    path = folder / "word"
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.fixture
def pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.write(writing, "öffne dich\n".encode())
    os.close(writing)
    yield reading
    os.close(reading)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_from_a_file(key: Path, tmp_path: Path, end: str) -> None:
    file = stored(tmp_path, f"öffne dich{end}".encode())
    text = given_passphrase(key, file=file)
    assert text == "öffne dich"
    Identity.load(key, text)


def test_from_a_descriptor(key: Path, pipe: int) -> None:
    assert given_passphrase(key, fd=pipe) == "öffne dich"


def test_from_a_file_that_a_variable_names(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes before the variable with the passphrase itself, which more people can see."""
    monkeypatch.setenv(PASSPHRASE, "another one")
    assert given_passphrase(key) == "another one"
    monkeypatch.setenv(PASSPHRASE_FILE, str(stored(tmp_path, b"word")))
    assert given_passphrase(key) == new_passphrase() == "word"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "must have the passphrase on one line and nothing else"),
        (b"\n", "must have the passphrase on one line"),
        (b"one\ntwo\n", "must have the passphrase on one line"),
        (b"\xff\xfe", "must be text in UTF-8"),
        (b"x" * 5000, "is too large: at most 4096 bytes"),
    ],
)
def test_files_that_hold_no_passphrase(key: Path, tmp_path: Path, data: bytes, why: str) -> None:
    with pytest.raises(ParameterError, match=rf"passphrase file .*word {why}"):
        given_passphrase(key, file=stored(tmp_path, data))


def test_a_file_that_everyone_reads_is_refused(key: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"passphrase file .*word can be used by other users"):
        given_passphrase(key, file=stored(tmp_path, b"word", 0o644))


def test_one_place_only(key: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"and --passphrase-fd: give one of them"):
        given_passphrase(key, file=tmp_path / "word", fd=0)


@pytest.mark.parametrize("fd", [1, 2, -1])
def test_descriptors_that_are_written_to(key: Path, fd: int) -> None:
    with pytest.raises(ParameterError, match=f"must be 0, or 3 or more, got {fd}"):
        given_passphrase(key, fd=fd)


def test_a_descriptor_that_is_not_open(key: Path) -> None:
    with pytest.raises(ParameterError, match=r"--passphrase-fd 987 cannot be read: Bad file"):
        given_passphrase(key, fd=987)


def test_a_key_without_passphrase_needs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Identity.new().save(tmp_path / "open.json")
    assert given_passphrase(tmp_path / "open.json", file=stored(tmp_path, b"word")) is None
    assert "has no passphrase; the one given is not used" in capsys.readouterr().err
