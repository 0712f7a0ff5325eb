"""A party's state as bytes and back, for the journal; the table is opened anew.

Nothing that depends on rows is in here but the released centres. The run key is, until the party
has released: without it a restarted party could not go on, and with it gone nobody can.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from splitmeans.engine.walk import Table
from splitmeans.errors import DataError, JournalError
from splitmeans.party.confirm import user_set_digest
from splitmeans.party.node import (
    Counting,
    Finished,
    Joined,
    Keyed,
    PartyState,
    Planned,
    Prepared,
    Released,
)
from splitmeans.wire.envelope import Session
from splitmeans.wire.saved_result import dump_result, is_count, load_result


def dump_state(state: PartyState) -> bytes:
    """Return everything but session and table."""
    if isinstance(state, Finished):
        return dump_result(state.noisy_count, state.result)
    fields: dict[str, Any] = {}
    match state:
        case Joined(contributions=contributions):
            fields["contributions"] = {name: own.hex() for name, own in contributions.items()}
        case Released(noisy_count=noisy_count, centres=centres):
            fields |= {"noisy_count": noisy_count, "centres": centres.tolist()}
        case Keyed() | Counting() | Planned() | Prepared():
            fields |= {"run_key": state.run_key.hex(), "users": state.users.hex()}
    if isinstance(state, Keyed | Planned):
        fields["confirmed"] = sorted(state.confirmed)
    if isinstance(state, Planned | Prepared):
        fields["noisy_count"] = state.noisy_count
    return json.dumps(fields, sort_keys=True).encode()


def load_state(
    stage: str, data: bytes, *, session: Session, open_table: Callable[[], Table]
) -> PartyState:
    """Return the state that `dump_state` stored.

    Args:
        stage: Name of the state's type.
        data: What was stored.
        session: The run.
        open_table: Opens the party's table; called only if the state needs it.

    Raises:
        DataError: If the table's users are no longer those that the parties compared.
        JournalError: If the data is not a saved state.
    """
    try:
        return _load(stage, data, session=session, open_table=open_table)
    except DataError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as problem:
        raise JournalError(f"the saved state of run {session.run!r} cannot be read") from problem


def _load(
    stage: str, data: bytes, *, session: Session, open_table: Callable[[], Table]
) -> PartyState:
    if stage == Finished.__name__:
        noisy_count, result = load_result(data)
        return Finished(session=session, noisy_count=noisy_count, result=result)
    fields = json.loads(data)
    if stage == Released.__name__:
        centres = np.array(fields["centres"], dtype=np.int64)
        if centres.ndim != 2:
            raise ValueError("centres must be a table")
        return Released(session=session, noisy_count=_count(fields), centres=centres)
    if stage == Joined.__name__:
        contributions = {name: bytes.fromhex(own) for name, own in fields["contributions"].items()}
        return Joined(session=session, table=open_table(), contributions=contributions)
    kinds = {kind.__name__: kind for kind in (Keyed, Counting, Planned, Prepared)}
    if stage not in kinds:
        raise JournalError(f"the saved state {stage!r} of run {session.run!r} is unknown")
    values: dict[str, Any] = {
        "run_key": bytes.fromhex(fields["run_key"]),
        "users": bytes.fromhex(fields["users"]),
    }
    if stage in (Keyed.__name__, Planned.__name__):
        values["confirmed"] = frozenset(fields["confirmed"]) & set(session.others)
    if stage in (Planned.__name__, Prepared.__name__):
        values["noisy_count"] = _count(fields)
    table = open_table()
    # The parties agreed on these users; with others, records would no longer fit together (R6).
    if user_set_digest(session.study, table, run_key=values["run_key"]) != values["users"]:
        raise DataError(
            f"the users of party {session.party!r} changed since run {session.run!r} began; "
            "restore the table, or begin another run"
        )
    return kinds[stage](session=session, table=table, **values)


def _count(fields: dict[str, Any]) -> int | None:
    value = fields["noisy_count"]
    if not is_count(value):
        raise ValueError("noisy_count must be a whole number")
    return value  # type: ignore[no-any-return]
