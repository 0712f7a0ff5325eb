"""The report of a small result; the result itself is a fixture of `tests/result`."""

import pytest

from splitmeans.report.build import build_report
from splitmeans.report.data import ReportData
from splitmeans.result.result import Result
from tests.result.conftest import folder, result

__all__ = ["folder", "result"]


@pytest.fixture(scope="session")
def data(result: Result) -> ReportData:
    return build_report(result, names={"A": "saving <north>"})
