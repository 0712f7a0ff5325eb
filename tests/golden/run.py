"""Compare the golden runs byte for byte with what they published before a change.

    python -m tests.golden.run --write     before the change: remember what is published
    python -m tests.golden.run             after it: compare
    python -m tests.golden.run two series  some studies only
    python -m tests.golden.run --accept    after an intended change: rewrite expected.json

Bytes are compared on one machine: another processor rounds the last digits of floats differently.
So they stay in .golden/, which git ignores. `tests/golden/test_golden.py` compares with
expected.json what every machine must agree on.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.golden.expected import read_expected, summary_of, write_expected
from tests.golden.mailbox import mailbox_parts
from tests.golden.published import PARTS, Array, Parts, fitted_parts
from tests.golden.studies import MAILBOX, STUDIES

REMEMBERED = Path(__file__).parents[2] / ".golden"


def parts_of(name: str) -> Parts:
    """Run a study and return what is compared."""
    case = STUDIES[name]()
    return mailbox_parts(case) if name == MAILBOX else fitted_parts(case)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code, 1 if anything differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="study", help=f"of {', '.join(STUDIES)}")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="remember, compare nothing")
    what.add_argument("--accept", action="store_true", help="rewrite expected.json")
    options = parser.parse_args(arguments)
    names = options.names or list(STUDIES)
    for name in names:
        if name not in STUDIES:
            parser.error(f"there is no study {name!r}; take some of {', '.join(STUDIES)}")
        if not (options.write or options.accept or _file(name).exists()):
            parser.error(f"nothing is remembered of study {name!r}; use --write before a change")
    if options.accept:
        return _accept(names)
    return _write(names) if options.write else _compare(names)


def _write(names: Sequence[str]) -> int:
    REMEMBERED.mkdir(exist_ok=True)
    for name in names:
        np.savez(_file(name), **_by_path(parts_of(name)))
        _say(f"{name}: written")
    return 0


def _accept(names: Sequence[str]) -> int:
    known = {name: own for name, own in read_expected().items() if name in STUDIES}
    write_expected(known | {name: summary_of(parts_of(name)) for name in names})
    return 0


def _compare(names: Sequence[str]) -> int:
    _say(f"{'study':<16}{'CPU':>6} s  {''.join(f'{part:<11}' for part in PARTS)}")
    differ = False
    for name in names:
        begun = time.process_time()
        now = _by_path(parts_of(name))
        seconds = time.process_time() - begun
        with np.load(_file(name)) as remembered:
            found = differences(dict(remembered), now)
        parts = {path.split("/")[0] for path in found}
        verdicts = "".join(f"{'DIFFERENT' if part in parts else 'equal':<11}" for part in PARTS)
        _say(f"{name:<16}{seconds:>6.1f} s  {verdicts}")
        for path, text in found.items():
            _say(f"    {path}: {text}")
        differ = differ or bool(found)
    return int(differ)


def differences(before: dict[str, Array], now: dict[str, Array]) -> dict[str, str]:
    """Return how arrays differ that are not the same in every byte."""
    found: dict[str, str] = {}
    for path in [*before, *(path for path in now if path not in before)]:
        if path not in now or path not in before:
            found[path] = "new" if path in now else "gone"
            continue
        old, new = before[path], now[path]
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            found[path] = f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
        elif old.tobytes() != new.tobytes():
            found[path] = "another text" if old.dtype.kind == "U" else _how_far(old, new)
    return found


def _how_far(old: Array, new: Array) -> str:
    apart = np.abs(old.astype(np.float64) - new.astype(np.float64))
    return (
        f"{np.count_nonzero(apart)} of {apart.size} values differ, by {apart.max():.2g} at most; "
        f"the largest value is {np.abs(old).max():.4g}"
    )


def _by_path(parts: Parts) -> dict[str, Array]:
    return {f"{part}/{name}": array for part in PARTS for name, array in parts[part].items()}


def _file(name: str) -> Path:
    return REMEMBERED / f"{name}.npz"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
