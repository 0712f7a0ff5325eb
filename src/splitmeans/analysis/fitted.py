"""What a fitted model does with its result: the same as a `Result` that was read from a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from splitmeans.plan.facts import PrivacyFacts

if TYPE_CHECKING:
    from splitmeans.analysis.pages import ReportPage
    from splitmeans.analysis.result import Result


class HasResult:
    """Passes on to `published_`, the `Result` of a fit, made when it is first asked for."""

    result_: Any
    _published: "Result | None"
    _fitted_at: str

    @property
    def privacy_(self) -> PrivacyFacts:
        """What was released, what it cost, and who can learn what."""
        if not hasattr(self, "result_"):
            raise AttributeError("privacy_: the model is not fitted yet; call fit")
        facts: PrivacyFacts = self.result_.privacy
        return facts

    @property
    def published_(self) -> "Result":
        """What a run would publish."""
        if not hasattr(self, "_published"):
            raise AttributeError("published_: the model is not fitted yet; call fit")
        if self._published is None:
            # Loaded where it is asked for: report and all that is said of results come with it.
            from splitmeans.analysis.result import Result
            from splitmeans.result.of_run import fields_of_run

            message, written_at = self.result_.server.published, self._fitted_at
            plan = self.result_.plan
            fields = fields_of_run(plan, self.privacy_, message, written_at=written_at)
            self._published = Result(**fields)
        return self._published

    def _not_published(self, *, written_at: str) -> None:
        """Forget the `Result` of an earlier fit; that of this one is of this time."""
        self._published = None
        self._fitted_at = written_at

    def report(self, path: str | Path | None = None, **options: Any) -> "ReportPage":
        """Make the report, and write it if a path is given; see `Result.report`."""
        return self._result().report(path, **options)

    def save(self, folder: str | Path) -> Path:
        """Write a result folder that says it is of a simulation; see `Result.save`."""
        return self._result().save(folder)

    def to_pandas(self, k: int | None = None) -> Any:
        """Return a data frame with a row for each segment; see `Result.to_pandas`."""
        return self._result().to_pandas(k)

    def ask(self, sql: str) -> Any:
        """Return the answer to a question in SQL; see `Result.ask`."""
        return self._result().ask(sql)

    def label(self, data: Any, **options: Any) -> Any:
        """Return a party's own table with the segments of its rows; see `Result.label`.

        As the party would do it in a real run: from its own columns alone.
        """
        return self._result().label(data, **options)

    def rename(self, names: Mapping[str, str]) -> Self:
        """Name segments by letter, for report, tables, files and labels; returns the model."""
        self._published = self._result().rename(names)
        return self

    def _result(self) -> "Result":
        check_is_fitted(self, "published_")
        return self.published_
