"""How a study writes its users' ids, so that the same user is the same text at every party.

Real systems hold one id in many forms: 7, "7", "007", " 7", a UUID in capitals. The study says
which of them are one user; `table/ids/forms.py` brings them to that form, or refuses them.
"""

from dataclasses import dataclass
from typing import Any

from splitmeans import _validate
from splitmeans.errors import StudyError

ID_TYPES = ("as-is", "text", "integer", "uuid")

_LONGEST_PATTERN = 200

# Said of a study with partial user sets that has no rule.
IDS_NEEDED = (
    "user_sets='partial' needs a rule for ids: where nobody can compare them, a person who is 007 "
    "at one party and 7 at another counts as two people, for whom the stated epsilon does not "
    "hold. Agree how ids are written and add to the study\n[ids]\n"
    'type = "integer"\n'
    'or "text", "uuid", or "as-is" if all parties write every id alike to the letter '
    "(`study new` has --id-type; in Python ids=IdRules(type='integer'))"
)


@dataclass(frozen=True, kw_only=True)
class IdRules:
    r"""What ids look like, the same at all parties.

    Attributes:
        type: "as-is": text in Unicode normal form C, whole numbers in decimal, nothing else
            changed. "text": the same without spaces at the ends, and invisible characters are
            refused. "integer": whole numbers; 7, "007" and 7.0 are one user. "uuid": hyphens,
            braces and case do not count.
        pattern: A regular expression (RE2) that every id must fit as a whole, in its canonical
            form, such as `[A-Z]{2}[0-9]{6}`. Each party checks its own ids.
        explain_mismatch: Parties compare their ids in coarser forms too, each by a private test
            that answers one guess a run, so that the error can say which form would agree.
    """

    type: str = "as-is"
    pattern: str | None = None
    explain_mismatch: bool = False

    def __post_init__(self) -> None:
        _validate.one_of(ID_TYPES, error=StudyError, **{"ids.type": self.type})
        if not isinstance(self.explain_mismatch, bool):
            raise StudyError("ids.explain_mismatch must be true or false")
        if self.pattern is not None:
            _check_pattern(self.pattern)

    @property
    def whole_pattern(self) -> str | None:
        """The pattern for a whole id, None if any id will do."""
        return None if self.pattern is None else rf"\A(?:{self.pattern})\z"


AS_IS = IdRules()


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str) or not pattern or not pattern.isprintable():
        raise StudyError("ids.pattern must be a regular expression in printable characters")
    if len(pattern) > _LONGEST_PATTERN:
        raise StudyError(
            f"ids.pattern must have at most {_LONGEST_PATTERN} characters, got {len(pattern)}"
        )
    # Imported where it is used: few studies have a pattern, and Arrow takes time to load.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        # Alone as well: "a)|(b" would only be whole within the brackets that are put around it.
        for text in (pattern, rf"\A(?:{pattern})\z"):
            pc.match_substring_regex(pa.array(["x"]), pattern=text)
    except pa.ArrowException:
        raise StudyError(
            f"ids.pattern must be a regular expression as RE2 takes it, got {pattern!r}"
        ) from None
