"""Every field of every file of a result folder is changed, one at a time.

A change is refused, by an error that names the file, or it is one of the few things that nobody
signs, which are shown as such. File hashes in `result.json` are made to fit each time, as whoever
changes a folder on purpose would do. The folders are small and made by hand: equal and partial user
sets, and bounds and categories that the run learned.
"""

import csv
import dataclasses
import functools
import hashlib
import io
import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from splitmeans.analysis.result import Result
from splitmeans.cli import app
from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.plan.bounds_stage import BoundsLaw
from splitmeans.plan.categories_stage import CategoriesLaw, encode_names
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.result.publish import published_facts, read_published
from splitmeans.study import Column, PartySpec, Study
from splitmeans.study.features import GRID_UNITS, ONE_HOT_WEIGHT, features_of_columns
from splitmeans.study.id_rules import AS_IS
from splitmeans.synopsis.presence_counts import presence_length
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import PublishedResult
from tests.result.small_result import small_study, write_message

SERVER = Identity.new()
HEADER = b"splitmeans synopsis"
GRID = "synopsis.parquet"
TEXT_FILES = ("statement.txt", "study.toml", "centres.csv")
# Nobody signs these: the word of whoever holds the folder.
NOT_SIGNED = {
    ("result.json", "splitmeans"),
    ("result.json", "participant"),
    ("result.json", "written_at"),
    ("result.json", "names"),
    ("transcript.json", "messages"),
}


def learning() -> Study:
    bank = PartySpec(
        name="bank",
        columns=(
            Column(name="income", bounds="private"),
            Column(name="region", categories="open"),
        ),
    )
    return small_study(expected_users=20_000, parties=(bank, small_study().parties[1]))


STUDIES = {
    "equal": lambda: small_study(scaling="equal"),
    "partial": lambda: small_study(ids=AS_IS),
    "learned": learning,
}


def plan_of(study: Study) -> Plan:
    """The plan of a run; what it learns is what its laws assume, and two regions."""
    first = make_plan(study)
    released = []
    for stage in first.stages:
        values = []
        for law in stage.laws:
            if isinstance(law, CategoriesLaw):
                values.append(tuple(encode_names([["north", "south"]])))
            else:
                values.append(law.assumed if isinstance(law, BoundsLaw) else (900,))
        released.append(tuple(values))
    return make_plan(study, released=tuple(released))


def place_of(party: PartySpec, cluster: int) -> tuple[list[int], list[int]]:
    """Grid integers of a local cluster and their codes: the middle of a half, or one level."""
    grid: list[int] = []
    codes: list[int] = []
    for column in party.columns:
        if not column.levels:
            codes.append((2 * cluster - 1) * GRID_UNITS // 2)
            grid.append(codes[-1])
            continue
        bound, level = round(ONE_HOT_WEIGHT * GRID_UNITS), cluster * (len(column.levels) - 1)
        codes.append(level)
        grid += [bound if at == level else -bound for at in range(len(column.levels))]
    return grid, codes


def message_of(plan: Plan) -> PublishedResult:
    """Four cells of two parties with two local clusters each, and two segments."""
    own = [[place_of(party, cluster) for cluster in (0, 1)] for party in plan.parties]
    cells = list(itertools.product((0, 1), repeat=2))
    nodes = np.array([own[0][a][0] + own[1][b][0] for a, b in cells]) / GRID_UNITS
    codes = np.array([own[0][a][1] + own[1][b][1] for a, b in cells], dtype=np.int32)
    weights = np.array([400.0, 200.0, 0.0, 300.0])
    return PublishedResult(
        fingerprint=plan.fingerprint,
        local_centres=np.concatenate([np.ravel([grid for grid, _ in party]) for party in own]),
        labels=np.array(cells, dtype=np.uint8),
        weights=weights,
        nodes=codes[: 4 if plan.study.n_points else 0],
        centres=np.stack([weights[:2] @ nodes[:2] / 600, nodes[3]]),
        sizes=np.array([600.0, 300.0]),
        published_at="2026-01-31T12:00:00Z",
        signature=b"",
        presence=np.arange(presence_length(plan), dtype=np.int64) + 100,
    )


def signed_folder(folder: Path, study: Study) -> Path:
    parties = tuple(
        dataclasses.replace(party, public_key=Identity.new().public.to_text())
        for party in study.parties
    )
    keyed = dataclasses.replace(
        study, parties=parties, server_key=SERVER.public.to_text(), ids=study.ids or AS_IS
    )
    plan = plan_of(keyed)
    message = message_of(plan)
    facts = published_facts(
        plan, PrivacyFacts.of(plan), read_published(plan, message), message, run="1"
    )
    message = dataclasses.replace(message, signature=SERVER.sign(facts.data))
    write_message(folder, plan, message)
    Result.read(folder).rename({"A": "families"}).save(folder)
    return folder


@pytest.fixture(scope="module", params=STUDIES)
def original(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = STUDIES[request.param]()
    return signed_folder(tmp_path_factory.mktemp(request.param) / "result", study)


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "result"))


