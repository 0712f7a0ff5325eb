"""Fuzz the decoders, guided by coverage, for a bounded number of inputs and a bounded time.

    python -m tests.fuzz.run --target all --inputs 1000000 --seconds 600 --jobs 2

Each target runs in a process of its own, so that a crash of the interpreter is a finding like any
other. With atheris (the extra `fuzz`) libFuzzer chooses the inputs; without it a simple loop does,
which keeps inputs that reach new lines. Inputs that make a finding are saved. Exit code 1 means
that there were findings, 2 that the command was wrong.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pkgutil
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Inputs of a target in a thousand of all: by what one input costs, and by what there is to find.
SHARES = {
    "codec": 262,
    "sealed": 90,
    "identity": 30,
    "key_file": 40,
    "saved_result": 70,
    "saved_state": 80,
    "study_toml": 6,
    "study_mapping": 40,
    "plan": 6,
    "message_path": 60,
    "request": 80,
    "synopsis": 12,
    "release": 28,
    "result": 45,
    "server_step": 50,
    "party_step": 50,
    "source_csv": 15,
    "source_parquet": 20,
    "source_arrow": 16,
}
# What one input may take; more is a hang. Calibrating a plan takes seconds.
SECONDS_PER_INPUT = 30
# What one input may allocate beyond what the program has when it begins.
BYTES_PER_INPUT = 1 << 30
MAX_BYTES = 1 << 16


class Recorder:
    """Runs one target, counts, and keeps one input of each kind of finding."""

    def __init__(self, name: str, target: Callable[[bytes], None], folder: Path) -> None:
        self.name, self.folder, self._target = name, folder, target
        self.inputs = 0
        self.features = 0
        self.findings: dict[str, str] = {}
        self.started = time.monotonic()

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self._target(data)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:
            self._keep(data, problem)

    def _keep(self, data: bytes, problem: BaseException) -> None:
        frames = traceback.extract_tb(problem.__traceback__)
        own = [frame for frame in frames if "splitmeans" in frame.filename] or frames
        kind = f"{type(problem).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
        if kind in self.findings:
            return
        digest = hashlib.sha256(data).hexdigest()[:16]
        path = self.folder / f"{self.name}-{digest}"
        path.write_bytes(data)
        path.with_suffix(".txt").write_text("".join(traceback.format_exception(problem)))
        self.findings[kind] = str(path)

    def report(self) -> dict[str, Any]:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "inputs": self.inputs,
            "seconds": time.monotonic() - self.started,
            "features": self.features,
            "findings": self.findings,
            "peak_mib": peak // 1024,
        }


def _limit_memory() -> None:
    """Make an allocation far beyond the input's size fail, which is then a finding."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        most = pages * os.sysconf("SC_PAGE_SIZE") + BYTES_PER_INPUT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _work(name: str, *, inputs: int, seconds: int, seed: int, engine: str, folder: Path) -> None:
    """Fuzz one target in this process and write the report."""
    if engine == "atheris":
        import atheris

        # Compiled kernels must stay as they are; json and the like are not ours to cover.
        import splitmeans.kernels

        kernels = [
            f"splitmeans.kernels.{item.name}"
            for item in pkgutil.iter_modules(splitmeans.kernels.__path__)
        ]
        with atheris.instrument_imports(include=["splitmeans", "tomllib"], exclude=kernels):
            from tests.fuzz import corpus, mutate, targets
    else:
        from tests.fuzz import corpus, mutate, targets

    seeds = corpus.seeds(name)
    recorder = Recorder(name, targets.TARGETS[name], folder)
    for data in seeds:  # compiles, imports and caches before memory and time are counted
        recorder(data)
    if recorder.findings:
        _write_report(recorder)
        return
    recorder.inputs, recorder.started = 0, time.monotonic()
    _limit_memory()
    mutator = mutate.MUTATORS[name]
    if engine != "atheris":
        _plain_loop(recorder, mutator, list(seeds), inputs=inputs, seconds=seconds, seed=seed)
        _write_report(recorder)
        return

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        # libFuzzer's pool fills up with short inputs that fail early; half of the changes begin
        # with a valid example, so that what comes after the first checks is reached as well.
        if chance.random() < 0.5:
            data = chance.choice(seeds)
        if chance.random() < 0.1:
            return atheris.Mutate(data, max_size)  # type: ignore[no-any-return]
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            data = mutator(data, chance)
        return data[:max_size]

    def one(data: bytes) -> None:
        recorder(data)
        # libFuzzer ends the process itself, so the report is on disk before it does.
        if recorder.inputs >= inputs or recorder.inputs % 256 == 0:
            _write_report(recorder)

    with tempfile.TemporaryDirectory() as place:
        for number, data in enumerate(seeds):
            (Path(place) / str(number)).write_bytes(data)
        options = [
            *(sys.argv[0], place, f"-runs={inputs}", f"-max_total_time={seconds}"),
            *(f"-seed={seed}", f"-timeout={SECONDS_PER_INPUT}", f"-max_len={MAX_BYTES}"),
            *(
                f"-artifact_prefix={folder}/{name}-crash-",
                "-rss_limit_mb=0",
                "-mutate_depth=1",
                "-use_value_profile=1",
            ),
        ]
        atheris.Setup(options, one, custom_mutator=change)
        atheris.Fuzz()


