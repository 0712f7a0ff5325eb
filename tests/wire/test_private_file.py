"""Who may read a secret: its owner, or the group it is mounted for; never everyone."""

import os
from pathlib import Path

import pytest

from splitmeans.errors import ParameterError
from splitmeans.wire.private_file import read_private

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes mean something on POSIX")


def secret(folder: Path, mode: int) -> Path:
    path = folder / "secret"
    path.write_bytes(b"word")
    path.chmod(mode)
    return path


def read(path: Path) -> bytes:
    return read_private(path, what="key file", max_bytes=100)


def seen_by_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the file belonged to somebody else."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_mounted_secret_is_read_by_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path = secret(tmp_path, mode)
    seen_by_another_user(monkeypatch)
    assert read(path) == b"word"


@pytest.mark.parametrize("mode", [0o444, 0o644, 0o404, 0o460, 0o660, 0o450, 0o441, 0o777])
def test_what_everyone_reads_or_a_group_changes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path = secret(tmp_path, mode)
    seen_by_another_user(monkeypatch)
    with pytest.raises(ParameterError, match=rf"has mode {mode:03o}; a secret .* 440 or less"):
        read(path)


@pytest.mark.parametrize("mode", [0o440, 0o640, 0o604])
def test_the_owner_is_asked_to_close_the_file(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ParameterError, match=r"other users of this machine; run: chmod 600"):
        read(secret(tmp_path, mode))


def test_a_link_is_followed_as_kubernetes_has_it(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    target = secret(tmp_path / "..data", 0o400)
    (tmp_path / "key.json").symlink_to(target)
    assert read(tmp_path / "key.json") == b"word"


def test_too_large(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="is too large: at most 3 bytes are read"):
        read_private(secret(tmp_path, 0o600), what="key file", max_bytes=3)
