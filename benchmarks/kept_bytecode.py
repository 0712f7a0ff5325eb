"""Processes that are timed have Python's bytecode from a run before, as installed packages do.

Where the environment says that Python is to keep none (`PYTHONDONTWRITEBYTECODE`), every process
would compile all modules of a copy of the repository anew, and most of the time would be that.
"""

import atexit
import functools
import os
import sys
import tempfile


@functools.cache
def environment() -> dict[str, str]:
    """Return the environment for processes that are timed; bytecode is not kept beyond this one."""
    found = dict(os.environ)
    if sys.dont_write_bytecode:
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        kept = tempfile.TemporaryDirectory(prefix="splitmeans-bytecode-")
        atexit.register(kept.cleanup)
        found["PYTHONPYCACHEPREFIX"] = kept.name
    return found
