"""A home that is older than the mailbox: it was put back from a backup, or copied (rule R11)."""

import hashlib
import itertools
from collections.abc import Iterable

from splitmeans.errors import JournalError
from splitmeans.run.post import Post
from splitmeans.run.records import RunKey

OLDER = "this home is older than the mailbox, which has messages that it does not know"


def forgotten(post: Post, receivers: Iterable[str], kinds: Iterable[str]) -> dict[str, str]:
    """Return the hash of each message of these kinds that this participant has left before."""
    found = {}
    for receiver, kind in itertools.product(receivers, kinds):
        if (data := post.own_message(receiver, kind)) is not None:
            found[kind] = hashlib.sha256(data).hexdigest()
    return found


def older_home(key: RunKey, *, had_released: bool) -> JournalError:
    """Say that a run ends because its home is older than the mailbox."""
    return JournalError(
        f"{key}: {OLDER}. The home was put back from a backup, or the run was begun from another "
        "copy of it; nobody else did anything wrong. The run ends here, because a second release "
        f"must not follow; {'its release' if had_released else 'nothing'} was found in the "
        f"mailbox{' and is charged now' if had_released else ' that costs anything'}. Add what "
        "other runs released since the backup with `splitmeans ledger add`, and begin another run "
        "with a new name"
    )
