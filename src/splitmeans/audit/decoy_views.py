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

from splitmeans._types import FloatArray, IntArray
from splitmeans.audit.case import Scores
from splitmeans.audit.sketch_views import fresh_key
from splitmeans.engine.memory import MemoryUsers
from splitmeans.kernels.counts import count_joined, sort_records
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.estimate import add_server_noise, join_counts
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.layout import cell_shape, unpack
from splitmeans.privacy.noise import NoiseSource
from splitmeans.wire import keys
from splitmeans.wire.messages import DecoyMessage

_GROUP = (0, 1)
# Cells, hence trials, of one call; a label has one byte.
_CELLS = 200
_WIDTHS = (_CELLS, 1)
# Ids among which users of a sample are found; enough for rates from 1/20 up.
_CANDIDATES = 8000


def changed_cell(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """How many records the server counts in the user's cell: all that a user changes."""

    def one_call(present: bool) -> FloatArray:
        return _joined(_messages(law, _users(present), fresh_key(noise), noise=noise))

    return _scores(one_call, trials)


def low_tags(
    law: DecoyLaw, trials: int, noise: NoiseSource, *, rate: float, broken: bool
) -> Scores:
    """Records of the user's cluster at party 0 with tags in the lowest part of their range.

    No privacy is claimed for sampling, so the user is one who is in the sample. Sound: the sample
    has its own key, and a tag says nothing. Broken: the tag itself decides, so users' tags are all
    in the lowest part while decoys' tags are everywhere.
    """
    threshold = np.uint64(sample_threshold(rate))

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        if broken:
            chooser = keys.subkey(key, keys.USER_TAG, group=_GROUP)
        else:
            chooser = keys.subkey(key, keys.SAMPLE)
        ids = _sampled_users(chooser, threshold) if present else _users(False)
        kept_rate = 1.0 if broken else rate  # the broken choice has been made already
        message = _message(law, ids, 0, key, noise=noise, sample_rate=kept_rate)
        low = message.tags[:, 0] < threshold
        return np.bincount(_labels(message, 0)[low], minlength=_CELLS).astype(np.float64)

    return _scores(one_call, trials)


def fellow_party(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """Published counts for a party that knows all decoys: only the server's noise is left.

    The user's columns at the other party appear, so a record moves from the cell "absent there"
    to another one and two counts change.
    """

    def published(cells: Sequence[int]) -> FloatArray:
        counts: IntArray = np.tile(np.array(cells, dtype=np.int64), (trials, 1))
        noisy = add_server_noise(law, {_GROUP: counts}, equal_sets=True, noise=noise)[_GROUP]
        return (noisy[:, 0] - noisy[:, 1]).astype(np.float64)

    return Scores(with_user=published((1, 0)), without=published((0, 1)))


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
    shape = cell_shape(_GROUP, n_local_clusters=_WIDTHS, equal_sets=False)

    def one_call(present: bool) -> FloatArray:
        user_tags = hash_ids(
            keys.subkey(fresh_key(noise), keys.USER_TAG, group=_GROUP), _users(present)
        )
        records = []
        for position in _GROUP:
            decoys = _message(law, _users(False), position, fresh_key(noise), noise=noise)
            own = _user_labels(len(user_tags), position).astype(np.uint8)
            records.append(
                sort_records([(user_tags, own), (decoys.tags, _labels(decoys, position))])
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
        equal_sets=False,
        sample_rate=sample_rate,
        noise=noise,
    )


def _messages(
    law: DecoyLaw, ids: pa.Array, key: bytes, *, noise: NoiseSource
) -> list[DecoyMessage]:
    return [_message(law, ids, position, key, noise=noise) for position in _GROUP]


def _joined(messages: Sequence[DecoyMessage]) -> FloatArray:
    tables = join_counts(messages, groups=(_GROUP,), n_local_clusters=_WIDTHS, equal_sets=False)
    return tables[_GROUP][:_CELLS, 0].astype(np.float64)


def _labels(message: DecoyMessage, position: int) -> npt.NDArray[np.uint8]:
    return unpack(message.labels, int(message.lengths[0]), n_clusters=_WIDTHS[position])
