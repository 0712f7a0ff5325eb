"""What `splitmeans result show` says beside the table: why each segment, what each party adds."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from splitmeans.insights.own_labels import own_labels
from splitmeans.insights.partners import partners
from splitmeans.insights.why import reasons
from splitmeans.result.result import Result, Segmentation


def insight_lines(result: Result, item: Segmentation) -> Iterator[str]:
    """Yield lines of text; none if nobody was counted."""
    if item.k == 0:
        return
    yield "why each segment:"
    for name, telling in zip(
        named_letters(result, item), reasons(result.synopsis, item), strict=True
    ):
        yield f"  {name}: {'; '.join(str(one) for one in telling)}"
    yield "what each party adds:"
    for line in str(partners(result.synopsis, item)).splitlines():
        yield f"  {line}"
    labels = own_labels(result.synopsis, item)
    if labels:
        yield "how well each party can label its users (an estimate):"
        for one in labels:
            yield f"  {one}"


def insights_mapping(result: Result, item: Segmentation) -> dict[str, Any]:
    """Return the same as plain values."""
    if item.k == 0:
        return {"why": {}, "partners": None, "own_labels": []}
    telling = reasons(result.synopsis, item)
    return {
        "why": {
            letter: [dataclasses.asdict(one) for one in own]
            for letter, own in zip(item.letters, telling, strict=True)
        },
        "partners": dataclasses.asdict(partners(result.synopsis, item)),
        "own_labels": [dataclasses.asdict(one) for one in own_labels(result.synopsis, item)],
    }


def named_letters(result: Result, item: Segmentation) -> tuple[str, ...]:
    """Return the letters, with the names that people gave."""
    return tuple(
        letter if name == letter else f"{letter} ({name})"
        for letter, name in zip(item.letters, result.called(item), strict=True)
    )
