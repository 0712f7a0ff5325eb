"""Compiling ahead: every kernel is called, with the types that real work has."""

import logging
import os

import numpy as np
import pytest

from splitmeans import VerticalKMeans
from splitmeans.kernels import warm_up as module
from splitmeans.kernels.compiled import Kernel
from splitmeans.kernels.warm_up import is_warm, warm_up

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def kernels():
    """All compiled functions of the package's kernels by name."""
    import importlib
    import pkgutil

    import splitmeans.kernels as package

    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"splitmeans.kernels.{info.name}")
        for name, value in vars(loaded).items():
            if isinstance(value, Kernel):
                found[f"{value.function.__module__}.{name}"] = value
    return found


@pytest.mark.skipif(DISABLED, reason="nothing is compiled")
def test_a_fit_after_it_compiles_no_more():
    module._call_all()
    before = {name: len(kernel.linked) for name, kernel in kernels().items()}
    # A kernel that only other kernels call has none.
    assert sum(count > 0 for count in before.values()) >= 17
    rng = np.random.default_rng(0)
    for options in ({}, {"membership": "sketch"}):
        X = [rng.normal(scale=0.2, size=(500, 2)) for _ in range(2)]
        VerticalKMeans(2, bounds=(-2, 2), random_state=0, **options).fit(X)
    after = {name: len(kernel.linked) for name, kernel in kernels().items()}
    assert after == before


def test_it_says_so_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "object_folder", lambda: tmp_path / "new")
    assert not is_warm()
    said = []
    warm_up(said.append)
    assert len(said) == 1
    assert "compiling kernels" in said[0]
    assert is_warm()
    warm_up(said.append)
    assert len(said) == 1
    (tmp_path / "new" / "all-compiled").unlink()
    with caplog.at_level(logging.INFO):
        warm_up()
    assert "compiling kernels" in caplog.text
