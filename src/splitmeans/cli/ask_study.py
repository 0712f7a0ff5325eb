"""Ask a person for a study, question by question."""

from functools import partial
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import err
from splitmeans.cli.stopping import asked
from splitmeans.study import ASSUMED_USERS, DEFAULT_DELTA, Study
from splitmeans.study.parties import OPEN, PRIVATE

_BY_OPTIONS = "no answer; give the study by options instead (splitmeans study new --help)"
_USERS_NEEDED = "Roughly how many users (too few would let the run learn noise)"


def ask_for_study() -> Study:
    """Return a study from answers on the terminal; questions go to stderr."""
    mapping: dict[str, Any] = {
        "name": _ask("Name of the study"),
        "n_clusters": _ask(
            "Number of segments, 1 to count shared users alone", kind=int, default=5
        ),
        "expected_users": _ask("Roughly how many users, 0 to leave it open", kind=int, default=0),
        "budget": {
            "epsilon": _ask("Epsilon, towards server and readers", kind=float, default=1.0),
        },
        "parties": [],
    }
    mapping["budget"]["delta"] = _ask_delta(mapping["expected_users"] or ASSUMED_USERS)
    if mapping["expected_users"] == 0:
        del mapping["expected_users"]
    counts_only = mapping["n_clusters"] == 1
    same = not counts_only and _confirm("Does every party have the same users?", default=True)
    mapping["user_sets"] = "equal" if same else "partial"
    if not same:
        mapping["ids"] = {"type": _ask("How ids are written: integer, text, uuid or as-is")}
    with_keys = _confirm("Will it run between organisations (keys)?", default=True)
    while True:
        party: dict[str, Any] = {"name": _ask("Name of a party"), "columns": []}
        party["id_column"] = _ask("  its column that identifies users", default="id")
        if with_keys:
            party["public_key"] = _ask_key("  file with its public key")
        while not counts_only:
            party["columns"].append(_ask_column())
            if not _confirm("  another column?", default=True):
                break
        mapping["parties"].append(party)
        more = len(mapping["parties"]) < 2
        if not more and not _confirm("Another party?", default=False):
            break
    if "expected_users" not in mapping and _learns(mapping["parties"]):
        mapping["expected_users"] = _ask(_USERS_NEEDED, kind=int)
        if mapping["budget"]["delta"] * mapping["expected_users"] >= 1:
            mapping["budget"]["delta"] = _ask_delta(mapping["expected_users"])
    if with_keys:
        mapping["server_key"] = _ask_key("File with the server's public key")
    return Study.from_mapping(mapping)


def _learns(parties: list[dict[str, Any]]) -> bool:
    columns = [column for party in parties for column in party["columns"]]
    return any("bounds" in column or column.get("categories") == OPEN for column in columns)


def _ask_delta(users: int) -> float:
    """Ask until the study would take the answer; the parties' columns are still to be asked for."""
    while True:
        delta = float(_ask("Delta, below 1 / users", kind=float, default=DEFAULT_DELTA))
        if users < 1 or delta < 1 / users:
            return delta
        err.print(f"it must be below 1 / {users} = {1 / users:.3g}")


def _ask_column() -> dict[str, Any]:
    name = _ask("  name of a column")
    categories = _ask("    its categories as a|b|c (or 'open'), or empty for numbers", default="")
    if categories.strip() == OPEN:
        return {"name": name, "categories": OPEN}
    if categories:
        return {"name": name, "categories": categories.split("|")}
    low = _ask_low("    smallest value of interest (or 'private': the run learns both bounds)")
    if low is None:
        return {"name": name, "bounds": PRIVATE}
    high = _ask("    largest value of interest", kind=float)
    return {"name": name, "low": low, "high": high}


def _ask_low(question: str) -> float | None:
    """Ask until the answer is a number, or the word for bounds that the run learns."""
    while True:
        answer = _ask(question)
        if answer.strip() == PRIVATE:
            return None
        try:
            return float(answer)
        except ValueError:
            err.print(f"it must be a number, or {PRIVATE!r}")


def _ask_key(question: str) -> str:
    while True:
        path = Path(_ask(question))
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            err.print(f"{path}: cannot be read ({problem})", markup=False)


def _ask(question: str, *, kind: type = str, default: Any = None) -> Any:
    ask = partial(typer.prompt, question, type=kind, default=default, err=True, show_default=True)
    return asked(ask, instead=_BY_OPTIONS)


def _confirm(question: str, *, default: bool) -> bool:
    return asked(partial(typer.confirm, question, default=default, err=True), instead=_BY_OPTIONS)
