"""Where the passphrase of a key file comes from: a file, a descriptor, a variable or a person."""

import os
import sys
from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.stopping import asked
from splitmeans.errors import ParameterError
from splitmeans.wire.identity import Identity
from splitmeans.wire.private_file import read_private

PASSPHRASE = "SPLITMEANS_PASSPHRASE"
PASSPHRASE_FILE = "SPLITMEANS_PASSPHRASE_FILE"
_MAX_BYTES = 4096
_WAYS = f"--passphrase-file, --passphrase-fd or the variable {PASSPHRASE_FILE}"

FILE_OPTION = typer.Option(
    None,
    "--passphrase-file",
    envvar=PASSPHRASE_FILE,
    help="File with the passphrase of the key file, on one line; only you may read it.",
)
FD_OPTION = typer.Option(
    None,
    "--passphrase-fd",
    help="Number of an open descriptor to read the passphrase from; 0 is the standard input.",
)


def given_passphrase(path: Path, *, file: Path | None = None, fd: int | None = None) -> str | None:
    """Return the passphrase of a key file that has one."""
    stored = _stored(file, fd)
    if not Identity.is_protected(path):
        if stored is not None:
            print_text(err, f"note: {path} has no passphrase; the one given is not used")
        return None
    if stored is not None:
        return stored
    if not sys.stdin.isatty():
        raise ParameterError(f"{path} has a passphrase; give it with {_WAYS}")
    ask = partial(typer.prompt, f"Passphrase of {path}", hide_input=True, err=True)
    given: str = asked(ask, instead=f"no passphrase of {path}; or give it with {_WAYS}")
    return given


def new_passphrase(*, file: Path | None = None, fd: int | None = None) -> str:
    """Return a passphrase for a new key file; see `given_passphrase`."""
    stored = _stored(file, fd)
    if stored is not None:
        return stored
    if not sys.stdin.isatty():
        raise ParameterError(f"--passphrase needs a terminal, or {_WAYS}")
    ask = partial(typer.prompt, "Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    chosen: str = asked(ask, instead=f"no passphrase; or give it with {_WAYS}")
    return chosen


def _stored(file: Path | None, fd: int | None) -> str | None:
    """Return the passphrase that is stored somewhere, or None if a person must be asked."""
    if file is not None and fd is not None:
        raise ParameterError(
            f"--passphrase-file (or the variable {PASSPHRASE_FILE}) and --passphrase-fd: give one "
            "of them"
        )
    if fd is not None:
        return _text(_read_descriptor(fd), f"descriptor {fd}")
    if file is None and PASSPHRASE_FILE in os.environ:  # for commands without the option
        file = Path(os.environ[PASSPHRASE_FILE])
    if file is not None:
        path = file.expanduser()
        return _text(
            read_private(path, what="passphrase file", max_bytes=_MAX_BYTES),
            f"passphrase file {path}",
        )
    return os.environ.get(PASSPHRASE)


def _read_descriptor(fd: int) -> bytes:
    if fd < 0 or fd in (1, 2):
        raise ParameterError(f"--passphrase-fd must be 0, or 3 or more, got {fd}")
    data = b""
    try:
        # Kept open: it belongs to whoever started the command. A pipe gives a part at a time.
        while len(data) <= _MAX_BYTES and (part := os.read(fd, _MAX_BYTES + 1)):
            data += part
    except OSError as problem:
        raise ParameterError(
            f"--passphrase-fd {fd} cannot be read: {problem.strerror}; the shell opens it with "
            f"{fd}<FILE"
        ) from None
    if len(data) > _MAX_BYTES:
        raise ParameterError(
            f"descriptor {fd} has more than {_MAX_BYTES} bytes; is it the right one?"
        )
    return data


def _text(data: bytes, where: str) -> str:
    """Return the one line that a passphrase is; its line end is none of it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ParameterError(f"{where} must be text in UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or "\n" in text:
        raise ParameterError(f"{where} must have the passphrase on one line and nothing else")
    return text
