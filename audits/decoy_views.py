"""What the server and a fellow party get from the decoy join, with and without a user.

The functions run the parties' encoder and the server's join with a fresh key for every call. Cells
do not concern each other, so one call is many trials: party 0 has many clusters, party 1 has one,
and every cell of the two has a user of its own, or none has.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from audits.case import Scores
from audits.sketch_views import fresh_key
from splitmeans._types import FloatArray, IntArray, WordArray
from splitmeans.kernels.counts import count_joined, sort_records
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.decoy.direct_labels import DirectLabels
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.estimate import add_server_noise
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import cell_shape, unpack
from splitmeans.membership.decoy.tag_lists import LOW_BITS, tag_pieces
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.memory import MemoryUsers
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage

_GROUP = (0, 1)
# So that of some thousand tags of a call hardly any two are equal by chance; and for many trials in
# one call.
_HIGH_BITS, _LONG_HIGH_BITS = 18, 24
_UNUSED_BITS = 64 - LOW_BITS - _HIGH_BITS
# Cells, hence trials, of one call; a label has one byte.
_CELLS = 200
_WIDTHS = (_CELLS, 1)
# Parties of a presence table; it has 255 cells.
_MANY = 8
# Ids among which users of a sample are found; enough for rates from 1/20 up.
_CANDIDATES = 8000


def changed_cell(law: DecoyLaw, trials: int, noise: NoiseSource, *, rate: float = 1.0) -> Scores:
    """How many records the server counts in the user's cell: all that a user changes.

    With a sample the user is one who is in it: no privacy is claimed for sampling.
    """
    threshold = np.uint64(min(sample_threshold(rate), 2**64 - 1))

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        ids = _users(False)
        if present:
            ids = _sampled_users(keys.subkey(key, keys.SAMPLE), threshold)
        return _joined(_messages(law, ids, key, noise=noise, sample_rate=rate))

    return _scores(one_call, trials)


def changed_presence(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """How many records the server counts of users at just the user's parties: a presence table.

    Every way to be at some of eight parties has a user of its own, or none has.
    """
    patterns = np.indices((2,) * _MANY).reshape(_MANY, -1)[:, :-1]
    everyone, widths = tuple(range(_MANY)), (3,) * _MANY

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        messages = []
        for party in everyone:
            own = np.flatnonzero(patterns[party] == 0) if present else np.zeros(0, dtype=np.int64)
            ids = pa.array([f"user {number}" for number in own], type=pa.large_string())
            users = MemoryUsers(ids=ids, labels=(own % 3).astype(np.int32))
            messages.append(
                encode(
                    law,
                    users=users,
                    position=party,
                    groups=(everyone,),
                    n_local_clusters=widths,
                    run_key=key,
                    high_bits=_HIGH_BITS,
                    presence=law,
                    noise=noise,
                )
            )
        counted = join_counts(
            messages,
            groups=(everyone,),
            n_local_clusters=widths,
            high_bits=_HIGH_BITS,
            presence=True,
        )
        return np.asarray(counted[everyone].ravel()[:-1], dtype=np.float64)

    return _scores(one_call, trials)


def tag_as_sample(law: DecoyLaw, trials: int, noise: NoiseSource, *, rate: float) -> Scores:
    """Broken: the tag decides who is in the sample; records of the user's cluster with low tags.

    Users' tags are then all in the lowest part of the range while decoys' tags are everywhere.
    """
    threshold = np.uint64(sample_threshold(rate))

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        chooser = keys.subkey(key, keys.USER_TAG, group=_GROUP)
        ids = _sampled_users(chooser, threshold) if present else _users(False)
        message = _message(law, ids, 0, key, noise=noise)
        low = _tags(message) < threshold >> np.uint64(_UNUSED_BITS)
        return np.bincount(_labels(message, 0)[low], minlength=_CELLS).astype(np.float64)

    return _scores(one_call, trials)


def fellow_party(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """Published counts H + D + E for party 0, who has the run key: only the server's E is left.

    The user's columns at party 1 appear, so a record moves from the cell "absent there" to
    another one and two counts change. Party 0 works the decoys out and takes them off.
    """

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        own = _users(True)
        others = _users(present)
        messages = [
            _message(law, ids, position, key, noise=noise)
            for position, ids in enumerate((own, others))
        ]
        published = add_server_noise(law, {_GROUP: _tables(messages)}, noise=noise)[_GROUP]
        decoys = _tables(_messages(law, _users(False), key, noise=noise))
        left = (published - decoys)[:_CELLS]
        return np.asarray(left[:, 0] - left[:, 1], dtype=np.float64)

    return _scores(one_call, trials)


def coalition(law: DecoyLaw, trials: int, noise: NoiseSource, *, response: DirectLabels) -> Scores:
    """A user's record for who has the run key and the server's view: label 1 against label 0.

    The coalition knows every user's tag and every decoy, so that only the randomised response on
    the label is left; every user of a call is a trial. This relation replaces, it adds nobody.
    """

    def reports(label: int) -> FloatArray:
        key = fresh_key(noise)
        ids = _named(trials)
        message = encode(
            law,
            users=MemoryUsers(ids=ids, labels=np.full(trials, label, dtype=np.int32)),
            position=0,
            groups=(_GROUP,),
            n_local_clusters=(response.n_local_clusters, 1),
            run_key=key,
            high_bits=_LONG_HIGH_BITS,
            collusion=response,
            noise=noise,
        )
        words = hash_ids(keys.subkey(key, keys.USER_TAG, group=_GROUP), ids)[:, 0]
        tags = words >> np.uint64(64 - LOW_BITS - _LONG_HIGH_BITS)
        sent_tags = _tags(message, high_bits=_LONG_HIGH_BITS)
        places = np.searchsorted(sent_tags, tags)
        if not (sent_tags[places] == tags).all():
            raise ArithmeticError("a user's record was not found")
        sent = unpack(
            message.labels, int(message.lengths[0]), n_clusters=response.n_local_clusters
        )[places]
        return np.asarray((sent == 1).astype(np.float64) - (sent == 0))

    return Scores(with_user=reports(1), without=reports(0))


def second_message(law: DecoyLaw, trials: int, noise: NoiseSource, *, joined: bool) -> Scores:
    """Broken: messages twice under one key, the second after the user came, or nobody did.

    `joined` looks at the cells of all parties, as for a run key that two data sets used; otherwise
    at one party's records, as for a retry that was computed again.
    """

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        before = _messages(law, _users(False), key, noise=noise)
        after = _messages(law, _users(present), key, noise=noise)
        if joined:
            return _joined(after) - _joined(before)
        sizes = [np.bincount(_labels(sent[0], 0), minlength=_CELLS) for sent in (after, before)]
        return (sizes[0] - sizes[1]).astype(np.float64)

    return _scores(one_call, trials)


def own_decoys(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """Broken: each party draws decoys of its own, so that only users' records join."""
    shape = cell_shape(_GROUP, n_local_clusters=_WIDTHS)

    def one_call(present: bool) -> FloatArray:
        user_tags = hash_ids(
            keys.subkey(fresh_key(noise), keys.USER_TAG, group=_GROUP), _users(present)
        )[:, 0] >> np.uint64(_UNUSED_BITS)
        records = []
        for position in _GROUP:
            decoys = _message(law, _users(False), position, fresh_key(noise), noise=noise)
            own = _user_labels(len(user_tags), position).astype(np.uint8)
            records.append(
                sort_records([(user_tags, own), (_tags(decoys), _labels(decoys, position))])
            )
        tags, labels = [tag for tag, _ in records], [label for _, label in records]
        return count_joined(tags, labels, shape=shape)[:_CELLS, 0].astype(np.float64)

    return _scores(one_call, trials)


