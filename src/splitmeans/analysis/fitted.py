"""What a fitted model does with its result: the same as a `Result` that was read from a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from splitmeans.analysis.pages import ReportPage
from splitmeans.analysis.result import Result


class HasResult:
    """Passes on to `published_`, the `Result` of a fit."""

    published_: Result

    def report(self, path: str | Path | None = None, **options: Any) -> ReportPage:
        """Make the report, and write it if a path is given; see `Result.report`."""
        return self._result().report(path, **options)

    def save(self, folder: str | Path) -> Path:
        """Write a result folder that says it is of a simulation; see `Result.save`."""
        return self._result().save(folder)

    def to_pandas(self, k: int | None = None, *, model: str = "means") -> Any:
        """Return a data frame with a row for each segment; see `Result.to_pandas`."""
        return self._result().to_pandas(k, model=model)

    def label(self, data: Any, **options: Any) -> Any:
        """Return a party's own table with the segments of its rows; see `Result.label`.

        As the party would do it in a real run: from its own columns alone.
        """
        return self._result().label(data, **options)

    def rename(self, names: Mapping[str, str]) -> Self:
        """Name segments by letter, for report, tables, files and labels; returns the model."""
        self.published_ = self._result().rename(names)
        return self

    def _result(self) -> Result:
        check_is_fitted(self, "published_")
        return self.published_
