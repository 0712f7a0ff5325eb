"""Random small studies through the real commands: homes, ledgers, folder mailbox or relay.

    python -m tests.studies.commands --studies 200 --seconds 1800
    python -m tests.studies.commands --seed 17

Every participant is a process that runs its command line, forked from this one, which has loaded
everything. Something may stand in the way the first time: a relay that takes short messages only,
a result folder that holds something else, files that may not grow beyond some length, a signal at
some instant. The others wait until they give up, or are stopped by Ctrl-C. What must hold: whoever
was charged ends up with a result, at once or by the same command after the obstacle is gone; who
cannot run is told so before anything is charged.
"""

import argparse
import collections
import importlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.feather
import pyarrow.parquet as pq

from benchmarks.local_relay import write_certificate
from splitmeans import cli
from splitmeans.errors import LATER, STOPPED, WAITED, ParameterError, PrivacyError
from splitmeans.forecasting.rough_plan import rough_plan
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.study import Study
from splitmeans.wire.identity import spoken
from tests.studies.generate import Case, random_case
from tests.studies.planning import remembered_calibrations
from tests.studies.whole import arrow_table, reason_class, too_large

# Loaded once, before forking.
for _module in ("keys", "ledger", "party", "relay", "report", "result", "server", "study"):
    importlib.import_module(f"splitmeans.cli.{_module}")
for _module in ("app", "serve"):
    importlib.import_module(f"splitmeans.relay.{_module}")

SERVER = "server"
OBSTACLES = ("none", "none", "occupied result", "short files", "short messages", "signal")
_FILES = (
    "table.parquet",
    "no\u00a0break.parquet",
    "größe 年齢.arrow",
    "it's [bold] {x} %s.parquet",
    "a=b;c&d.arrow",
)
# A relay that takes no more than the first refuses most releases, and one with the last hardly any;
# files that end here stop a run at its start, or in the middle: its home alone grows past some.
_SHORT_MESSAGES = (2000, 5000, 20_000)
_SHORT_FILES = (2000, 50_000, 80_000, 120_000, 200_000)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_SECONDS = 60.0
_ATTEMPTS = 4
# Exit codes after which the same command goes on by itself: waited, later, and the signals.
_GOES_ON = (WAITED, LATER, STOPPED, 128 + signal.SIGTERM, -signal.SIGKILL)


class Failed(Exception):
    """Someone paid for nothing, or a command failed that may not."""


