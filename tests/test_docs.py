"""The documentation stays true: code runs, links resolve, commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
COMMAND = re.compile(
    r"splitmeans (demo|audit|(?:bench|keys|study|party|server|ledger|result) [a-z]+|relay serve)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_commands_exist() -> None:
    from typer.main import get_command

    from splitmeans.cli import app

    root = get_command(app)
    for page in PAGES:
        for name in COMMAND.findall(page.read_text()):
            group, *rest = name.split()
            command = root.get_command(None, group)  # type: ignore[attr-defined, arg-type]
            assert command is not None, name
            assert not rest or rest[0] in command.commands, name  # type: ignore[attr-defined]


def test_readme_code_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        # A process of its own, as a reader would run it, with the system's noise.
        done = subprocess.run(
            [sys.executable, "-c", block],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Privacy of study" in done.stdout


def test_readme_study_is_a_study() -> None:
    from splitmeans import PrivacyReport, Study

    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    study = Study.from_toml(text)
    assert study.party("bank").id_column == "customer"
    assert PrivacyReport.for_study(study).epsilon <= 1
