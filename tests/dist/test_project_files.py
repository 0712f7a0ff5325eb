"""Files around the code that must say the same thing in two places."""

import re
from pathlib import Path

import pytest
import yaml

from splitmeans import __version__

ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def own_targets(script: str) -> list[str]:
    """Return the targets that a script makes, in order."""
    return re.findall(r"^make ([a-z]+)$", script, flags=re.MULTILINE)


def public_targets(workflow: str) -> list[str]:
    """Return the targets that the public workflow makes, in order."""
    job = yaml.safe_load(workflow)["jobs"]["make"]
    commands = [step["run"] for step in job["steps"] if "make " in step.get("run", "")]
    made = [command for command in commands if command.startswith("make ")]
    assert made == ["make ${{ matrix.target }}"]
    targets: list[str] = job["strategy"]["matrix"]["target"]
    return targets


def test_both_ci_scripts_make_the_same_targets() -> None:
    targets = own_targets(read(".ci/run"))
    assert targets == public_targets(read(".github/workflows/ci.yml"))
    assert {"check", "test", "docs", "dist"} <= set(targets)
    (phony,) = re.findall(r"^\.PHONY: (.*)$", read("Makefile"), flags=re.MULTILINE)
    assert set(targets) <= set(phony.split())
    # Whatever the own script runs is a target: anything else would be missing in public.
    lines = read(".ci/run").splitlines()
    rest = [line for line in lines if line and not line.startswith(("#", "make ", "set ", "cd "))]
    assert rest == []


def test_a_target_that_is_missing_in_public_is_noticed() -> None:
    workflow = read(".github/workflows/ci.yml").replace("guides, ", "")
    assert own_targets(read(".ci/run")) != public_targets(workflow)


def test_hooks_are_the_tools_of_the_lock_file() -> None:
    """No hook brings a version of its own, and each is a line of `make check`."""
    repositories = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", read("Makefile"), flags=re.MULTILINE)
    assert recipe is not None
    wanted = re.findall(r"\$\(BIN\)/(ruff format|ruff check|mypy)", recipe[1])
    hooks = repositories[0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["name"] for hook in hooks] == wanted
    assert all(hook["entry"].startswith(f".venv/bin/{hook['name']}") for hook in hooks)
    tools = {name.partition("==")[0] for name in read("requirements.lock").splitlines()}
    assert {hook["name"].partition(" ")[0] for hook in hooks} <= tools


def sections(changelog: str) -> list[str]:
    return re.findall(r"^## (.*)$", changelog, flags=re.MULTILINE)


def test_version_changelog_and_citation_agree() -> None:
    first, *released = sections(read("CHANGELOG.md"))
    assert first == "Unreleased"
    dated = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})", one) for one in released]
    assert all(dated), released
    assert dated[0] is not None
    citation = yaml.safe_load(read("CITATION.cff"))
    newest = (citation["version"], citation["date-released"].isoformat())
    assert dated[0].groups() == newest
    assert __version__ == newest[0]
    minor = __version__.rpartition(".")[0]
    assert re.search(rf"^\| {re.escape(minor)} \| yes \|$", read("SECURITY.md"), re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["SECURITY.md", *(f".github/ISSUE_TEMPLATE/{n}.md" for n in ("bug", "idea"))]
)
def test_links_of_these_pages_lead_somewhere(page: str) -> None:
    _check_links(page)


def test_the_privacy_question_links_what_to_read() -> None:
    assert _check_links(".github/ISSUE_TEMPLATE/privacy-question.md") == 3


def _check_links(page: str) -> int:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page))
    for target in targets:
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"
    return len(targets)


def test_templates_have_what_the_platform_wants() -> None:
    for template in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        _, head, body = template.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about", "labels"} <= set(yaml.safe_load(head)), template
        assert body.strip()


def test_the_build_is_pinned() -> None:
    """The build tool is an extra for developers, so the lock file has its version."""
    assert re.search(r"^hatchling==", read("requirements.lock"), flags=re.MULTILINE)
    (needs,) = re.findall(r'^requires = \["(.*)"\]$', read("pyproject.toml"), flags=re.MULTILINE)
    assert f'  "{needs}",\n' in read("pyproject.toml")


def test_an_installation_from_the_lock_file_resolves_nothing() -> None:
    """The lock file is whole; a resolver beside it stumbles over releases that are newer."""
    installs = re.findall(r"^.*pip install.*-r requirements\.lock.*$", read("Makefile"), re.MULTILINE)
    assert installs
    assert all("--no-deps" in line for line in installs)


def test_no_package_index_is_named() -> None:
    """Where packages come from is a matter of each machine."""
    for name in ("requirements.lock", "pyproject.toml", "Makefile", "tests/dist/run.py"):
        assert "://" not in read(name), name
