"""What a function puts into the system's folder for temporary files, while it runs and after."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# How a function can end while its temporary files are there; None is to go on.
ENDINGS = (None, OSError("the disk is full"), KeyboardInterrupt())


def check_temporary_files(
    function: Callable[[], object],
    *,
    inside: tuple[object, str],
    ending: BaseException | None,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that temporary files are private, and gone at the end.

    Args:
        function: What makes temporary files.
        inside: Object and name of a function that it calls while they are there.
        ending: What that one raises.
        folder: An empty folder, for temporary files.
        monkeypatch: Of the test.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    owner, name = inside
    whole, modes = getattr(owner, name), []

    def watched(*arguments: Any) -> Any:
        modes.extend(path.stat().st_mode & 0o777 for path in folder.iterdir())
        if ending is not None:
            raise ending
        return whole(*arguments)

    monkeypatch.setattr(owner, name, watched)
    try:
        function()
    except (Exception, KeyboardInterrupt):
        assert ending is not None
    assert set(modes) == {0o700}
    assert list(folder.iterdir()) == []
