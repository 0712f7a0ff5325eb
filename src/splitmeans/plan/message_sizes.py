"""Sizes of the messages of a run, from the layout that `wire.codec` and the methods give them.

A plan whose messages no participant would read is refused before anything is spent.

Between organisations a release is padded: the carrier of a message, or a party that can list a
shared folder, would otherwise see how many users a party has. The length holds `HEADROOM` times the
users of the study and, where the party has released its number of users, any number that the noise
allows. No value of another party makes it shorter. A table beyond both doubles the length until the
release fits, which tells the number of users to a factor of two; without a released number only.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splitmeans.errors import ParameterError
from splitmeans.membership.decoy.column_labels import N_EDGES
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import high_bits_of
from splitmeans.membership.methods import method_of
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.study.features import features_of
from splitmeans.wire.ways import MAX_LARGE_BYTES

if TYPE_CHECKING:
    from splitmeans.plan.plan import Plan

HEADROOM = 1.5
"""A table may have this many times the expected users before its own size decides anything."""

# Decoys and sampled users are random; a release is longer than its padding because of them with a
# probability below exp(-_DEVIATIONS^2 / 2) = 2e-22, both being sub-Gaussian.
_DEVIATIONS = 10
# The digits of array lengths in a header, beyond `_HEADER_BYTES`.
_SPARE_BYTES = 256
# The largest padded payload; readers take a little more.
_MAX_PADDED_BYTES = MAX_LARGE_BYTES - 2**16
# Magic, length and the header's names; shapes add a few digits.
_HEADER_BYTES = 170
# Of a published result, in its header.
_DATE_AND_SIGNATURE = 220
# A key contribution and a confirmation to one other party, together.
_TWO_WORDS_BYTES = 325
# The first words to another participant, with a key.
_HELLO_BYTES = 2560
# Other words: ready, the head of a stage's release, a plan that is confirmed.
_WORD_BYTES = 115


@dataclass(frozen=True, kw_only=True)
class MessageSizes:
    """Expected bytes.

    Attributes:
        releases: For each party the bytes of its one release, as it is sent.
        unpadded: The same without padding.
        small: For each party everything else that it sends.
        result: What the server publishes, at most; cells without users are left out.
        records: Records (users and decoys) in a party's release, 0 for other methods.
    """

    releases: dict[str, int]
    unpadded: dict[str, int]
    small: dict[str, int]
    result: int
    records: dict[str, int]

    @property
    def largest(self) -> int:
        """The largest message that anybody sends."""
        return max(self.result, *self.releases.values())


def check_readable(plan: "Plan") -> None:
    """Refuse a plan with a message that is larger than its reader takes.

    Raises:
        ParameterError: It says how large, and what makes it smaller.
    """
    for party, users in plan.most_users.items():
        longest = _longest_release(plan, party, users=users)
        if longest > _MAX_PADDED_BYTES:
            raise ParameterError(
                f"the released number of users of {party!r} allows {users:,}, whose message would "
                f"take {shown_bytes(longest)}, and no participant reads more than "
                f"{shown_bytes(MAX_LARGE_BYTES)}; set expected_users, and decoy.max_users to send "
                "a secret sample of the users"
            )
    sizes = message_sizes(plan, users=plan.study.assumed_users)
    if sizes.largest <= MAX_LARGE_BYTES:
        return
    k, n_parties = max(plan.n_labels), len(plan.study.parties)
    raise ParameterError(
        f"a message of this study would take {shown_bytes(sizes.largest)}, and no participant "
        f"reads more than {shown_bytes(MAX_LARGE_BYTES)}; lower n_local_clusters (now {k} at "
        f"{n_parties} parties), raise epsilon, set decoy.max_users to send a secret sample of the "
        "users, or take fewer parties"
    )


def message_sizes(plan: "Plan", *, users: int) -> MessageSizes:
    """Return the sizes of a run with this many users at each party."""
    study = plan.study
    sealed = _sealing_bytes(plan)
    releases, unpadded, records = {}, {}, {}
    for position, party in enumerate(study.parties):
        size, own_records = _release_bytes(plan, position, users=users)
        sent = padded_length(size, release_length(plan, party.name)) if sealed else size
        releases[party.name], unpadded[party.name] = sealed + sent, sealed + size
        records[party.name] = own_records
    # A contribution and a confirmation to each other party, and the word to the server.
    n_others = len(study.parties) - 1
    pair = _TWO_WORDS_BYTES + 2 * sealed
    hellos = (n_others + 1) * (_HELLO_BYTES + sealed) if sealed else 0
    n_words = dict.fromkeys(study.party_names, 1)
    values = dict.fromkeys(study.party_names, 0)
    for stage in plan.stages:
        # What is released goes to everyone, and all parties confirm the plan that follows.
        for name in study.party_names:
            n_words[name] += n_others + (n_others + 1 if name in stage.parties else 0)
        for name, law in zip(stage.parties, stage.laws, strict=True):
            values[name] += (n_others + 1) * 8 * law.length
    small = {
        name: n_others * pair + count * (_WORD_BYTES + sealed) + values[name] + hellos
        for name, count in n_words.items()
    }
    return MessageSizes(
        releases=releases,
        unpadded=unpadded,
        small=small,
        result=_result_bytes(plan) + sealed,
        records=records,
    )


def release_length(plan: "Plan", party: str) -> int:
    """Return the bytes of a party's padded release before sealing; they follow from the plan.

    They hold the study's users, and those that the party's own released number allows.
    """
    users = max(math.ceil(HEADROOM * plan.study.assumed_users), plan.most_users.get(party, 0))
    return min(_longest_release(plan, party, users=users), _MAX_PADDED_BYTES)


def padded_length(size: int, length: int) -> int:
    """Return the bytes to which a release is padded: the plan's length, doubled until it fits.

    A length of 0 stands for no padding.
    """
    if length == 0:
        return size
    while length < size:
        if length >= _MAX_PADDED_BYTES:
            return size  # no participant reads it
        length = min(2 * length, _MAX_PADDED_BYTES)
    return length


def _longest_release(plan: "Plan", party: str, *, users: int) -> int:
    """Return the bytes that a release of this many users exceeds with negligible probability."""
    position = plan.study.party_names.index(party)
    size, _ = _release_bytes(plan, position, users=users, deviations=_DEVIATIONS)
    return size + _SPARE_BYTES


def _release_bytes(
    plan: "Plan", position: int, *, users: int, deviations: int = 0
) -> tuple[int, int]:
    """Return bytes of a release before padding and sealing, and its records."""
    width = plan.n_local_clusters[position]
    features = len(features_of(plan.parties[position]))
    message_size = method_of(plan.study).message_size
    body, records = message_size(plan.membership, plan, position, users, deviations)
    places = 8 * width * features
    places += 4 * plan.study.n_points * len(plan.parties[position].columns)
    if plan.columns is not None:
        assert isinstance(plan.membership, DecoyLaw), "the study was not checked"
        more, joined = plan.columns.message_size(
            position,
            users=users,
            sample_rate=plan.sample_rate,
            high_bits=high_bits_of(plan.membership, plan),
            deviations=deviations,
        )
        body, records = body + more, records + joined
        places += 8 * N_EDGES * len(plan.parties[position].columns)
    return _HEADER_BYTES + places + body, records


def shown_bytes(size: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def _result_bytes(plan: "Plan") -> int:
    parties = plan.parties
    features = [len(features_of(party)) for party in parties]
    centres = sum(
        8 * width * d for width, d in zip(plan.n_local_clusters, features, strict=True)
    ) + 8 * plan.study.n_clusters * (sum(features) + 1)
    node = 8 + len(parties)
    if plan.study.n_points:
        node += 4 * sum(len(party.columns) for party in parties)
    counts = 0
    if plan.study.membership_facts.counts_presence:
        counts = sum(8 * 2 ** len(group) for group in plan.groups)
    return _HEADER_BYTES + _DATE_AND_SIGNATURE + centres + counts + most_nodes(plan) * node


def most_nodes(plan: "Plan") -> int:
    """Return how many nodes a published synopsis can have.

    Pseudo-users: about N_POINTS of them, but one at least of each combination of local clusters
    that is counted.
    """
    return 2 * N_POINTS if plan.study.n_points else 1


def _sealing_bytes(plan: "Plan") -> int:
    """Return what a seal and a signature add to a message between organisations."""
    if not plan.study.public_keys:
        return 0
    # Imported where it is used: a study without keys needs no cryptography.
    from splitmeans.wire.sealed import OVERHEAD_BYTES

    return OVERHEAD_BYTES
