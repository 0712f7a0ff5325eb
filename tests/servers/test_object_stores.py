"""Whole runs over a real S3 API and Azure's emulator; what a store refuses, and kills."""

import contextlib
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from splitmeans.errors import MailboxError, MailboxUnavailable, MessageExists
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.object_store import ObjectStore
from splitmeans.mailbox.open import MessagePath
from splitmeans.mailbox.retries import Retries
from splitmeans.wire.slot import Slot
from tests.e2e.checks import check_charges, check_ends
from tests.e2e.world import EVERYONE, PARTIES, World, agree

from .stores import (
    BUCKET,
    Line,
    Store,
    _environment,
    check_rights,
    free_port,
    serve_azure,
    serve_s3,
    user_of_s3,
)

STUDY = "c0ffee" + "0" * 58
ONCE = Retries(seconds=0)
LARGE = 40 << 20


@pytest.fixture(scope="module", params=["s3", "azure"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    serve = {"s3": serve_s3, "azure": serve_azure}[request.param]
    with serve(tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Store]:
    with serve_s3(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(folder=tmp_path_factory.mktemp("agreed"))
    try:
        agree(world)
    finally:
        world.end()
    return world


@pytest.fixture
def world(agreed: World, tmp_path: Path) -> Iterator[World]:
    world = agreed.copy(tmp_path / "world")
    yield world
    world.end()


def new_path() -> MessagePath:
    run = f"r{secrets.token_hex(4)}"
    slot = Slot(study_hash=STUDY, run=run, sender="bank", receiver="server", kind="PartyRelease")
    return MessagePath.parse(slot.path)


# ---- whole runs ----


def test_a_whole_run(store: Store, world: World) -> None:
    options = ("--mailbox", store.url)
    commands = {who: world.take_part(who, *options, env=store.env) for who in EVERYONE}
    check_ends(world, {who: command.done() for who, command in commands.items()})
    check_charges(world)
    found = store.objects()
    assert len([name for name in found if "partyrelease" in name]) == len(PARTIES)
    assert not [name for name in found if name.endswith(".part")]
    # Once more: everything is there, and nothing is charged or sent again.
    again = world.take_part("bank", *options, env=store.env).done()
    assert again.code == 0, again.err
    check_charges(world)
    assert store.objects() == found


def test_a_party_killed_while_it_uploads_goes_on_with_the_same_bytes(
    s3: Store, world: World
) -> None:
    """The line stops in the middle of the release, then the party is killed."""
    line = Line(s3.port)
    options = ("--mailbox", s3.url)
    others = {who: world.take_part(who, *options, env=s3.env) for who in EVERYONE if who != "bank"}
    victim = world.take_part("bank", *options, env=s3.at(line.port))
    for who in ("shop", "clinic"):
        victim.until(f"took Confirmation from {who}")
    line.allowed = 12_000  # further polls pass, and the beginning of the release
    assert line.stuck.wait(60)
    victim.until("charged epsilon")
    victim.process.send_signal(signal.SIGKILL)
    victim.done()
    assert not [name for name in s3.objects() if _is_release_of(name, "bank")]
    done = {"bank": world.take_part("bank", *options, env=s3.env).done()}
    done |= {who: command.done() for who, command in others.items()}
    check_ends(world, done)
    check_charges(world)
    (sent,) = [data for name, data in s3.objects().items() if _is_release_of(name, "bank")]
    charged = json.dumps(world.ledger("bank"))
    assert hashlib.sha256(sent).hexdigest() in charged
    line.close()


def _is_release_of(name: str, who: str) -> bool:
    short = hashlib.sha256(who.encode()).hexdigest()[:16]
    return "partyrelease" in name and f".{short}." in name


# ---- one message in a slot ----


def test_a_large_message_goes_in_parts_and_comes_back(store: Store) -> None:
    first, other = (secrets.token_bytes(LARGE) for _ in range(2))
    place = new_path()
    with _environment(store.env):
        box = FileMailbox(store.url, retries=ONCE)
        path = "/".join(place.parts)
        box.put(path, first)
        back = box.get(path, max_bytes=LARGE)
        assert back is not None
        assert hashlib.sha256(back).digest() == hashlib.sha256(first).digest()
        with pytest.raises(MessageExists):
            box.put(path, other)
        # The write itself is refused, not only after a look at the slot.
        files = ObjectStore(store.url, timeout=30, options={})
        assert not files.create(place, other)
        assert files.create(new_path(), other)
        assert hashlib.sha256(files.read(place, max_bytes=LARGE) or b"").digest() == (
            hashlib.sha256(first).digest()
        )
        box.close()
    if store.kind == "s3":
        (tag,) = [info["ETag"] for info in _infos(store) if "/".join(place.parts) in info["name"]]
        assert tag.strip('"').endswith("-5"), "it was uploaded in one piece"


def _infos(store: Store) -> list[dict]:
    import fsspec

    with _environment(store.env):
        driver = fsspec.filesystem("s3", skip_instance_cache=True)
        return list(driver.find(BUCKET, detail=True).values())


@pytest.mark.parametrize("size", [100, 20 << 20])
def test_of_many_writers_one_succeeds(store: Store, size: int) -> None:
    n_writers, place = 4, new_path()
    # moto looks for the object and stores it in two steps, where S3 itself has one: between them
    # several writers may succeed, so that there one comes after another.
    at_once = store.kind != "s3"
    start = threading.Barrier(n_writers)
    with _environment(store.env):
        boxes = [ObjectStore(store.url, timeout=60, options={}) for _ in range(n_writers)]

        def write(number: int) -> bool:
            if at_once:
                start.wait()
            return boxes[number].create(place, bytes([number]) * size)

        with ThreadPoolExecutor(n_writers if at_once else 1) as pool:
            succeeded = list(pool.map(write, range(n_writers)))
        assert sum(succeeded) == 1
        winner = succeeded.index(True)
        assert boxes[0].read(place, max_bytes=size) == bytes([winner]) * size


def test_junk_is_removed_and_what_came_meanwhile_stays(store: Store) -> None:
    place = new_path()
    with _environment(store.env):
        files = ObjectStore(store.url, timeout=30, options={})
        files.create(place, b"junk")

        def replaced_meanwhile(found: bytes | None) -> bool:
            # Another copy of the sender is faster: it takes the junk away and releases.
            files._call("rm_file", files._target(place))
            assert files.create(place, b"release")
            return found == b"junk"

        files.remove_junk(place, replaced_meanwhile, max_bytes=10)
        assert files.read(place, max_bytes=10) == b"release"
        files.remove_junk(place, lambda found: found == b"release", max_bytes=10)
        assert files.read(place, max_bytes=10) is None


KILLED = """
import sys
from pathlib import Path
from splitmeans.mailbox.files import FileMailbox
FileMailbox(sys.argv[1]).put(sys.argv[2], Path(sys.argv[3]).read_bytes())
"""


def test_a_kill_in_the_middle_of_a_multipart_upload(s3: Store, tmp_path: Path) -> None:
    """Some parts are stored and the message is not there; the same bytes then make it whole."""
    data, place = secrets.token_bytes(LARGE), new_path()
    path = "/".join(place.parts)
    (tmp_path / "message").write_bytes(data)
    line = Line(s3.port)
    command = [sys.executable, "-c", KILLED, s3.url, path, str(tmp_path / "message")]
    line.allowed = 20 << 20
    process = subprocess.Popen(command, env=os.environ | s3.at(line.port))
    assert line.stuck.wait(60)
    process.kill()
    process.wait()
    with _environment(s3.env):
        box = FileMailbox(s3.url, retries=ONCE)
        assert box.get(path, max_bytes=LARGE) is None
        box.put(path, data)
        assert box.get(path, max_bytes=LARGE) == data
        box.close()
    line.close()


# ---- what a store refuses ----


def problem_of(url: str, env: dict[str, str]) -> MailboxError:
    with _environment(env):
        box = FileMailbox(url, timeout=10, retries=ONCE)
        with pytest.raises(MailboxError) as found:
            box.limits(STUDY)
        with pytest.raises(MailboxError):  # and never an empty slot
            box.get("/".join(new_path().parts), max_bytes=10)
        box.close()
    for name, value in env.items():
        if name in ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING"):
            assert value not in str(found.value)
    assert found.value.__cause__ is None
    assert url in str(found.value)
    return found.value


def test_a_bucket_that_is_not_there(store: Store) -> None:
    found = problem_of(store.url.replace(BUCKET, "nowhere"), store.env)
    assert "there is no " in str(found)
    assert "make it first, or check its name" in str(found)


def test_nobody_answers(store: Store) -> None:
    found = problem_of(store.url, store.at(free_port()))
    assert isinstance(found, MailboxUnavailable)
    assert "no connection; check the network and the address" in str(found)


def test_no_credentials(store: Store, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    if store.kind == "s3":
        env["AWS_ENDPOINT_URL"] = store.env["AWS_ENDPOINT_URL"]
    found = problem_of(store.url, env)
    assert "credentials" in str(found)
    assert "AWS_ACCESS_KEY_ID" in str(found)


def test_a_wrong_key_of_azure(tmp_path: Path) -> None:
    with serve_azure(tmp_path) as azure:
        (text,) = azure.env.values()
        head, _, rest = text.partition("AccountKey=")
        wrong = f"{head}AccountKey=d3Jvbmc=;{rest.partition(';')[2]}"
        found = problem_of(azure.url, {"AZURE_STORAGE_CONNECTION_STRING": wrong})
        assert "credentials" in str(found)
        assert "the same command goes on" in str(found)
        assert not isinstance(found, MailboxUnavailable)


def test_rights_in_s3(s3: Store, world: World) -> None:
    """A wrong secret, no right to write, no right to list; told before anything is charged."""
    # Amazon covers both kinds of HEAD by GetObject and ListBucket; moto has actions for them.
    looks = ("s3:GetObject", "s3:HeadObject", "s3:ListBucket", "s3:HeadBucket")
    everything = (*looks, "s3:PutObject", "s3:DeleteObject")
    users = {
        "all": user_of_s3(s3, *everything),
        "reader": user_of_s3(s3, *looks),
        "no list": user_of_s3(s3, "s3:GetObject", "s3:PutObject"),
    }
    check_rights(s3)
    with _environment(users["all"]), contextlib.closing(FileMailbox(s3.url)) as box:
        box.limits(STUDY)
    wrong = users["all"] | {"AWS_SECRET_ACCESS_KEY": "wrong" * 8}
    assert "refuses the credentials (SignatureDoesNotMatch)" in _limits_problem(s3.url, wrong)
    told = _limits_problem(s3.url, users["reader"])
    assert "may not write objects there" in told
    assert "s3:PutObject" in told
    assert "s3:ListBucket" in _limits_problem(s3.url, users["no list"])
    ended = world.take_part("bank", "--mailbox", s3.url, env=users["reader"]).done()
    assert ended.code == 1
    assert "may not write objects there" in ended.err
    assert "charged" not in ended.err
    assert not world.ledger("bank")["sources"]


def _limits_problem(url: str, env: dict[str, str]) -> str:
    with (
        _environment(env),
        contextlib.closing(FileMailbox(url, retries=ONCE)) as box,
        pytest.raises(MailboxError) as found,
    ):
        box.limits(STUDY)
    assert not isinstance(found.value, MailboxUnavailable)
    return str(found.value)


def test_a_run_outlasts_a_store_that_is_away_for_a_while(s3: Store, world: World) -> None:
    """Cut for some seconds while a party waits; it says so, and goes on."""
    line = Line(s3.port)
    options = ("--mailbox", s3.url, "--patience", "60")
    bank = world.take_part("bank", *options, env=s3.at(line.port))
    bank.until("waiting for")
    line.refuse()
    bank.until("trying again for up to 60 seconds")
    bank.process.send_signal(signal.SIGTERM)  # Ctrl-C works while it is tried again
    assert bank.done().code == 143
    line.close()
    commands = {who: world.take_part(who, *options, env=s3.env) for who in EVERYONE}
    check_ends(world, {who: command.done() for who, command in commands.items()})
    check_charges(world)
