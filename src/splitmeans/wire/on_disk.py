"""Large messages that wait on disk until they are read, so that memory has one at a time.

The file has no name (it goes with the process, however that ends) and nobody else can open it. The
message's arrays are views of it: the system reads what is used and drops it when it needs room.
"""

import mmap
import os
import tempfile
from pathlib import Path
from typing import TypeVar

from splitmeans.errors import HomeUnavailable
from splitmeans.wire.codec import decode, encoded_parts

M = TypeVar("M")

# A message up to this size is left in memory.
HELD_BYTES = 2**25


def kept_on_disk(message: M, folder: Path, *, held: int = HELD_BYTES) -> M:
    """Return the same message with its arrays on disk, if it is large.

    A message of up to `held` bytes is returned itself.

    Raises:
        HomeUnavailable: The disk does not take it.
    """
    size = sum(len(part) for part in encoded_parts(message))
    if size <= held:
        return message
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for part in encoded_parts(message):
                file.write(part)
            file.flush()
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as problem:
        raise HomeUnavailable(
            f"{folder}: a release of {size / 2**20:.0f} MiB cannot be kept here until it is joined "
            f"({os.strerror(problem.errno or 0)}); make room and start the same command again"
        ) from problem
    kept: M = decode(data)
    return kept
