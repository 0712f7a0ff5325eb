"""What the relay tells of what happened: each event to its log, and counted for `/metrics`."""

import logging
from collections.abc import Callable
from typing import Any

from splitmeans.mailbox.open import MessagePath
from splitmeans.relay.access import Refused
from splitmeans.relay.log import shown_address, tell
from splitmeans.relay.metrics import Metrics
from splitmeans.relay.store import RelayStore

# An answer that every run gets many times, while it waits for others.
_NOT_THERE = "absent"


class EventBook:
    """Tells events of requests.

    `name_of` gives the name of a participant, by study and short name.
    """

    def __init__(self, name_of: Callable[[str, str], str], metrics: Metrics) -> None:
        self._name_of = name_of
        self._metrics = metrics

    def refused(self, refused: Refused, client: Any) -> None:
        """A request was refused; that a message is not there yet is no refusal."""
        if refused.code == _NOT_THERE:
            self._metrics.count_participant("not_there")
            return
        address = shown_address(client)
        if refused.caller is None:
            self._metrics.count_stranger(refused.code)
            tell("refused", "refused: {code}, from {address}", code=refused.code, address=address)
            return
        self._metrics.count_participant("refused")
        study, participant = refused.caller
        tell(
            "refused",
            "refused: {code}, {participant} in study {study:.12}, from {address}",
            code=refused.code,
            participant=self._name_of(study, participant),
            study=study,
            address=address,
        )

    def stored(self, path: MessagePath, client: Any) -> None:
        """A message is there that was not there before."""
        self._metrics.count_participant("stored")
        tell(
            "stored",
            "stored {kind} of {participant} for {receiver}, run {run} of study {study:.12}, from "
            "{address}",
            kind=path.kind,
            participant=self._name_of(path.study, path.sender),
            receiver=self._name_of(path.study, path.receiver),
            run=path.run,
            study=path.study,
            address=shown_address(client),
        )

    def stored_before(self) -> None:
        """A message was sent again that is there."""
        self._metrics.count_participant("stored_before")

    def handed_out(self) -> None:
        """A message was fetched."""
        self._metrics.count_participant("handed_out")

    def cut_off(self, caller: tuple[str, str], client: Any) -> None:
        """A download took too long."""
        study, participant = caller
        self._metrics.count_participant("cut_off")
        tell(
            "cut_off",
            "a download of {participant} in study {study:.12} was too slow and was cut off, to "
            "{address}",
            level=logging.WARNING,
            participant=self._name_of(study, participant),
            study=study,
            address=shown_address(client),
        )

    def room(self, store: RelayStore) -> None:
        """The disk has less than the limit; an alarm only if it is too little for a message."""
        limits = store.limits
        if store.study_bytes < limits.study_bytes:
            tell(
                "room",
                "a study may store {there_is} bytes, not {limit}: the disk of {folder} has no "
                "more; see --max-study",
                level=logging.WARNING if store.study_bytes < limits.message_bytes else logging.INFO,
                there_is=store.study_bytes,
                limit=limits.study_bytes,
                folder=str(store.folder),
            )

    def disk_full(self, folder: str) -> None:
        """Not by messages: the store promises no more than there was when the relay was started."""
        tell("disk_full", "the disk of {folder} is full", level=logging.ERROR, folder=folder)
