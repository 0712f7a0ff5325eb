"""`make dist`: builds sdist and wheel into dist/, checks what they hold, and uses the wheel.

The wheel is built from the sdist; one that is built from the tree must hold the same bytes. Then it
is installed into an empty environment with its requirements only, in the versions of the lock file,
and used there: `in_empty_environment.py`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from splitmeans import __version__

from .contents import (
    extras,
    package_files,
    path_problems,
    sdist_files,
    sdist_problems,
    wheel_files,
    wheel_problems,
)

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
SMOKE = Path(__file__).with_name("in_empty_environment.py")
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")


def main() -> int:
    """Build, check, use; return 1 if something is wrong with what was built."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="emptied first")
    out: Path = parser.parse_args().out
    started = time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    build = [str(uv), "build", "-q", "--build-constraints", str(LOCK), "--no-create-gitignore"]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        _run(*build, "--out-dir", str(out), str(ROOT))  # the wheel from the sdist
        _run(*build, "--wheel", "--out-dir", str(place / "tree"), str(ROOT))
        _tell("built", started)
        (wheel,), (sdist,), (other,) = (
            list(folder.glob(pattern))
            for folder, pattern in ((out, "*.whl"), (out, "*.tar.gz"), (place / "tree", "*.whl"))
        )
        problems = _problems(wheel, sdist, other)
        for problem in problems:
            sys.stderr.write(f"{problem}\n")
        if problems:
            return 1
        _tell(f"checked {wheel.name} and {sdist.name}", started)
        _use(wheel, place, uv)
        _tell("used the wheel in an empty environment", started)
    return 0


def _problems(wheel: Path, sdist: Path, from_tree: Path) -> list[str]:
    files, source = wheel_files(wheel), sdist_files(sdist)
    licence = (ROOT / "LICENSE").read_bytes()
    names = _run("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]
    tracked = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    found = {
        wheel.name: wheel_problems(
            files, package=package_files(ROOT), licence=licence, version=__version__
        )
        + path_problems(files, places=[str(ROOT)]),
        sdist.name: sdist_problems(source, tracked=tracked)
        + path_problems(source, places=[str(ROOT)]),
    }
    if wheel_files(from_tree) != files:
        found["dist"] = ["the wheel from the sdist is not the wheel from the tree"]
    return [f"{name}: {problem}" for name, problems in found.items() for problem in problems]


def _use(wheel: Path, place: Path, uv: Path) -> None:
    environment, work = place / "environment", place / "work"
    work.mkdir()
    python = environment / "bin" / "python"
    _run(str(uv), "venv", "-q", "--python", sys.executable, str(environment))
    install = [str(uv), "pip", "install", "-q", "--python", str(python), "-c", str(LOCK)]
    _run(*install, str(wheel))
    script = shutil.copy(SMOKE, place / SMOKE.name)
    metadata = wheel_files(wheel)[f"splitmeans-{__version__}.dist-info/METADATA"]
    facts = {"version": __version__, "extras": sorted(extras(metadata))}
    # Nothing of this environment or of the user's own may help it.
    clean = {name: os.environ[name] for name in _KEPT if name in os.environ}
    _run(str(python), "-I", str(script), json.dumps(facts), cwd=work, env=clean)


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])} ... ended with {done.returncode}")
    return done.stdout


def _tell(what: str, started: float) -> None:
    sys.stdout.write(f"{time.monotonic() - started:6.1f} s  {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
