"""Kill -9 of real processes at random instants of a run, some hundred times.

    python -m tests.crash.kill_run --kills 200 --seed 1 [--series] [--renewal]

Every participant, and the relay, is a process that runs its command line. Processes are forked from
this one, which has loaded everything, so that a start takes milliseconds. Half of the kills are
aimed: they come when the victim is in the middle of writing. Half of the runs go over a folder,
half over a relay with TLS. What must hold is in `rules`; the figures say how often it did not.

With `--renewal` a party's key is renewed while a run goes on, by a process that is killed like all
others; then a run of the study with the new key follows.
"""

import argparse
import contextlib
import hashlib
import json
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from splitmeans.errors import SplitmeansError
from splitmeans.run import own_keys
from splitmeans.run.journal import Journal
from splitmeans.study import Renewal, Study
from splitmeans.wire.identity import Identity
from tests.crash import twins
from tests.crash.crew import Crew, crew_study, drop_pauses
from tests.crash.processes import (
    RELAY,
    RENEWAL,
    RENEWED,
    RUN_SECONDS,
    Stage,
    agree,
    prepare,
)
from tests.crash.rules import (
    EVERYONE,
    RESULTS,
    SERVER,
    Record,
    broken_at_end,
    broken_now,
    messages_in,
)
from tests.scene import with_key

