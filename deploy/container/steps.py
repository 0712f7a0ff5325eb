"""Run the steps of the Containerfile without an engine, and use what they make.

    python deploy/container/steps.py

The RUN lines of the build stage are run as they stand, in an empty folder that takes the place of
the image; then its tree is made read-only, and an unprivileged user runs the commands, a relay and
the health check in it, and a fit that finds its kernels compiled. Where an engine answers, the
image itself is built and run instead.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "container" / "Containerfile"
USER = 10001
_SECONDS = 120


def instructions(text: str) -> list[tuple[str, str]]:
    """Return a container file's instructions with their arguments, lines joined."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    lines = (line.strip() for line in joined.splitlines())
    return [(line.split()[0].upper(), line.partition(" ")[2].strip()) for line in lines if line]


def engine() -> str | None:
    """Return a container engine that answers."""
    for name in ("docker", "podman"):
        found = shutil.which(name)
        if (
            found
            and subprocess.run([found, "info"], capture_output=True, check=False).returncode == 0
        ):
            return found
    return None


def shared_python() -> str:
    """Return a Python that other users can run, as the image's can: not one in root's home."""
    for name in (
        getattr(sys, "_base_executable", sys.executable),
        "/usr/local/bin/python3",
        "/usr/bin/python3",
    ):
        real = Path(name).resolve()
        if real.exists() and all(folder.stat().st_mode & 0o001 for folder in (real, *real.parents)):
            return name
    sys.exit("no Python that every user can run; install one, such as Debian's python3-venv")


def build_here(place: Path) -> Path:
    """Run the build stage below a folder; return what is `/opt/splitmeans` in the image."""
    image, source, python = place / "opt" / "splitmeans", place / "src", shared_python()
    source.mkdir(parents=True)
    image.parent.mkdir(exist_ok=True)
    _, build, last = "\n".join(map(" ".join, instructions(FILE.read_text()))).split("FROM ")
    for word, rest in instructions(build):
        if word == "COPY":
            *names, target = rest.split()
            for name in names:
                goal = (
                    source / target / ("" if target.endswith((".py", "src")) else Path(name).name)
                )
                goal.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, goal)
        elif word == "RUN":
            command = rest.replace("/tmp/", f"{place}/").replace("/opt/splitmeans", str(image))
            command = re.sub(r"(^|&& )python ", rf"\1{python} ", command)
            subprocess.run(["/bin/sh", "-ec", command], cwd=source, check=True)
    for name, goal in re.findall(r"^COPY (deploy\S+) (\S+)", last, flags=re.MULTILINE):
        shutil.copy(ROOT / name, goal.replace("/opt/splitmeans", str(image)))
    return image


def use_here(image: Path, place: Path) -> None:
    """Run commands and a relay as a user who can write to two folders only."""
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(image)], check=True)
    home, scratch = place / "home", place / "tmp"
    as_user: dict[str, int] = {}
    for folder in (home, scratch):
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
            as_user = {"user": USER, "group": USER}
    for folder in (place, *place.parents):
        if (
            folder.stat().st_uid == os.geteuid()
            and folder != Path("/")
            and folder.is_relative_to(place)
        ):
            folder.chmod(0o755)
    env = {
        "PATH": f"{image}/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "NUMBA_CACHE_DIR": str(scratch / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SPLITMEANS_HOME": str(home / "home"),
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            command,
            env=env,
            cwd=home,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            extra_groups=[] if as_user else None,
            **as_user,
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
        _refuse_compiling(done.stderr)
        return done.stdout

    write = f"import pathlib; pathlib.Path({str(image / 'x')!r}).write_text('x')"
    if (
        as_user
        and subprocess.run(
            [image / "bin" / "python", "-c", write],
            env=env,
            capture_output=True,
            check=False,
            **as_user,
        ).returncode
        == 0
    ):
        sys.exit("the image's own files can be written")
    sys.stderr.write(f"splitmeans {run('start', '--version').strip()} runs\n")
    run("start", "keys", "new")
    run("start", "demo", "--output", str(scratch / "demo"))
    sys.stderr.write("the first fit finds its kernels compiled\n")
    (home / "studies").mkdir()
    relay = [f"{image}/bin/start", "relay", "serve", "--insecure", "--port", _free_port()]
    relay += ["--folder", str(home / "messages"), "--studies", str(home / "studies")]
    process = subprocess.Popen(relay, env=env, cwd=home, **as_user)  # type: ignore[call-overload]
    check = (
        f"import sys; sys.path.insert(0, {str(image)!r}); import healthy; "
        f"url = healthy.relay_url({relay[1:]!r}, {{}}); sys.exit(not healthy.is_healthy(url))"
    )
    try:
        end = time.monotonic() + _SECONDS
        while subprocess.run(
            [image / "bin" / "python", "-c", check], env=env, check=False
        ).returncode:
            if process.poll() is not None or time.monotonic() > end:
                sys.exit("the relay does not get healthy")
            time.sleep(1)
    finally:
        process.terminate()
        process.wait(20)
    sys.stderr.write("the relay is healthy, as an unprivileged user with a read-only tree\n")


def use_engine(program: str) -> None:
    """Build and run the image itself."""
    subprocess.run(
        [program, "build", "-f", str(FILE), "-t", "splitmeans:try", str(ROOT)], check=True
    )
    run = [program, "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
    run += ["--network", "none", "splitmeans:try"]
    subprocess.run([*run, "--version"], check=True)
    subprocess.run([*run, "keys", "new"], check=True)
    demo = [*run, "demo", "--output", "/tmp/demo"]
    _refuse_compiling(
        subprocess.run(demo, check=True, stderr=subprocess.PIPE, encoding="utf-8").stderr
    )


def _refuse_compiling(log: str) -> None:
    if "compiling splitmeans" in log:
        sys.exit("the image's compiled kernels are not found: its first fit compiles")


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main() -> None:
    """Use an engine if one answers, else this machine."""
    program = engine()
    if program is not None:
        use_engine(program)
        return
    sys.stderr.write("no container engine answers: the steps are run here\n")
    place = Path(tempfile.mkdtemp(prefix="splitmeans-image-"))
    try:
        use_here(build_here(place), place)
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(place)], check=False)
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
