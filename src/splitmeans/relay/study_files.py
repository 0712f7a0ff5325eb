"""Which studies a relay serves: files in folders that it looks at while it runs.

`relay study add` puts a file into `<folder>/studies/` of the relay; an operator may have the relay
look at a folder of its own besides, such as one that a cluster mounts. A file that is no study, or
has no keys, is told in the log and left out; the others are served. What `keys revoke` printed, as
a file `*.revoked` in one of these folders, has the relay refuse requests that are signed with that
key, in every study.
"""

import contextlib
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.mailbox.request_signature import Verifier
from splitmeans.relay.log import tell
from splitmeans.study import Study
from splitmeans.wire.identity import PublicIdentity
from splitmeans.wire.key_change import read_revocation

FOLDER = "studies"


def roster_of(study: Study) -> dict[str, PublicIdentity]:
    """Return everyone's public key by name, as a study pins it."""
    if not study.public_keys:
        raise ParameterError(
            f"study {study.name!r} has no keys, so nobody could use a relay for it; give every "
            "party a public_key and the study a server_key (`splitmeans keys show` prints them)"
        )
    return {name: PublicIdentity.from_text(text) for name, text in study.public_keys.items()}


def study_file(relay_folder: Path, study_hash: str) -> Path:
    """Return where `relay study add` keeps a study."""
    return relay_folder / FOLDER / f"{study_hash[:32]}.toml"


def add_study(relay_folder: Path, study: Study) -> bool:
    """Have a relay serve a study from now on; False if it was added before."""
    roster_of(study)
    target = study_file(relay_folder, study.hash)
    if target.exists():
        return False
    try:
        for place in (relay_folder, target.parent):
            place.mkdir(mode=0o700, exist_ok=True)
        # Whole under its name or not there: the relay may look at any moment.
        part = target.with_name(f".{secrets.token_hex(8)}.part")
        part.write_text(study.to_toml(), encoding="utf-8")
        os.replace(part, target)
    except OSError as problem:
        raise ParameterError(f"{target}: cannot be written ({problem.strerror})") from problem
    return True


def read_studies(folders: Sequence[Path]) -> tuple[dict[str, Study], dict[Path, str]]:
    """Return the studies of all files `*.toml` by hash, and what is wrong with other files."""
    studies: dict[str, Study] = {}
    problems: dict[Path, str] = {}
    for file in _files(folders):
        try:
            study = Study.read(file)
            roster_of(study)
        except SplitmeansError as problem:
            problems[file] = str(problem)
            continue
        if any(other[:32] == study.hash[:32] and other != study.hash for other in studies):
            problems[file] = "another study has the same first 32 digits of its hash"
            continue
        studies[study.hash] = study
    return studies, problems


class _Revoked:
    """Stands for a key that was revoked: no signature of it counts."""

    def verify(self, data: bytes, signature: bytes) -> bool:
        return False


def read_revoked(folders: Sequence[Path]) -> tuple[frozenset[str], dict[Path, str]]:
    """Return digests of all revoked keys (`*.revoked`), and what is wrong with other files.

    Only what the key itself has signed counts.
    """
    digests, problems = set(), {}
    for file in _files(folders, "*.revoked"):
        try:
            digests.add(read_revocation(file.read_text(encoding="utf-8"), where=str(file)).digest)
        except (SplitmeansError, OSError, ValueError) as problem:
            problems[file] = str(problem)
    return frozenset(digests), problems


class StudyWatch:
    """Notices studies and revoked keys that are added to or taken out of folders.

    A folder that is not there has no studies; those in `fixed`, by hash, are served in any case.
    """

    def __init__(self, folders: Sequence[Path], *, fixed: Mapping[str, Study]) -> None:
        self._folders = folders
        self._fixed = dict(fixed)
        self._seen: object = None
        self.studies: dict[str, Study] = {}

    def look(self) -> dict[str, Mapping[str, Verifier]] | None:
        """Return the rosters of all studies if something has changed, else None."""
        patterns = ("*.toml", "*.revoked")
        seen = tuple(_state(file) for one in patterns for file in _files(self._folders, one))
        if seen == self._seen:
            return None
        is_first, self._seen = self._seen is None, seen
        found, problems = read_studies(self._folders)
        revoked, unreadable = read_revoked(self._folders)
        for file, problem in (problems | unreadable).items():
            tell(
                "bad_study",
                "left out {file}: {problem}",
                level=logging.WARNING,
                file=str(file),
                problem=problem,
            )
        studies = found | self._fixed
        if not is_first:
            for study_hash in sorted(studies.keys() ^ self.studies.keys()):
                if study_hash in studies:
                    tell("study_added", "serving study {study:.12}", study=study_hash[:32])
                else:
                    tell("study_removed", "no more study {study:.12}", study=study_hash[:32])
        self.studies = studies
        return {
            study_hash: {
                name: _Revoked() if key.digest.hex() in revoked else key
                for name, key in roster_of(study).items()
            }
            for study_hash, study in studies.items()
        }


def _files(folders: Sequence[Path], pattern: str = "*.toml") -> list[Path]:
    return sorted(
        file for folder in folders for file in folder.glob(pattern) if not file.name.startswith(".")
    )


def _state(file: Path) -> tuple[str, int, int]:
    with contextlib.suppress(OSError):
        found = file.stat()
        return str(file), found.st_mtime_ns, found.st_size
    return str(file), 0, 0
