"""Make a failing case smaller, so that a reader sees what matters."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.studies.generate import Case
from tests.studies.whole import AfterRelease, run_whole

_SECONDS = 20
_OPTIONAL = (
    "membership",
    "grid",
    "user_sets",
    "n_local_clusters",
    "sketch",
    "decoy",
    "ids",
)


@dataclass(frozen=True, kw_only=True)
class Smaller:
    """A case that fails like the one it was made from."""

    case: Case
    failure: AfterRelease


def shrink(case: Case, failure: AfterRelease, *, with_report: bool) -> Smaller:
    """Return a smaller case that fails at the same stage with the same kind of error."""
    end = time.monotonic() + _SECONDS
    best = Smaller(case=case, failure=failure)
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best.case):
            if time.monotonic() > end:
                return best
            found = _failure(candidate, with_report=with_report)
            if found is not None and _alike(found, failure):
                best, progress = Smaller(case=candidate, failure=found), True
                break
    return best


def _failure(case: Case, *, with_report: bool) -> AfterRelease | None:
    try:
        run_whole(case, with_report=with_report)
    except AfterRelease as failure:
        return failure
    except Exception:
        return None
    return None


def _alike(one: AfterRelease, other: AfterRelease) -> bool:
    return one.stage == other.stage and type(one.problem) is type(other.problem)


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with less in them, the largest steps first."""
    parties = case.settings["parties"]
    if len(parties) > 2:
        for place in range(len(parties)):
            yield case.with_settings(parties=[*parties[:place], *parties[place + 1 :]])
    for key in _OPTIONAL:
        if key in case.settings:
            rest = {name: value for name, value in case.settings.items() if name != key}
            yield replace(case, settings=rest)
    for place, party in enumerate(parties):
        for columns in _fewer(party["columns"]):
            changed: dict[str, Any] = {**party, "columns": columns}
            yield case.with_settings(parties=[*parties[:place], changed, *parties[place + 1 :]])
    if case.users > 1 and case.settings.get("user_sets") == "partial":
        yield replace(
            case,
            tables={
                name: {key: values[: (len(values) + 1) // 2] for key, values in table.items()}
                for name, table in case.tables.items()
            },
        )
    for number in (2, 3):
        if case.settings["n_clusters"] > number:
            yield case.with_settings(n_clusters=number)


def _fewer(columns: list[Any]) -> Iterator[list[Any]]:
    half = len(columns) // 2
    if half:
        yield columns[:half]
        yield columns[half:]
    if 1 < len(columns) < 8:
        for place in range(len(columns)):
            yield [*columns[:place], *columns[place + 1 :]]
