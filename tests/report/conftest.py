from pathlib import Path

import pytest

from splitmeans.report.build import build_report
from splitmeans.report.data import ReportData
from splitmeans.result.result import Result

from .small_result import write_small_result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_result(tmp_path / "result")


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return Result.read(write_small_result(tmp_path_factory.mktemp("small") / "result"))


@pytest.fixture(scope="session")
def data(result: Result) -> ReportData:
    return build_report(result, names={"A": "saving <north>"})
