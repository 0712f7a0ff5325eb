"""Names of data sources: the one rule for them, and how a file's name becomes one."""

import unicodedata

from splitmeans.errors import ParameterError


def check_source(name: str) -> None:
    """Check the name of a data source: the one rule wherever a name is given, kept or charged."""
    if not isinstance(name, str) or not name.strip():
        raise ParameterError("source must be a name that is not empty; give one with --source")
    wrong = next((place for place, sign in enumerate(name) if not sign.isprintable()), None)
    if wrong is not None:
        raise ParameterError(
            "source must be printable text, so that people can read the ledger and set limits; "
            f"character {wrong + 1} of {printable(name)!r} is not (U+{ord(name[wrong]):04X}): give "
            "another name with --source"
        )


def printable(name: str) -> str:
    r"""Return a name that `check_source` takes, for one that comes from a file's name.

    Unusual spaces (a no-break space, a tab) become a plain space, because that is what people see
    and type; every other character that cannot be printed becomes its code, such as `\x07`.
    Accents are composed (NFC): systems differ in how they store them. Names that look alike become
    one source, whose costs add up.
    """
    composed = unicodedata.normalize("NFC", name)
    return "".join(
        sign if sign.isprintable() else " " if sign.isspace() else _code(sign) for sign in composed
    )


def _code(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
