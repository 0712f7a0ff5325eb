"""A study in words, for `splitmeans study show`."""

from splitmeans.study import Column, Study


def describe_runs(study: Study) -> str:
    """Return how often the study is run, where that is more than once."""
    if study.renewal is None:
        return ""
    often = "" if study.renewal.every is None else f", one about every {study.renewal.every}"
    return f" for all of {study.renewal.runs} runs together{often}"


def describe_ids(study: Study) -> str:
    """Return the rules for ids as people read them."""
    rules, key = study.id_rules, study.matching_key
    parts = [rules.type]
    if key is not None:
        parts.insert(0, f"matched by {key.name}, the first key that all parties have")
    if rules.country is not None:
        parts.append(f"numbers without a calling code are of {rules.country}")
    if rules.pattern is not None:
        parts.append(f"all like {rules.pattern}")
    return ", ".join(parts)


def describe_column(column: Column) -> str:
    """Return a column as people read it: name, bounds or categories, and what is unusual."""
    parts = [column.name]
    if column.is_categorical:
        learned = ("others learned by the run",) if column.is_open else ()
        parts.append(" | ".join((*column.categories, *learned)))
    elif column.is_private:
        parts.append("bounds learned by the run")
        limits = {"from": column.low, "to": column.high}
        parts += [f"{word} {end:g}" for word, end in limits.items() if end is not None]
    else:
        parts.append(f"{column.low:g} to {column.high:g}")
    if column.weight != 1:
        parts.append(f"weight {column.weight:g}")
    if column.missing != "error":
        parts.append(f"missing: {column.missing}")
    return ", ".join(parts)
