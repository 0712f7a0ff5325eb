"""What would fail after a charge is told before joining, all of it at once."""

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any

import pytest

from splitmeans.errors import MailboxError, ParameterError
from splitmeans.mailbox.open import MailboxLimits, open_mailbox
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.settle import make_plan
from splitmeans.run import preflight
from splitmeans.run.preflight import Preflight
from splitmeans.study import Budget, DecoyOptions
from splitmeans.wire.slot import SERVER
from tests.scene import make_study, numbers

# One column, ten thousand users: whose number decides about sizes.
agreed_study = functools.partial(
    make_study,
    names=("bank", "shop"),
    columns=numbers("x", high=1),
    budget=Budget(epsilon=1, delta=1e-9),
    n_local_clusters=3,
    expected_users=10_000,
)


class Box:
    """A mailbox that says what it takes; it is asked for nothing else."""

    def __init__(self, **limits: Any) -> None:
        facts = {"max_message_bytes": None, "free_bytes": None, "clock_offset": None}
        self.answer = MailboxLimits(**facts | limits)

    def limits(self, study_hash: str) -> MailboxLimits:
        assert len(study_hash) == 64
        return self.answer


def problems(tmp_path: Path, *, who: str = "bank", rows: int | None = None, **changes: Any):
    facts: dict[str, Any] = {
        "study": agreed_study(),
        "participant": who,
        "home": tmp_path / "home",
        "result_folder": tmp_path / "result",
        "mailbox": Box(),
    }
    return Preflight(**facts | changes).problems(rows=rows)


@pytest.mark.parametrize("who", ["bank", "shop", SERVER])
def test_nothing_is_wrong(tmp_path, who):
    assert problems(tmp_path, who=who) == []
    assert problems(tmp_path, who=who, mailbox=None) == []
    mailbox = open_mailbox(str(tmp_path))
    assert problems(tmp_path, who=who, mailbox=mailbox, rows=10) == []
    assert not [path for path in tmp_path.iterdir() if path.name not in ("home", "result")]


def test_a_message_is_larger_than_the_mailbox_takes(tmp_path):
    release = message_sizes(make_plan(agreed_study()), users=15_000).releases["bank"]
    fits = Box(max_message_bytes=release)
    assert problems(tmp_path, mailbox=fits) == []
    (problem,) = problems(tmp_path, mailbox=Box(max_message_bytes=release - 1))
    assert "--max-message" in problem
    assert "folder" in problem


def test_the_number_of_rows_decides_only_beyond_what_the_study_makes_room_for(tmp_path):
    """On tables near the expected size the answer follows from public facts alone (rule R12)."""
    release = message_sizes(make_plan(agreed_study()), users=15_000).releases["bank"]
    box = Box(max_message_bytes=release)
    for rows in (1, 9_999, 10_000, 10_001, 15_000):
        assert problems(tmp_path, mailbox=box, rows=rows) == []
    assert problems(tmp_path, mailbox=box, rows=15_001)


def test_room_is_asked_for_in_doubling_steps(tmp_path):
    """It tells the rows of a table beyond expectation to a factor of two."""
    release = message_sizes(make_plan(agreed_study()), users=30_000).releases["bank"]
    for rows in (15_001, 20_000, 30_000):
        assert problems(tmp_path, mailbox=Box(max_message_bytes=release), rows=rows) == []
        assert problems(tmp_path, mailbox=Box(max_message_bytes=release - 1), rows=rows)
    assert problems(tmp_path, mailbox=Box(max_message_bytes=release), rows=30_001)


def test_the_mailbox_has_no_room_for_the_whole_run(tmp_path):
    sizes = message_sizes(make_plan(agreed_study()), users=15_000)
    everything = sum(sizes.releases.values()) + sum(sizes.small.values()) + 3 * sizes.result
    assert problems(tmp_path, mailbox=Box(free_bytes=everything)) == []
    for who in ("bank", SERVER):
        (problem,) = problems(tmp_path, who=who, mailbox=Box(free_bytes=everything - 1))
        assert "room" in problem


@pytest.mark.parametrize("offset", [-1000.0, 250.0])
def test_the_clocks_are_apart(tmp_path, offset):
    (problem,) = problems(tmp_path, mailbox=Box(clock_offset=offset))
    assert f"{abs(offset):.0f} seconds off" in problem
    assert problems(tmp_path, mailbox=Box(clock_offset=offset / 100)) == []


def test_a_table_is_far_too_large_for_any_reader(tmp_path):
    (problem,) = problems(tmp_path, rows=500_000_000)
    assert "1.07 GB" in problem
    assert "expected_users" in problem


def test_the_result_folder_holds_something_else(tmp_path):
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "thesis.doc").touch()
    (problem,) = problems(tmp_path)
    assert "holds something else than a result" in problem


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a place nobody can write to")
def test_the_result_folder_cannot_be_written(tmp_path):
    found = problems(tmp_path, result_folder=Path("/proc/self/result"))
    assert any("--result" in problem for problem in found)


def test_the_disks_are_full(tmp_path, monkeypatch):
    usage = dataclasses.make_dataclass("usage", ["free"])
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda place: usage(free=10_000))
    found = problems(tmp_path)
    assert len(found) == 2
    assert "home" in found[1]
    assert "result" in found[0]
    assert all("10 kB left" in problem for problem in found)


def test_all_problems_are_told_at_once(tmp_path):
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "thesis.doc").touch()
    box = Box(max_message_bytes=1, free_bytes=1, clock_offset=9999.0)
    with pytest.raises(ParameterError, match="must not join yet") as caught:
        Preflight(
            study=agreed_study(),
            participant="bank",
            home=tmp_path,
            result_folder=tmp_path / "result",
            mailbox=box,
        ).check()
    assert str(caught.value).count("\n- ") == 4


def test_a_mailbox_that_is_not_there_is_an_error_of_its_own(tmp_path):
    if os.name != "posix":
        pytest.skip("paths")
    box = open_mailbox(str(tmp_path))
    tmp_path.rename(tmp_path.with_name("moved"))
    try:
        with pytest.raises(MailboxError):
            problems(tmp_path.with_name("moved"), mailbox=box)
    finally:
        tmp_path.with_name("moved").rename(tmp_path)


def test_a_plan_whose_messages_nobody_reads_is_refused():
    four = [f"org{n}" for n in range(4)]
    heavy = agreed_study(names=four, n_local_clusters=250, budget=Budget(epsilon=0.02, delta=1e-9))
    with pytest.raises(ParameterError, match=r"no participant reads more than 1\.07 GB"):
        make_plan(heavy)
    sampled = agreed_study(expected_users=10**9, budget=Budget(epsilon=1, delta=5e-10))
    sampled = dataclasses.replace(sampled, decoy=DecoyOptions(max_users=10**6))
    make_plan(sampled)