# ---- what a person can be shown ----


def shown(folder: Path) -> str:
    """Everything that reading functions show of a folder, wherever it lies, as one text."""
    result = Result.read(folder)
    commands = (("result", "show"), ("result", "show", "--json"), ("result", "correlate"))
    printed = [CliRunner().invoke(app, [*words, str(folder)]).output for words in commands]
    parts = [
        result.statement,
        repr(result),
        result._repr_html_(),
        result.to_pandas().to_csv(),
        result.synopsis.nodes,
        result.synopsis.feature_names,
        result.synopsis.columns,
        result.report(ks=[2]).html,
        *printed,
    ]
    return "\n".join(str(part) for part in parts).replace(str(folder), "RESULT")


# ---- JSON, as the folder has it ----


def dumped(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


class Twice(dict):  # type: ignore[type-arg]
    """Is written with its first key twice, the second time as it was."""

    def items(self) -> Any:
        (key, value), *rest = super().items()
        return [(key, "another"), (key, value), *rest]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON value are, those in the middle too."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        # Of long lists the ends: a list is compared, or has a hash, as a whole.
        kept = sorted({0, 1, len(value) - 1} & set(range(len(value))))
        for at in kept:
            yield from places(value[at], (*path, at))


def replaced(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], change)
    return copy


def without(value: Any, key: Any) -> Any:
    copy = value.copy()
    del copy[key]
    return copy


def another(leaf: Any) -> Any:
    if isinstance(leaf, str):
        return f"{leaf}0"
    if leaf is None or isinstance(leaf, bool):
        return not leaf
    return leaf + 1 if isinstance(leaf, int) else leaf * 1.0001 + 1e-300


def changed_json(true: Any) -> Iterator[tuple[str, str]]:
    """Every change of one value, as what it is and the text: leaves, keys more, fewer and twice."""
    for path in places(true):
        found = true
        for key in path:
            found = found[key]
        if isinstance(found, dict):
            changes = [("one more in", lambda old: {**old, "extra": 1})]
            changes += [("twice in", Twice)] if found else []
        elif isinstance(found, list):
            changes = [("one more in", lambda old: [*old, *(old[-1:] or [1])])]
        else:
            changes = [("another", another)]
            changes += [("as text", "{:.6g}".format)] if isinstance(found, float) else []
        if path and isinstance(path[-1], str):
            left = functools.partial(without, key=path[-1])
            yield f"no {path}", dumped(replaced(true, path[:-1], left))
        for what, change in changes:
            yield f"{what} {path}", dumped(replaced(true, path, change))


# ---- changes ----


def fit_hashes(folder: Path) -> None:
    path = folder / "result.json"
    head = json.loads(path.read_text())
    head["files"] = {
        item.name: hashlib.sha256(item.read_bytes()).hexdigest()
        for item in sorted(folder.iterdir())
        if item.name != "result.json"
    }
    path.write_text(dumped(head))


def refused(folder: Path, name: str, what: str) -> None:
    """Reading fails with an error that names the file."""
    found = ""
    try:
        Result.read(folder)
    except SplitmeansError as problem:
        found = str(problem)
    assert name in found, f"{name}, {what}: got the error {found!r}"


def check_changes(folder: Path, name: str, changes: Iterable[tuple[str, bytes]]) -> None:
    """Put other bytes in the place of a file; each must be refused."""
    path, main = folder / name, folder / "result.json"
    true, head = path.read_bytes(), main.read_bytes()
    for what, data in changes:
        path.write_bytes(data)
        if path != main:
            fit_hashes(folder)
        refused(folder, name, what)
        main.write_bytes(head)
        path.write_bytes(true)
    assert Result.read(folder).signed


