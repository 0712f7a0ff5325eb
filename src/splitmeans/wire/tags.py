"""Names by which formats know a class, and plain values as one text that can be hashed.

A message, a saved state, a privacy event and the parameters of a release each have a `TAG`, written
at the class itself. Formats use the tag and never the name, the `repr` or the module of a class, so
these can change without changing a byte that another version, or a file from before, has. Names of
fields are part of a format; `tests/vectors/formats.json` has a vector of each.
"""

import dataclasses
import hashlib
import numbers
from typing import Any

# Metadata of a field whose value is long: its digest stands for it.
AS_DIGEST = {"as": "digest"}


def tag_of(kind: type) -> str:
    """Return the name by which formats know a class.

    A subclass does not inherit it: with other fields it would be something else.

    Raises:
        TypeError: The class has none.
    """
    tag = vars(kind).get("TAG")
    if not isinstance(tag, str):
        raise TypeError(f"{kind.__name__} has no TAG, so no format has a place for it")
    return tag


def tagged_text(value: Any) -> str:
    """Return plain values and tagged dataclasses as text, the same on every machine.

    Floats are in the shortest form that reads back exactly. Fields that take no part in comparing
    two values take none in their text.

    Raises:
        TypeError: There is something else among them.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (
            f"{item.name}={_field_text(item, getattr(value, item.name))}"
            for item in dataclasses.fields(value)
            if item.compare
        )
        return f"{tag_of(type(value))}({', '.join(fields)})"
    if isinstance(value, tuple):
        items = [tagged_text(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return ascii(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise TypeError(f"a {type(value).__name__} has no form that can be hashed")


def _field_text(item: "dataclasses.Field[Any]", value: Any) -> str:
    text = tagged_text(value)
    if item.metadata.get("as") != AS_DIGEST["as"]:
        return text
    return f"<{len(value)} values, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
