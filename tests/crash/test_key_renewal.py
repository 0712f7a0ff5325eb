"""A key is renewed in the middle of a run, and stopped at every instant of it: 0 double spends.

After each stop the home has a current key, no key is lost, the same command ends what was begun;
the run goes on with the old key to one result and one charge, and a run of the study with the new
key is charged once as well.
"""

import dataclasses
from pathlib import Path

import pytest

from splitmeans.cli.keys import rekeyed
from splitmeans.privacy.ledger import Ledger
from splitmeans.run import own_keys
from splitmeans.run.journal import Journal
from splitmeans.wire.identity import Identity
from tests.crash.crew import Crew, Disk
from tests.crash.instants import Stopped, watched
from tests.crash.rules import EVERYONE, PARTIES, broken_at_end, broken_now
from tests.scene import KEYS

Instants = list[tuple[str, Disk]]


@pytest.fixture
def halfway(crew: Crew) -> Crew:
    """All have joined and the bank has a key file; nothing is released."""
    for who in PARTIES:
        crew.turn(who)
    KEYS["bank"].save(key_file(crew))
    return crew


def key_file(crew: Crew) -> Path:
    return crew.folder / "bank" / "key.json"


def instants(crew: Crew) -> Instants:
    """Every state of the disk on the way through a renewal."""
    found: Instants = []

    def take(instant: str) -> None:
        disk = crew.disk()
        if not found or found[-1][1] != disk:
            found.append((instant, disk))

    take("the beginning")
    with watched(take):
        own_keys.renew(key_file(crew), None)
    take("the end")
    return found


def broken_keys(crew: Crew) -> list[str]:
    """What is wrong with the keys now, and after the renewal has been taken up again."""
    found = []
    old = KEYS["bank"].public
    current = Identity.load(key_file(crew)).public
    usable = Identity.load(own_keys.key_for(key_file(crew), crew.study, "bank"))
    if usable.public != old:
        found.append("the key of the study is lost")
    if current == old:
        renewal = own_keys.renew(key_file(crew), None)
        current = Identity.load(key_file(crew)).public
        if (renewal.old, renewal.new) != (old, current):
            found.append("the renewal is not from the old to the current key")
    words = list((crew.folder / "bank" / "keys").glob("*.renewal"))
    if len(words) != 1:
        found.append(f"{len(words)} renewals of one key")
    return found


def broken_runs(crew: Crew) -> list[str]:
    """Go on with the old key, then run the study with the new one."""
    found = [
        line
        for who in EVERYONE
        for line in broken_now(crew.folder / who, crew.keys[who], crew.sent)
    ]
    path = key_file(crew)
    identities = {**KEYS, "bank": Identity.load(own_keys.key_for(path, crew.study, "bank"))}
    old = dataclasses.replace(crew, identities=identities)
    old.go_on()
    found += broken_at_end(old.folder, old.keys, old.sent)
    (word,) = (crew.folder / "bank" / "keys").glob("*.renewal")
    study = rekeyed(crew.study, [word], crew.folder / "bank")
    current = {**KEYS, "bank": Identity.load(own_keys.key_for(path, study, "bank"))}
    new = dataclasses.replace(crew, study=study, run="2", identities=current, sent={})
    for who in PARTIES:
        with Journal.open(new.folder / who) as journal:
            journal.approve(study.hash, study.to_toml())
    new.go_on()
    found += broken_at_end(new.folder, new.keys, new.sent)
    for who in PARTIES:
        with Journal.open(new.folder / who) as journal:
            kinds = [entry.kind for entry in Ledger(journal.connection).entries()]
        if kinds.count("charge") != 2:
            found.append(f"{who} has {kinds.count('charge')} charges for two runs")
    return found


def test_the_keys_at_every_instant(halfway: Crew) -> None:
    pictures = instants(halfway)
    sent = dict(halfway.sent)
    assert len(pictures) > 8
    for instant, disk in pictures:
        halfway.put_back(disk, sent)
        assert broken_keys(halfway) == [], instant


def test_the_runs_at_some_instants(halfway: Crew) -> None:
    pictures = instants(halfway)
    check_runs(halfway, pictures[len(pictures) // 2 :][:1])


@pytest.mark.slow
def test_the_runs_at_every_instant(halfway: Crew) -> None:
    check_runs(halfway, instants(halfway))


def check_runs(crew: Crew, pictures: Instants) -> None:
    sent = dict(crew.sent)
    for instant, disk in pictures:
        crew.put_back(disk, sent)
        found = broken_keys(crew) + broken_runs(crew)
        assert found == [], instant


def test_a_stop_by_an_exception(halfway: Crew) -> None:
    """Ctrl-C at any operation leaves what a kill leaves, and the next try ends it."""
    before, sent, number = halfway.disk(), dict(halfway.sent), 0
    while True:
        halfway.put_back(before, sent)
        count = 0

        def stop(instant: str, number: int = number) -> None:
            nonlocal count
            count += 1
            if count > number:
                raise Stopped

        try:
            with watched(stop):
                own_keys.renew(key_file(halfway), None)
        except Stopped:
            assert broken_keys(halfway) == [], number
            number += 9
            continue
        break
    assert number > 15


def test_a_twin_that_replaces_the_old_key_is_caught(
    halfway: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that keeps no old key ends the run that was begun with it."""
    monkeypatch.setattr(own_keys.os, "link", _forgetful(own_keys.os.link, halfway))
    own_keys.renew(key_file(halfway), None)
    assert "the key of the study is lost" in broken_keys(halfway)


def _forgetful(link: object, crew: Crew) -> object:
    def keep_only_the_new(source: Path, place: Path) -> None:
        if Path(source) != key_file(crew):
            link(source, place)  # type: ignore[operator]

    return keep_only_the_new
