"""A party's state as bytes and back, for the journal; the table is opened anew.

Nothing that depends on rows is in here but the released centres and, until the release, a digest
of the users. The secrets are as long as they are needed: the party's contribution until all
parties' contributions are there, the run key until the party has released. Without them a restarted
party could not go on, and with them gone nobody can.
"""

import json
from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from splitmeans.errors import DataError, JournalError, ProtocolError
from splitmeans.party.own_users import same_users
from splitmeans.party.session import Session
from splitmeans.party.states import (
    Agreeing,
    Finished,
    Joined,
    Keyed,
    PartyState,
    Prepared,
    Released,
    Surveying,
)
from splitmeans.table.walk.interface import Table
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.messages import Confirmation
from splitmeans.wire.saved_result import dump_result, load_result, read_values
from splitmeans.wire.tags import tag_of


def dump_state(state: PartyState) -> bytes:
    """Return everything but session and table."""
    if isinstance(state, Finished):
        return dump_result(state.released, state.result)
    fields: dict[str, Any] = {}
    match state:
        case Joined(contributions=contributions):
            fields["users"] = state.users.hex()
            fields["contributions"] = {name: own.hex() for name, own in contributions.items()}
        case Released(centres=centres):
            fields["centres"] = centres.tolist()
        case Keyed() | Surveying() | Agreeing() | Prepared():
            fields |= {"run_key": state.run_key.hex(), "users": state.users.hex()}
        case _:
            assert_never(state)
    if isinstance(state, Keyed):
        fields["awaited"] = {name: encode(word).hex() for name, word in state.awaited.items()}
    if isinstance(state, Surveying):
        fields["values"] = dict(state.values)
    if isinstance(state, Agreeing):
        fields["confirmed"] = sorted(state.confirmed)
    if isinstance(state, Surveying | Agreeing | Prepared | Released):
        fields["released"] = state.released
    return json.dumps(fields, sort_keys=True).encode()


def load_state(
    stage: str, data: bytes, *, session: Session, open_table: Callable[[], Table]
) -> PartyState:
    """Return the state that `dump_state` stored.

    `open_table` is called only if the state needs it.

    Raises:
        DataError: If the table's users are no longer those that it had when the party joined.
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
        ProtocolError,
    ) as problem:
        raise JournalError(f"the saved state of run {session.run!r} cannot be read") from problem


def _load(
    stage: str, data: bytes, *, session: Session, open_table: Callable[[], Table]
) -> PartyState:
    if stage == Finished.TAG:
        released, result = load_result(data)
        return Finished(session=session, released=released, result=result)
    fields = json.loads(data)
    if stage == Released.TAG:
        centres = np.array(fields["centres"], dtype=np.int64)
        if centres.ndim != 2:
            raise ValueError("centres must be a table")
        released = read_values(fields["released"])
        return Released(session=session, released=released, centres=centres)
    kinds = {tag_of(kind): kind for kind in (Joined, Keyed, Surveying, Agreeing, Prepared)}
    if stage not in kinds:
        raise JournalError(f"the saved state {stage!r} of run {session.run!r} is unknown")
    values: dict[str, Any] = {"users": bytes.fromhex(fields["users"])}
    if stage == Joined.TAG:
        given = fields["contributions"].items()
        values["contributions"] = {who: bytes.fromhex(own) for who, own in given}
    else:
        values["run_key"] = bytes.fromhex(fields["run_key"])
    if stage == Keyed.TAG:
        values["awaited"] = {
            name: _confirmation(fields["awaited"][name])
            for name in session.others
            if name in fields["awaited"]
        }
    if stage == Surveying.TAG:
        own = {str(name): [numbers] for name, numbers in fields["values"].items()}
        values["values"] = {name: read_values([held])[0][0] for name, held in own.items()}
    if stage == Agreeing.TAG:
        values["confirmed"] = frozenset(fields["confirmed"]) & set(session.others)
    if stage in (Surveying.TAG, Agreeing.TAG, Prepared.TAG):
        values["released"] = read_values(fields["released"])
    table = open_table()
    # The data of a run are frozen (R11).
    if not same_users(values["users"], table):
        raise DataError(
            f"the users of party {session.party!r} changed since run {session.run!r} began; "
            "restore the table, or begin another run"
        )
    return kinds[stage](session=session, table=table, **values)


def _confirmation(text: str) -> Confirmation:
    word = decode(bytes.fromhex(text))
    if not isinstance(word, Confirmation):
        raise ValueError("words that are waited for must be a confirmation")
    return word
