"""Where compiled kernels are kept."""

import numba
import numpy as np

from splitmeans._version import __version__
from splitmeans.kernels import compiled
from splitmeans.kernels.assign import _decide, nearest


def test_the_folder_names_version_and_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled.cache_folder.cache_clear()
    try:
        folder = compiled.cache_folder()
    finally:
        compiled.cache_folder.cache_clear()
    assert folder.parent == tmp_path / "splitmeans"
    assert folder.name.startswith(f"kernels-{__version__}-")


def test_kernels_are_stored_there_and_other_packages_are_left_alone():
    assert str(numba.config.CACHE_DIR) != str(compiled.cache_folder())
    nearest(np.array([[1]]), np.array([[0]]))
    if not numba.config.DISABLE_JIT:
        stored = _decide.stats.cache_path
        assert str(compiled.cache_folder()) in stored
