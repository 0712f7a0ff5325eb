"""A fellow party at the relay: what it can find out about another's messages, and what it can fill.

The real application with the real client, without a network between them.
"""

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from splitmeans.errors import MailboxError
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.mailbox.retries import Retries
from splitmeans.relay import replies as relay_replies
from splitmeans.relay import store as relay_store
from splitmeans.relay.app import make_app
from splitmeans.relay.limits import RelayLimits
from splitmeans.wire.sealed import OVERHEAD_BYTES
from splitmeans.wire.slot import SERVER, Slot
from splitmeans.wire.ways import MAX_SMALL_BYTES
from tests.mailbox.made_up import MadeUp
from tests.scene import KEYS

STUDY = "5a" * 32
LIMITS = RelayLimits(
    study_bytes=300_000, message_bytes=80_000, requests_per_minute=100_000, sender_runs=40
)

Opener = Callable[[str], HttpMailbox]


def direct(app: object) -> MadeUp:
    """Hand requests to an application and take its answers."""
    inner = httpx.ASGITransport(app)  # type: ignore[arg-type]

    async def ask(request: httpx.Request) -> httpx.Response:
        answer = await inner.handle_async_request(request)
        stream = httpx.ByteStream(await answer.aread())
        return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)

    return MadeUp(lambda request: asyncio.run(ask(request)))


@pytest.fixture(autouse=True)
def _no_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a refusal a relay waits for the rest of a body; here there is never any."""
    monkeypatch.setattr(relay_replies, "_KNOWN_SECONDS", 0.0)


@pytest.fixture
def relay_in() -> Iterator[Callable[..., Opener]]:
    """Opens relays, and closes them when the test ends: each holds a lock of its folder."""
    with contextlib.ExitStack() as opened:
        yield partial(_relay_in, opened=opened)


def _relay_in(
    folder: Path, *, opened: contextlib.ExitStack, limits: RelayLimits = LIMITS
) -> Opener:
    roster = {name: KEYS[name].public for name in ("bank", "shop", SERVER)}
    app = make_app({STUDY: roster}, folder, limits)
    opened.callback(app.state.store.close)
    transport = direct(app)

    def open_as(name: str) -> HttpMailbox:
        return HttpMailbox(
            "http://localhost",
            participant=name,
            signer=KEYS[name],
            transport=transport,
            retries=Retries(sleep=lambda _: None),
        )

    return open_as


def path(sender: str, receiver: str, kind: str, *, run: str = "1") -> str:
    return Slot(study_hash=STUDY, run=run, sender=sender, receiver=receiver, kind=kind).path


def is_taken(box: HttpMailbox, name: str, n_bytes: int) -> bool:
    try:
        box.put(name, bytes(n_bytes))
    except MailboxError:
        return False
    return True


def seen_by_shop(opened: Opener) -> list[object]:
    """All that a fellow party can find out: its room by 26 uploads and the relay's own words."""
    box = opened("shop")
    found: list[object] = [box.limits(STUDY).free_bytes]
    runs = itertools.count(2)
    low, high = 0, LIMITS.study_bytes
    for _ in range(26):
        middle = (low + high + 1) // 2
        taken = is_taken(box, path("shop", SERVER, "PartyRelease", run=str(next(runs))), middle)
        low, high = (middle, high) if taken else (low, middle - 1)
        found.append(taken)
    found.append(box.limits(STUDY).free_bytes)
    for page in ("/health", "/"):
        text = box._client.get("http://localhost" + page).text
        found.append(json.loads(text)["status"] if page == "/health" else len(text) > 0)
    return found


def test_room_left_tells_the_size_of_a_release(tmp_path, relay_in):
    """A fellow party fills what is left at the relay and finds by 26 uploads how much that was.

    Gain: the size of another party's release, hence its number of users.
    Fails: each participant has a share of its own, and is told of no other; whatever the other
    stores, the answers are the same.
    """
    views = []
    for n_bytes in (None, 1, 20_000, 79_999):
        opened = relay_in(tmp_path / f"relay-{n_bytes}")
        if n_bytes is not None:
            opened("bank").put(path("bank", SERVER, "PartyRelease"), bytes(n_bytes))
        views.append(seen_by_shop(opened))
    assert all(view == views[0] for view in views)
    assert True in views[0]
    assert False in views[0]


