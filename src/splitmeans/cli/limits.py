"""Limits of this process that would make it hang or die without a word."""

import os
import resource

from splitmeans.errors import ParameterError

# Measured: libraries for arrays reserve this much when they are loaded, and some for every
# processor. Where they get less, one of them tries for ever (OpenBLAS), others end the process.
_NEEDED = 5 * 2**29
_FOR_EACH_PROCESSOR = 2**28


def check_address_space() -> None:
    """Refuse a limit on addresses (`ulimit -v`) that is too small for the libraries in use."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _NEEDED + _FOR_EACH_PROCESSOR * (os.cpu_count() or 1)
    if limit == resource.RLIM_INFINITY or limit >= needed:
        return
    raise ParameterError(
        f"the limit on address space (ulimit -v) must be at least {needed / 2**30:.1f} GiB on this "
        f"machine, got {limit / 2**30:.1f} GiB: libraries reserve that much and use little of it; "
        "raise it, and limit memory itself by a container or systemd instead"
    )