def _plain_loop(
    recorder: Recorder,
    mutator: Callable[[bytes, random.Random], bytes],
    pool: list[bytes],
    *,
    inputs: int,
    seconds: int,
    seed: int,
) -> None:
    """Change inputs at random and keep those that reach a new line of the package."""
    chance = random.Random(seed)
    seen: set[tuple[str, int]] = set()

    def line(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: Any, event: str, _: Any) -> Any:
        return line if "splitmeans" in frame.f_code.co_filename else None

    def hangs(*_: Any) -> None:
        raise TimeoutError(f"one input took more than {SECONDS_PER_INPUT} seconds")

    signal.signal(signal.SIGALRM, hangs)
    end = time.monotonic() + seconds
    while recorder.inputs < inputs and time.monotonic() < end:
        data = chance.choice(pool)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data = mutator(data, chance)
        before = len(seen)
        signal.alarm(SECONDS_PER_INPUT)
        sys.settrace(call)
        try:
            recorder(data)
        finally:
            sys.settrace(None)
            signal.alarm(0)
        if len(seen) > before:
            pool.append(data)
    recorder.features = len(seen)


def _write_report(recorder: Recorder) -> None:
    draft = recorder.folder / f".{recorder.name}.draft"
    draft.write_text(json.dumps(recorder.report()))
    draft.replace(_report_path(recorder.folder, recorder.name))


def _report_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.report.json"


def _fuzz_one(name: str, arguments: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """Run a target in a process of its own and return its report."""
    left = deadline - time.monotonic()
    chosen = arguments.target
    share = SHARES[name] / sum(SHARES[other] for other in chosen)
    inputs = max(1, round(arguments.inputs * share))
    # No target may take more than its part of the time, with some slack for those that end early.
    seconds = max(1, int(min(left, 2 * arguments.seconds * arguments.jobs / len(chosen))))
    folder = arguments.findings
    _report_path(folder, name).unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.run", "--worker", name]
    command += ["--inputs", str(inputs), "--seconds", str(seconds), "--seed", str(arguments.seed)]
    command += ["--engine", arguments.engine, "--findings", str(folder)]
    # One thread for each process: the jobs share the processors already.
    threads = {key: "1" for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    limit = seconds + 60 + 2 * SECONDS_PER_INPUT
    try:
        done = subprocess.run(
            command, capture_output=True, env={**os.environ, **threads}, timeout=limit, check=False
        )
        output, code = done.stderr.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired:
        output, code = "", 1
    path = _report_path(folder, name)
    report: dict[str, Any] = {"inputs": 0, "seconds": 0.0, "features": 0, "findings": {}}
    if path.exists():
        report |= json.loads(path.read_text())
        path.unlink()
    if code != 0:
        log = folder / f"{name}-crash.txt"
        log.write_text(output)
        report["findings"][f"the process ended with code {code}"] = str(log)
    for word, value in zip(output.split(), output.split()[1:], strict=False):
        if word == "ft:":  # the last line of libFuzzer's output that has it
            report["features"] = int(value)
    return report


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--target", default="all", help="a name, several with commas, or all")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seconds", type=int, default=600, help="after which no target goes on")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("auto", "atheris", "plain"), default="auto")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--worker", choices=tuple(SHARES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is None:
        names = list(SHARES) if arguments.target == "all" else arguments.target.split(",")
        unknown = [name for name in names if name not in SHARES]
        if unknown or min(arguments.inputs, arguments.seconds, arguments.jobs) < 1:
            parser.error(f"targets are {', '.join(SHARES)}; numbers must be 1 or more")
        arguments.target = names
    has_atheris = importlib.util.find_spec("atheris") is not None
    if arguments.engine == "atheris" and not has_atheris:
        parser.error("atheris is not installed: pip install 'splitmeans[fuzz]', or --engine plain")
    if arguments.engine == "auto":
        arguments.engine = "atheris" if has_atheris else "plain"
        if not has_atheris:
            sys.stderr.write(
                "atheris is not installed (pip install 'splitmeans[fuzz]'); a simple loop takes "
                "its place, which is slower and finds less\n"
            )
    arguments.findings.mkdir(parents=True, exist_ok=True)
    arguments.findings = arguments.findings.resolve()
    return arguments


def main() -> int:
    """Fuzz the targets that the command line names; return the exit code."""
    arguments = _arguments()
    if arguments.worker is not None:
        _work(
            arguments.worker,
            inputs=arguments.inputs,
            seconds=arguments.seconds,
            seed=arguments.seed,
            engine=arguments.engine,
            folder=arguments.findings,
        )
        return 0
    write = sys.stdout.write
    begun, lock = time.monotonic(), threading.Lock()
    deadline = begun + arguments.seconds
    write(f"{'target':16}{'inputs':>10}{'seconds':>9}{'per s':>8}{'features':>10}{'peak MiB':>10}")
    write(f"{'findings':>10}   ({arguments.engine}, seed {arguments.seed})\n")

    def fuzz(name: str) -> dict[str, Any]:
        report = _fuzz_one(name, arguments, deadline)
        seconds = max(report["seconds"], 1e-9)
        row = f"{name:16}{report['inputs']:10}{seconds:9.1f}{report['inputs'] / seconds:8.0f}"
        row += f"{report['features']:10}{report.get('peak_mib', 0):10}{len(report['findings']):10}"
        details = [f"\n    {kind}: {path}" for kind, path in report["findings"].items()]
        with lock:
            write(row + "".join(details) + "\n")
            sys.stdout.flush()
        return report

    # The longest first, so that none of them is left over at the end.
    order = sorted(arguments.target, key=lambda name: SHARES[name])
    with ThreadPoolExecutor(arguments.jobs) as pool:
        reports = list(pool.map(fuzz, order))
    inputs = sum(report["inputs"] for report in reports)
    findings = sum(len(report["findings"]) for report in reports)
    seconds = time.monotonic() - begun
    write(f"{inputs} inputs in {seconds:.0f} seconds, {findings} findings\n")
    if not any(arguments.findings.iterdir()):
        arguments.findings.rmdir()
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