def is_signed(name: str, what: str) -> bool:
    """Whether a change is of something that is signed: also keys that nothing has are refused."""
    free = [f"another ('{key}'" for file, key in NOT_SIGNED if file == name]
    free += [f"{verb} ('messages', 0)" for verb in ("no", "one more in") if "script" in name]
    free += ["one more in ('messages',)"] if "script" in name else []
    free += ["no ('names',)", "no ('names', 'A')"] if name == "result.json" else []
    return not any(what.startswith(text) for text in free if not text.endswith(")")) and (
        what not in free
    )


EQUAL_ALONE = pytest.mark.parametrize("original", ["equal"], indirect=True)


def test_every_value_of_the_main_file(folder):
    check_json(folder, "result.json")


@EQUAL_ALONE
@pytest.mark.parametrize("name", ["certificate.json", "transcript.json"])
def test_every_value_of_other_json(folder, name):
    check_json(folder, name)


def check_json(folder: Path, name: str) -> None:
    true = json.loads((folder / name).read_text())
    changes = [(what, text.encode()) for what, text in changed_json(true) if is_signed(name, what)]
    assert len(changes) >= 5
    check_changes(folder, name, changes)


def changed_lines(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        for what, new in (
            ("no", []),
            ("twice", [line, line]),
            ("longer", [line.rstrip("\r\n") + "0\n"]),
            ("a remark before", ["# remark\n", line]),
        ):
            yield f"{what} line {at}", "".join([*lines[:at], *new, *lines[at + 1 :]])


def changed_cells(text: str) -> Iterator[tuple[str, str]]:
    rows = list(csv.reader(io.StringIO(text)))
    for at, row in enumerate(rows):
        for place in range(len(row)):
            copy = [list(one) for one in rows]
            copy[at][place] += "0"
            made = io.StringIO(newline="")
            csv.writer(made).writerows(copy)
            yield f"cell {at}, {place}", made.getvalue()


@EQUAL_ALONE
@pytest.mark.parametrize("name", TEXT_FILES)
def test_every_line_of_text(folder, name):
    text = (folder / name).read_bytes().decode()
    changes = [*changed_lines(text), *(changed_cells(text) if name == "centres.csv" else ())]
    assert len(changes) >= 10
    check_changes(folder, name, [(what, changed.encode()) for what, changed in changes])


def changed_tables(path: Path) -> Iterator[tuple[str, Any]]:
    """Every entry of the header, every name, a value of every column; columns and rows."""
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    for what, text in changed_json(json.loads(metadata[HEADER])):
        # As it is written, without line ends; what is there twice would be once then.
        compact = text if what.startswith("twice") else json.dumps(json.loads(text))
        yield what, table.replace_schema_metadata(metadata | {HEADER: compact.encode()})
    yield "another entry", table.replace_schema_metadata(metadata | {b"note": b"in thousands"})
    yield "no header", table.replace_schema_metadata({})
    names = table.column_names
    for at, name in enumerate(names):
        yield f"name of {name}", table.rename_columns([*names[:at], f"{name}0", *names[at + 1 :]])
        field = table.schema.field(at)
        noted = field.with_metadata({b"unit": b"thousands"})
        yield f"note on {name}", table.set_column(at, noted, table.column(at))
        for row in (0, len(table) - 1):
            values = table.column(at).to_numpy().copy()
            values[row] += 1
            yield f"{name} in row {row}", table.set_column(at, field, [values])
        yield f"{name} left out", table.remove_column(at)
    yield "a column more", table.append_column("more", table.column(0))
    yield "a row less", table.slice(1)
    yield "rows in another order", table.take(list(reversed(range(len(table)))))


def as_file(table: pa.Table) -> bytes:
    data = io.BytesIO()
    pq.write_table(table, data)
    return data.getvalue()


def test_every_value_of_the_grid(folder):
    changes = [(what, as_file(table)) for what, table in changed_tables(folder / GRID)]
    assert len(changes) > 100
    check_changes(folder, GRID, changes)


COLUMNS: dict[str, Callable[[Column], Column]] = {
    "name": lambda column: dataclasses.replace(column, name=f"{column.name} (EUR)"),
    "bounds": lambda column: (
        column if column.levels else dataclasses.replace(column, high=1000 * column.high)
    ),
    "categories": lambda column: (
        dataclasses.replace(column, categories=column.categories[::-1]) if column.levels else column
    ),
    "missing": lambda column: dataclasses.replace(column, missing="skip"),
    "weight": lambda column: dataclasses.replace(column, weight=2 * column.weight),
}


@pytest.mark.parametrize("what", [*COLUMNS, "party"])
def test_columns_that_are_changed_in_all_files_at_once(folder, what):
    """All files are written again by this package for another synopsis, so they fit each other."""
    result = Result.read(folder)
    columns = result.synopsis.columns
    assert columns is not None
    change = COLUMNS.get(what, lambda column: column)
    changed = tuple(tuple(change(column) for column in group) for group in columns)
    names = tuple(f"{name}2" if what == "party" else name for name in result.study.party_names)
    other = dataclasses.replace(
        result.synopsis,
        party_names=names,
        columns=changed,
        features=tuple(features_of_columns(group) for group in changed),
    )
    dataclasses.replace(result, synopsis=other).save(folder)
    refused(folder, GRID, what)


def test_files_that_are_missing_and_files_that_are_new(folder):
    before = shown(folder)
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        path.unlink()
        refused(folder, path.name, "deleted")
        path.write_bytes(data)
    # Nothing reads other files: whoever keeps notes in the folder may.
    (folder / "notes.txt").write_text("segment A is rich")
    (folder / "centres.csv.orig").write_text("segment,size\n")
    assert shown(folder) == before


def test_digits_that_are_not_signed_are_shown_nowhere(folder):
    """Costs are signed to six digits, because machines differ in the last ones."""
    before = shown(folder)
    path = folder / "certificate.json"
    true = json.loads(path.read_text())
    nudged = json.loads(json.dumps(true), parse_float=lambda text: float(text) * (1 + 1e-10))
    assert nudged != true
    path.write_text(dumped(nudged))
    fit_hashes(folder)
    assert shown(folder) == before


CLAIMS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "splitmeans": ("9.9.9", lambda head: head.update(splitmeans="9.9.9")),
    "participant": ("simulation", lambda head: head.update(participant="simulation")),
    "written_at": ("2031-01-01", lambda head: head.update(written_at="2031-01-01T00:00:00Z")),
    "names": ("rich people", lambda head: head.update(names={"A": "rich people"})),
}


