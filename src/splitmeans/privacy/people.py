"""A record of whose data was charged: enough to know largely the same people again, and no more.

Ids are hashed under a secret of the home, and the smallest 1,024 hashes are kept (a bottom-k
sketch). Two records under one secret tell which share of the people they have in common: below the
smaller of the two largest hashes both are a random sample of all people, so counting there is
enough. A record never leaves the home (or the register that homes of one organisation share), and
without the secret it is a list of random numbers. docs/reference/ledger.md says what somebody with
both can find out.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from splitmeans._types import WordArray
from splitmeans.errors import JournalError

SIZE = 1024
SECRET_BYTES = 32
# From this share on, of either side, a table holds people of a data set.
SAME = 0.2

_WORD = np.dtype("<u8")
_TOP = np.uint64(2**64 - 1)


class Overlap(NamedTuple):
    """Which share of each side's people the other one has, as far as the records tell."""

    of_new: float
    of_known: float

    @property
    def are_same(self) -> bool:
        """Whether people of one are, for a good part, people of the other."""
        return max(self) >= SAME


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class People:
    """A record of the people in a table.

    Attributes:
        hashes: The smallest hashes of their ids, ascending, each once; all of them if there are
            fewer than `SIZE` people.
    """

    hashes: WordArray

    @staticmethod
    def smallest(hashes: WordArray) -> "People":
        """Return the record of all people with these hashes."""
        return People(hashes=np.unique(hashes)[:SIZE])

    def overlap(self, known: "People") -> Overlap:
        """Compare the people of this record with those of a known one."""
        end = min(self._end, known._end)
        new = self.hashes[self.hashes <= end]
        old = known.hashes[known.hashes <= end]
        common = len(np.intersect1d(new, old, assume_unique=True))
        return Overlap(common / max(len(new), 1), common / max(len(old), 1))

    @property
    def _end(self) -> np.uint64:
        """Up to here the record has every person."""
        return self.hashes[-1] if len(self.hashes) == SIZE else _TOP

    def dump(self) -> bytes:
        """Return the record as bytes."""
        return self.hashes.astype(_WORD).tobytes()

    @staticmethod
    def load(data: bytes) -> "People":
        """Read what `dump` returned."""
        if len(data) % 8 or len(data) > 8 * SIZE:
            raise JournalError("a record of people is damaged")
        hashes = np.frombuffer(data, dtype=_WORD).astype(np.uint64)
        if np.any(hashes[1:] <= hashes[:-1]):
            raise JournalError("a record of people is damaged")
        return People(hashes=hashes)

    @property
    def sha256(self) -> str:
        """Hash of the record, which a charge names."""
        return hashlib.sha256(self.dump()).hexdigest()


def hash_key(secret: bytes) -> bytes:
    """Return the key of the hashes, which a secret is used for and nothing else."""
    return hashlib.sha256(b"splitmeans people 1\n" + secret).digest()[:16]


def secret_name(secret: bytes) -> str:
    """Return a short name of a secret: records can be compared only under the same one."""
    return hashlib.sha256(b"splitmeans people secret 1\n" + secret).hexdigest()[:16]
