"""Who sends which kind of message to whom, and how long it may be: all that a relay goes by.

Kinds are known by their tags here. The messages themselves are in `messages.py`: they hold arrays,
and a relay, which can read none of them, need not load what makes arrays.
"""

from collections.abc import Iterable

# Messages that grow with users or cells, and the longest of them that a receiver looks at (as a
# payload; `wire.sealed.OVERHEAD_BYTES` come on top).
LARGE = ("PartyRelease", "PublishedResult")
MAX_LARGE_BYTES = 2**30
MAX_SMALL_BYTES = 2**16

# Everything else is refused by a relay.
TO_SERVER = ("Hello", "Ready", "StageRelease", "PartyRelease")
FROM_SERVER = ("Hello", "RunPlan", "PublishedResult")
BETWEEN_PARTIES = ("Hello", "KeyContribution", "Confirmation", "PlanConfirmation", "StageRelease")
TO_ITSELF = ("PublishedResult",)  # the server, which finds its result there after a loss

# Messages of which a run has one for each stage, and the most stages that any run has.
STAGED = ("StageRelease", "PlanConfirmation")
MAX_STAGES = 9


def staged_kind(tag: str, stage: int) -> str:
    """Return what a slot calls a message of a stage."""
    return f"{tag}_{stage}"


def kinds_with(tags: Iterable[str]) -> tuple[str, ...]:
    """Return everything that slots can call messages with some tags."""
    found: list[str] = []
    for tag in tags:
        numbers = range(1, MAX_STAGES + 1)
        found += [staged_kind(tag, n) for n in numbers] if tag in STAGED else [tag]
    return tuple(found)


def may_send(kind: str, *, from_server: bool, to_server: bool, to_itself: bool) -> bool:
    """Tell whether the protocol has a message of a kind, as paths call it, on this way."""
    if to_itself:
        tags: tuple[str, ...] = TO_ITSELF if from_server else ()
    elif from_server:
        tags = FROM_SERVER
    else:
        tags = TO_SERVER if to_server else BETWEEN_PARTIES
    return kind in {one.lower() for one in kinds_with(tags)}


def is_large(kind: str) -> bool:
    """Tell whether messages of a kind, as paths call it, grow with users or cells."""
    return kind in {one.lower() for one in kinds_with(LARGE)}
