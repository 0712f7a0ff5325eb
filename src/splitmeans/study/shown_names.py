"""Names as results show them: two different columns or categories never look alike."""

import unicodedata
from collections.abc import Sequence

from splitmeans.errors import StudyError
from splitmeans.study.parties import PartySpec

# Ends the name of a column in distance units in `synopsis.parquet`.
SCALED = " (scaled)"

# Printable signs that show nothing, and signs that look like ":" or "=" and are not, also in NFKC.
_INVISIBLE = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x180E), 0x2800),
    *(*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
)
_LOOKS: dict[int, str | None] = {
    **dict.fromkeys(_INVISIBLE, None),
    **dict.fromkeys((0x02D0, 0x0589, 0x05C3, 0x2236, 0xA789), ":"),
    0xA78A: "=",
}


def check_shown_names(parties: Sequence[PartySpec]) -> None:
    """Refuse names with which two columns or categories would be shown alike.

    Results show "party: column" and "party: column=category": the first ": " ends the party, the
    first "=" after it the column. Categories may have any text.
    """
    for party in parties:
        if ": " in _look(party.name):
            raise StudyError(
                f"party name {party.name!r} must not contain ': ', which ends a party's name in "
                "results; rename the party"
            )
        for name in (column.name for column in party.columns):
            look = _look(name)
            odd = [part for part in (": ", "=") if part in look]
            starts = (f"{_look(other.name)}:" for other in parties)
            odd += [start for start in starts if look.startswith(start)]
            odd += [SCALED] if look.endswith(SCALED) else []
            if odd:
                raise StudyError(
                    f"column {name!r} of party {party.name!r} must not contain {odd[0]!r}: results "
                    "show 'party: column' and 'party: column=category', and it would look like "
                    "another one; rename the column in the table and in the study"
                )
        _check_different(f"columns of party {party.name!r}", [one.name for one in party.columns])
        for column in party.columns:
            _check_different(f"categories of column {column.name!r}", column.categories)
    _check_different("party names", [party.name for party in parties])


def _check_different(what: str, names: Sequence[str]) -> None:
    if len(set(map(_look, names))) != len(names):
        raise StudyError(f"{what} must be different, and look different, got {', '.join(names)}")


def _look(name: str) -> str:
    """Return the form in which names are compared: those that share it look the same."""
    return unicodedata.normalize("NFKC", name).translate(_LOOKS)
