"""What this machine still has for a process; None where the system does not tell."""

import contextlib
import resource
from pathlib import Path

_MEMORY = Path("/proc/meminfo")
# Limits of a container, in the two forms that Linux has.
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available_memory() -> int | None:
    """Return how many bytes this process may still take without swapping or being ended."""
    known = [size for size in (_free(), _left_in_group(), _address_space()) if size is not None]
    return min(known, default=None)


def _free() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _MEMORY.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_in_group() -> int | None:
    for limit, used in _GROUPS:
        # "max" stands for no limit.
        with contextlib.suppress(OSError, ValueError):
            return max(0, int(limit.read_text("ascii")) - int(used.read_text("ascii")))
    return None


def _address_space() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
