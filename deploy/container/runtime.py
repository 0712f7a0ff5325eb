"""Print what an installation needs of the lock file, with versions and hashes.

    python deploy/container/runtime.py requirements.lock > runtime.lock
    python deploy/container/runtime.py --build requirements.lock > build.lock

The lock file has all that developers need, too. What a participant or a relay needs of it, with
every mailbox and database, is listed in `runtime.txt` beside this file; `make lock` writes both.
"""

import argparse
import re
import sys
from pathlib import Path

# What builds the package itself.
BUILD = ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")


def entries(lock: str) -> dict[str, str]:
    """Return the lines of each package of a lock file, by its name."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lock.splitlines():
        if begun := re.match(r"([A-Za-z0-9._-]+)==", line):
            name = begun[1]
        if name:
            found.setdefault(name, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def main() -> None:
    """Write the chosen entries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", type=Path)
    parser.add_argument("--build", action="store_true", help="what builds the package instead")
    chosen = parser.parse_args()
    wanted = BUILD if chosen.build else Path(__file__).with_name("runtime.txt").read_text().split()
    known = entries(chosen.lock.read_text())
    missing = [name for name in wanted if name not in known]
    if missing:
        sys.exit(f"{chosen.lock} has no {', '.join(missing)}; run `make lock`, then mend the list")
    sys.stdout.write("\n".join(known[name] for name in wanted) + "\n")


if __name__ == "__main__":
    main()
