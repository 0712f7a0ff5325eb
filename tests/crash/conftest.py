"""A folder in memory for runs that are started some hundred times, and no pauses between turns."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.crew import Crew, crew_study, drop_pauses


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Where a kill is played, the page cache survives: nothing needs to reach a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def crew(place: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """Three parties who have approved a study, and a server; nobody has started."""
    drop_pauses(monkeypatch)
    crew = Crew(folder=place / "crew", study=crew_study())
    crew.put_back({}, {})
    crew.approve()
    return crew
