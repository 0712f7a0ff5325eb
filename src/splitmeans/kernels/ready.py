"""Object code that a wheel brings: compiled before anybody installed it.

A wheel for Linux on x86-64 has one file for each level of that processor's instructions. It holds
the code of all kernels, for the types of arguments that fits and runs have; the code of the highest
level that the processor here can do is used. A file begins with a line of JSON: a digest of the
kernels' sources, and for each kernel what `object_code.stored` reads of a file of its own, and
where its code is. Code of other sources is not used, so a copy of the repository compiles its own.

`make_ready.py` writes such files; where there are none kernels are compiled on first use.
"""

import functools
import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splitmeans.kernels.object_code import RETURNS, ObjectCode

# What a processor of each level can do, in LLVM's words; the highest level first.
_V3 = ("avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
LEVELS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "linux-x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3},
}
FOLDER = Path(__file__).parent / "ready"


def system() -> str:
    """Name this kind of system, as in `LEVELS`."""
    return f"{sys.platform}-{platform.machine()}"


def ready(name: str) -> ObjectCode | None:
    """Return the code of a kernel, by the name that its file would have; None if there is none."""
    kernels, data = _file()
    told = kernels.get(name)
    if told is None:
        return None
    code = data[told["start"] : told["start"] + told["length"]]
    if told["sha256"] != hashlib.sha256(code).hexdigest() or told["returns"] not in RETURNS:
        return None
    return ObjectCode(symbol=told["symbol"], returns=told["returns"], code=code)


def is_ready() -> bool:
    """Return whether there is code for this machine."""
    return bool(_file()[0])


def write_ready(path: Path, kernels: Mapping[str, ObjectCode]) -> None:
    """Write the code of kernels, by the names that their files would have."""
    told, start = {}, 0
    for name, made in sorted(kernels.items()):
        told[name] = {
            "symbol": made.symbol,
            "returns": made.returns,
            "sha256": hashlib.sha256(made.code).hexdigest(),
            "start": start,
            "length": len(made.code),
        }
        start += len(made.code)
    head = json.dumps({"sources": sources_digest(), "kernels": told}).encode()
    path.write_bytes(head + b"\n" + b"".join(kernels[name].code for name in told))


@functools.cache
def sources_digest() -> str:
    """Return a digest of all kernels' sources."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


@functools.cache
def _file() -> tuple[Mapping[str, Any], bytes]:
    """Read the file for this machine; nothing if there is none, or if it is not whole."""
    for level, needed in LEVELS.get(system(), {}).items():
        try:
            head, _, data = (FOLDER / f"{level}.code").read_bytes().partition(b"\n")
            told = json.loads(head)
            if told["sources"] == sources_digest() and _features().issuperset(needed):
                return told["kernels"], data
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}, b""


def _features() -> frozenset[str]:
    import llvmlite.binding as llvm

    return frozenset(word for word, has in llvm.get_host_cpu_features().items() if has)