def _scores(one_call: Callable[[bool], FloatArray], trials: int) -> Scores:
    """Make trials by calls of `_CELLS` each."""
    calls = -(-trials // _CELLS)
    with_user, without = (
        np.concatenate([one_call(present) for _ in range(calls)])[:trials]
        for present in (True, False)
    )
    return Scores(with_user=with_user, without=without)


@functools.cache
def _named(count: int) -> pa.Array:
    return pa.array([f"user {i}" for i in range(count)], type=pa.large_string())


def _users(present: bool) -> pa.Array:
    return _named(_CELLS if present else 0)


def _sampled_users(chooser: bytes, threshold: np.uint64) -> pa.Array:
    """Return users, one for every cell, whose word under this key is below the threshold."""
    candidates = _named(_CANDIDATES)
    kept = np.flatnonzero(hash_ids(chooser, candidates)[:, 0] < threshold)[:_CELLS]
    if kept.size < _CELLS:
        raise ArithmeticError("too few candidates for this sample rate")
    return candidates.take(pa.array(kept))


def _user_labels(count: int, position: int) -> npt.NDArray[np.int32]:
    labels = np.arange(count) if position == 0 else np.zeros(count)
    return labels.astype(np.int32)


def _message(
    law: DecoyLaw,
    ids: pa.Array,
    position: int,
    key: bytes,
    *,
    noise: NoiseSource,
    sample_rate: float = 1.0,
) -> DecoyMessage:
    return encode(
        law,
        users=MemoryUsers(ids=ids, labels=_user_labels(len(ids), position)),
        position=position,
        groups=(_GROUP,),
        n_local_clusters=_WIDTHS,
        run_key=key,
        high_bits=_HIGH_BITS,
        sample_rate=sample_rate,
        noise=noise,
    )


def _messages(
    law: DecoyLaw, ids: pa.Array, key: bytes, *, noise: NoiseSource, sample_rate: float = 1.0
) -> list[DecoyMessage]:
    return [
        _message(law, ids, position, key, noise=noise, sample_rate=sample_rate)
        for position in _GROUP
    ]


def _tables(messages: Sequence[DecoyMessage]) -> IntArray:
    counted = join_counts(
        messages, groups=(_GROUP,), n_local_clusters=_WIDTHS, high_bits=_HIGH_BITS
    )
    return counted[_GROUP]


def _joined(messages: Sequence[DecoyMessage]) -> FloatArray:
    return _tables(messages)[:_CELLS, 0].astype(np.float64)


def _tags(message: DecoyMessage, *, high_bits: int = _HIGH_BITS) -> WordArray:
    (tags,) = tag_pieces(
        message.lows, message.bitmaps, high_bits=high_bits, n_pieces=1, most=len(message.lows)
    )
    return tags


def _labels(message: DecoyMessage, position: int) -> npt.NDArray[np.uint8]:
    return unpack(message.labels, int(message.lengths[0]), n_clusters=_WIDTHS[position])
