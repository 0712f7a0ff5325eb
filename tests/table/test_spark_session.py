"""What people are told when Spark or Java is not there; no Spark is needed for it."""

import subprocess
import sys

import pytest

from splitmeans.errors import EngineError
from splitmeans.table.spark import start_session
from splitmeans.table.spark.session import check_java, check_pyspark


def java_in(folder, *, says: str):
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o700)
    return folder


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    for start in (check_pyspark, start_session):
        with pytest.raises(EngineError, match=rf'{package}.*pip install "splitmeans\[spark\]"'):
            start()


def test_missing_java_is_named_with_the_fix(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="no `java` on the PATH; install Java 17 or newer"):
        check_java()


def test_a_wrong_java_home_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineError, match=f"JAVA_HOME has no {tmp_path}/bin/java; install Java"):
        check_java()


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "needs Java 17 or newer, .* is 11"),
        ("echo 'java version \"1.8.0_392\"' >&2", "needs Java 17 or newer, .* is 8"),
        ("echo 'no such thing'", "does not tell its version"),
        ("exit 1", "does not tell its version"),
    ],
    ids=["11", "8", "other text", "fails"],
)
def test_an_old_or_broken_java_is_refused(says, message, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(java_in(tmp_path, says=says)))
    with pytest.raises(EngineError, match=message):
        check_java()


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_newer_versions_are_taken(version, monkeypatch, tmp_path):
    says = f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"
    monkeypatch.setenv("JAVA_HOME", str(java_in(tmp_path, says=says)))
    assert check_java() == int(version[:2])


def test_the_engine_is_imported_without_spark():
    code = "import splitmeans.table.spark, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
