"""One broken version of the code, and all of them."""

import importlib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
AREAS = Path(__file__).parent / "areas"


class Mutant(NamedTuple):
    """A textual change of one file that some fast test must notice.

    Attributes:
        file: The file, from the root of the project.
        old: Text that it has exactly once.
        new: What stands there in the broken version.
        breaks: What no longer holds.
        tests: Test files, or tests (`file.py::name`), of which one must fail.
    """

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> str:
        """Return the text of the file with the change.

        Raises:
            ValueError: The old text does not occur exactly once, or the new file is no Python.
        """
        text = (root / self.file).read_text(encoding="utf-8")
        times = text.count(self.old)
        if times != 1:
            raise ValueError(f"{self.file} has {self.old!r} {times} times, expected once")
        changed = text.replace(self.old, self.new)
        compile(changed, self.file, "exec")
        return changed


def all_mutants() -> dict[str, list[Mutant]]:
    """Return the mutants of every file in `areas/`, by its name."""
    names = sorted(path.stem for path in AREAS.glob("[a-z]*.py"))
    return {name: importlib.import_module(f"tests.mutants.areas.{name}").MUTANTS for name in names}
