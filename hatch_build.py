"""Puts compiled kernels into a wheel, if SPLITMEANS_OBJECT_CODE names the folder that has them.

Such a wheel is for one platform and its tag says so. `make dist` builds it beside the one for all
platforms, which has no compiled code; `python -m splitmeans.kernels.make_ready` fills the folder.
"""

import os
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[misc]
    """Adds the files and the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tell the builder what a wheel has besides the package."""
        folder = os.environ.get("SPLITMEANS_OBJECT_CODE")
        if not folder or version != "standard":
            return
        files = sorted(Path(folder).glob("*.code"))
        if sys.platform != "linux" or not files:
            raise SystemExit(f"SPLITMEANS_OBJECT_CODE: {folder} has no code for a wheel of Linux")
        for file in files:
            build_data["force_include"][str(file)] = f"splitmeans/kernels/ready/{file.name}"
        # The code needs nothing but the C library, and numba's own wheels need this one of it.
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_28_{platform.machine()}"