@dataclass(kw_only=True)
class World:
    """The folders of all participants, and how commands are run there."""

    folder: Path
    study: Study
    over_relay: bool
    files: dict[str, str]
    short_messages: int | None = None
    log: list[str] = field(default_factory=list)
    last_errors: list[str] = field(default_factory=list)

    def place(self, who: str) -> Path:
        return self.folder / f"place {self._names.index(who)}"

    @property
    def _names(self) -> list[str]:
        return [*self.study.party_names, SERVER]

    def start(self, who: str, *arguments: str, file_bytes: int | None = None) -> "Process":
        """Start a command of a participant, in its folder."""
        return Process(self.place(who), arguments, file_bytes=file_bytes)

    def run(self, who: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command to its end; return its exit code, output and errors."""
        code, out, err = self.start(who, *arguments).done()
        self.log.append(f"$ {arguments[0]} {arguments[1]} ({who}): {code}\n{err}")
        return code, out, err

    def charged(self) -> dict[str, bool]:
        """Say whose ledger has a charge; the command also checks the ledger."""
        found = {}
        for who in self.study.party_names:
            code, out, err = self.run(who, "ledger", "show", "--home", "home", "--json")
            if code and "has no ledger" not in err:
                raise Failed(f"ledger of {who} cannot be shown: {err}")
            found[who] = not code and bool(json.loads(out)["entries"])
        return found


class Process:
    """A command line in a forked process; what it writes goes to files."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], *, file_bytes: int | None) -> None:
        number = len(list(folder.glob("*.out")))
        self._out, self._err = folder / f"{number}.out", folder / f"{number}.err"
        self._out.touch()
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._be(folder, arguments, file_bytes)

    def _be(self, folder: Path, arguments: tuple[str, ...], file_bytes: int | None) -> None:
        code = 70
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
            os.chdir(folder)
            for number, path in ((1, self._out), (2, self._err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            # A test runner may have put something else in their place.
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            if file_bytes is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            sys.argv = ["splitmeans", *arguments]
            cli.main()
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self) -> int | None:
        """Return the exit code, minus the signal's number if one killed it; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.ended() is None:
            os.kill(self.pid, number)

    def done(self) -> tuple[int, str, str]:
        """Wait for the end, within bounds."""
        end = time.monotonic() + 3 * _SECONDS
        while (code := self.ended()) is None:
            if time.monotonic() > end:
                self.signal(signal.SIGKILL)
                raise Failed(f"a command hangs: {self._err.read_text()}")
            time.sleep(0.01)
        return code, self._out.read_text(), self._err.read_text()

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        self.done()


def command_case(seed: int) -> Case | None:
    """Return a small case that real parties run; None if this seed has none."""
    case = random_case(seed)
    if len(case.settings["parties"]) > 3 or not 40 <= case.users <= 400:
        return None
    # Enough budget to count someone: a rehearsal refuses the others, and carriers are tested here.
    case = case.with_settings(
        budget={"epsilon": 8.0, "delta": 1e-6}, expected_users=case.users, n_clusters=2
    )
    try:
        study = case.study()
        if too_large(rough_plan(study), users=case.users):
            return None
        PrivacyFacts.for_study(study)
    except (ParameterError, PrivacyError):
        return None
    return case


def drive(seed: int, case: Case, folder: Path) -> str:
    """Play a case with all participants; return what became of it, or raise `Failed`."""
    chance = random.Random(f"splitmeans commands {seed}")
    names = [party["name"] for party in case.settings["parties"]]
    world = World(
        folder=folder,
        study=case.study(),
        over_relay=chance.random() < 0.5,
        files={name: chance.choice(_FILES) for name in names},
    )
    obstacle = chance.choice(OBSTACLES)
    if obstacle == "short messages":
        world.over_relay, world.short_messages = True, chance.choice(_SHORT_MESSAGES)
    try:
        _agree(world, case)
        return _play(world, chance, obstacle)
    except Failed as failure:
        raise Failed(
            f"seed {seed}, {obstacle}, {'relay' if world.over_relay else 'folder'}: {failure}\n"
            + "\n".join(world.log)
        ) from None


def _agree(world: World, case: Case) -> None:
    """Make keys and tables, and put the keys into the study."""
    public = {}
    for who in (*world.study.party_names, SERVER):
        world.place(who).mkdir(mode=0o700)
        code, out, err = world.run(who, "keys", "new", "--home", "home")
        if code:
            raise Failed(f"keys new: {err}")
        public[who] = out.strip()
    parties = [{**party, "public_key": public[party["name"]]} for party in case.settings["parties"]]
    settings = {**case.settings, "parties": parties, "server_key": public[SERVER]}
    world.study = Study.from_mapping(settings)
    PrivacyFacts.for_study(world.study).statement()  # calculated once, for all processes
    for who in (*world.study.party_names, SERVER):
        (world.place(who) / "study.toml").write_text(world.study.to_toml(), encoding="utf-8")
    for who, file in world.files.items():
        table = arrow_table(world.study, case, who)
        path = world.place(who) / file
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")


def _play(world: World, chance: random.Random, obstacle: str) -> str:
    parties = world.study.party_names
    digits = spoken(world.study.hash)
    for who in parties:
        code, _, err = world.run(
            who, "study", "approve", "study.toml", "--digits", digits, "--home", "home"
        )
        check_ending(f"study approve of {who}", code, err)
        if code:
            return _refused(world, f"not approved: {reason_class(err.strip().splitlines()[-1])}")
        _share_rehearsal(world, who)
    victim = chance.choice((*parties, SERVER))
    with tempfile.TemporaryDirectory() as place:
        relay = _start_relay(world, Path(place)) if world.over_relay else None
        (Path(place) / "mailbox").mkdir()
        try:
            for attempt in range(_ATTEMPTS):
                hindered = victim if attempt == 0 else None
                codes = _attempt(world, chance, obstacle, hindered, Path(place), relay)
                if not any(codes.values()):
                    _use(world)
                    return f"ended, {obstacle}" + (" after another try" if attempt else "")
                in_the_way = attempt == 0 and obstacle != "none"
                final = [code for code in codes.values() if code and code not in _GOES_ON]
                if final and not in_the_way:
                    return _refused(world, f"refused: {_errors(world)}")
                if world.short_messages:
                    # The way out that the error names: a relay that takes more.
                    assert relay is not None
                    relay[0].stop()
                    world.short_messages = None
                    relay = _start_relay(world, Path(place), port=relay[1])
        finally:
            if relay is not None:
                relay[0].stop()
    raise Failed(f"no result after {_ATTEMPTS} attempts, and nobody says why: {_errors(world)}")


def _errors(world: World) -> str:
    return reason_class(" / ".join(sorted(set(world.last_errors))))


def check_ending(what: str, code: int, err: str) -> None:
    """Raise if a command fell over, or if it was none: a driver must know the options."""
    if code == 70 or "Traceback" in err:
        raise Failed(f"{what} fell over: {err}")
    if "Warning: " in err:
        raise Failed(f"{what} shows a warning of Python: {err}")
    if "Usage: " in err:
        raise Failed(f"{what} is no command: {err}")


def _share_rehearsal(world: World, who: str) -> None:
    """Let one rehearsal do for all: they are the same, and take most of the time."""
    passed = world.place(who) / "home" / "rehearsed"
    for other in {*world.study.party_names, SERVER} - {who}:
        shutil.copytree(passed, world.place(other) / "home" / "rehearsed", dirs_exist_ok=True)


def _refused(world: World, why: str) -> str:
    if any(world.charged().values()):
        raise Failed(f"charged although {why}")
    return why


def _start_relay(world: World, place: Path, *, port: int | None = None) -> tuple[Process, int]:
    ca, cert, key = (place / name for name in ("ca.pem", "cert.pem", "key.pem"))
    if not ca.exists():
        write_certificate(ca=ca, cert=cert, key=key)
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    options = ["--study", "study.toml", "--folder", str(place / "relay"), "--port", str(port)]
    options += ["--tls-cert", str(cert), "--tls-key", str(key)]
    if world.short_messages:
        options += ["--max-message", str(world.short_messages)]
    process = world.start(SERVER, "relay", "serve", *options)
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        time.sleep(0.05)
    raise Failed("the relay does not start")


def _attempt(
    world: World,
    chance: random.Random,
    obstacle: str,
    hindered: str | None,
    place: Path,
    relay: tuple[Process, int] | None,
) -> dict[str, int]:
    """Start everyone's run command, wait for all, and return their exit codes."""
    mailbox = ["--mailbox", str(place / "mailbox")]
    if relay is not None:
        mailbox = ["--mailbox", f"https://127.0.0.1:{relay[1]}", "--ca", str(place / "ca.pem")]
    common = ["--home", "home", "--result", "result", "--timeout", "30", *mailbox]
    if obstacle == "occupied result":
        for who in (*world.study.party_names, SERVER):
            other = world.place(who) / "result"
            if who == hindered:
                other.mkdir()
                (other / "holiday.txt").write_text("keep me")
            elif (other / "holiday.txt").exists():
                shutil.rmtree(other)
    running = {}
    for who in (*world.study.party_names, SERVER):
        short = who == hindered and obstacle == "short files"
        limit = chance.choice(_SHORT_FILES) if short else None
        if who == SERVER:
            command = ["server", "run", "study.toml", *common]
        else:
            command = ["party", "run", "study.toml", "--party", who]
            command += ["--data", world.files[who], *common]
        running[who] = world.start(who, *command, file_bytes=limit)
    if hindered is not None and obstacle == "signal":
        time.sleep(10 ** chance.uniform(-0.5, 1))
        running[hindered].signal(chance.choice(_SIGNALS))
    _wait(running, stop=chance.random() < 0.7)
    codes = {}
    world.last_errors = []
    for who, process in running.items():
        codes[who], _, err = process.done()
        world.log.append(f"$ run ({who}): {codes[who]}\n{err}")
        if codes[who]:
            world.last_errors += err.splitlines()[-1:]
        check_ending(f"the run of {who}", codes[who], err)
    return codes


def _wait(running: dict[str, Process], *, stop: bool) -> None:
    """Wait until all have ended; people who hear that one cannot go on may stop the others."""
    end = time.monotonic() + 3 * _SECONDS
    while time.monotonic() < end:
        codes = [process.ended() for process in running.values()]
        if None not in codes:
            return
        if stop and any(codes):
            time.sleep(1)
            for process in running.values():
                process.signal(signal.SIGINT)
            return
        time.sleep(0.05)


def _use(world: World) -> None:
    """Look at the result, make the report and label rows, at everyone."""
    if not all(world.charged().values()):
        raise Failed("a result without a charge")
    for who in (*world.study.party_names, SERVER):
        commands = [["result", "show", "result"], ["report", "result", "-o", "report.html"]]
        shown = json.loads(
            world.run(who, "result", "show", "result", "--json")[1], parse_constant=_no_number
        )
        if who != SERVER and shown["segments"]:
            # Some tables lie outside their bounds on purpose.
            data = ["--party", who, "--data", world.files[who], "--allow-clipping"]
            commands.append(["result", "label", "result", *data, "-o", "labels.parquet"])
        for command in commands:
            code, _, err = world.run(who, *command)
            check_ending(f"{' '.join(command[:2])} at {who}", code, err)
            if code:
                raise Failed(f"{' '.join(command[:2])} at {who}: {err}")


def _no_number(constant: str) -> None:
    raise Failed(f"result show --json prints {constant}, which is no JSON")


def main() -> int:
    """Play what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.studies.commands", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seconds", type=float, default=1800, help="after which none is begun")
    parser.add_argument("--seed", type=int, help="play this one study")
    arguments = parser.parse_args()
    begun, played = time.monotonic(), 0
    outcomes: collections.Counter[str] = collections.Counter()
    failures = 0
    seed = arguments.first if arguments.seed is None else arguments.seed
    with remembered_calibrations():
        while played < arguments.studies and time.monotonic() - begun < arguments.seconds:
            case: Any = command_case(seed)
            if case is not None:
                played += 1
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        outcome = drive(seed, case, Path(folder))
                        outcomes[outcome] += 1
                        sys.stderr.write(f"seed {seed}: {outcome}\n")
                    except Failed as failure:
                        failures += 1
                        sys.stdout.write(f"FAILED {failure}\n{case.study().to_toml()}\n")
            if arguments.seed is not None:
                break
            seed += 1
    write = sys.stdout.write
    write(f"{played} studies by commands in {time.monotonic() - begun:.0f} seconds\n")
    for outcome, count in outcomes.most_common():
        write(f"{count:8} {outcome}\n")
    write(f"{failures:8} failed\n")
    ended = sum(count for outcome, count in outcomes.items() if outcome.startswith("ended"))
    if 2 * ended < played:
        write(f"only {ended} of {played} ended with a result: the others show nothing\n")
    return 1 if failures or 2 * ended < played else 0


if __name__ == "__main__":
    sys.exit(main())
