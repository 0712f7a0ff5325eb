"""Reads a result folder: what must be there, and whether it is what the server signed.

`result.json` has the facts that the server signed, with its signature, and the key that it must fit
is pinned by `study.toml`. Three steps leave nothing that a person reads outside of the signature:

    parts       privacy facts, grid, segments and presence have the hashes
                that were signed, and the study too
    columns     names, bounds and categories follow from the study and the released values, never
                from the grid's own header
    the rest    every file is made again from these parts and compared (`contents.py`)

Not signed, and shown as such: who wrote the folder, when and with which version, its transcript,
and names that people gave to segments.

A study without keys is a simulation. Its folder is compared with its own facts in the same way, but
nobody signed them: it proves nothing about who made it.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import ReleasedValues
from splitmeans.result.contents import FORMAT, GRID, TEXTS
from splitmeans.result.names import checked_names
from splitmeans.result.of_run import SIMULATION
from splitmeans.result.signed import (
    SignedFacts,
    dates_text,
    grid_hash,
    is_date,
    presence_hash,
    rounded_hash,
    segments_hash,
)
from splitmeans.study import PartySpec, Study
from splitmeans.study.features import features_of
from splitmeans.synopsis.file import is_file_of
from splitmeans.synopsis.scaling import scaled_as_agreed
from splitmeans.synopsis.segments import letter
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.saved_result import read_values
from splitmeans.wire.slot import SERVER

_FILES = (
    "centres.csv",
    "certificate.json",
    "statement.txt",
    "study.toml",
    "synopsis.parquet",
    "transcript.json",
)


def read_fields(place: Path) -> dict[str, Any]:
    """Return the fields of a `Result`; errors name the file, and what does not fit."""
    main = place / "result.json"
    if not main.is_file():
        raise ParameterError(
            f"{main}: there is no such file; a result is a folder that a run or "
            "`splitmeans demo` wrote"
        )
    head = _read_json(main)
    if head.get("format") != FORMAT:
        raise ParameterError(
            f"{main}: format must be {FORMAT}, got {head.get('format')!r}; older results are not "
            "signed: read them with the version of splitmeans that wrote them"
        )
    _check_files(place, _entry(head, "files", dict, main))
    texts = {name: _entry(head, name, str, main) for name in TEXTS}
    study = Study.read(place / "study.toml")
    facts = _facts(head, main)
    signed = _check_signature(head, study, facts, main)
    says = "the server signed" if signed else "the run recorded"
    _check_writer(texts, study, main)
    _require(study.hash == facts.study_hash, place / "study.toml", f"not the study that {says}")

    grid_file, certificate = place / GRID, place / "certificate.json"
    saved = _read_json(certificate)
    parties = _parties(study, facts.released, main)
    synopsis = _synopsis(grid_file, study, parties)
    centres, sizes = _segments(head, study, synopsis, main)
    names = _names(head, len(sizes), main)
    presence = _presence(head, main)
    key = study.server_key if signed else None
    dates = dates_text(
        facts, key=key, participant=texts["participant"], written_at=texts["written_at"]
    )
    checks = (
        (grid_hash(synopsis) == facts.grid, grid_file, "not the grid"),
        (
            segments_hash(centres, sizes) == facts.segments,
            main,
            "'scaled_centres' and 'sizes' are not those",
        ),
        (
            (presence_hash(presence) if len(presence) else None) == facts.presence,
            main,
            "'presence' is not the one",
        ),
        (_nested_hash(saved, certificate) == facts.privacy, certificate, "not the privacy facts"),
    )
    for fits, path, problem in checks:
        _require(fits, path, f"{problem} that {says}")
    privacy, statement = _privacy(saved, certificate)
    transcript = place / "transcript.json"
    return {
        "folder": place,
        "study": study,
        "synopsis": synopsis,
        "published_centres": centres,
        "published_sizes": sizes,
        "released": facts.released,
        "privacy": privacy,
        "statement": f"{statement}\n{dates}",
        "facts": {
            **texts,
            "study": study.name,
            "result_hash": facts.digest,
            "study_hash": facts.study_hash,
            "run": facts.run,
            "plan": facts.plan,
            "published_at": facts.published_at,
        },
        "signed": signed,
        "messages": _messages(_read_json(transcript), transcript),
        "signed_facts": facts,
        "signature": bytes.fromhex(head["signature"]),
        "presence": presence,
        "names": names,
    }


def _require(fits: bool, path: Path, problem: str) -> None:
    if not fits:
        raise ParameterError(
            f"{path}: {problem}; it was changed, or belongs to another result: get the folder "
            "again from the run"
        )


def _presence(head: Mapping[str, Any], path: Path) -> IntArray:
    """Return how many users are at which parties; nothing where that is not counted."""
    try:
        counts = read_values([[head.get("presence", [])]])[0][0]
    except ValueError as problem:
        raise ParameterError(f"{path}: 'presence' must be a list of whole numbers") from problem
    return np.array(counts, dtype=np.int64)


def _names(head: Mapping[str, Any], n_segments: int, path: Path) -> dict[str, str]:
    """Return the names that people gave to segments, by letter; often there are none."""
    try:
        return checked_names(head.get("names", {}), [letter(at) for at in range(n_segments)])
    except ParameterError as problem:
        raise ParameterError(f"{path}: 'names': {problem}") from problem


def _facts(head: Mapping[str, Any], path: Path) -> SignedFacts:
    saved = _entry(head, "signed", dict, path)
    names = [item.name for item in dataclasses.fields(SignedFacts)]
    # What a run has nothing of is left out.
    optional = {
        item.name for item in dataclasses.fields(SignedFacts) if item.default is None
    } - set(saved)
    names = [name for name in names if name not in optional]
    if sorted(saved) != sorted(names):
        raise ParameterError(f"{path}: 'signed' must have exactly {', '.join(names)}")
    try:
        released = read_values(saved["released"])
    except (ValueError, RecursionError) as problem:
        raise ParameterError(
            f"{path}: must have 'released' as lists of whole numbers, one list for each stage"
        ) from problem
    for name in names:
        if name != "released":
            _entry(saved, name, str, path)
    if not is_date(saved["published_at"]) or not is_date(str(head.get("written_at"))):
        raise ParameterError(f"{path}: must have dates such as 2026-01-31T12:00:00Z")
    return SignedFacts(**saved | {"released": released})


def _check_signature(head: Mapping[str, Any], study: Study, facts: SignedFacts, path: Path) -> bool:
    """Return whether the facts are signed; refuse a signature that does not fit, or is missing."""
    text = _entry(head, "signature", str, path)
    try:
        signature = bytes.fromhex(text)
    except ValueError as problem:
        raise ParameterError(f"{path}: 'signature' must be hexadecimal text") from problem
    if study.server_key is None:
        if signature:
            raise ParameterError(
                f"{path}: has a signature, but study.toml names no server_key that it could fit"
            )
        return False
    if not facts.signed_by(study.server_key, signature):
        raise ParameterError(
            f"{path}: the server's signature does not fit: what it signed was changed, or the "
            "server_key in study.toml is another one, or the folder is of a simulation; get the "
            "folder again from the run"
        )
    return True


def _nested_hash(value: Mapping[str, Any], path: Path) -> str:
    try:
        return rounded_hash(value)
    except RecursionError as problem:
        raise ParameterError(f"{path}: its values are nested too deep") from problem


def _privacy(saved: Mapping[str, Any], path: Path) -> tuple[PrivacyFacts, str]:
    """Return the privacy facts and the statement that they make."""
    try:
        facts = PrivacyFacts.from_mapping(saved, where=str(path))
        return facts, facts.statement()
    except (SplitmeansError, KeyError, TypeError, AttributeError, ValueError, StopIteration) as bad:
        raise ParameterError(f"{path}: its privacy facts cannot be read ({bad})") from bad


def _check_writer(texts: Mapping[str, str], study: Study, path: Path) -> None:
    """Refuse a writer or version that could pass for other lines of what is shown."""
    known = (*study.party_names, SERVER, SIMULATION)
    if texts["participant"] not in known:
        raise ParameterError(f"{path}: 'participant' must be one of {', '.join(known)}")
    version = texts["splitmeans"]
    if not re.fullmatch(r"[0-9A-Za-z.+!-]{1,40}", version):
        raise ParameterError(f"{path}: 'splitmeans' must be a version such as 0.1.0")


def _messages(transcript: Mapping[str, Any], path: Path) -> tuple[Mapping[str, str], ...]:
    keys = ("direction", "slot", "sha256")
    messages = tuple(_entry(transcript, "messages", list, path))
    for one in messages:
        if not isinstance(one, dict) or tuple(one) != keys or set(map(type, one.values())) != {str}:
            raise ParameterError(f"{path}: messages must have {', '.join(keys)}, all of them texts")
    return messages


def _parties(study: Study, released: ReleasedValues, path: Path) -> tuple[PartySpec, ...]:
    """Return the parties with the bounds and categories that the run learned, if it did."""
    if all(column.is_settled for party in study.parties for column in party.columns):
        return study.parties
    try:
        return make_plan(study, released=released).parties
    except SplitmeansError as problem:
        raise ParameterError(f"{path}: 'released' does not fit the study ({problem})") from problem


def _synopsis(path: Path, study: Study, parties: tuple[PartySpec, ...]) -> Synopsis:
    """Return the grid with the study's columns and distances; refuse a file that has others."""
    saved = Synopsis.from_parquet(path)
    try:
        agreed = dataclasses.replace(
            saved,
            party_names=tuple(party.name for party in parties),
            features=tuple(features_of(party) for party in parties),
            columns=tuple(party.columns for party in parties),
            weight_deviation=None,
            stretch=None,
        )
        agreed = as_saved = scaled_as_agreed(agreed, study)
        # Machines may add numbers up in another order.
        if _are_close(agreed.stretch, saved.stretch):
            as_saved = dataclasses.replace(agreed, stretch=saved.stretch)
        fits = is_file_of(path, as_saved)
    except ParameterError:
        fits = False
    _require(fits, path, "its columns or how they count in distances are not those of the study")
    return agreed


