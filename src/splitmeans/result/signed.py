"""What the server signs when it publishes: the facts of a run, by their hashes.

The facts name study, run, plan, user count and date, and have a hash each of the grid, the segments
and the privacy facts. The signature covers them all, so with a result folder and the server's
public key, which the study pins, every part can be checked, and an error names the one that does
not fit. A study without keys is a simulation: nothing is signed.

Parties compare the hash of the privacy facts with the server's before they release anything, so
that after a release there is nothing left on which the two could differ.
"""

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.plan.stages import ReleasedValues
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.identity import PublicIdentity

_PREFIX = b"splitmeans result 3\n"
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# Costs are sums over thousands of terms; machines differ in the last digits.
_DIGITS = 6


def utc_now() -> str:
    """Return date and time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_date(text: str) -> bool:
    """Whether a text is a date and time as `utc_now` writes them."""
    try:
        return bool(_DATE.fullmatch(text)) and bool(datetime.datetime.fromisoformat(text))
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """The server's clock and signature.

    Attributes:
        now: Tells date and time, as `utc_now` does.
        sign: Signs bytes as the server's identity; None in a simulation.
    """

    now: Callable[[], str] = utc_now
    sign: Callable[[bytes], bytes] | None = None


@dataclass(frozen=True, kw_only=True)
class SignedFacts:
    """What is signed.

    `published_at` is in UTC, by the server's clock; all that follow are hashes. `presence` is None,
    and not signed, where that is not counted.
    """

    study_hash: str
    run: str
    plan: str
    released: ReleasedValues
    published_at: str
    privacy: str
    grid: str
    segments: str
    presence: str | None = None

    @property
    def mapping(self) -> dict[str, Any]:
        """The facts as plain values; what the run has nothing of is left out."""
        facts = asdict(self)
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def data(self) -> bytes:
        """The bytes that are signed."""
        return _PREFIX + _canonical(self.mapping)

    @property
    def digest(self) -> str:
        """A hash by which participants can tell that they got the same result."""
        return hashlib.sha256(self.data).hexdigest()

    def signed_by(self, key: str, signature: bytes) -> bool:
        """Whether the holder of this public identity, as text, signed them."""
        return PublicIdentity.from_text(key).verify(self.data, signature)


def facts_of(
    plan: Plan,
    privacy: PrivacyFacts,
    synopsis: Synopsis,
    *,
    centres: FloatArray,
    sizes: FloatArray,
    presence: IntArray,
    run: str,
    published_at: str,
) -> SignedFacts:
    """Return the facts of a result; every participant computes the same."""
    return SignedFacts(
        study_hash=plan.study.hash,
        run=run,
        plan=plan.fingerprint,
        released=plan.released,
        published_at=published_at,
        privacy=rounded_hash(privacy.to_mapping()),
        grid=grid_hash(synopsis),
        segments=segments_hash(centres, sizes),
        presence=presence_hash(presence) if len(presence) else None,
    )


def privacy_to_compare(plan: Plan, *, secure_noise: bool) -> str:
    """Return what server and party compare before a release; nothing where nothing is signed."""
    if plan.study.server_key is None:
        return ""
    return rounded_hash(PrivacyFacts.of(plan, secure_noise=secure_noise).to_mapping())


def rounded_hash(mapping: Mapping[str, Any]) -> str:
    """Return the hash of plain values such as privacy facts, numbers to six digits."""
    return hashlib.sha256(_canonical(_rounded(mapping))).hexdigest()


def grid_hash(synopsis: Synopsis) -> str:
    """Return the hash of nodes, weights, local clusters, their centres, and how exact all is."""
    labels = np.zeros((0, 0)) if synopsis.labels is None else synopsis.labels
    nodes = ((synopsis.scaled_nodes, "<f8"), (synopsis.weights, "<f8"), (labels, "<i4"))
    grid = _arrays_hash(*nodes, *((own, "<f8") for own in synopsis.centres or ()))
    if synopsis.precision is None:
        return grid
    return hashlib.sha256(f"{grid} {rounded_hash(asdict(synopsis.precision))}".encode()).hexdigest()


def segments_hash(centres: FloatArray, sizes: FloatArray) -> str:
    """Return the hash of the segments' centres in distance units, and of their sizes."""
    return _arrays_hash((centres, "<f8"), (sizes, "<f8"))


def presence_hash(counts: IntArray) -> str:
    """Return the hash of how many users are at which parties."""
    return _arrays_hash((counts, "<i8"))


def dates_text(facts: SignedFacts, *, key: str | None, participant: str, written_at: str) -> str:
    """Return the lines under the privacy statement: when, by whom, and whether it is signed."""
    return (
        f"  published  {facts.published_at} by the server, {signer_text(key)}\n"
        f"  run        {facts.run!r}; written {written_at} by {participant} (not signed)"
    )


def signer_text(key: str | None) -> str:
    """Return who signed, with the digits that people compare."""
    if key is None:
        return "simulation, not signed"
    return f"signed with the key {PublicIdentity.from_text(key).fingerprint}"


def _arrays_hash(*arrays: tuple[npt.NDArray[Any], str]) -> str:
    digest = hashlib.sha256()
    for array, kind in arrays:
        digest.update(f"{kind} {list(array.shape)}\n".encode())
        digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
