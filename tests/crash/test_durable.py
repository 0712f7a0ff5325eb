"""A power cut loses what was not synced: the result is on disk before the state is erased."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.crash.crew import Crew
from tests.crash.instants import watched
from tests.crash.rules import EVERYONE


def test_the_result_is_synced_before_the_run_ends(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    at_the_end: list[set[str]] = []
    fsync = os.fsync

    def note(descriptor: int, *more: Any) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor, *more)

    def look(instant: str) -> None:
        if instant == "before sqlite UPDATE runs SET":
            at_the_end.append(set(synced))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to tell which file was synced")
    monkeypatch.setattr(os, "fsync", note)
    with watched(look):
        crew.go_on()
    # The last change of a run's row is its end.
    known = at_the_end[-1]
    for who in EVERYONE:
        folder = crew.result_of(who)
        for path in folder.iterdir():
            assert any(name.endswith(f"/{path.name}") and f"/.{who}-" in name for name in known), (
                f"{path} was not synced"
            )
    assert str(folder.parent) in known, "the name of the result folder was not synced"
