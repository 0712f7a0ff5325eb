"""A PostgreSQL server of our own: in a temporary folder, on a loopback port, gone afterwards."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "hunter2-of-the-party"


@dataclass(frozen=True)
class Server:
    """A running server with a database and a user that needs a password."""

    port: int

    @property
    def url(self) -> str:
        return f"postgresql://party@127.0.0.1:{self.port}/postgres"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements on a connection of their own; return the rows of the last."""
        import adbc_driver_postgresql.dbapi as driver

        # Only here: the tests themselves must get the password from the environment.
        with driver.connect(self.url.replace("party@", f"party:{PASSWORD}@")) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            connection.commit()
        return rows


def _programs() -> Path | None:
    """Where initdb is: Debian keeps it out of the search path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return Path(folders[-1]).parent if folders else None


def _owner() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: take another user then."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("adbc_driver_postgresql")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server (initdb) on this machine; `make servers` installs it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="splitmeans-pg-"))
    owner = _owner()
    try:
        (folder / "password").write_text(PASSWORD)
        if owner:
            for path in (folder, folder / "password"):
                os.chown(path, owner["user"], owner["group"])

        def call(*command: str) -> None:
            # With files, not pipes: the server keeps what it was given open.
            with (folder.parent / f"{folder.name}.log").open("w+") as log:
                done = subprocess.run(
                    [str(programs / command[0]), *command[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    timeout=120,
                    check=False,
                    **owner,
                )
                log.seek(0)
                assert done.returncode == 0, log.read()

        data = str(folder / "data")
        login = ("--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "-U", "party")
        call("initdb", "-D", data, "-E", "UTF8", "--locale=C", "--no-sync", *login)
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        call("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "server.log"), "start")
        try:
            yield Server(port=port)
        finally:
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        (folder.parent / f"{folder.name}.log").unlink(missing_ok=True)


@pytest.fixture
def url(server, monkeypatch) -> str:
    """The server's URL; the password is in the environment, as it should be."""
    for name in ("PGUSER", "PGHOST", "PGDATABASE", "PGSERVICE", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return str(server.url)
