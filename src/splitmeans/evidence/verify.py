"""Verify a bundle: on any machine, with the bundle and what one knows of the study."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from splitmeans._version import __version__
from splitmeans.errors import EvidenceError, ParameterError, SplitmeansError
from splitmeans.evidence.bundle import unpack
from splitmeans.evidence.ledger_extract import compare, read_lines
from splitmeans.evidence.manifest import Manifest
from splitmeans.evidence.pages import as_html, as_text
from splitmeans.evidence.record import record_of, title_of
from splitmeans.plan.facts import certificate_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.result.previous import series_run_of
from splitmeans.result.result import Result
from splitmeans.result.signed import rounded_hash
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Pins:
    """What is known from elsewhere; if nothing, the bundle's own study is used.

    Attributes:
        study_hash: Hash of the study that was agreed.
        key: Public key of the participant who made the bundle, as text.
    """

    study_hash: str | None = None
    key: str | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether anybody's bundle would do."""
        return self.study_hash is None and self.key is None


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A bundle in which everything fits.

    Attributes:
        manifest: What the participant signed.
        study: The study.
        epsilon: Computed again from the plan, by exact accounting.
        lower: What the events cost at least, by another computation.
        delta: The delta that goes with both.
        checks: What was compared, in words.
    """

    manifest: Manifest
    study: Study
    epsilon: float
    lower: float
    delta: float
    checks: tuple[str, ...]


def verify_bundle(data: bytes, pins: Pins = Pins()) -> Verified:  # noqa: B008
    """Check everything in a bundle.

    Raises:
        EvidenceError: Something does not fit; the message names the file.
    """
    files = unpack(data)
    manifest = Manifest.read(files)
    if pins.key is not None and manifest.key != pins.key:
        raise EvidenceError(
            "manifest.json: it is signed, but not with the key that you gave: somebody else made it"
        )
    if pins.study_hash is not None and manifest.study_hash != pins.study_hash:
        raise EvidenceError("manifest.json: it is about another study than the one that you gave")
    result = _result(files)
    _compare_manifest(manifest, result)
    participant = manifest.participant
    plan = _plan(result, manifest)
    epsilon, lower = _epsilon(plan, result)
    saved = _json(files, "ledger.json")
    entries = () if participant == SERVER else read_lines(saved)
    compare(entries, result.messages, study=result.study, run=manifest.run, participant=participant)
    _compare_words(files, result, manifest=manifest)
    n_messages = len(result.messages)
    ledger = (
        "the server has no ledger of a run"
        if participant == SERVER
        else f"{len(entries)} entries of the ledger have their hashes and are for exactly the "
        f"releases among {n_messages} messages of the transcript"
    )
    return Verified(
        manifest=manifest,
        study=result.study,
        epsilon=epsilon,
        lower=lower,
        delta=result.study.budget.delta,
        checks=(
            f"{len(files)} files are those that {participant} signed, and there are no others",
            "the result and its privacy facts are what the server signed",
            ledger,
            f"epsilon computed again from the plan: {epsilon:.6g} at delta "
            f"{result.study.budget.delta:g} (at least {lower:.6g}); agreed at most "
            f"{result.study.budget.epsilon:g}",
            "the record in words says what follows from study, result and ledger",
        ),
    )


def _result(files: Mapping[str, bytes]) -> Result:
    """Read the result; it checks every part against the server's signature."""
    with tempfile.TemporaryDirectory(prefix="splitmeans-archive-") as name:
        folder = Path(name)
        for path, data in files.items():
            place, _, file = path.rpartition("/")
            if place == "result":
                (folder / file).write_bytes(data)
        try:
            result = Result.read(folder)
        except (SplitmeansError, OSError) as problem:
            text = str(problem).replace(f"{folder}/", "result/")
            raise EvidenceError(f"the result does not fit: {text}") from problem
    if not result.signed:
        raise EvidenceError("result/result.json: nobody signed it; it is of a simulation")
    return result


def _compare_manifest(manifest: Manifest, result: Result) -> None:
    pinned = result.study.public_keys.get(manifest.participant)
    said = {
        "study": (manifest.study, result.study.name),
        "study_hash": (manifest.study_hash, result.study.hash),
        "run": (manifest.run, result.facts["run"]),
        "participant": (manifest.participant, result.facts["participant"]),
        "result_hash": (manifest.result_hash, result.facts["result_hash"]),
        "published_at": (manifest.published_at, result.facts["published_at"]),
        "key": (manifest.key, pinned),
    }
    for name, (own, other) in said.items():
        if own != other:
            raise EvidenceError(f"manifest.json: its {name} is not that of the result")


def _plan(result: Result, manifest: Manifest) -> Plan:
    try:
        this = series_run_of(result)
        plan = make_plan(result.study, released=result.released, series_run=this)
    except ParameterError as problem:
        raise EvidenceError(f"no plan follows from study and released values: {problem}") from None
    if plan.fingerprint != result.facts["plan"]:
        raise EvidenceError(
            "result/result.json: another plan follows from study and released values than was "
            f"run; the bundle is of splitmeans {manifest.splitmeans}, this is {__version__}: "
            "verify it with that version"
        )
    return plan


def _epsilon(plan: Plan, result: Result) -> tuple[float, float]:
    """Compute epsilon from the plan's events, from above and from below, and compare."""
    certificate = certificate_of(plan, secure_noise=result.privacy.secure_noise)
    budget, lower = plan.study.budget, certificate.pop("lower")
    upper = certificate["total"]["epsilon"]
    if not lower <= upper * _ROUNDING:
        raise EvidenceError("the two computations of epsilon contradict each other")
    if upper > budget.epsilon * _ROUNDING:
        raise EvidenceError(
            f"the plan costs epsilon {upper:.6g}, more than the agreed {budget.epsilon:g}"
        )
    if rounded_hash(certificate) != result.signed_facts.privacy:
        raise EvidenceError("result/certificate.json: the plan has other privacy facts")
    return upper, lower


def _compare_words(files: Mapping[str, bytes], result: Result, *, manifest: Manifest) -> None:
    """Make the record again; another version may have other words for the same facts."""
    if manifest.splitmeans != __version__:
        return
    saved = _json(files, "ledger.json")
    participant = manifest.participant
    entries = () if participant == SERVER else read_lines(saved)
    try:
        sections = record_of(
            result, participant=participant, entries=entries, spent=saved.get("spent", {})
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise EvidenceError("ledger.json is no extract of a ledger") from problem
    title = title_of(result, participant)
    again = {
        "record.txt": as_text(title, sections).encode(),
        "record.html": as_html(title, sections, signatures=(participant,)).encode(),
    }
    for name, data in again.items():
        if files.get(name) != data:
            raise EvidenceError(
                f"{name} says something else than follows from study, result and ledger"
            )


def _json(files: Mapping[str, bytes], name: str) -> Mapping[str, object]:
    try:
        found = json.loads(files[name])
        if isinstance(found, Mapping):
            return found
    except (KeyError, ValueError, RecursionError):
        pass
    raise EvidenceError(f"{name} is missing or cannot be read")
