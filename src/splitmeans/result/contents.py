"""The files of a result folder as bytes: to be written, and to be compared when it is read.

Everything but `synopsis.parquet` is here, and follows from a `Result` to the last byte. So a reader
who trusts the parts of a result need not look at single fields: it makes the files again from those
parts and compares. A name, a figure or a key that was changed, added, left out or given twice
anywhere makes another file.
"""

import csv
import hashlib
import io
import json
import math
from typing import TYPE_CHECKING, Any

from splitmeans._types import FloatArray
from splitmeans.csv_cells import safe_row
from splitmeans.errors import ParameterError
from splitmeans.figures import digits
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.segments import letter
from splitmeans.synopsis.synopsis import Synopsis

if TYPE_CHECKING:
    from splitmeans.result.result import Result

FORMAT = 6
MAIN, GRID = "result.json", "synopsis.parquet"
TEXTS = ("splitmeans", "study", "participant", "written_at", "result_hash")


def contents(result: "Result", grid: bytes) -> dict[str, bytes]:
    """Return the files by name, `result.json` last; `grid` is the synopsis as a Parquet file."""
    others = {
        "centres.csv": _centres_csv(result).encode(),
        "certificate.json": _json(result.privacy.to_mapping()),
        "statement.txt": f"{result.statement}\n".encode(),
        "study.toml": result.study.to_toml().encode(),
        GRID: grid,
        "transcript.json": _json({"messages": list(result.messages)}),
    }
    return {**others, MAIN: _json(_head(result, others))}


def check_contents(result: "Result") -> None:
    """Refuse a folder with a file that does not follow from the result that was read from it."""
    assert result.folder is not None, "only a folder has files"
    says = "the server signed" if result.signed else "the run recorded"
    grid = (result.folder / GRID).read_bytes()
    for name, data in contents(result, grid).items():
        path = result.folder / name
        found = path.read_bytes()
        if found != data:
            what = _different_keys(found, data) if name == MAIN else ""
            raise ParameterError(
                f"{path}: {what}does not follow from what {says}; it was changed, or belongs to "
                "another result: get the folder again from the run"
            )


def _head(result: "Result", others: dict[str, bytes]) -> dict[str, Any]:
    """Return `result.json`; what the run has nothing of is left out."""
    centres, sizes = result.published_centres, result.published_sizes
    return {
        "format": FORMAT,
        **{name: result.facts[name] for name in TEXTS},
        "signed": result.signed_facts.mapping,
        "signature": result.signature.hex(),
        **({"names": dict(result.names)} if result.names else {}),
        "columns": list(result.synopsis.feature_names),
        "segments": [letter(at) for at in range(len(sizes))],
        "centres": _own_units(result.synopsis, centres).tolist(),
        # The same on every machine, in whatever order numbers are added up.
        "users": math.fsum(result.synopsis.weights),
        "scaled_centres": centres.tolist(),
        "sizes": sizes.tolist(),
        **({"presence": result.presence.tolist()} if len(result.presence) else {}),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(others.items())},
    }


def _centres_csv(result: "Result") -> str:
    """Return a row for each segment, in the columns' own units; with names where there are any."""
    names, synopsis = result.names, result.synopsis
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    head = ["segment", "name", "size"] if names else ["segment", "size"]
    writer.writerow(safe_row([*head, *synopsis.feature_names]))
    own = _own_units(synopsis, result.published_centres)
    for at, (centre, size) in enumerate(zip(own, result.published_sizes, strict=True)):
        called = [letter(at), names.get(letter(at), "")] if names else [letter(at)]
        values = (digits(value, 10) for value in centre)
        writer.writerow([*safe_row(called), round(float(size), 1), *values])
    return text.getvalue()


def _own_units(synopsis: Synopsis, centres: FloatArray) -> FloatArray:
    return to_own_units(tuple(item for group in synopsis.features for item in group), centres)


def _different_keys(found: bytes, expected: bytes) -> str:
    """Return the keys whose values differ, for an error; nothing where only the form does."""
    own, other = json.loads(found), json.loads(expected)
    keys = dict.fromkeys([*own, *other])
    listed = [repr(key) for key in keys if key not in own or key not in other]
    listed += [repr(key) for key in keys if key in own and key in other and own[key] != other[key]]
    return f"{', '.join(listed)} " if listed else ""


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
