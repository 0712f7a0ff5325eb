"""Writing series into the ledger, and reading them; the rules are in `privacy.series`."""

from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.series import ALL_RUNS, Series, series_key


class SeriesLedger(Ledger):
    """The ledger, for studies that are renewed."""

    def draw_slot(
        self,
        source: str,
        series: Series,
        number: int,
        *,
        cost: Charge,
        late: bool = False,
        **facts: str | None,
    ) -> Entry:
        """Give a run its slot of a series, which is charged before if it was not.

        Must be called inside the transaction that stores the run's first release.

        Args:
            source: Name of the data source; of a series that is open, the one it was opened with.
            series: How many runs it has, and what one of them releases.
            number: Which run this is.
            cost: Of all runs together.
            late: The run was released before, and this ledger had forgotten it: limits do not stop
                it, as in `add`.
            facts: What else an entry has: study_hash, run, party, what, release_sha256, note.

        Raises:
            BudgetError: As for `charge`, or the slot was given before.
        """
        given = {name: value for name, value in facts.items() if value is not None}
        both = {name: value for name, value in given.items() if name in _OF_BOTH}
        both["series_events"] = series.events
        opened = self.series_of(study_hash=given["study_hash"], party=given["party"])
        if opened is None:
            self._append(
                kind="added" if late else "charge",
                source=source,
                run=ALL_RUNS,
                what=f"series of {series.runs} runs",
                series_runs=series.runs,
                **both,
                **cost.figures,
            )
        else:
            source = opened.source
        free = {"epsilon": 0.0, "delta": 0.0, "series_run": number}
        kind = "late-slot" if late else "slot"
        return self._append(kind=kind, source=source, **given | both | free)

    def series_of(self, *, study_hash: str, party: str) -> Entry | None:
        """Return the charge of a study's series, or None if nothing of it has been released."""
        return self.charge_of(study_hash=study_hash, run=ALL_RUNS, party=party)

    def slots_of(self, *, study_hash: str, party: str) -> dict[int, Entry]:
        """Return the slots of a series that were given, by number."""
        found = self.book().slots.get(series_key(study_hash, party), {})
        return {number: entry for number, entry in found.items() if number is not None}


# What the charge of a series and a slot both say.
_OF_BOTH = ("study_hash", "party", "note")
