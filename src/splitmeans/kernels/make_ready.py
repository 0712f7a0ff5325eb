"""Make the object code of all kernels that a wheel brings (`ready.py`): a file for each level.

    python -m splitmeans.kernels.make_ready FOLDER

Every level has a process of its own, in which numba compiles for that level and nothing that was
compiled before is found.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from splitmeans.errors import SplitmeansError
from splitmeans.kernels.object_code import stored
from splitmeans.kernels.ready import LEVELS, is_ready, system, write_ready

_COMPILE = """
from splitmeans.kernels.compiled import object_folder
from splitmeans.kernels.warm_up import warm_up
warm_up()
print(object_folder())
"""


def make_ready(folder: Path) -> list[Path]:
    """Write the files for this system and return them; none on a system that has no levels."""
    if is_ready():
        raise SplitmeansError(
            "this copy of splitmeans has compiled kernels; make them from sources"
        )
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for level in LEVELS.get(system(), {}):
        with tempfile.TemporaryDirectory(prefix="splitmeans-kernels-") as empty:
            # A level's name says all that it can do, but for the width of vectors that it prefers.
            wide = "-prefer-256-bit" if level == "x86-64-v4" else ""
            chosen = {
                "NUMBA_CACHE_DIR": empty,
                "NUMBA_CPU_NAME": level,
                "NUMBA_CPU_FEATURES": wide,
            }
            done = subprocess.run(
                [sys.executable, "-c", _COMPILE],
                env=os.environ | chosen,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            where = Path(done.stdout.strip())
            found = {file.name: stored(where, file.name) for file in where.iterdir()}
        kernels = {name: code for name, code in found.items() if code is not None}
        if not kernels:
            raise SplitmeansError("numba made no object code; is its version one of KNOWN_NUMBA?")
        path = folder / f"{level}.code"
        write_ready(path, kernels)
        made.append(path)
    return made


if __name__ == "__main__":
    for file in make_ready(Path(sys.argv[1])):
        sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")
