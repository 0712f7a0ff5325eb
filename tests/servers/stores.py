"""Object stores on loopback: moto's server speaks the S3 API, Azurite is Azure's own emulator."""

import base64
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BUCKET = "messages"
_AZURITE = Path(__file__).parent / "node_modules" / ".bin" / "azurite-blob"
_ACCOUNT = "splitmeans"
_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Store:
    """A running store with an empty bucket.

    Attributes:
        kind: "s3" or "azure".
        url: Of a mailbox in its bucket.
        port: Where it listens.
        env: What a participant's environment has for it.
    """

    kind: str
    url: str
    port: int
    env: dict[str, str] = field(repr=False)

    def at(self, port: int) -> dict[str, str]:
        """Return the environment of somebody who reaches the store at another port."""
        return {
            name: value.replace(f"127.0.0.1:{self.port}", f"127.0.0.1:{port}")
            for name, value in self.env.items()
        }

    def objects(self) -> dict[str, bytes]:
        """Return everything in the bucket, by name; for looking on."""
        import fsspec

        with _environment(self.env):
            kind = {"s3": "s3", "azure": "az"}[self.kind]
            driver = fsspec.filesystem(kind, skip_instance_cache=True)
            names = driver.find(BUCKET)
            return {name.removeprefix(f"{BUCKET}/"): driver.cat_file(name) for name in names}


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("AWS_", "AZURE_")):
                patch.delenv(name)
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(command: list[str], *, port: int, env: dict[str, str], log: Path) -> Iterator[None]:
    """Run a server until the block ends; it answers when the block begins."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, cwd=log.parent)
    try:
        end = time.monotonic() + _SECONDS
        while True:
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def serve_s3(folder: Path, *, with_rights: bool = False) -> Iterator[Store]:
    """A real S3 API; `with_rights` checks signatures and policies, too."""
    pytest.importorskip("moto", reason="moto is not installed; `make servers` installs it")
    port = free_port()
    env = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "AKIAOFTHEADMINISTRATOR",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16),
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    program = "import sys; from moto.server import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "-H", "127.0.0.1", "-p", str(port)]
    with _process(command, port=port, env=os.environ | env, log=folder / "moto.log"):
        store = Store(kind="s3", url=f"s3://{BUCKET}/box", port=port, env=env)
        _make_bucket(store)
        yield store


@contextlib.contextmanager
def serve_azure(folder: Path) -> Iterator[Store]:
    node = shutil.which("node")
    if node is None or not _AZURITE.exists():
        pytest.skip("Azurite is not installed; `make servers` installs it where Node.js is")
    port, key = free_port(), base64.b64encode(secrets.token_bytes(32)).decode()
    place = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    settings = f"AccountName={_ACCOUNT};AccountKey={key};BlobEndpoint={place};"
    env = {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{settings}"}
    own = os.environ | {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{key}"}
    command = [node, str(_AZURITE.resolve()), "--silent", "--inMemoryPersistence"]
    command += ["--disableTelemetry", "--skipApiVersionCheck", "--disableProductStyleUrl"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with _process(command, port=port, env=own, log=folder / "azurite.log"):
        store = Store(kind="azure", url=f"az://{BUCKET}/box", port=port, env=env)
        _make_bucket(store)
        yield store


def _make_bucket(store: Store) -> None:
    import fsspec

    with _environment(store.env):
        kind = {"s3": "s3", "azure": "az"}[store.kind]
        fsspec.filesystem(kind, skip_instance_cache=True).mkdir(BUCKET)


def user_of_s3(store: Store, *actions: str) -> dict[str, str]:
    """Return the environment of a new user who may do some things with the bucket."""
    import boto3

    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    iam = boto3.client("iam", endpoint_url=store.env["AWS_ENDPOINT_URL"], **keys)
    name = f"user-{secrets.token_hex(4)}"
    iam.create_user(UserName=name)
    arn = f"arn:aws:s3:::{BUCKET}"
    rule = {"Effect": "Allow", "Action": list(actions), "Resource": [arn, f"{arn}/*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rule]})
    iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=policy)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    own = {"AWS_ACCESS_KEY_ID": made["AccessKeyId"]}
    return store.env | own | {"AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]}


def check_rights(store: Store) -> None:
    """From now on the S3 server checks every request's signature and its user's policy."""
    url = f"{store.env['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    kind = {"Content-Type": "text/plain"}
    request = urllib.request.Request(url, data=b"0", headers=kind, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


class Line:
    """A way to a server that can be cut: it passes so many bytes from the client, then no more.

    Attributes:
        port: Where it listens.
        allowed: Bytes from clients that still pass; None for all.
        stuck: Set when the limit was reached.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.allowed: int | None = None
        self.stuck = threading.Event()
        self._opened: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def refuse(self) -> None:
        """Take no further connection, and cut those that are open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.refuse()
        for one in self._opened:
            one.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._opened.append(client)
                server = socket.create_connection(("127.0.0.1", self._target))
                self._opened.append(server)
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, limited: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if limited and self.allowed is not None:
                    self.allowed -= len(data)
                    if self.allowed < 0:
                        self.stuck.set()
                        return  # the connection stays open, and nothing passes
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
