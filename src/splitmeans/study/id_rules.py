"""How a study writes its users' ids, so that the same user is the same text at every party.

Real systems hold one id in many forms: 7, "7", "007", " 7", a UUID in capitals. The study says
which of them are one user; `table/ids/forms.py` brings them to that form, or refuses them.
"""

import re
from dataclasses import dataclass
from typing import Any

from splitmeans import _validate
from splitmeans.errors import StudyError

ID_TYPES = ("as-is", "text", "caseless", "integer", "uuid", "email", "phone")

_LONGEST_PATTERN = 200

# Said of a study between organisations that has no rule.
IDS_NEEDED = (
    "a study between organisations needs a rule for ids: nobody can compare them, and a person who "
    "is 007 at one party and 7 at another counts as two people, for whom the stated epsilon does "
    "not hold. Agree how ids are written and add to the study\n[ids]\n"
    'type = "integer"\n'
    'or "text", "caseless", "uuid", "email", "phone", or "as-is" if all parties write every id '
    "alike to the letter "
    "(`study new` has --id-type; in Python ids=IdRules(type='integer'))"
)


@dataclass(frozen=True, kw_only=True)
class IdKey:
    """One of several keys by which users may be known; see `IdRules` for its other fields.

    Attributes:
        name: What parties call it in `id_columns`.
    """

    name: str
    type: str = "as-is"
    pattern: str | None = None
    country: str | None = None
    trunk: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > 200:
            raise StudyError("the name of a key of ids.keys must be text of 1 to 200 characters")
        _check_form(self)


@dataclass(frozen=True, kw_only=True)
class IdRules:
    r"""What ids look like, the same at all parties.

    Attributes:
        type: "as-is": text in Unicode normal form C, whole numbers in decimal, nothing else
            changed. "text": the same without spaces at the ends, and invisible characters are
            refused. "caseless": the same in normal form KC, without case. "integer": whole
            numbers; 7, "007" and 7.0 are one user. "uuid": hyphens, braces and case do not count.
            "email": case does not count. "phone": in the form of E.164.
        pattern: A regular expression (RE2) that every id must fit as a whole, in its canonical
            form, such as `[A-Z]{2}[0-9]{6}`. Each party checks its own ids.
        country: For "phone", the calling code of numbers without one, such as "+49".
        trunk: For "phone", what such numbers begin with inside the country; None is "0".
        keys: Several keys in order of preference instead of one `type`; users are matched by the
            first that all parties have (`PartySpec.id_columns`).
    """

    type: str = "as-is"
    pattern: str | None = None
    country: str | None = None
    trunk: str | None = None
    keys: tuple[IdKey, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        if not self.keys:
            _check_form(self)
            return
        if (self.type, self.pattern, self.country, self.trunk) != ("as-is", None, None, None):
            raise StudyError(
                "ids with keys must have type, pattern, country and trunk with each key, not "
                "beside them"
            )
        names = [key.name for key in self.keys]
        if len(set(names)) != len(names):
            raise StudyError("ids.keys must have different names")

    @property
    def whole_pattern(self) -> str | None:
        """The pattern for a whole id, None if any id will do."""
        return None if self.pattern is None else rf"\A(?:{self.pattern})\z"

    def of_key(self, key: IdKey) -> "IdRules":
        """Return the rules for the ids of one of the keys."""
        return IdRules(
            type=key.type,
            pattern=key.pattern,
            country=key.country,
            trunk=key.trunk,
        )


def _check_form(rules: "IdRules | IdKey") -> None:
    _validate.one_of(ID_TYPES, error=StudyError, **{"ids.type": rules.type})
    if rules.pattern is not None:
        _check_pattern(rules.pattern)
    for name in ("country", "trunk"):
        if getattr(rules, name) is not None and rules.type != "phone":
            raise StudyError(f"ids.{name} needs ids.type = 'phone'")
    if rules.country is not None and not _fits(r"\+[1-9][0-9]{0,2}", rules.country):
        raise StudyError(
            "ids.country must be a calling code such as '+49', which numbers without one get"
        )
    if rules.trunk is not None and (rules.country is None or not _fits("[0-9]{0,2}", rules.trunk)):
        raise StudyError(
            "ids.trunk must be up to two digits that numbers begin with inside ids.country, '' for "
            "none"
        )


def _fits(pattern: str, text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(pattern, text, re.ASCII) is not None


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


AS_IS = IdRules()