def test_junk_under_any_name_until_the_relay_is_full(tmp_path, relay_in):
    """One valid key stores messages of made-up kinds and runs, to whomever, as many as it can.

    Gain: a study in which releases are charged and then find no room.
    Fails: a participant stores the messages that a run has and no others, in a bounded number of
    runs, in its own share; a party that reserved room before it joined has it.
    """
    opened = relay_in(tmp_path / "relay")
    bank, shop = opened("bank"), opened("shop")
    bank.reserve(STUDY, "1", 80_000)
    kinds = (
        "Junk",
        "PartyRelease",
        "RunPlan",
        "KeyContribution",
        "DecoyMessage",
        "PublishedResult",
    )
    ends = ("bank", "shop", SERVER, "nobody")
    stored = set()
    for run, kind, receiver in itertools.product(range(60), kinds, ends):
        name = path("shop", receiver, kind, run=f"junk-{run}")
        if is_taken(shop, name, 1):
            stored.add((kind, receiver))
    assert stored == {("PartyRelease", SERVER), ("KeyContribution", "bank")}
    n_files = len([file for file in (tmp_path / "relay" / "messages").rglob("*") if file.is_file()])
    assert n_files == 2 * LIMITS.sender_runs
    small = path("shop", "bank", "Confirmation", run="junk-0")
    assert not is_taken(shop, small, MAX_SMALL_BYTES + OVERHEAD_BYTES + 1)
    bank.put(path("bank", SERVER, "PartyRelease"), bytes(80_000 - 100))


def test_own_runs_that_use_up_reserved_room(tmp_path, relay_in):
    """A party's other runs, or someone with a copy of its key, fill its share after it joined.

    Gain: a release that is charged and then refused.
    Fails: room that was reserved for a run is for that run.
    """
    opened = relay_in(tmp_path / "relay")
    box = opened("bank")
    box.reserve(STUDY, "1", 60_000)
    with pytest.raises(MailboxError, match="may store 100000 bytes"):
        box.put(path("bank", SERVER, "PartyRelease", run="2"), bytes(40_001))
    box.put(path("bank", SERVER, "PartyRelease", run="2"), bytes(40_000))
    box.put(path("bank", SERVER, "PartyRelease"), bytes(60_000))


MIB = 1 << 20


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> int:
    """Give every relay a disk of its own, with room for six MiB and some; returns its size."""
    size = 7 * MIB + MIB // 2

    def usage(folder: Path) -> object:
        used = sum(file.stat().st_blocks * 512 for file in folder.rglob("*"))
        return shutil._ntuple_diskusage(size, used, size - used)  # type: ignore[attr-defined]

    monkeypatch.setattr(relay_store.shutil, "disk_usage", usage)
    monkeypatch.setattr(relay_store, "_SPARE_BYTES", MIB)
    return size


def test_disk_that_has_less_than_the_relay_allows(tmp_path, small_disk):
    """A fellow party fills the relay's disk, which is smaller than what participants may store.

    Gain: a release that is charged and then finds no room; or what the disk has left, and with it
    the size of another party's release.
    Fails: no more is promised than the disk has. Room that was reserved is there whatever others
    store, and what a participant is told is the same, also by a relay that was started anew.
    """
    limits = RelayLimits(study_bytes=1 << 30, message_bytes=MIB, requests_per_minute=100_000)
    told = []
    for n_bytes in (0, MIB // 2, MIB):
        folder = tmp_path / f"relay-{n_bytes}"
        with contextlib.ExitStack() as opened:
            open_as = _relay_in(folder, opened=opened, limits=limits)
            bank, shop = open_as("bank"), open_as("shop")
            bank.reserve(STUDY, "1", MIB + 100)
            if n_bytes:
                bank.put(path("bank", SERVER, "PartyRelease"), bytes(n_bytes))
        with contextlib.ExitStack() as opened:
            open_as = _relay_in(folder, opened=opened, limits=limits)
            bank, shop = open_as("bank"), open_as("shop")
            seen = [shop.limits(STUDY).free_bytes]
            for run in range(1, 40):
                name = path("shop", SERVER, "PartyRelease", run=str(run))
                seen.append(is_taken(shop, name, MIB // 8))
            told.append([*seen, shop.limits(STUDY).free_bytes])
            if not n_bytes:
                bank.put(path("bank", SERVER, "PartyRelease"), bytes(MIB))
        assert sum(file.stat().st_blocks * 512 for file in folder.rglob("*")) < small_disk
    assert told == [[2 * MIB, *[True] * 16, *[False] * 23, 0]] * 3


def test_less_room_after_a_restart(tmp_path):
    """The relay is started again with less room, after a party has had some reserved and joined.

    Gain: a release that is charged and then refused.
    Fails: what was reserved stays promised; only what was not is refused.
    """
    folder = tmp_path / "relay"
    with contextlib.ExitStack() as opened:
        _relay_in(folder, opened=opened)("bank").reserve(STUDY, "1", 60_000)
    less = RelayLimits(study_bytes=60_000, message_bytes=80_000)
    with contextlib.ExitStack() as opened:
        box = _relay_in(folder, opened=opened, limits=less)("bank")
        assert not is_taken(box, path("bank", SERVER, "PartyRelease", run="2"), 1)
        assert not is_taken(box, path("bank", SERVER, "PartyRelease"), 60_001)
        box.put(path("bank", SERVER, "PartyRelease"), bytes(60_000))
