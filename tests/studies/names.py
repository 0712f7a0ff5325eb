"""Names that a study allows: ordinary ones, long ones, and those that mean something elsewhere."""

import random
import unicodedata

# What means something to CSV, TOML, JSON, HTML, Markdown, shells, paths, rich and format strings.
_ODD = (
    "a,b",
    'say "so"',
    "it's",
    "[bold]x[/bold]",
    ":warning:",
    "{0}{x}",
    "%s %(x)d",
    "a~b",
    "a :b",
    "x (scaled) y",
    "weight",
    "segment",
    "segment A",
    "probability",
    "id",
    "../up",
    "a/b\\c",
    "$HOME `ls`",
    "<script>alert(1)</script>",
    "&amp; &",
    "# heading",
    "| cell |",
    "-0",
    "1e5",
    "nan",
    "null",
    "True",
    "Größe",
    "größe",
    "年齢",
    "العمر",
    "🙂 mood",
    "e\u0301tage",
    "\u00e9tage",
    "ﬁt",
    "İd",
    "__proto__",
    "constructor",
    "\u0338x",
)
# Categories may be any text at all.
_ODD_CATEGORIES = ("", " ", " a", "a ", "two\nlines", "tab\there", "\x00", "\u200b", "\u00a0", "\r")
_LETTERS = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJ0123456789"


def name(chance: random.Random) -> str:
    """Return a name that people would write, or one that they could."""
    kind = chance.random()
    if kind < 0.45:
        return chance.choice(("income", "age", "visits", "region", "spent_2024", "score"))
    if kind < 0.6:
        return f"monthly_value_{chance.randrange(100):02}"
    if kind < 0.85:
        return chance.choice(_ODD)
    length = chance.choice((1, 2, 60, 199, 200))
    return "".join(chance.choice(_LETTERS) for _ in range(length)).strip() or "x"


def names(chance: random.Random, count: int, *, taken: set[str]) -> list[str]:
    """Return different names, none of them taken."""
    found: list[str] = []
    used = set(taken)
    while len(found) < count:
        one = name(chance)
        if one in used:
            one = f"{one[:190]} {len(found)}"
        if one not in used:
            found.append(one)
            used.add(one)
    return found


def categories(chance: random.Random, count: int) -> list[str]:
    """Return that many different categories."""
    if chance.random() < 0.5:
        return [f"c{number}" for number in range(count)]
    odd = [chance.choice((*_ODD, *_ODD_CATEGORIES)) for _ in range(count)]
    # Two forms of one text are one category, which a study refuses: seldom enough to go on.
    different = list(dict.fromkeys(unicodedata.normalize("NFC", one) for one in odd))
    listed = [*different, *(f"other {number}" for number in range(count - len(different)))]
    return [*listed, "e\u0301tage", "\u00e9tage"] if chance.random() < 0.01 else listed
