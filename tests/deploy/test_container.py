"""The container file keeps the rules that the guide claims; broken twins are caught."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "container"
FILE = (FOLDER / "Containerfile").read_text()


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"deploy_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


steps, healthy, runtime = load("steps"), load("healthy"), load("runtime")


def broken_rules(text: str) -> set[str]:
    """Return the rules that a container file breaks."""
    lines = steps.instructions(text)
    by_word: dict[str, list[str]] = {}
    for word, rest in lines:
        by_word.setdefault(word, []).append(rest)
    last = lines[[word for word, _ in lines].index("FROM", 1) :]
    broken = set()
    bases = [rest.split()[0] for rest in by_word["FROM"]]
    if not all(re.fullmatch(r"python:3\.\d+-slim", base) for base in bases):
        broken.add("slim base of a named version")
    if len(bases) != 2 or any("pip" in rest for word, rest in last if word == "RUN"):
        broken.add("nothing is installed or built in the last stage")
    if not any("NUMBA_CACHE_DIR=/opt/splitmeans/compiled" in rest for rest in by_word["RUN"]):
        broken.add("kernels are compiled in the image")
    users = [rest for word, rest in last if word == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", users[-1]):
        broken.add("a user with a number, not root")
    if any(word in ("RUN", "COPY") for word, _ in last[[w for w, _ in last].index("USER") :]):
        broken.add("the user owns nothing of the image")
    if "ADD" in by_word:
        broken.add("COPY, not ADD")
    installs = [one for rest in by_word["RUN"] for one in rest.split("&&") if "pip install" in one]
    if not all("--no-cache-dir" in one for one in installs):
        broken.add("no cache of pip")
    locked = [one for one in installs if " -r " in one]
    if len(locked) != 2 or not all("--require-hashes" in one for one in locked):
        broken.add("everything by its hash")
    if not all("--no-deps" in one for one in installs):
        broken.add("nothing is resolved anew")
    if not by_word.get("HEALTHCHECK"):
        broken.add("a health check")
    if not all(rest.startswith("[") for rest in by_word["ENTRYPOINT"] + by_word["CMD"]):
        broken.add("exec form, so that signals arrive")
    if re.search(r"PASS|SECRET|TOKEN", "".join(by_word.get("ENV", []) + by_word.get("ARG", []))):
        broken.add("no secret in the image")
    return broken


def test_the_container_file_keeps_its_rules() -> None:
    assert broken_rules(FILE) == set()


TWINS: dict[str, Callable[[str], str]] = {
    "slim base of a named version": lambda text: text.replace("3.12-slim", "latest", 1),
    "nothing is installed or built in the last stage": lambda text: text.replace(
        "USER 1", "RUN pip install --no-cache-dir --no-deps x\nUSER 1"
    ),
    "kernels are compiled in the image": lambda text: re.sub("RUN NUMBA.*\n.*\n", "", text),
    "a user with a number, not root": lambda text: text.replace("USER 10001:10001", "USER root"),
    "the user owns nothing of the image": lambda text: text + "RUN touch x\n",
    "COPY, not ADD": lambda text: text.replace("COPY src ./src", "COPY src ./src\nADD x /x"),
    "no cache of pip": lambda text: text.replace("--no-cache-dir ", "", 1),
    "everything by its hash": lambda text: text.replace("--require-hashes ", "", 1),
    "nothing is resolved anew": lambda text: text.replace("--no-deps ", "", 1),
    "a health check": lambda text: re.sub(r"HEALTHCHECK.*\n", "", text),
    "exec form, so that signals arrive": lambda text: text.replace('["start"]', "start"),
    "no secret in the image": lambda text: text.replace("ENV PATH", "ENV TOKEN=x PATH"),
}


@pytest.mark.parametrize("rule", TWINS)
def test_a_broken_twin_is_caught(rule: str) -> None:
    twin = TWINS[rule](FILE)
    assert twin != FILE
    assert broken_rules(twin) == {rule}


def test_start_copies_compiled_kernels_once_and_passes_arguments_on(tmp_path: Path) -> None:
    image, cache = tmp_path / "opt", tmp_path / "numba"
    (image / "bin").mkdir(parents=True)
    (image / "compiled" / "kernels").mkdir(parents=True)
    (image / "compiled" / "kernels" / "one.nbc").write_text("code")
    (image / "compiled" / "kernels").chmod(0o555)
    shutil.copy(FOLDER / "start", image / "bin" / "start")
    (image / "bin" / "splitmeans").write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    (image / "bin" / "splitmeans").chmod(0o755)
    env = {"PATH": f"{image}/bin:/usr/bin:/bin", "NUMBA_CACHE_DIR": str(cache)}

    def start() -> str:
        return subprocess.run(
            ["start", "a b", "c"], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert start() == "[a b][c]"
    assert (cache / "kernels").stat().st_mode & 0o200
    assert (cache / "kernels" / "one.nbc").read_text() == "code"
    (cache / "kernels" / "one.nbc").write_text("newer")
    assert start() == "[a b][c]"
    assert [path.read_text() for path in cache.rglob("*.nbc")] == ["newer"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numba", "opt"]


def test_all_that_is_installed_has_hashes_and_is_in_the_lock_file() -> None:
    known = runtime.entries((ROOT / "requirements.lock").read_text())
    wanted = (FOLDER / "runtime.txt").read_text().split()
    assert {"numpy", "pyarrow", "starlette", "s3fs", "adlfs", "paramiko"} <= set(wanted)
    assert not {"pytest", "mypy", "ruff", "mkdocs-material"} & set(wanted)
    for name in (*wanted, *runtime.BUILD):
        assert "--hash=sha256:" in known[name], name
    assert all("--hash=sha256:" in entry for entry in known.values())


@pytest.mark.parametrize(
    ("arguments", "env", "url"),
    [
        (["party", "run", "study.toml"], {}, None),
        (["python", "splitmeans", "relay", "serve"], {}, "https://127.0.0.1:8443/health"),
        (["relay", "serve", "--port", "9"], {}, "https://127.0.0.1:9/health"),
        (["relay", "serve", "--port=9", "--insecure"], {}, "http://127.0.0.1:9/health"),
        (
            ["relay", "serve"],
            {"SPLITMEANS_RELAY_SERVE_PORT": "7", "SPLITMEANS_RELAY_SERVE_INSECURE": "1"},
            "http://127.0.0.1:7/health",
        ),
    ],
)
def test_the_health_check_finds_the_relay(
    arguments: list[str], env: dict[str, str], url: str | None
) -> None:
    assert healthy.relay_url(arguments, env) == url


def test_a_relay_that_is_not_there_is_not_healthy() -> None:
    assert not healthy.is_healthy("http://127.0.0.1:1/health")
