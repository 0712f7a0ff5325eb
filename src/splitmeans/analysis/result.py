"""`Result` as an analyst uses it: after a fit, or read from a result folder, the same object."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from splitmeans.analysis.pages import Picture, ReportPage
from splitmeans.errors import ParameterError
from splitmeans.insights.drift import Drift, drift
from splitmeans.insights.own_labels import OwnLabels, own_labels
from splitmeans.insights.partners import Partners, partners
from splitmeans.insights.why import Reason, reasons
from splitmeans.report.build import DEFAULT_KS, build_report
from splitmeans.report.data import ReportData
from splitmeans.report.html import render
from splitmeans.result import result as published
from splitmeans.result.names import checked_names
from splitmeans.result.write import write_folder
from splitmeans.synopsis.synopsis import Synopsis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from splitmeans.party.similar import Audience


class Result(published.Result):
    """What a run published, with everything that can be done with it at no cost to privacy.

    `Result.read(folder)` reads it from a folder; `VerticalKMeans.published_` is that of a fit. The
    attributes are those of a result folder: `study`, `synopsis`, `published_centres`,
    `published_sizes`, `privacy`, `statement`, `facts`, `signed`, `names` and others.
    """

    def report(
        self,
        path: str | Path | None = None,
        *,
        ks: Iterable[int] = DEFAULT_KS,
        title: str | None = None,
    ) -> ReportPage:
        """Make the report: one HTML page that needs nothing else.

        Args:
            path: The file to write; a notebook shows the page either way.
            ks: Numbers of segments that its slider offers.
            title: Its heading.
        """
        page = ReportPage(render(build_report(self, ks=ks, title=title)))
        if path is not None:
            page.write(path)
        return page

    def save(self, folder: str | Path) -> Path:
        """Write a result folder, names included, as a run does; one of a fit says "simulation".

        `Result.read` and all commands on results read it. A result in the same place is replaced.
        """
        place = Path(folder)
        write_folder(place, self)
        return place

    def rename(self, names: Mapping[str, str]) -> Self:
        """Return the result with names of segments, by letter, such as {"A": "young families"}.

        Reports, tables, plots, saved folders and labels follow. An empty text removes a name.
        """
        merged = {**self.names, **names}
        left = {letter: name for letter, name in merged.items() if name != ""}
        checked = checked_names(left, self.published.letters)
        return dataclasses.replace(self, names=checked)

    def to_pandas(self, k: int | None = None) -> Any:
        """Return a pandas DataFrame with a row for each segment.

        Columns: segment (its letter), name, users and share (noisy estimates), users_low and
        users_high (the 95 % interval, missing where it is not known), and the centre in all
        columns, in own units; a category is a share of the segment's users.

        Args:
            k: Segments of this number instead of the published ones.
        """
        try:
            import pandas as pd
        except ImportError as problem:
            raise ParameterError(
                "to_pandas needs pandas: pip install 'splitmeans[pandas]'"
            ) from problem

        item = self.segments(k)
        intervals = self.size_intervals(k) if self.synopsis.total > 0 else None
        unknown = np.full(item.k, np.nan)
        total = self.synopsis.total
        head = {
            "segment": list(item.letters),
            "name": [self.names_for(item).get(letter) for letter in item.letters],
            "users": item.sizes,
            "share": item.sizes / total if total > 0 else unknown,
            "users_low": unknown if intervals is None else intervals.low,
            "users_high": unknown if intervals is None else intervals.high,
        }
        centres = pd.DataFrame(item.centres, columns=list(self.synopsis.feature_names))
        return pd.concat([pd.DataFrame(head), centres], axis=1)

    def ask(self, sql: str) -> Any:
        """Return the answer to a question in SQL as a pandas DataFrame, as `result ask` prints it.

        Needs DuckDB (`splitmeans[sql]`). The table `synopsis` has weight, segment and a column
        "party: column" for each of the parties' columns; `segments` has letter, size and centre.
        `sum(weight)` counts users and `wmean(x, weight)` is their mean. Figures that follow the
        weights are followed by the ends of their 95 % intervals, "NAME low" and "NAME high";
        `attrs["note"]` of the frame says why there are none. Costs no privacy.

        Args:
            sql: One SELECT over the two tables.
        """
        from splitmeans.queries.sql import answer_frame, ask_sql

        self.check_segments()
        return answer_frame(ask_sql(self, sql))

    def label(
        self,
        data: Any,
        *,
        party: str | None = None,
        k: int | None = None,
        allow_clipping: bool = False,
    ) -> Any:
        """Return a party's own table with each row's likeliest segment and all probabilities.

        Works on the party's columns and what was published; nothing is sent. The labels are as
        sensitive as the rows. A data frame keeps its columns, ids and index; added are "segment"
        (a letter), "name" if segments have names, "probability", and "segment A" and so on.

        Args:
            data: The party's table: a data frame (pandas, polars), an Arrow table, or an array,
                for which the labels alone are returned.
            party: The party's name; found by the names of the columns if not given.
            k: Segments of this number instead of the published ones.
            allow_clipping: Label it also if most of a column lies outside the study's bounds.
        """
        # Imported here: it sees rows, which nothing else of a result does.
        from splitmeans.party.label_frame import label_frame

        segments = self.segments(k)
        return label_frame(
            self, data, segments=segments, party=party, allow_clipping=allow_clipping
        )

    def audience(
        self,
        data: Any,
        *,
        segments: str | Iterable[str],
        at_least: float = 0.5,
        party: str | None = None,
        k: int | None = None,
        allow_clipping: bool = False,
    ) -> "tuple[Any, Audience]":
        """Return the rows of a party's own table that are probably in some segments.

        Rows keep their order; added are "probability" (of being in one of the segments), "segment"
        (the likeliest of all) and "name" if segments have names. The second value says how many
        there are, and how many are expected to be right. Works on the party's own machine, like
        `label`, and is as sensitive as the rows.

        Args:
            data: The party's table, as `label` takes it.
            segments: Letters or names, such as ["A", "C"]; one of them may be a text.
            at_least: The probability from which on rows are taken.
            party: The party's name; found by the names of the columns if not given.
            k: Segments of this number instead of the published ones.
            allow_clipping: As for `label`.
        """
        from splitmeans.party.similar_frame import audience_frame

        return audience_frame(
            self,
            data,
            wanted=[segments] if isinstance(segments, str) else list(segments),
            at_least=at_least,
            segments=self.segments(k),
            party=party,
            allow_clipping=allow_clipping,
        )

    def similar(
        self,
        data: Any,
        *,
        seed: Any,
        party: str | None = None,
        k: int | None = None,
        allow_clipping: bool = False,
    ) -> Any:
        """Return a party's own table with "lift" beside each row: how alike it is to a seed list.

        How many times likelier than an average user a row is to be of the seeds' kind, as far as
        segments tell; "seed" says who is in the seed. Works on the party's own machine, like
        `label`, and is as sensitive as the rows.

        Args:
            data: The party's table, as `label` takes it.
            seed: Ids as the table has them, or a truth value for each row.
            party: The party's name; found by the names of the columns if not given.
            k: Score by this number of segments instead of about two dozen.
            allow_clipping: As for `label`.
        """
        from splitmeans.party.similar import scoring_segments
        from splitmeans.party.similar_frame import similar_frame

        segments = scoring_segments(self, k)
        return similar_frame(
            self, data, seed=seed, segments=segments, party=party, allow_clipping=allow_clipping
        )

    def compare(self, old: published.Result) -> Drift:
        """Return what changed since an older result over the same columns; costs no privacy.

        Sizes and shares of the old result's segments, counted in both, with 95 % intervals that
        have both runs' noise; which new segment each is matched with, and where its people went.

        Raises:
            ParameterError: If the two are over other columns, or one of them has no segments.
        """
        return drift(old, self)

    def partners(self, k: int | None = None) -> Partners:
        """Return what each party's columns add to the segments, and would have found alone."""
        return partners(self._counted(), self.segments(k))

    def own_labels(self, k: int | None = None) -> tuple[OwnLabels, ...]:
        """Return how well each party can label its users from its own columns: an estimate."""
        return own_labels(self._counted(), self.segments(k))

    def why(self, k: int | None = None) -> dict[str, tuple[Reason, ...]]:
        """Return for each segment, by letter, the few columns that tell it from all users."""
        item = self.segments(k)
        return dict(zip(item.letters, reasons(self._counted(), item), strict=True))

    def picture(self, what: str = "map", k: int | None = None) -> Picture:
        """Return a picture as the report draws it, which a notebook shows.

        Args:
            what: "map", "silhouette" or "loss".
            k: Segments of this number instead of the published ones.
        """
        from splitmeans.analysis.pages import draw_picture

        return draw_picture(self._report_data(k, curve=what != "map"), what, k=self.segments(k).k)

    def plot_map(self, k: int | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Plot the map of segments with matplotlib; returns the axes."""
        from splitmeans.analysis.plots import plot_map

        return plot_map(self._report_data(k), self.segments(k).k, ax=ax)

    def plot_sizes(self, k: int | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Plot the segments' sizes with their 95 % intervals; returns the axes."""
        from splitmeans.analysis.plots import plot_sizes

        return plot_sizes(self._report_data(k), self.segments(k).k, ax=ax)

    def plot_columns(self, k: int | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Plot how far segments are from the mean in all columns, in spreads; returns the axes."""
        from splitmeans.analysis.plots import plot_columns

        return plot_columns(self._report_data(k), self.segments(k).k, ax=ax)

    def plot_k(self, ks: Iterable[int] = DEFAULT_KS, *, ax: "Axes | None" = None) -> "Axes":
        """Plot the silhouette against the number of segments; returns the axes."""
        from splitmeans.analysis.plots import plot_k

        return plot_k(self.compare_k(ks), published=self.published.k, ax=ax)

    def _counted(self) -> Synopsis:
        if self.synopsis.total <= 0:
            raise ParameterError(f"{self.where}: {self.remark}")
        return self.synopsis

    def _report_data(self, k: int | None = None, *, curve: bool = False) -> ReportData:
        self._counted()
        wanted = {} if k is None else {k}
        return build_report(self, ks={*DEFAULT_KS, *wanted} if curve else wanted)
