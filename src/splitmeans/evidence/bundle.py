"""A bundle on disk: a zip file that has one form only for the files in it.

Members are stored without compression, in a fixed order and with a fixed date, so equal files make
equal bytes on every machine. Reading makes the bundle again from what was read and compares: a byte
that was changed anywhere, in a file or between files, is found before anything is believed.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from typing import NoReturn

from splitmeans.errors import EvidenceError

# What a bundle may be; a result with a grid of a few MB makes one of a few MB.
MOST_BYTES = 1 << 30
_MOST_MEMBERS = 100
_NAME = re.compile(r"(result/)?[a-z0-9][a-z0-9_-]{0,60}\.[a-z]{1,10}")
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return files as one zip file, always the same for the same files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            _check_name(name)
            member = zipfile.ZipInfo(name, date_time=_DATE)
            member.create_system = 3  # the same on every system
            member.external_attr = 0o100644 << 16
            archive.writestr(member, files[name])
    return data.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of a bundle.

    Nothing is written to a disk, and no more memory is taken than twice the bundle's own size.

    Raises:
        EvidenceError: The bytes are not those that `pack` makes of any files.
    """
    if len(data) > MOST_BYTES:
        _refuse(f"it has {len(data)} bytes, more than {MOST_BYTES}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > _MOST_MEMBERS:
                _refuse(f"it has more than {_MOST_MEMBERS} files")
            for member in members:
                _check_name(member.filename)
                if member.compress_type != zipfile.ZIP_STORED:
                    _refuse(f"{member.filename} is compressed, which no bundle is")
                if not member.file_size == member.compress_size <= len(data):
                    _refuse(f"{member.filename} does not have the size that it says")
            if sum(member.file_size for member in members) > len(data):
                _refuse("its files are larger than the bundle itself")
            if len({member.filename for member in members}) != len(members):
                _refuse("two files have one name")
            files = {member.filename: archive.read(member) for member in members}
    except EvidenceError:
        raise
    except Exception as problem:  # whatever the library makes of bytes that somebody forged
        raise EvidenceError(
            f"no bundle: it was cut off, or its bytes were changed ({type(problem).__name__})"
        ) from problem
    if pack(files) != data:
        _refuse("bytes between its files were changed, or another program packed it")
    return files


def _check_name(name: str) -> None:
    """Names are few and simple: no way out of a folder, no two spellings of one place."""
    if not _NAME.fullmatch(name):
        _refuse(f"it has a file {name[:80]!r}, a name that no bundle has")


def _refuse(problem: str) -> NoReturn:
    raise EvidenceError(f"no bundle as `splitmeans archive` makes it: {problem}")
