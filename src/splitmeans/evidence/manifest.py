"""The manifest of a bundle: every file by its hash, signed by the participant who made it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from splitmeans.errors import EvidenceError
from splitmeans.wire.identity import PublicIdentity

MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
FORMAT = 1
# The same key signs messages, requests and results; nothing else begins with this line.
_DOMAIN = b"splitmeans archive manifest, version 1\n"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a participant signs.

    Attributes:
        format: Of the bundle.
        splitmeans: Version that made it.
        study: Name of the study.
        study_hash: Its hash.
        run: Name of the run.
        participant: Who made the bundle.
        key: Public key of that participant, as the study pins it.
        result_hash: Of what the server signed.
        published_at: When the server published, by its clock.
        files: SHA-256 of every other file but the signature, by name.
    """

    format: int
    splitmeans: str
    study: str
    study_hash: str
    run: str
    participant: str
    key: str
    result_hash: str
    published_at: str
    files: Mapping[str, str]

    @property
    def data(self) -> bytes:
        """The manifest as a file."""
        text = json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False)
        return f"{text}\n".encode()

    def signed(self, sign: Callable[[bytes], bytes]) -> bytes:
        """Return the signature as a file."""
        return f"{sign(_DOMAIN + self.data).hex()}\n".encode("ascii")

    @classmethod
    def read(cls, files: Mapping[str, bytes]) -> Self:
        """Read the manifest of a bundle, compare all files with it and check its signature.

        Whose key it names is for the caller to look at.
        """
        for name in (MANIFEST, SIGNATURE):
            if name not in files:
                raise EvidenceError(f"{name} is missing: there is nothing that was signed")
        manifest = cls._parsed(files[MANIFEST])
        if manifest.data != files[MANIFEST]:
            raise EvidenceError(f"{MANIFEST} is not in the form in which it is signed")
        try:
            signature = bytes.fromhex(files[SIGNATURE].decode("ascii").removesuffix("\n"))
            is_right = PublicIdentity.from_text(manifest.key).verify(
                _DOMAIN + manifest.data, signature
            )
            is_right = is_right and files[SIGNATURE] == f"{signature.hex()}\n".encode("ascii")
        except ValueError:
            is_right = False
        if not is_right:
            raise EvidenceError(
                f"{SIGNATURE} is not the signature of {MANIFEST} by the key that it names: one of "
                "them was changed"
            )
        manifest._compare(files)
        return manifest

    @classmethod
    def _parsed(cls, data: bytes) -> Self:
        try:
            saved: Any = json.loads(data)
            if saved.get("format") != FORMAT:
                raise EvidenceError(
                    f"{MANIFEST}: format must be {FORMAT}, got {saved.get('format')!r}; verify it "
                    "with the version of splitmeans that made it"
                )
            if set(saved) != {item.name for item in fields(cls)}:
                raise ValueError("other keys")
            texts = [value for name, value in saved.items() if name not in ("format", "files")]
            if not all(isinstance(text, str) for text in (*texts, *saved["files"].values())):
                raise ValueError("other types")
            return cls(**saved)
        except (ValueError, TypeError, AttributeError, RecursionError) as problem:
            raise EvidenceError(f"{MANIFEST} is no manifest of an archive") from problem

    def _compare(self, files: Mapping[str, bytes]) -> None:
        there = set(files) - {MANIFEST, SIGNATURE}
        for name in sorted(there - set(self.files)):
            raise EvidenceError(f"{name} is not in the manifest: somebody added it")
        for name in sorted(set(self.files) - there):
            raise EvidenceError(f"{name} is in the manifest and not in the bundle: it was removed")
        for name in sorted(there):
            if hashlib.sha256(files[name]).hexdigest() != self.files[name]:
                raise EvidenceError(f"{name} is not the file that was signed: it was changed")


def hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of files."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
