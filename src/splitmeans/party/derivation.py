"""How this version derives what parties share, as test vectors computed at the start (rule R8).

A version that derives anything else from the same key, or writes an id in another way, has other
vectors, so another transcript and another run key: its parties and those of this version refuse
each other before anything is released. `tests/vectors/derivation.json` has the vectors.
"""

import functools
import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans.kernels.assign import nearest
from splitmeans.kernels.counts import decoy_records
from splitmeans.kernels.phantoms import raise_to_phantoms
from splitmeans.kernels.quantise import to_grid_column
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.decoy.law import DecoyLaw, sample_threshold
from splitmeans.membership.decoy.tag_lists import code_tags, short_tags
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.study.id_rules import IdRules
from splitmeans.table.ids.canonical import canonical_text
from splitmeans.wire import keys

_KEY = bytes(range(16))
_RUN_KEY = bytes(range(32))
_UUID = "{00112233-4455-6677-8899-AABBCCDDEEFF}"
_IDS = {
    "as-is": ["007", " 7", "e\u0301", "Ab"],
    "text": ["007", " 7\u00a0", "e\u0301", "Ab"],
    "integer": ["007", "-0", "+12.0", " 5"],
    "uuid": [_UUID, "urn:uuid:" + _UUID[1:-1].lower()],
    "caseless": ["Stra\u00dfe 7", " \ufb01X", "e\u0301"],
    "email": [" A.B+c@Example.COM"],
    "phone": ["+49 (0)30 1234567", "0049-30-1234567"],
}


@functools.cache
def derivation_digest() -> bytes:
    """Return SHA-256 of all vectors; computed once in a process."""
    text = json.dumps(derivation_vectors(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


def derivation_vectors() -> dict[str, str]:
    """Return what fixed inputs give, each as the SHA-256 of its bytes."""
    law = DecoyLaw(sigma=3.5, truncation=20, server_sigma=3.5)
    found: dict[str, Any] = {
        "run key": keys.run_key({"a": _RUN_KEY, "b": bytes(32)}, transcript=bytes(32)),
        "subkeys": b"".join(
            keys.subkey(_RUN_KEY, label, group=group)
            for label in (
                keys.USER_TAG,
                keys.DECOY_TAG,
                keys.DECOY_COUNT,
                keys.SAMPLE,
                keys.USER_REGISTERS,
                keys.PHANTOM_REGISTERS,
                keys.CONFIRM,
            )
            for group in ((), (0, 1), (1, 2))
        ),
        "tags": hash_ids(_KEY, pa.array(["a", "user-7", "\u00e9" * 9], pa.large_string())),
        "decoy table": law.cdf_table,
        "sample": str(sample_threshold(0.3)).encode(),
        "labels": _labels(),
        "bundles": _bundles(),
        "grid": _grid(),
        "registers": _registers(),
    }
    tags, labels = decoy_records(
        _KEY, _KEY[::-1], cdf_table=law.cdf_table, shape=(3, 3), n_cells=8, axis=1, absent=2
    )
    found["decoys"], found["decoy labels"] = tags, labels
    in_order = np.sort(short_tags(tags, high_bits=12))
    found["low bits"], found["bitmap"] = code_tags(in_order, high_bits=12)
    for kind, values in _IDS.items():
        text = canonical_text(pa.array(values, pa.large_string()), rules=IdRules(type=kind))
        found[f"ids as {kind}"] = "\n".join(text.to_pylist()).encode()
    return {name: hashlib.sha256(_bytes(value)).hexdigest() for name, value in found.items()}


def _labels() -> npt.NDArray[Any]:
    """Which centre is nearest, with ties (rule R7)."""
    rows = np.array([[0, 0], [5, 5], [-7, 2], [1, 1]])
    return np.asarray(nearest(rows, np.array([[0, 0], [2, 2], [-6, 0]])))


def _bundles() -> npt.NDArray[Any]:
    """The label of each of five clusters in the tables with two other parties."""
    bundles = Bundles(n_local_clusters=(5, 5, 5), n_labels=(3, 3, 3))
    return np.concatenate([bundles.labels_of(0, other) for other in (1, 2)])


def _grid() -> npt.NDArray[Any]:
    """Values to integers: inside, at and beyond the bounds, missing."""
    out = np.empty((6, 1), dtype=np.int64)
    values = np.array([0.0, 0.1, 99.95, 100.0, 250.0, np.nan])
    to_grid_column(values, low=0.0, high=100.0, bound=1000, stand_in=50.0, out=out[:, 0])
    return out


def _registers() -> npt.NDArray[Any]:
    law = RegisterLaw(gamma=0.5)
    registers = user_registers(
        hash_ids(_KEY, pa.array(["a", "b", "c"], pa.large_string())),
        np.array([0, 1, 1], dtype=np.int32),
        n_clusters=2,
        repetitions=16,
        floor=1,
        count_table=law.count_table(repetitions=16, floor=1),
        excess_table=law.value_table,
    )
    raise_to_phantoms(
        registers,
        key=_KEY,
        own_labels=np.array([0, 1, 0, -1], dtype=np.int32),
        maximum_table=law.maximum_table(3),
    )
    return np.asarray(registers)


def _bytes(value: Any) -> bytes:
    """Return the bytes of an array in little-endian order, whatever the machine's is."""
    if isinstance(value, bytes):
        return value
    return bytes(value.astype(value.dtype.newbyteorder("<")).tobytes())
