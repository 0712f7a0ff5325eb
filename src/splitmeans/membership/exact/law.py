"""Public parameters of plain labels (paper, section 3.2): there are none, and no privacy."""

from dataclasses import dataclass
from typing import ClassVar

from splitmeans.privacy.events import NonPrivateEvent

# A label is one byte, and 255 stays free, so that every method has the same largest k'.
MAX_LOCAL_CLUSTERS = 255


@dataclass(frozen=True, kw_only=True)
class PlainLabels:
    """Every user's cluster, sent as it is.

    Guarantee: none. The server learns every user's cluster at every party.
    """

    TAG: ClassVar[str] = "PlainLabels"

    @property
    def event(self) -> NonPrivateEvent:
        """The privacy event of one party's message."""
        return NonPrivateEvent(reason="every user's cluster is sent as it is")
