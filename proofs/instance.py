"""Small instances of the decoy join: what the code sends, and the records that the model is given.

The model's tags and decoy counts are ideal random values. Here they are the values that the run key
gives under the code's hash, so that both sides can be compared exactly.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from proofs.model import Message, Record, Release, decoys, drawn
from splitmeans.kernels.siphash import hash_ids, prf_word
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import packed_size, unpack
from splitmeans.membership.decoy.tag_lists import LOW_BITS, bitmap_size, tag_pieces
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage

Group = tuple[int, ...]

_HIGH_BITS = 12


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Users of every party with their clusters, and everything that is public, and the run key."""

    users: tuple[Mapping[str, int], ...]
    widths: tuple[int, ...]
    groups: tuple[Group, ...]
    law: DecoyLaw
    presence: DecoyLaw | None
    sample_rate: float
    run_key: bytes

    def law_of(self, group: Group) -> DecoyLaw:
        """The law of a group's decoys."""
        return self.presence if self.presence is not None and self._is_presence(group) else self.law

    def release_of(self, group: Group) -> Release:
        """The table of a group, its cells in row-major order; absent is the last label of each."""
        widths = self._widths_of(group)
        cells = list(itertools.product(*([*range(width), None] for width in widths)))
        cells.pop()  # absent everywhere
        labels = tuple(tuple(cell[axis] for cell in cells) for axis in range(len(group)))
        return Release(parties=group, labels=labels)

    def users_in(self, group: Group) -> dict[str, int]:
        """The cell of every user who is at some party of the group and in the sample."""
        release, presence = self.release_of(group), self._is_presence(group)
        cells = {
            tuple(release.labels[axis][cell] for axis in range(len(group))): cell
            for cell in range(release.cells)
        }
        found: dict[str, int] = {}
        threshold = sample_threshold(self.sample_rate)
        for name in sorted(set().union(*(self.users[party] for party in group))):
            word = int(hash_ids(keys.subkey(self.run_key, keys.SAMPLE), _array([name]))[0, 0])
            if self.sample_rate < 1 and word >= threshold:
                continue
            own = [self.users[party].get(name) for party in group]
            place = tuple(0 if presence and label is not None else label for label in own)
            found[name] = cells[place]
        return found

    def decoy_counts(self, group: Group) -> list[int]:
        """D of every cell."""
        law, words = self.law_of(group), _words(self.run_key, keys.DECOY_COUNT, group)
        return [drawn(law.weights, words(cell)) for cell in range(self.release_of(group).cells)]

    def records_of(self, group: Group) -> list[Record]:
        """Users and decoys of a group with their tags and cells."""
        users = self.users_in(group)
        tags = hash_ids(keys.subkey(self.run_key, keys.USER_TAG, group=group), _array(list(users)))
        own = [
            (_tag(int(first)), cell) for (first, _), cell in zip(tags, users.values(), strict=True)
        ]
        words = _words(self.run_key, keys.DECOY_TAG, group)
        span = len(self.law_of(group).weights)
        counts = self.decoy_counts(group)
        numbers = [number for count in counts for number in range(count)]
        for cell, number in zip(decoys(counts), numbers, strict=True):
            own.append((_tag(words(cell * span + number)), cell))
        return own

    def sent(self) -> list[DecoyMessage]:
        """What the code sends, party by party."""
        return [
            encode(
                self.law,
                users=MemoryUsers(
                    ids=_array(list(own)), labels=np.array(list(own.values()), dtype=np.int32)
                ),
                position=party,
                groups=self.groups,
                n_local_clusters=self.widths,
                run_key=self.run_key,
                high_bits=_HIGH_BITS,
                sample_rate=self.sample_rate,
                presence=self.presence,
                noise=InsecureSeededNoise(0),
            )
            for party, own in enumerate(self.users)
        ]

    def sent_to(self, group: Group, messages: Sequence[DecoyMessage]) -> list[Message]:
        """The tags and labels that the code's messages have for one group, party by party."""
        return [self._unpacked(group, party, messages[party]) for party in group]

    def server_counts(self, group: Group, messages: Sequence[DecoyMessage]) -> list[int]:
        """H + D of every cell as the server finds them."""
        tables = join_counts(
            messages,
            groups=self.groups,
            n_local_clusters=self.widths,
            high_bits=_HIGH_BITS,
            presence=self.presence is not None,
        )
        return [int(count) for count in tables[group].ravel()[: self.release_of(group).cells]]

    def _is_presence(self, group: Group) -> bool:
        return self.presence is not None and len(group) == len(self.users)

    def _widths_of(self, group: Group) -> list[int]:
        return [1 if self._is_presence(group) else self.widths[party] for party in group]

    def _unpacked(self, group: Group, party: int, message: DecoyMessage) -> Message:
        first_tag = first_mark = first_byte = 0
        own = [other for other in self.groups if party in other]
        for other, length in zip(own, message.lengths.tolist(), strict=True):
            width = self._widths_of(other)[other.index(party)]
            size = packed_size(length, n_clusters=width)
            marks = bitmap_size(length, high_bits=_HIGH_BITS)
            if other == group:
                packed = message.labels[first_byte : first_byte + size]
                labels = unpack(packed, length, n_clusters=width).tolist()
                (tags,) = tag_pieces(
                    message.lows[first_tag : first_tag + length],
                    message.bitmaps[first_mark : first_mark + marks],
                    high_bits=_HIGH_BITS,
                    n_pieces=1,
                    most=length,
                )
                return tags.tolist(), labels
            first_tag, first_mark = first_tag + length, first_mark + marks
            first_byte += size
        raise AssertionError("the party is in the group")


def random_instance(rng: np.random.Generator) -> Instance:
    """Return an instance of any kind, with up to nine users and few decoys."""
    parties = int(rng.integers(2, 5))
    with_presence = parties > 2
    widths = tuple(int(width) for width in rng.integers(1, 4, size=parties))
    names = [f"user {number}" for number in range(int(rng.integers(10)))]
    overlap = 1.0 if rng.integers(2) else 0.6
    users = tuple(
        {name: int(rng.integers(width)) for name in names if rng.random() < overlap}
        for width in widths
    )
    pairs = tuple(itertools.combinations(range(parties), 2))
    everyone = (tuple(range(parties)),) if with_presence else ()
    return Instance(
        users=users,
        widths=widths,
        groups=(*pairs, *everyone),
        law=DecoyLaw(sigma=float(rng.uniform(0.4, 1.2)), truncation=2, server_sigma=1.0),
        presence=DecoyLaw(sigma=0.7, truncation=1, server_sigma=1.0) if with_presence else None,
        sample_rate=1.0 if rng.integers(2) else 0.6,
        run_key=rng.bytes(32),
    )


def _tag(word: int) -> int:
    return word >> (64 - LOW_BITS - _HIGH_BITS)


def _array(names: list[str]) -> pa.Array:
    return pa.array(names, pa.large_string())


def _words(run_key: bytes, label: str, group: Group) -> Callable[[int], int]:
    """Return the words of a stream by number."""
    first, second = np.frombuffer(keys.subkey(run_key, label, group=group), dtype="<u8")

    def word(counter: int) -> int:
        with np.errstate(over="ignore"):
            return int(prf_word(np.uint64(first), np.uint64(second), np.uint64(counter)))

    return word