def _are_close(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is not None and other is not None and np.allclose(one, other, rtol=1e-9)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be read ({problem.strerror})") from problem
    except (ValueError, RecursionError) as problem:
        raise ParameterError(f"{path}: not JSON ({problem})") from problem
    if not isinstance(value, dict):
        raise ParameterError(f"{path}: must be a JSON object")
    return value


def _entry(mapping: Mapping[str, Any], name: str, kind: type, path: Path) -> Any:
    value = mapping.get(name)
    if not isinstance(value, kind):
        raise ParameterError(f"{path}: must have {name!r} as {kind.__name__}")
    return value


def _check_files(folder: Path, hashes: Mapping[str, Any]) -> None:
    """Check that the files are there and have the hashes of `result.json`."""
    for name in _FILES:
        path = folder / name
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as problem:
            raise ParameterError(f"{path}: cannot be read ({problem.strerror})") from problem
        if found != hashes.get(name):
            raise ParameterError(
                f"{path}: not the file that result.json describes (its hash differs); "
                "get the folder again from the run"
            )


def _segments(
    head: Mapping[str, Any], study: Study, synopsis: Synopsis, path: Path
) -> tuple[FloatArray, FloatArray]:
    """Return centres in distance units, shape (k, D), and sizes, shape (k,)."""
    n_columns = synopsis.scaled_nodes.shape[1]
    rows = _entry(head, "scaled_centres", list, path)
    listed = _entry(head, "sizes", list, path)
    try:
        centres = np.asarray(rows, dtype=np.float64)
        sizes = np.asarray(listed, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"{path}: scaled_centres must be rows of numbers") from problem
    if centres.shape == (0,):
        centres = np.zeros((0, n_columns))
    usable = centres.shape == (*sizes.shape, n_columns) and sizes.size <= study.n_clusters
    if not usable or not (np.isfinite(centres).all() and np.isfinite(sizes).all()):
        raise ParameterError(
            f"{path}: scaled_centres must be finite numbers of shape (up to {study.n_clusters}, "
            f"{n_columns}), got shape {centres.shape}, and sizes one for each"
        )
    return centres, sizes
