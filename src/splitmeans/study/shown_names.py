"""Names as results show them: two different columns or categories never look alike."""

import unicodedata
from collections.abc import Sequence

from splitmeans.errors import StudyError
from splitmeans.study.parties import PartySpec

# Ends the name of a column in distance units in `synopsis.parquet`.
SCALED = " (scaled)"


def check_shown_names(parties: Sequence[PartySpec]) -> None:
    """Refuse names with which two columns or categories would be shown alike.

    Results show "party: column" and "party: column=category": the first ": " ends the party, the
    first "=" after it the column. Categories may have any text.
    """
    for party in parties:
        if ": " in party.name:
            raise StudyError(
                f"party name {party.name!r} must not contain ': ', which ends a party's name in "
                "results; rename the party"
            )
        for name in (column.name for column in party.columns):
            odd = [part for part in (": ", "=") if part in name]
            odd += [f"{other.name}:" for other in parties if name.startswith(f"{other.name}:")]
            odd += [SCALED] if name.endswith(SCALED) else []
            if odd:
                raise StudyError(
                    f"column {name!r} of party {party.name!r} must not contain {odd[0]!r}: results "
                    "show 'party: column' and 'party: column=category', and it would look like "
                    "another one; rename the column in the table and in the study"
                )
    # Compared in this form: names that share it look the same.
    shown = [unicodedata.normalize("NFC", party.name) for party in parties]
    if len(set(shown)) != len(shown):
        raise StudyError("party names must be different")
