"""A result folder as files: what must be there, and whether it is what the server signed.

`result/write.py` writes it. `result.json` has the facts that the server signed, with its
signature, and the key that it must fit is pinned by `study.toml`. Every other part is compared with
those facts, or made again from parts that were, so a number that was changed anywhere is found and
the error says where. `transcript.json` and the date of writing are the participant's own word.

A study without keys is a simulation. Its folder is compared with its own facts in the same way, but
nobody signed them: it proves nothing about who made it.
"""

import csv
import dataclasses
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.figures import digits
from splitmeans.result.names import checked_names
from splitmeans.result.signed import (
    SignedFacts,
    certificate_hash,
    dates_text,
    grid_hash,
    is_date,
    presence_hash,
    privacy_hash,
    segments_hash,
    statement_hash,
)
from splitmeans.study import Study
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.scaling import scaled_as_agreed
from splitmeans.synopsis.segments import letter
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.saved_result import read_values

FORMAT = 4
_FILES = (
    "centres.csv",
    "certificate.json",
    "statement.txt",
    "study.toml",
    "synopsis.parquet",
    "transcript.json",
)
TEXTS = ("splitmeans", "study", "participant", "written_at", "result_hash")
_PRIVACY = {
    "relation": str,
    "accounting": str,
    "budget": dict,
    "secure_noise": bool,
    "releases": list,
    "views": list,
    "assumptions": list,
    "caveats": list,
}


def centres_csv(
    synopsis: Synopsis,
    centres: FloatArray,
    sizes: FloatArray,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return `centres.csv`: a row for each segment, in the columns' own units.

    Where people named segments there is a column for that.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    head = ["segment", "name", "size"] if names else ["segment", "size"]
    writer.writerow([*head, *synopsis.feature_names])
    for at, (centre, size) in enumerate(zip(_own_units(synopsis, centres), sizes, strict=True)):
        called = [letter(at), names.get(letter(at), "")] if names else [letter(at)]
        values = (digits(value, 10) for value in centre)
        writer.writerow([*called, round(float(size), 1), *values])
    return text.getvalue()


def derived(synopsis: Synopsis, centres: FloatArray, sizes: FloatArray) -> dict[str, Any]:
    """Return the parts of `result.json` that follow from grid and segments."""
    return {
        "columns": list(synopsis.feature_names),
        "segments": [letter(at) for at in range(len(sizes))],
        "centres": _own_units(synopsis, centres).tolist(),
        "users": synopsis.total,
    }


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

    grid_file, text_file, csv_file, certificate_file = (
        place / name
        for name in ("synopsis.parquet", "statement.txt", "centres.csv", "certificate.json")
    )
    certificate = _read_json(certificate_file)
    synopsis = Synopsis.from_parquet(grid_file)
    centres, sizes = _segments(head, study, synopsis, main)
    names = _names(head, len(sizes), main)
    presence = _presence(head, main)
    privacy = _entry(head, "privacy", dict, main)
    for name, kind in _PRIVACY.items():
        _entry(privacy, name, kind, main)
    key = study.server_key if signed else None
    dates = dates_text(
        facts, key=key, participant=texts["participant"], written_at=texts["written_at"]
    )
    statement, dated = _split_statement(text_file, dates)
    csv_text = csv_file.read_bytes().decode(errors="replace")
    checks = (
        (study.hash == facts.study_hash, place / "study.toml", f"not the study that {says}"),
        (texts["study"] == study.name, main, "'study' is not the name in study.toml"),
        (texts["result_hash"] == facts.digest, main, f"'result_hash' is not that of what {says}"),
        (
            grid_hash(synopsis) == facts.grid,
            place / "synopsis.parquet",
            f"not the grid that {says}",
        ),
        (
            _is_scaled(synopsis, study),
            grid_file,
            "its columns do not count in distances as the study says",
        ),
        (
            segments_hash(centres, sizes) == facts.segments,
            main,
            f"'scaled_centres' and 'sizes' are not those that {says}",
        ),
        (
            (presence_hash(presence) if len(presence) else None) == facts.presence,
            main,
            f"'presence' is not what {says}",
        ),
        (
            _nested(privacy_hash, privacy, main) == facts.privacy,
            main,
            f"'privacy' is not what {says}",
        ),
        (
            statement_hash(statement) == facts.statement,
            text_file,
            f"not the privacy statement that {says}",
        ),
        (
            _nested(certificate_hash, certificate, certificate_file) == facts.certificate,
            certificate_file,
            f"not the certificate that {says}",
        ),
        (
            _is_bracket(certificate.get("epsilon")),
            certificate_file,
            "its lower bound is above its upper one",
        ),
        (dated, text_file, "its last lines are not the dates in result.json"),
        *_derived_checks(head, synopsis, centres, sizes, main),
        (
            csv_text == centres_csv(synopsis, centres, sizes, names=names),
            csv_file,
            f"not the segments that {says}",
        ),
    )
    for fits, path, problem in checks:
        if not fits:
            raise ParameterError(
                f"{path}: {problem}; it was changed, or belongs to another result: get the folder "
                "again from the run"
            )
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
            "study_hash": facts.study_hash,
            "run": facts.run,
            "plan": facts.plan,
            "published_at": facts.published_at,
        },
        "signed": signed,
        "messages": tuple(_entry(_read_json(transcript), "messages", list, transcript)),
        "certificate": certificate,
        "signed_facts": facts,
        "signature": bytes.fromhex(head["signature"]),
        "presence": presence,
        "names": names,
    }


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


def _nested(
    hash_of: Callable[[Mapping[str, Any]], str], value: Mapping[str, Any], path: Path
) -> str:
    try:
        return hash_of(value)
    except RecursionError as problem:
        raise ParameterError(f"{path}: its values are nested too deep") from problem


def _is_scaled(synopsis: Synopsis, study: Study) -> bool:
    """Whether distances on the grid are those of the study: they follow from both."""
    agreed, saved = scaled_as_agreed(synopsis, study).stretch, synopsis.stretch
    if study.scaling is None or agreed is None or saved is None:
        return study.scaling is None and saved is None
    # Machines may add numbers up in another order.
    return bool(np.allclose(agreed, saved, rtol=1e-9))


def _is_bracket(epsilon: Any) -> bool:
    """Whether the only figure that is not signed, a lower bound, is below the signed one."""
    if not isinstance(epsilon, dict):
        return epsilon is None
    lower, upper = epsilon.get("lower"), epsilon.get("upper")
    if not (isinstance(lower, int | float) and isinstance(upper, int | float)):
        return False
    return 0 <= lower <= upper


def _split_statement(path: Path, dates: str) -> tuple[str, bool]:
    """Return the statement without its dates, and whether they are the result's."""
    text = path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    statement = text.removesuffix(f"\n{dates}")
    if statement != text:
        return statement, True
    return "\n".join(text.split("\n")[: -dates.count("\n") - 1]), False


def _derived_checks(
    head: Mapping[str, Any], synopsis: Synopsis, centres: FloatArray, sizes: FloatArray, path: Path
) -> Iterator[tuple[bool, Path, str]]:
    for name, value in derived(synopsis, centres, sizes).items():
        saved = _entry(head, name, type(value), path)
        # Machines may add numbers up in another order.
        fits = math.isclose(saved, value, rel_tol=1e-9) if name == "users" else saved == value
        yield fits, path, f"{name!r} does not follow from the grid and the segments"


def _own_units(synopsis: Synopsis, centres: FloatArray) -> FloatArray:
    return to_own_units(tuple(item for group in synopsis.features for item in group), centres)


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
