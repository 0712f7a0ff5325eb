"""Who is missing in a run: what `status` says, compared with what a run does."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from splitmeans.cli.status import app
from splitmeans.mailbox.open import open_mailbox
from splitmeans.run.journal import Journal
from splitmeans.run.order import Due, MessageOrder
from splitmeans.run.records import known_runs
from splitmeans.run.status import Watcher, status_by_mailbox
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER
from tests.evidence.conftest import EVERYONE, play
from tests.scene import keyed_study

STUDY = keyed_study(n_local_clusters="auto")


def by_mailbox(folder: Path, study: Study = STUDY):  # type: ignore[no-untyped-def]
    url = str(folder / "mailbox")
    return status_by_mailbox(study, "q1", Watcher(url=url, mailbox=open_mailbox(url)))


def test_the_order_is_the_one_of_a_run(tmp_path: Path) -> None:
    """After every start of a participant the order's next messages are those that are missing."""
    (tmp_path / "mailbox").mkdir()
    assert by_mailbox(tmp_path).state == "not begun"
    order = MessageOrder(STUDY)
    seen_turns = set()
    for _ in range(12):
        for name in EVERYONE:
            play(STUDY, tmp_path, names=(name,), rounds=1)
            now = by_mailbox(tmp_path)
            if now.state == "finished":
                break
            assert now.missing, "a run that goes on has somebody whose turn it is"
            # Whose turn it is has what it needs: one start of each of them changes what is missing.
            seen_turns.add(now.missing)
        if now.state == "finished":
            break
    assert now.state == "finished"
    assert len(seen_turns) > 4
    ran = play(STUDY, tmp_path)
    # Every message of the run is one that the order knows, and the other way round.
    paths = {one.path(STUDY, "q1") for who in EVERYONE for step in order.steps(who) for one in step}
    box = tmp_path / "mailbox"
    there = {str(file.relative_to(box)) for file in box.rglob("*") if file.is_file()}
    own = Due(SERVER, SERVER, "PublishedResult").path(STUDY, "q1")
    assert {path for path in there if "/." not in path} == paths | {own}
    assert ran.result("bank").facts["run"] == "q1"


@pytest.fixture
def two_of_three(tmp_path: Path) -> Path:
    """The bank and the server have begun, the shop has not."""
    play(STUDY, tmp_path, names=("bank", SERVER), rounds=2)
    return tmp_path


def ask(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def test_a_home_tells_who_is_missing(two_of_three: Path) -> None:
    code, text = ask("--home", str(two_of_three / "bank"), "--json")
    (one,) = json.loads(text)
    assert code == 3
    assert (one["state"], one["stage"]) == ("waiting", "Joined")
    assert [(m["sender"], m["kind"]) for m in one["missing"]] == [("shop", "Hello")]
    assert one["since"].endswith("Z")
    code, text = ask("--home", str(two_of_three / SERVER), "--json")
    (one,) = json.loads(text)
    assert {m["sender"] for m in one["missing"]} == {"shop"}


def test_a_mailbox_tells_whose_turn_it_is(two_of_three: Path) -> None:
    """Nobody can do anything before the shop begins."""
    box = str(two_of_three / "mailbox")
    code, text = ask("--home", str(two_of_three / SERVER), "--mailbox", box, "--json")
    (one,) = json.loads(text)
    assert code == 3
    assert {m["sender"] for m in one["missing"]} == {"shop"}
    code, text = ask("--home", str(two_of_three / "bank"), "--mailbox", box)
    assert code == 3
    assert "shop: Hello" in text


def test_what_is_there_and_was_not_taken(two_of_three: Path) -> None:
    play(STUDY, two_of_three, names=("shop",), rounds=1)
    box = str(two_of_three / "mailbox")
    code, text = ask("--home", str(two_of_three / "bank"), "--mailbox", box)
    assert code == 3
    assert "start its command again" in text


def test_without_a_home(two_of_three: Path) -> None:
    file = two_of_three / "study.toml"
    file.write_text(STUDY.to_toml())
    none, box = str(two_of_three / "nobody"), str(two_of_three / "mailbox")
    code, text = ask(str(file), "--home", none, "--mailbox", box, "--run", "q1", "--json")
    (one,) = json.loads(text)
    assert code == 3
    assert one["participant"] is None
    assert {m["sender"] for m in one["missing"]} == {"shop"}
    assert one["since"]
    assert not Path(none).exists()  # a look makes no home


def test_a_finished_and_a_failed_run(tmp_path: Path) -> None:
    play(STUDY, tmp_path)
    home = str(tmp_path / "bank")
    code, text = ask("--home", home)
    assert code == 0
    assert "no run is waiting" in text
    code, text = ask("--home", home, "--all", "--json")
    assert json.loads(text)[0]["state"] == "finished"
    with Journal.open(tmp_path / "bank") as journal:
        (known,) = known_runs(journal.connection)
        key = type(known.key)(study_hash=STUDY.hash, run="q2", participant="bank")
        journal.begin(key, details={"study": "small"}, state=b"")
        journal.finish(key, outcome="failed", reason="the shop sent nonsense")
    code, text = ask("--home", home)
    assert code == 1
    assert "the shop sent nonsense" in text


def test_nothing_to_look_at(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--home", str(tmp_path / "none")])
    assert "has no runs" in str(done.exception)
