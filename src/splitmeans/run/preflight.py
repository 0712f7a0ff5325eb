"""Everything that can fail after a charge and can be known before it, looked at before joining.

One place for `party check`, `party run` and `server run`: sizes of messages against what readers
and the mailbox take, room in the mailbox and on disk, the result folder, clocks. All that
is wrong is told at once. Whether the study itself can be run to its end is what a rehearsal shows
(`splitmeans.rehearsal`); the rows have checks of their own (`party.table`).

Decisions follow from public quantities: a table is taken to have up to half as many users again as
the study expects. Only a party whose table is beyond that, as it alone knows, is measured by it.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from splitmeans.errors import ParameterError
from splitmeans.mailbox.open import Mailbox, MailboxLimits
from splitmeans.plan.message_sizes import HEADROOM, MessageSizes, message_sizes, shown_bytes
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import largest_plan
from splitmeans.result.write import check_place
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER
from splitmeans.wire.ways import MAX_LARGE_BYTES

# Journal, ledger, small messages, and what a file system keeps for itself.
_SPARE_BYTES = 64 << 20
# Beyond the expected size of what a participant sends in a run.
_SPARE_ROOM_BYTES = 1 << 20
# A relay refuses requests whose time is five minutes off; clocks drift further during a run.
_CLOCK_SECONDS = 240


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """A participant about to join a run.

    The home may not exist yet; the mailbox is left out if it is None.
    """

    study: Study
    participant: str
    home: Path
    result_folder: Path
    mailbox: Mailbox | None

    def check(self, *, rows: int | None = None) -> None:
        """Refuse to join a run that could not be finished.

        `rows` are those of the party's own table, where they are known.

        Raises:
            ParameterError: It names everything that is wrong, with the fix.
            MailboxError: The mailbox cannot be reached, or takes nothing from this participant.
        """
        problems = self.problems(rows=rows)
        if problems:
            listed = "".join(f"\n- {problem}" for problem in problems)
            raise ParameterError(
                f"{self.participant!r} must not join yet (nothing was sent, nothing was charged):"
                f"{listed}"
            )

    def check_result_folder(self) -> None:
        """Refuse a place where the result could not be written.

        Raises:
            ParameterError: It says why.
        """
        if problems := self._result_problems(self._sizes(None)):
            raise ParameterError(f"nothing was charged yet: {'; '.join(problems)}")

    def reserve(self, run: str, *, rows: int | None = None) -> None:
        """Have the mailbox keep room for the run, so that nothing is refused after a charge.

        Raises:
            MailboxError: It has none.
        """
        if self.mailbox is not None:
            own = self._own_bytes(self._sizes(rows))
            self.mailbox.reserve(self.study.hash, run, own + own // 8 + _SPARE_ROOM_BYTES)

    def problems(self, *, rows: int | None = None) -> list[str]:
        """Return what would make the run fail, one sentence each; see `check`."""
        sizes = self._sizes(rows)
        found = self._result_problems(sizes)
        found += _disk_problems(self.home, needed=_SPARE_BYTES + 2 * self._own_bytes(sizes))
        found += self._reader_problems(sizes)
        if self.mailbox is not None:
            found += self._mailbox_problems(self.mailbox.limits(self.study.hash), sizes)
        return found

    def _sizes(self, rows: int | None) -> MessageSizes:
        return message_sizes(self._largest_plan(rows), users=self._users(rows))

    def _users(self, rows: int | None) -> int:
        """Return a number of users to keep room for: doubled, so that it tells a factor of two."""
        users = int(HEADROOM * self.study.assumed_users)
        while users < (rows or 0):
            users *= 2
        return users

    def _largest_plan(self, rows: int | None) -> Plan:
        """Return the plan of a run whose stages find as many users, and so the largest k'."""
        return largest_plan(self.study, users=self._users(rows))

    def _own_bytes(self, sizes: MessageSizes) -> int:
        """Bytes of everything that the participant sends."""
        if self.participant == SERVER:
            return sizes.result * (len(self.study.parties) + 1)
        return sizes.releases[self.participant] + sizes.small[self.participant]

    def _largest_bytes(self, sizes: MessageSizes) -> int:
        """Bytes of the largest message that the participant sends."""
        if self.participant == SERVER:
            return sizes.result
        return sizes.releases[self.participant]

    def _reader_problems(self, sizes: MessageSizes) -> list[str]:
        largest = self._largest_bytes(sizes)
        if largest <= MAX_LARGE_BYTES:
            return []
        return [
            f"its largest message would take {shown_bytes(largest)}, and no participant reads "
            f"more than {shown_bytes(MAX_LARGE_BYTES)}; agree on a study with the true "
            "expected_users, fewer n_local_clusters, or decoy.max_users"
        ]

    def _mailbox_problems(self, limits: MailboxLimits, sizes: MessageSizes) -> list[str]:
        found = []
        largest = self._largest_bytes(sizes)
        if limits.max_message_bytes is not None and largest > limits.max_message_bytes:
            found.append(
                f"its largest message takes about {shown_bytes(largest)}, and the mailbox takes "
                f"at most {shown_bytes(limits.max_message_bytes)}; ask the relay's operator for "
                "`relay serve --max-message`, or take a folder, SFTP or an object store, which "
                "have no such limit"
            )
        needed, whose = self._own_bytes(sizes), "its messages"
        if limits.is_shared:
            whose = "the messages of a run"
            needed = sum(sizes.releases.values()) + sum(sizes.small.values())
            needed += sizes.result * (len(self.study.parties) + 1)
        if limits.free_bytes is not None and needed > limits.free_bytes:
            found.append(
                f"{whose} take about {shown_bytes(needed)}, and the mailbox has room for "
                f"{shown_bytes(limits.free_bytes)}; make room, or take another mailbox"
            )
        if limits.clock_offset is not None and abs(limits.clock_offset) > _CLOCK_SECONDS:
            found.append(
                f"this machine's clock is {abs(limits.clock_offset):.0f} seconds off the "
                "mailbox's; set it (a relay refuses requests that are five minutes off)"
            )
        return found

    def _result_problems(self, sizes: MessageSizes) -> list[str]:
        try:
            check_place(self.result_folder)
            _try_to_write(self.result_folder.parent)
        except ParameterError as problem:
            return [str(problem)]
        except OSError as problem:
            return [
                f"the result cannot be written to {self.result_folder} ({problem.strerror}); name "
                "another folder with --result"
            ]
        # The grid is written in own units and in distance units, beside the draft that it replaces.
        return _disk_problems(self.result_folder, needed=_SPARE_BYTES + 8 * sizes.result)


def _try_to_write(folder: Path) -> None:
    """Make and remove a file where `folder` is or will be.

    Raises:
        OSError: That is not possible.
    """
    with tempfile.TemporaryFile(dir=_existing(folder)):
        pass


def _disk_problems(place: Path, *, needed: int) -> list[str]:
    try:
        free = shutil.disk_usage(_existing(place)).free
    except OSError:
        return []  # whether it can be used at all is found out by using it
    if free >= needed:
        return []
    return [
        f"{place} needs about {shown_bytes(needed)} on its disk, which has {shown_bytes(free)} left"
    ]


def _existing(place: Path) -> Path:
    """Return the place, or the nearest folder above it that exists."""
    return next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())
