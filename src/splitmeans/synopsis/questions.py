"""What a synopsis answers, each with an interval: the part of `Synopsis` that people ask.

The work is in `synopsis/queries/` and `synopsis/replicates/`, which are loaded when somebody asks.
"""

import functools
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from splitmeans.synopsis.queries.answers import Answer, Correlation, CrossTable
    from splitmeans.synopsis.queries.ask import Asked, Bins
    from splitmeans.synopsis.replicates.replicates import Replicates
    from splitmeans.synopsis.synopsis import Synopsis


class Questions:
    """Questions to a synopsis; answers are made from published values and cost no privacy."""

    @property
    def _synopsis(self) -> "Synopsis":
        return cast("Synopsis", self)

    @functools.cached_property
    def replicates(self) -> "Replicates | None":
        """What may have been instead, for the interval of any figure; None without `precision`.

        They are drawn when first asked for, from published values and always the same: it costs no
        privacy and about a second.
        """
        synopsis = self._synopsis
        if synopsis.precision is None or synopsis.centres is None:
            return None
        from splitmeans.synopsis.replicates.replicates import make_replicates

        return make_replicates(synopsis, synopsis.precision)

    @functools.cached_property
    def _asked(self) -> "Asked":
        """Whom questions are about: all users, or of a synopsis that `where` chose those."""
        from splitmeans.synopsis.queries.ask import Asked

        return Asked(synopsis=self._synopsis)

    def where(self, condition: str) -> "Synopsis":
        """Return the synopsis of users who fit a condition; costs no privacy.

        Questions to it have intervals as those to the whole; what else is made of it is not.

        Args:
            condition: Such as "bank: income > 3000 and plan in (gold, plus)"; and, or, not,
                brackets. A column's name alone will do where one party has it.
        """
        from splitmeans.synopsis.queries.subset import chosen_nodes

        return chosen_nodes(self._asked.where(condition))

    def count(self, where: str | None = None) -> "Answer":
        """Return how many users fit a condition, all if there is none, with a 95 % interval."""
        return self._asked.where(where).count()

    def share(self, where: str) -> "Answer":
        """Return which share of the users fits a condition, with a 95 % interval."""
        return self._asked.share_of(where)

    def mean(self, column: str, *, where: str | None = None) -> "Answer":
        """Return the mean of a column of numbers, with a 95 % interval.

        Args:
            column: "party: column", or the column alone where one party has it.
            where: Of the users who fit this condition.
        """
        return self._asked.where(where).mean(column)

    def table(self, *columns: str, bins: "Bins" = None, where: str | None = None) -> "CrossTable":
        """Return the users by one or two columns, with 95 % intervals.

        Args:
            columns: One or two.
            bins: Of columns of numbers: how many with equally many users (4), or the edges between
                them; or a dict of these by column.
            where: Of the users who fit this condition.
        """
        return self._asked.where(where).table(*columns, bins=bins)

    def correlation(self, *columns: str, where: str | None = None) -> "Correlation":
        """Return the correlations of columns of numbers, all if none is named.

        There are 95 % intervals for up to 12 columns.

        Args:
            columns: Two or more.
            where: Of the users who fit this condition.
        """
        return self._asked.where(where).correlation(*columns)