@EQUAL_ALONE
@pytest.mark.parametrize("what", CLAIMS)
def test_claims_that_nobody_signed_are_shown_as_such(folder, what):
    """The folder is written again as the writer could have written it: all files fit."""
    text, change = CLAIMS[what]
    result = Result.read(folder)
    head = {"names": dict(result.names), **result.facts}
    before = result.statement
    change(head)
    names = head.pop("names")
    statement = before.replace(result.facts["written_at"], head["written_at"]).replace(
        f"by {result.facts['participant']} (", f"by {head['participant']} ("
    )
    dataclasses.replace(result, facts=head, names=names, statement=statement).save(folder)
    again = Result.read(folder)
    page = again.report(ks=[2]).html
    assert again.statement.split("\n")[:-1] == before.split("\n")[:-1]
    printed = CliRunner().invoke(app, ["result", "show", str(folder)]).output
    for where in (again.statement, printed, page):
        assert text not in where or "not signed" in where
    for line in (*again.statement.split("\n"), *printed.split("\n")):
        # A name stands where its segment is shown; a line of its own says what names are.
        assert text not in line or "not signed" in line or what == "names"
    assert text in page


@pytest.mark.parametrize(
    "text", ["gym", "server\n  total      epsilon 0.1", "bank, signed", "", "x" * 300]
)
@EQUAL_ALONE
@pytest.mark.parametrize("key", ["participant", "splitmeans"])
def test_claims_cannot_pass_for_other_lines(folder, key, text):
    if (key, text) == ("splitmeans", "gym"):
        pytest.skip("a version may be called so")
    path = folder / "result.json"
    path.write_text(dumped(json.loads(path.read_text()) | {key: text}))
    refused(folder, "result.json", key)


@pytest.mark.parametrize("names", [{"A": "B", "B": "A"}, {"A": "C"}, {"A": "AB"}])
def test_a_name_is_never_the_letter_of_another_segment(folder, names):
    """A name stands where its segment's letter would."""
    with pytest.raises(ParameterError, match="must not look like the letter of another segment"):
        Result.read(folder).rename(names)
    path = folder / "result.json"
    path.write_text(dumped(json.loads(path.read_text()) | {"names": names}))
    refused(folder, "result.json", "names")


def test_two_segments_have_two_names(folder):
    with pytest.raises(ParameterError, match="names of segments must be different"):
        Result.read(folder).rename({"A": "families", "B": "families"})
    assert Result.read(folder).rename({"A": "A", "B": "VIP"}).names == {"A": "A", "B": "VIP"}
