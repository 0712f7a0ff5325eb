"""A small result folder, written once and read by many tests."""

from pathlib import Path

import pytest

from splitmeans.result.result import Result
from tests.result.small_result import write_small_result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_result(tmp_path / "result")


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return Result.read(write_small_result(tmp_path_factory.mktemp("small") / "result"))
