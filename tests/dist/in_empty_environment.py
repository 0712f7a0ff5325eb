"""Runs in an environment that has the wheel and what it requires, and nothing else.

Standard library and splitmeans only: this file is copied next to nothing of the repository.
"""

import importlib
import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Use the installed package as a newcomer does; any failure ends it."""
    facts = json.loads(sys.argv[1])
    command = str(Path(sys.executable).parent / "splitmeans")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == facts["version"], said.stdout
    _check_imports({name.replace("-", "_") for name in facts["extras"]})
    _fit()
    subprocess.run([command, "demo", "--users", "1000", "--output", "demo", "-q"], check=True)
    subprocess.run([command, "report", "demo", "-o", "page.html", "--ks", "2-4", "-q"], check=True)
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>"), page[:80]
    assert "<style>" in page
    assert 'id="segments"' in page
    assert "$" not in page.partition("<body>")[2].partition("<script")[0], (
        "a template is not filled"
    )
    return 0


def _check_imports(extras: set[str]) -> None:
    """Every module loads, or says which package of an extra it lacks."""
    import splitmeans
    from splitmeans.errors import SplitmeansError

    assert "site-packages" in str(splitmeans.__file__), splitmeans.__file__
    loaded = 0
    for module in pkgutil.walk_packages(splitmeans.__path__, "splitmeans."):
        if module.name == "splitmeans.__main__":
            continue
        try:
            importlib.import_module(module.name)
            loaded += 1
        except ModuleNotFoundError as problem:
            lacking = (problem.name or "").partition(".")[0]
            assert lacking in extras, f"{module.name} needs {lacking}, which is no requirement"
        except SplitmeansError as problem:
            if 'pip install "splitmeans[' not in str(problem):
                raise
    assert loaded > 100, loaded


def _fit() -> None:
    import numpy as np

    from splitmeans import VerticalKMeans

    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, size=10_000)
    bank = group[:, np.newaxis] * 6.0 + rng.normal(size=(10_000, 2))
    shop = group[:, np.newaxis] * 6.0 + rng.normal(size=(10_000, 1))
    model = VerticalKMeans(n_clusters=2, epsilon=8.0, bounds=(-10.0, 20.0), random_state=0)
    model.fit([bank, shop])
    labels = model.predict([bank, shop])
    agreed = float(np.mean(labels == group))
    assert max(agreed, 1 - agreed) > 0.95, agreed


if __name__ == "__main__":
    sys.exit(main())