_MESSAGES = 36
_MOMENT = 0.15  # seconds; a step between two messages takes less
_RENEWAL_KILLED = 0.7  # how many renewals are killed, within so many seconds of their start
_RENEWAL_SECONDS = 0.4
_AIM_SECONDS = 0.5  # how long an aimed kill waits for its victim to write


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What was done and what came of it."""

    by_victim: Counter[str] = field(default_factory=Counter)
    by_stage: Counter[str] = field(default_factory=Counter)
    left_behind: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.by_victim.values())


def play(
    stage: Stage,
    figures: Figures,
    *,
    kills: int,
    rng: np.random.Generator,
    renewing: bool = False,
) -> None:
    """Run to the end with some kills on the way, at any point of the progress alike.

    Args:
        stage: The run.
        figures: What comes of it is counted there.
        kills: How many.
        rng: Decides when and whom.
        renewing: Renew a party's key on the way.
    """
    seen: Record = {}
    began = time.monotonic()
    # A kill is due a moment after so many messages were sent; a run has 36.
    before = len(stage.sent())
    due = sorted((before + rng.integers(0, _MESSAGES + 1, kills)).tolist())
    restarts: list[tuple[float, str]] = [(began + rng.uniform(0, 0.1), who) for who in stage.names]
    finished: set[str] = set()
    aimed: list[float] = []  # when to kill a renewal, which is over before a chance one comes
    if renewing:
        restarts.append((began + rng.uniform(0, 2.0), RENEWAL))
    wanted = {*EVERYONE, RENEWAL} if renewing else set(EVERYONE)
    while not finished >= wanted:
        now = time.monotonic()
        if now - began > RUN_SECONDS:
            figures.violations.append(f"the run hangs; missing: {wanted - finished}")
            break
        for item in [item for item in restarts if item[0] <= now]:
            restarts.remove(item)
            stage.start(item[1])
            if item[1] == RENEWAL and kills and rng.random() < _RENEWAL_KILLED:
                aimed.append(now + rng.uniform(0, _RENEWAL_SECONDS))
        if aimed and now >= aimed[0]:
            aimed.pop(0)
            if RENEWAL in stage.alive:
                _strike(stage, RENEWAL, figures)
                restarts.append((now + rng.uniform(0, 0.15), RENEWAL))
        for who, code in stage.ended().items():
            if code == 0 and who != RELAY:
                finished.add(who)
            else:
                # Only a mailbox that was away for too long is a reason to end.
                figures.ends[f"{who}: exit {code}, started again"] += 1
                text = (stage.folder / f"{who}.log").read_text()[-400:]
                if who == RELAY or code != 1 or "error: relay" not in text:
                    figures.violations.append(f"{who} ended with exit code {code}: {text}")
                    finished |= wanted
                restarts.append((now, who))
        if due and stage.alive and len(stage.sent()) >= due[0]:
            due.pop(0)
            time.sleep(rng.uniform(0, _MOMENT))
            victim = str(rng.choice(sorted(stage.alive)))
            if rng.random() < 0.5:
                _wait_until_writing(stage, victim)
            _strike(stage, victim, figures)
            restarts.append((time.monotonic() + rng.uniform(0, 0.15), victim))
        _look(stage, seen)
        time.sleep(0.002)
    for who in list(stage.alive):
        stage.kill(who)
    _look(stage, seen)
    sent = stage.sent()
    for slot, hashes in seen.items():
        if hashes != sent.get(slot):
            figures.violations.append(
                f"the mailbox has shown other bytes than were sent for {slot}"
            )
    place = str(stage.mailbox.relative_to(stage.folder))
    found = broken_at_end(stage.folder, stage.keys, sent, mailbox=place)
    figures.violations.extend(found)
    figures.ends["runs completed" if not found else "runs with violations"] += 1


def _wait_until_writing(stage: Stage, who: str) -> None:
    until = time.monotonic() + _AIM_SECONDS
    with contextlib.suppress(FileNotFoundError):
        while not stage.is_writing(who) and time.monotonic() < until:
            pass


def _strike(stage: Stage, who: str, figures: Figures) -> None:
    """Kill, look at what is left, and count."""
    if not stage.kill(who):
        figures.ends["kills that came too late"] += 1
        return
    figures.by_victim[who] += 1
    if who == RENEWAL:
        figures.by_stage[RENEWAL] += 1
        figures.violations.extend(broken_keys(stage))
        return
    if who == RELAY:
        figures.by_stage["relay"] += 1
        figures.left_behind["half an upload"] += any((stage.folder / RELAY).glob("incoming/*"))
        return
    home, key = stage.folder / who, stage.keys[who]
    figures.left_behind["an open transaction"] += (home / "splitmeans.sqlite-journal").exists()
    figures.left_behind["half a file"] += any(home.rglob(".*.part"))
    figures.violations.extend(broken_now(home, key, stage.sent()))
    with Journal.open(home) as journal:
        saved = journal.load(key)
        figures.left_behind["messages not sent"] += any(
            not item.sent for item in journal.outgoing(key)
        )
    role = SERVER if who == SERVER else "party"
    name = "not begun" if saved is None else saved.outcome or saved.stage
    figures.by_stage[f"{role}, {name}"] += 1


def broken_keys(stage: Stage) -> list[str]:
    """What is wrong with the keys of the party that renews its own, at whatever instant."""
    file = stage.folder / RENEWED / "key.json"
    try:
        Identity.load(file)
        pinned = Identity.load(own_keys.key_for(file, stage.study, RENEWED)).public
    except SplitmeansError as problem:
        return [f"{RENEWED}: its keys cannot be used: {problem}"]
    is_pinned = pinned.to_text() == stage.study.public_keys[RENEWED]
    return [] if is_pinned else [f"{RENEWED}: the key of the study is lost"]


def _look(stage: Stage, seen: Record) -> None:
    """Remember every version of every message that anyone could have read."""
    with contextlib.suppress(FileNotFoundError):
        for slot, data in messages_in(stage.mailbox):
            seen.setdefault(slot, set()).add(hashlib.sha256(data).hexdigest())


def main() -> int:
    """Run until enough kills were made; print the figures; 1 if a rule was broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--series", action="store_true", help="three runs of a series each")
    parser.add_argument("--renewal", action="store_true", help="renew a key while a run goes on")
    parser.add_argument("--broken", choices=("send_first", "charge_late", "mark_first"))
    chosen = parser.parse_args()
    rng = np.random.default_rng(chosen.seed)
    study, figures = crew_study(), Figures()
    if chosen.series:
        study = crew_study(renewal=Renewal(runs=3))
    broken = getattr(twins, chosen.broken) if chosen.broken else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        _warm_up(Path(name) / "warm", study)
        n_runs = 0
        while figures.kills < chosen.kills:
            folder = Path(name) / f"run{n_runs}"
            prepare(folder, study)
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            stage = Stage(
                folder=folder, study=study, over_relay=n_runs % 2 == 1, port=port, broken=broken
            )
            for number in range(1, study.n_runs + 1):
                stage.run = str(number)
                kills = min(int(rng.integers(4, 9)), chosen.kills - figures.kills)
                play(stage, figures, kills=kills, rng=rng, renewing=chosen.renewal)
            if chosen.renewal:
                _run_with_new_key(stage, figures, kills=chosen.kills - figures.kills, rng=rng)
            n_runs += 1
            shutil.rmtree(folder)
    summary = {
        "kills": figures.kills,
        "by victim": figures.by_victim,
        "by stage": figures.by_stage,
        "left behind": figures.left_behind,
        "ends": figures.ends,
        "seconds": round(time.monotonic() - began),
        "violations": len(figures.violations),
    }
    sys.stdout.write(json.dumps(summary, indent=1) + "\n")
    for line in figures.violations[:20]:
        sys.stdout.write(f"VIOLATION {line}\n")
    return 1 if figures.violations else 0


def _run_with_new_key(
    stage: Stage, figures: Figures, *, kills: int, rng: np.random.Generator
) -> None:
    """Run the study with the key that its owner has now; both runs are charged once."""
    figures.violations.extend(broken_keys(stage))
    new = Identity.load(stage.folder / RENEWED / "key.json")
    if new.public.to_text() == stage.study.public_keys[RENEWED]:
        figures.violations.append(f"{RENEWED}: the key was not renewed")
        return
    shutil.rmtree(stage.folder / RESULTS)
    stage.study = with_key(stage.study, RENEWED, new)
    stage.run = "2"
    agree(stage.folder, stage.study)
    play(stage, figures, kills=min(int(rng.integers(2, 5)), max(kills, 0)), rng=rng)


def _warm_up(folder: Path, study: Study) -> None:
    """Run once in this process, so that all kernels and the plan are there when it forks."""
    with pytest.MonkeyPatch.context() as patch:
        drop_pauses(patch)
        folder.mkdir()
        crew = Crew(folder=folder, study=study)
        crew.approve()
        crew.go_on()
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
