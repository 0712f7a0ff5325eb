"""Ids that people write in many ways: text without case, e-mail addresses, phone numbers.

Each takes trimmed text to one canonical form, element by element and by fixed rules, or refuses it;
`docs/reference/ids.md` has the rules and their limits. Nothing is looked up and nothing is guessed:
a rule that would take two people for one is worse than one that takes a person for two.
"""

import unicodedata

import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.study.id_rules import IdRules
from splitmeans.table.columns import refuse_rows

# One @, nothing before it that an address without quotes cannot have, a domain of two or more names
# in ASCII (others are written in their xn-- form).
_EMAIL = (
    r"\A[^\s\p{C}\p{Z}@\"(),:;<>\[\]\\]{1,64}@"
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\z"
)
# What people put between digits of a phone number.
_BETWEEN = r"[\s\p{Zs}()./\x{2010}-\x{2015}-]"
# E.164: a calling code and a number, 15 digits at most; shorter ones than 7 are no subscriber's.
_E164 = r"\A\+[1-9][0-9]{6,14}\z"


def caseless(text: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return text in Unicode normal form KC without case (full case folding)."""
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return pc.utf8_lower(text)
    return pa.array([_folded(one) for one in text.to_pylist()], pa.large_string())


def email(text: pa.LargeStringArray, *, first_row: int) -> pa.LargeStringArray:
    """Return e-mail addresses without case; refuse what is none."""
    found = caseless(text)
    refuse_rows(
        pc.invert(pc.match_substring_regex(found, pattern=_EMAIL)),
        'ids must be e-mail addresses (ids.type = "email" of the study): one @, no name or '
        "brackets around it, the domain in ASCII",
        first_row=first_row,
    )
    return found


def phone(text: pa.LargeStringArray, *, rules: IdRules, first_row: int) -> pa.LargeStringArray:
    """Return phone numbers in the form of E.164; refuse what cannot be one."""
    trunk = "0" if rules.trunk is None else rules.trunk
    found = text
    if trunk:
        found = pc.replace_substring_regex(
            found, pattern=_in_brackets(trunk, rules), replacement=r"\1"
        )
    found = pc.replace_substring_regex(found, pattern=_BETWEEN, replacement="")
    found = pc.replace_substring_regex(found, pattern=r"\A00", replacement="+")
    if rules.country is not None:
        inside = r"\A([0-9]+)\z"
        if trunk == "1":  # North America: ten digits, with or without the 1 before them
            inside = r"\A1?([2-9][0-9]{9})\z"
        elif trunk:
            # No number begins with 0 after its calling code, but some do with 8: +7 812 is a town.
            code = rf"(?:\{rules.country})?" if trunk.startswith("0") else ""
            inside = rf"\A{code}{trunk}([1-9][0-9]*)\z"
        national = rf"{rules.country}\1"
        found = pc.replace_substring_regex(found, pattern=inside, replacement=national)
    refuse_rows(
        pc.invert(pc.match_substring_regex(found, pattern=_E164)),
        'ids must be phone numbers (ids.type = "phone" of the study): digits after + or 00 and the '
        "calling code, or as they are dialled inside ids.country; 7 to 15 digits, no extension",
        first_row=first_row,
    )
    return found


def _in_brackets(trunk: str, rules: IdRules) -> str:
    """Return what a trunk digit in brackets looks like, as in +49 (0)30: for callers inside alone.

    A 0 is one after any calling code. Other digits are so in the study's country alone: elsewhere
    they may be an area, as in +33 (1).
    """
    digits = rf"(?:{_BETWEEN}*[0-9]){{1,3}}"
    if not trunk.startswith("0"):
        assert rules.country is not None, "the rules were not checked"
        digits = "".join(rf"{_BETWEEN}*{digit}" for digit in rules.country[1:])
    return rf"\A({_BETWEEN}*(?:\+|0{_BETWEEN}*0){digits}{_BETWEEN}*)\(\s*{trunk}\s*\)"


def _folded(text: str) -> str:
    # Folding can undo a normal form, so it is taken again (Unicode, section 3.13).
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
