"""The fenced blocks of a page, and what the page says about running them.

Comments in a page, which readers do not see:

    <!-- not run: REASON -->   before a block: it is not run, and why; reasons are `REASONS`
    <!-- after: PAGE -->       the page goes on in the folder in which PAGE was run
    <!-- run by: TEST -->      another test file runs the page
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Why a block may be left out. "shortened from PAGE": PAGE runs all its commands. "needs a study or
# result of your own": tests of the command in tests/cli run it.
REASONS = (
    "installs packages",
    "takes minutes",
    "configuration of another program",
    "needs other machines",
    "needs a lost home",
    "needs a study or result of your own",
    r"shortened from [\w./-]+\.md",
)

_FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]*?) -->\s*\n)?"
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def runs(self) -> bool:
        """Whether it is pasted into a shell, or saved as a file and run there."""
        return self.language in ("bash", "python") and self.reason is None

    @property
    def commands(self) -> list[str]:
        """Its lines, with those that a backslash continues joined."""
        return self.text.replace("\\\n", " ").splitlines()

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return all blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        indent = match["indent"]
        lines = (line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, match.start("language")) + 1,
                language=match["language"].strip(),
                text="".join(lines),
                reason=match["reason"],
            )
        )
    return found


def remark(page: Path, kind: str) -> str | None:
    """Return what a page says with `<!-- kind: ... -->`, if it does."""
    found = re.search(rf"<!-- {re.escape(kind)}: (\S+) -->", page.read_text(encoding="utf-8"))
    return found[1] if found else None


def name_of(page: Path) -> str:
    """Return the page's path in the repository."""
    return str(page.relative_to(ROOT))
