"""A result folder as files: what must be there, and whether it is what the run wrote.

`run/result_folder.py` writes it. `result.json` has the hashes of the other files, so a file that
was changed or mixed up with another run's is found; it is not signed, and proves nothing about who
made the folder.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.grid.synopsis import Synopsis
from splitmeans.study import Study

FORMAT = 1
_FILES = (
    "centres.csv",
    "certificate.json",
    "statement.txt",
    "study.toml",
    "synopsis.parquet",
    "transcript.json",
)
_TEXTS = ("splitmeans", "study", "study_hash", "run", "participant", "result_hash", "plan")
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


def read_fields(place: Path) -> dict[str, Any]:
    """Return the fields of a `Result`; errors name the file."""
    main = place / "result.json"
    if not main.is_file():
        raise ParameterError(
            f"{main}: there is no such file; a result is a folder that a run or "
            "`splitmeans demo` wrote"
        )
    head = _read_json(main)
    if head.get("format") != FORMAT:
        raise ParameterError(f"{main}: format must be {FORMAT}, got {head.get('format')!r}")
    _check_files(place, _entry(head, "files", dict, main))
    study = Study.read(place / "study.toml")
    facts = {name: _entry(head, name, str, main) for name in _TEXTS}
    if study.hash != facts["study_hash"]:
        raise ParameterError(f"{place / 'study.toml'}: not the study that {main} names")
    synopsis = Synopsis.from_parquet(place / "synopsis.parquet")
    if list(synopsis.feature_names) != _entry(head, "columns", list, main):
        raise ParameterError(f"{main}: columns are not those of synopsis.parquet")
    privacy = _entry(head, "privacy", dict, main)
    for name, kind in _PRIVACY.items():
        _entry(privacy, name, kind, main)
    transcript = place / "transcript.json"
    return {
        "folder": place,
        "study": study,
        "synopsis": synopsis,
        "published_centres": _centres(head, study, synopsis, main),
        "noisy_count": _count(head, main),
        "privacy": privacy,
        "statement": (place / "statement.txt").read_text(encoding="utf-8").rstrip("\n"),
        "facts": facts,
        "messages": tuple(_entry(_read_json(transcript), "messages", list, transcript)),
    }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be read ({problem.strerror})") from problem
    except ValueError as problem:
        raise ParameterError(f"{path}: not JSON ({problem})") from problem
    if not isinstance(value, dict):
        raise ParameterError(f"{path}: must be a JSON object")
    return value


def _entry(mapping: Mapping[str, Any], name: str, kind: type, path: Path) -> Any:
    value = mapping.get(name)
    if not isinstance(value, kind):
        raise ParameterError(f"{path}: must have {name!r} as {kind.__name__}")
    return value


def _count(head: Mapping[str, Any], path: Path) -> int | None:
    value = head.get("noisy_count", "missing")
    if value is not None and type(value) is not int:
        raise ParameterError(f"{path}: must have 'noisy_count' as a whole number or null")
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


def _centres(head: Mapping[str, Any], study: Study, synopsis: Synopsis, path: Path) -> FloatArray:
    expected = (study.n_clusters, synopsis.scaled_nodes.shape[1])
    rows = _entry(head, "scaled_centres", list, path)
    try:
        centres = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"{path}: scaled_centres must be rows of numbers") from problem
    if centres.shape != expected or not np.isfinite(centres).all():
        raise ParameterError(
            f"{path}: scaled_centres must be finite numbers of shape {expected}, "
            f"got shape {centres.shape}"
        )
    return centres
