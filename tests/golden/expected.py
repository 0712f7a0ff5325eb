"""What must hold of the golden runs on every machine; `expected.json` has a line for each study.

Plans, lengths of the parties' messages and noisy counts are whole numbers and the same everywhere:
their digests are compared. Clusters come from floats, whose last digits depend on the processor;
rarely one of them decides where a point belongs. Segments must agree within tolerances.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.published import Array, Parts

EXPECTED = Path(__file__).with_name("expected.json")

# Of all users, and of half the width of a column. With the instructions of processors of 2013 and
# 2008 alone, one study and two of 18 differed, by at most 0.003 of all users and 0.02 in a column.
_SIZE_TOLERANCE = 0.01
_CENTRE_TOLERANCE = 0.05
_EPSILON_TOLERANCE = 1e-6

_EXACT = ("plan", "lengths", "counts")


def read_expected() -> dict[str, Any]:
    """Return the summaries of all studies by name."""
    known: dict[str, Any] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    return known


def write_expected(summaries: dict[str, Any]) -> None:
    """Write the summaries, one line for each study."""
    lines = [f"{json.dumps(name)}: {json.dumps(summaries[name])}" for name in sorted(summaries)]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def summary_of(parts: Parts) -> dict[str, Any]:
    """Return what is expected of a study from now on."""
    return {
        "digests": {part: _digest(_portable(part, parts)) for part in _EXACT},
        "sizes": {key: own.round(1).tolist() for key, own in _ending("sizes", parts).items()},
        "centres": {key: own.round(4).tolist() for key, own in _ending("centres", parts).items()},
        "epsilon": {key: own.tolist() for key, own in _ending("epsilon", parts).items()},
    }


def unexpected(parts: Parts, summary: dict[str, Any]) -> list[str]:
    """Return the names of what does not agree with a summary."""
    found = [part for part in _EXACT if _digest(_portable(part, parts)) != summary["digests"][part]]
    checks = {"sizes": _same_sizes, "centres": _same_centres, "epsilon": _same_epsilon}
    for what, agree in checks.items():
        now, before = _ending(what, parts), summary[what]
        if now.keys() != before.keys():
            found.append(what)
        found += [
            key for key in now if key in before and not agree(now[key], np.array(before[key]))
        ]
    return found


def _same_sizes(now: Array, before: Array) -> bool:
    return now.shape == before.shape and np.allclose(
        np.sort(now), np.sort(before), rtol=0, atol=_SIZE_TOLERANCE * before.sum()
    )


def _same_centres(now: Array, before: Array) -> bool:
    """Compare in any order: segments of nearly equal size may change places."""
    if now.size != before.size:
        return False
    if now.size == 0:
        return True
    apart = np.abs(now[:, None, :] - before[None, :, :]).max(axis=2)
    return bool(max(apart.min(axis=0).max(), apart.min(axis=1).max()) < _CENTRE_TOLERANCE)


def _same_epsilon(now: Array, before: Array) -> bool:
    return now.shape == before.shape and np.allclose(now, before, rtol=_EPSILON_TOLERANCE, atol=0)


def _portable(part: str, parts: Parts) -> dict[str, Array]:
    # The server's message is as long as it has pseudo-users.
    return {key: own for key, own in parts[part].items() if not key.endswith("server")}


def _ending(what: str, parts: Parts) -> dict[str, Array]:
    part = "figures" if what == "epsilon" else "segments"
    end = "scaled centres" if what == "centres" else what
    return {key: own for key, own in parts[part].items() if key.endswith(end)}


def _digest(arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256()
    for key, array in sorted(arrays.items()):
        digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
