"""Run random studies whole, many of them, and say what became of each.

    python -m tests.studies.run --studies 20000 --jobs 2 --seconds 3600
    python -m tests.studies.run --seed 1234

A failure is made smaller and printed with its seed, study and traceback; with `--seed` alone that
one study is run again. Exit code 1 means that a study failed after a release.
"""

import argparse
import collections
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import dataclass, field

from tests.studies.generate import random_case
from tests.studies.planning import remembered_calibrations
from tests.studies.shrink import shrink

# Building the report takes as long as all else together; one study in so many gets it.
REPORT_EVERY = 8


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What became of the studies of one process."""

    outcomes: dict[str, int]
    refusals: dict[str, int]
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)


def run_seed(seed: int, *, with_report: bool | None = None) -> tuple[str, str]:
    """Run one seed; return "ran", "refused", "too large" or "failed", and the reason."""
    from tests.studies.whole import AfterRelease, run_whole

    report = seed % REPORT_EVERY == 0 if with_report is None else with_report
    case = random_case(seed)
    try:
        outcome = run_whole(case, with_report=report)
    except AfterRelease as failure:
        smaller = shrink(case, failure, with_report=report)
        return "failed", _described(seed, smaller.case, smaller.failure)
    return outcome.kind, outcome.reason


def _described(seed: int, case, failure) -> str:  # type: ignore[no-untyped-def]
    import tomli_w

    trace = "".join(traceback.format_exception(failure.problem)[-12:])
    rows = {name: len(next(iter(table.values()))) for name, table in case.tables.items()}
    return (
        f"seed {seed}: {failure}\n{trace}\nmade smaller, with {rows} rows:\n"
        f"{tomli_w.dumps(case.settings)}\nagain: python -m tests.studies.run --seed {seed}\n"
    )


def run_many(seeds: range, *, seconds: float) -> Tally:
    """Run seeds one after another until the time is up."""
    end = time.monotonic() + seconds
    outcomes: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    slowest = (0.0, -1)
    for seed in seeds:
        begun = time.monotonic()
        if begun > end:
            break
        kind, reason = run_seed(seed)
        outcomes[kind] += 1
        if kind == "refused":
            refusals[reason] += 1
        if kind == "failed":
            failures.append(reason)
            sys.stderr.write(reason)
        slowest = max(slowest, (time.monotonic() - begun, seed))
    return Tally(outcomes=outcomes, refusals=refusals, failures=failures, slowest=slowest)


def _job(arguments: tuple[range, float]) -> Tally:
    seeds, seconds = arguments
    with remembered_calibrations():
        return run_many(seeds, seconds=seconds)


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.studies.run", description=__doc__)
    parser.add_argument("--studies", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seconds", type=float, default=3600, help="after which none is begun")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--seed", type=int, help="run this one study, with its report")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        kind, reason = run_seed(arguments.seed, with_report=True)
        sys.stdout.write(f"seed {arguments.seed} {kind} {reason}\n")
        return 1 if kind == "failed" else 0
    # One thread for each process: the jobs share the processors already.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    begun = time.monotonic()
    last = arguments.first + arguments.studies
    parts = [
        (range(arguments.first + job, last, arguments.jobs), arguments.seconds)
        for job in range(arguments.jobs)
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        tallies = pool.map(_job, parts)
    return _report(tallies, seconds=time.monotonic() - begun)


def _report(tallies: list[Tally], *, seconds: float) -> int:
    outcomes: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    for tally in tallies:
        outcomes += collections.Counter(tally.outcomes)
        refusals += collections.Counter(tally.refusals)
    slow, seed = max(tally.slowest for tally in tallies)
    write = sys.stdout.write
    write(f"{sum(outcomes.values())} random studies in {seconds:.0f} seconds\n")
    for kind in ("ran", "refused", "too large", "failed"):
        write(f"{outcomes[kind]:8} {kind}\n")
    write(f"slowest: seed {seed} with {slow:.1f} seconds\nrefused before a release, because\n")
    for reason, count in refusals.most_common():
        write(f"{count:8} {reason}\n")
    failures = [failure for tally in tallies for failure in tally.failures]
    for failure in failures:
        write(f"\n{failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
