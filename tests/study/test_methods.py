"""Methods are data: registries agree and records are complete."""

import ast
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import splitmeans
from splitmeans.membership import methods
from splitmeans.party import memberships
from splitmeans.study.methods import (
    MEMBERSHIPS,
)
from splitmeans.wire import messages
from splitmeans.wire.tags import tag_of

ROOT = Path(splitmeans.__file__).parent


def test_all_registries_have_the_names_that_a_study_takes() -> None:
    assert list(MEMBERSHIPS) == list(methods.METHODS) == list(memberships.PARTY_SIDES)


@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_the_record_of_a_membership_method_is_complete(name: str) -> None:
    method, facts = methods.METHODS[name], MEMBERSHIPS[name]
    assert facts is method.facts
    assert facts.name == name
    assert (method.server_noise is not None) == facts.hides_from_parties
    assert method.message in typing.get_args(messages.MembershipMessage)
    assert tag_of(method.law)


def test_every_law_and_message_belongs_to_one_method() -> None:
    used = [method.message for method in methods.METHODS.values()]
    assert sorted(used, key=tag_of) == sorted(
        typing.get_args(messages.MembershipMessage), key=tag_of
    )
    laws = [method.law for method in methods.METHODS.values()]
    assert len(set(laws)) == len(laws)


def test_a_server_loads_nothing_that_sees_rows() -> None:
    """Plans and servers read laws; tables, encoders and local algorithms stay with the parties."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, splitmeans.run.server; print(*sorted(sys.modules))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "splitmeans.membership.methods" in loaded
    public = {"splitmeans.local.law"}
    seen = [
        name
        for name in loaded
        if name.startswith(("splitmeans.party.", "splitmeans.table"))
        or (name.startswith("splitmeans.membership") and name.endswith(".encode"))
        or (
            name.startswith("splitmeans.local.")
            and not name.startswith("splitmeans.local.laws")
            and name not in public
        )
    ]
    assert seen == []


def _compared(path: Path) -> set[str]:
    """All texts that a file compares something with, or matches it by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare | ast.MatchValue):
            found |= {
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
    return found


# The command line and reports may name a method in words; the paper has methods of its own.
_ABOUT_METHODS = ("paper",)


def test_no_code_asks_for_a_method_by_its_name() -> None:
    names = set(MEMBERSHIPS)
    asking = {
        str(path.relative_to(ROOT)): sorted(_compared(path) & names)
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in _ABOUT_METHODS and _compared(path) & names
    }
    assert asking == {}


def test_the_check_for_names_can_fail(tmp_path: Path) -> None:
    file = tmp_path / "asks.py"
    file.write_text('x in ("decoy", "b")\nmatch x:\n    case "sketch":\n        pass\n')
    assert _compared(file) == {"decoy", "b", "sketch"}
