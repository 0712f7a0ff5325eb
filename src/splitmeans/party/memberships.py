"""What a party does for each membership method, by the name that studies call it: it sees rows.

The public side of a method is its record in `membership.methods`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from splitmeans.membership.decoy import encode as decoy
from splitmeans.membership.sketch import encode as sketch
from splitmeans.wire.messages import MembershipMessage


@dataclass(frozen=True, kw_only=True)
class PartySide:
    """A method at a party.

    Attributes:
        release: From a law, the plan, the party's position, its labelled users, the run key and
            the party's own noise to its message.
        shared_pieces: What all parties derive from the run key, by law, plan and key; they compare
            it before anything is released.
    """

    release: Callable[..., MembershipMessage]
    shared_pieces: Callable[[Any, Any, bytes], Iterable[bytes]]


PARTY_SIDES: Mapping[str, PartySide] = {
    "decoy": PartySide(release=decoy.release, shared_pieces=decoy.shared_pieces),
    "sketch": PartySide(release=sketch.release, shared_pieces=sketch.shared_pieces),
}
