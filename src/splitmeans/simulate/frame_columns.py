"""From data frames to the columns of a study: what the caller said of each, and what is missing.

Bounds, categories, rules for missing values and weights are public facts, given by column name.
Nothing is taken from the values: what was not said is an error that lists the columns and shows
the call to write.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.simulate.blocks import Blocks
from splitmeans.study import Column
from splitmeans.study.column_bounds import Pair, read_bounds, refuse_unknown
from splitmeans.study.parties import OPEN, SKIP
from splitmeans.table.frames import text_names

# Rules that only one kind of column can have, so that one text may be given for all columns.
_NUMBER_RULES, _CATEGORY_RULES = ("midpoint",), ("level", "spread")
_RULES = ("error", SKIP, *_NUMBER_RULES, *_CATEGORY_RULES)


def read_columns(
    blocks: Blocks,
    *,
    bounds: Any,
    categories: Any = None,
    missing: Any = None,
    weights: Any = None,
    id_columns: Sequence[str] | None = None,
) -> list[tuple[Column, ...]]:
    """Return each party's columns.

    Bounds are given in every way of `read_bounds`; the others by column name, in a dict or a list
    with a dict per party. `missing` may also be one rule for all columns that can have it, or a few
    such rules. Categories "open" stand for a list that the run learns, or for all columns of text.

    Raises:
        ParameterError: If a column has neither bounds nor categories, or a name is no column.
    """
    own_ids: Sequence[str | None] = id_columns or [None] * len(blocks)
    names = [
        [name for name in own if name != id_column]
        for own, id_column in zip(blocks.names, own_ids, strict=True)
    ]
    if isinstance(categories, str) and categories == OPEN:
        categories = [
            dict.fromkeys(sorted(text_names(block) & set(own)), OPEN)
            for block, own in zip(blocks.tables, names, strict=True)
        ]
    elif isinstance(categories, str):
        raise ParameterError(
            f"categories must be a dict by column name, a list with one such dict per party, or "
            f"{OPEN!r}, the only word, for all columns of text; got {_validate.shown(categories)}"
        )
    listed = _by_party(categories, names, what="categories")
    _refuse_left_out(blocks, names, listed, bounds)
    numbers = [
        [name for name in own if name not in lists]
        for own, lists in zip(names, listed, strict=True)
    ]
    given = read_bounds(bounds, numbers) if any(numbers) else [[] for _ in numbers]
    pairs = [dict(zip(own, few, strict=True)) for own, few in zip(numbers, given, strict=True)]
    rules = _rules(missing, names)
    counts = _by_party(weights, names, what="weights")
    return [
        tuple(
            _column(
                name,
                pair=own_pairs.get(name),
                categories=lists.get(name),
                missing=_rule(rule, name, categorical=name in lists),
                weight=weight.get(name, 1.0),
            )
            for name in own
        )
        for own, own_pairs, lists, rule, weight in zip(
            names, pairs, listed, rules, counts, strict=True
        )
    ]


def _column(
    name: str,
    *,
    pair: Pair | None,
    categories: Any,
    missing: Any,
    weight: Any,
) -> Column:
    if isinstance(pair, str):
        return Column(name=name, bounds=pair, missing=missing, weight=weight)
    if pair is not None:
        return Column(name=name, low=pair[0], high=pair[1], missing=missing, weight=weight)
    if isinstance(categories, str) and categories == OPEN:
        return Column(name=name, others=OPEN, missing=missing, weight=weight)
    if isinstance(categories, str) or not isinstance(categories, Sequence):
        raise ParameterError(
            f"categories of column {name!r} must be a list of all its values, or {OPEN!r}, got "
            f"{_validate.shown(categories)}"
        )
    # Whole numbers are compared as text, as in a study.
    return Column(
        name=name,
        categories=tuple(str(value) for value in categories),
        missing=missing,
        weight=weight,
    )


def _by_party(given: Any, names: Sequence[Sequence[str]], *, what: str) -> list[Mapping[str, Any]]:
    """Return a dict by column name for each party."""
    everything = [name for own in names for name in own]
    if given is None:
        return [{} for _ in names]
    if isinstance(given, Mapping):
        refuse_unknown(given, everything, where=what)
        return [{name: given[name] for name in own if name in given} for own in names]
    per_party = isinstance(given, list | tuple) and len(given) == len(names)
    if not per_party or not all(isinstance(one, Mapping) for one in given):
        raise ParameterError(
            f"{what} must be a dict by column name, or a list with one such dict per party, got "
            f"{_validate.shown(given)}"
        )
    for at, (one, own) in enumerate(zip(given, names, strict=True)):
        refuse_unknown(one, own, where=f"{what} of party {at + 1}")
    return [dict(one) for one in given]


_Rules = Mapping[str, Any] | tuple[Any, ...]


def _rules(given: Any, names: Sequence[Sequence[str]]) -> list[_Rules]:
    """Return for each party its rules: by column name, or some for all columns."""
    few = given if isinstance(given, list | tuple) else (given,)
    if given is not None and not any(isinstance(one, Mapping) for one in few):
        for rule in few:
            if isinstance(rule, str) and rule not in _RULES:
                raise ParameterError(
                    "missing must be 'error' or 'skip' for all columns, 'midpoint' or a number for "
                    "those of numbers, 'level' or 'spread' for those of categories, a few of these "
                    "in a tuple, or a dict of them by column name; got "
                    f"{_validate.shown(rule)}"
                )
        return [tuple(few) for _ in names]
    return list(_by_party(given, names, what="missing"))


def _rule(rules: _Rules, name: str, *, categorical: bool) -> Any:
    """Return what a missing value of this column becomes; "error" where nobody said."""
    if isinstance(rules, Mapping):
        return rules.get(name, "error")
    other_kind = _NUMBER_RULES if categorical else _CATEGORY_RULES
    fitting = [
        rule
        for rule in rules
        if rule not in other_kind and (isinstance(rule, str) or not categorical)
    ]
    return fitting[0] if fitting else "error"


def _refuse_left_out(
    blocks: Blocks, names: Sequence[Sequence[str]], listed: Sequence[Mapping[str, Any]], bounds: Any
) -> None:
    """Refuse columns that have neither bounds nor categories, all of them at once."""
    texts = [text_names(block) & set(own) for block, own in zip(blocks.tables, names, strict=True)]
    if not any(texts) and not any(listed):
        return  # numbers alone, of which `read_bounds` says what is wrong
    left_out = []
    for at, (own, lists, kinds) in enumerate(zip(names, listed, texts, strict=True)):
        given = _with_bounds(bounds, at)
        for name in lists:
            if given is not None and name in given:
                raise ParameterError(
                    f"column {name!r} of party {at + 1} must have bounds or categories, not both"
                )
        # One pair for all columns is for those of numbers.
        known = set(own) - kinds if given is None else set(given)
        left_out.append([name for name in own if name not in lists and name not in known])
    if any(left_out):
        raise ParameterError(_to_write(left_out, texts))


def _with_bounds(bounds: Any, at: int) -> Mapping[Any, Any] | None:
    """Return the bounds of a party by name; None if they are given for all its columns."""
    if isinstance(bounds, list | tuple) and at < len(bounds):
        bounds = bounds[at]
    if bounds is None:
        return {}
    return bounds if isinstance(bounds, Mapping) else None


def _to_write(left_out: Sequence[Sequence[str]], texts: Sequence[set[str]]) -> str:
    listed = "; ".join(
        f"party {at + 1}: "
        + ", ".join(f"{name} ({'text' if name in kinds else 'numbers'})" for name in own)
        for at, (own, kinds) in enumerate(zip(left_out, texts, strict=True))
        if own
    )
    lines = [
        f"    {what}={{{', '.join(f'{name!r}: {value}' for name in dict.fromkeys(columns))}}},\n"
        for what, columns, value in (
            ("bounds", _of_kind(left_out, texts, text=False), "(low, high)"),
            ("categories", _of_kind(left_out, texts, text=True), "['...', '...']"),
        )
        if columns
    ]
    return (
        "every column must have bounds, if it holds numbers, or categories: public facts from "
        "general knowledge and not from the table. They are not given for "
        f"{listed}. Add to what you wrote\nVerticalKMeans(\n    ...,\n{''.join(lines)})\nwith "
        "numbers for low and high and all values of each category; drop columns that shall not "
        "count, and name a column of ids with fit(..., ids='NAME')"
    )


def _of_kind(
    left_out: Sequence[Sequence[str]], texts: Sequence[set[str]], *, text: bool
) -> list[str]:
    return [
        name
        for own, kinds in zip(left_out, texts, strict=True)
        for name in own
        if (name in kinds) is text
    ]
