"""What revoked keys mean for an archive: refused if they signed too late, else marked."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from splitmeans.errors import EvidenceError, ParameterError
from splitmeans.evidence.verify import Verified
from splitmeans.run.own_keys import revocation_of
from splitmeans.wire.identity import PublicIdentity
from splitmeans.wire.key_change import Revocation, read_revocation
from splitmeans.wire.slot import SERVER


def signers_of(found: Verified) -> dict[str, PublicIdentity]:
    """Return the keys that an archive stands on: of who published, and of who archived."""
    names = dict.fromkeys((SERVER, found.manifest.participant))
    return {name: PublicIdentity.from_text(found.study.public_keys[name]) for name in names}


def known_revocations(
    found: Verified, files: list[Path], home: Path | None
) -> dict[str, Revocation]:
    """Return what is known of the signers' keys, by name: from files, and from a home."""
    given: dict[str, Revocation] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise ParameterError(f"--revoked {file} cannot be read: {problem}") from None
        said = read_revocation(text, where=str(file))
        given[said.digest] = said
    known: dict[str, Revocation] = {}
    for name, key in signers_of(found).items():
        said_at_home = None if home is None else revocation_of(home, key)
        revocation = given.get(key.digest.hex(), said_at_home)
        if revocation is not None:
            known[name] = revocation
    return known


def marks_of(found: Verified, revocations: Mapping[str, Revocation]) -> tuple[str, ...]:
    """Return what to say loudly about keys that were revoked after the result was published.

    Raises:
        EvidenceError: A key was revoked before the date of the result.
    """
    marks = []
    published = found.manifest.published_at
    for name, said in revocations.items():
        why = f"the key of {name!r} was revoked on {said.time[:10]} ({said.reason})"
        if _moment(said.time) <= _moment(published):
            raise EvidenceError(
                f"{why}, before this result was published ({published[:10]}): whoever has the key "
                "now may have made it, and nothing that it signed since counts"
            )
        marks.append(
            f"CAUTION: {why}, after the date of this result. Whoever has the key now can date a "
            "result back: believe it only if you had it before that day"
        )
    return tuple(marks)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise EvidenceError(f"{text!r} is no date and time") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
