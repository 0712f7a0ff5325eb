"""A result folder proves what the server published; every changed figure is found and named."""

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import ParameterError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.publish import published_facts, read_published
from splitmeans.result.result import Result
from splitmeans.result.signed import Stamp, is_date, rounded_hash, utc_now
from splitmeans.synopsis.clustering import NOBODY
from splitmeans.wire.identity import Identity
from tests.result.small_result import small_message, small_study, write_message, write_small_result

SERVER, OTHER = Identity.new(), Identity.new()


def keyed(server: Identity = SERVER) -> Any:
    study = small_study()
    parties = tuple(
        dataclasses.replace(party, public_key=Identity.new().public.to_text())
        for party in study.parties
    )
    return dataclasses.replace(study, parties=parties, server_key=server.public.to_text())


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_signed(tmp_path_factory.mktemp("signed") / "result", keyed())


def write_signed(folder: Path, study: Any, *, signer: Identity = SERVER) -> Path:
    plan = make_plan(study)
    message = small_message(plan)
    facts = published_facts(
        plan, PrivacyFacts.of(plan), read_published(plan, message), message, run="1"
    )
    signed = dataclasses.replace(message, signature=Stamp(sign=signer.sign).sign(facts.data))
    return write_message(folder, plan, signed)


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "result"))


def test_a_signed_folder_is_read(folder):
    result = Result.read(folder)
    assert result.signed
    assert result.published.sizes.tolist() == [600, 300]
    digits = SERVER.public.fingerprint
    assert result.origin == (
        f"published 2026-01-31T12:00:00Z by the server, signed with the key {digits}"
    )
    text = (folder / "statement.txt").read_text()
    assert text.endswith(
        f"  published  2026-01-31T12:00:00Z by the server, signed with the key {digits}\n"
        "  run        '1'; written 2026-01-31T12:05:00Z by server (not signed)\n"
    )
    page = render(build_report(result))
    assert page.count("2026-01-31T12:00:00Z") >= 3
    assert "2026-01-31T12:05:00Z" in page
    assert f"signed with the key {digits}; it fits the key in study.toml" in page


def test_a_simulation_says_that_it_is_not_signed(tmp_path):
    result = Result.read(write_small_result(tmp_path / "result"))
    assert not result.signed
    assert result.origin.endswith("by the server, simulation, not signed")
    assert "simulation, not signed" in result.statement
    assert "simulation, not signed" in render(build_report(result))


# ---- changes, each with all file hashes made to fit ----


def text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        before = path.read_text()
        assert old in before
        path.write_text(before.replace(old, new, 1))

    return change


def entry(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "result.json"
        value = json.loads(path.read_text())
        change(value)
        # As the folder is written: what differs is the change alone.
        path.write_text(json.dumps(value, indent=1) + "\n")

    return apply


def fact(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "certificate.json"
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value, indent=1) + "\n")

    return apply


def heavier(folder: Path) -> None:
    path = folder / "synopsis.parquet"
    table = pq.read_table(path)
    weights = table["weight"].to_numpy().copy()
    weights[0] += 1
    field = table.schema.field(0)
    changed = table.set_column(0, field, pa.array(weights)).replace_schema_metadata(
        table.schema.metadata
    )
    pq.write_table(changed, path)


def in_signed(name: str, value: Any) -> Callable[[Path], None]:
    return entry(lambda head: head["signed"].update({name: value}))


CHANGES = {
    "epsilon in the statement": (
        text("statement.txt", "total      epsilon 1", "total      epsilon 0.1"),
        r"statement\.txt: does not follow from what the server signed",
    ),
    "date in the statement": (
        text("statement.txt", "published  2026-01-31", "published  2026-01-30"),
        r"statement\.txt: does not follow from what the server signed",
    ),
    "epsilon in the values": (
        fact(lambda facts: facts["total"].update(epsilon=0.1)),
        r"certificate\.json: not the privacy facts that the server signed",
    ),
    "a note left out": (
        fact(lambda facts: facts["assumptions"].pop()),
        r"certificate\.json: not the privacy facts that the server signed",
    ),
    "a size": (
        entry(lambda head: head["sizes"].__setitem__(1, 301.0)),
        r"result\.json: 'scaled_centres' and 'sizes' are not those that the server signed",
    ),
    "a centre": (
        entry(lambda head: head["scaled_centres"][0].__setitem__(0, 0.25)),
        r"result\.json: 'scaled_centres' and 'sizes' are not those that the server signed",
    ),
    "a centre in own units": (
        entry(lambda head: head["centres"][0].__setitem__(0, 2500.0)),
        r"result\.json: 'centres' does not follow",
    ),
    "the number of users": (
        entry(lambda head: head.update(users=1900.0)),
        r"result\.json: 'users' does not follow",
    ),
    "letters": (
        entry(lambda head: head.update(segments=["B", "A"])),
        r"result\.json: 'segments' does not follow",
    ),
    "a row of the csv file": (
        text("centres.csv", "600.0", "601.0"),
        r"centres\.csv: does not follow from what the server signed",
    ),
    "the grid": (heavier, r"synopsis\.parquet: not the grid that the server signed"),
    "the study": (
        text("study.toml", "8000.0", "9000.0"),
        r"study\.toml: not the study that the server signed",
    ),
    "the name": (
        entry(lambda head: head.update(study="x")),
        r"result\.json: 'study' does not follow",
    ),
    "the hash": (
        entry(lambda head: head.update(result_hash="ab" * 32)),
        r"result\.json: 'result_hash' does not follow",
    ),
    "the date": (in_signed("published_at", "2026-01-30T12:00:00Z"), "signature does not fit"),
    "the run": (in_signed("run", "2"), "signature does not fit"),
    "the privacy facts' hash": (in_signed("privacy", "ab" * 32), "signature does not fit"),
    "the plan": (in_signed("plan", "ab" * 32), "signature does not fit"),
    "released values": (in_signed("released", [[[7]]]), "signature does not fit"),
    "no date": (in_signed("published_at", "yesterday"), "must have dates such as"),
    "no signature": (
        entry(lambda head: head.update(signature="")),
        r"result\.json: the server's signature does not fit",
    ),
    "half a signature": (
        entry(lambda head: head.update(signature=head["signature"][:64])),
        r"result\.json: the server's signature does not fit",
    ),
    "a signature that is no text": (
        entry(lambda head: head.update(signature="zz")),
        "'signature' must be hexadecimal",
    ),
    "another server": (
        lambda folder: text("study.toml", SERVER.public.to_text(), OTHER.public.to_text())(folder),
        r"result\.json: the server's signature does not fit",
    ),
    "one fact more": (in_signed("extra", "1"), "'signed' must have exactly"),
}


def rehash(folder: Path) -> None:
    def fit(head: dict[str, Any]) -> None:
        head["files"] = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir())
            if path.name != "result.json"
        }

    entry(fit)(folder)


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_is_found_and_named(what, folder):
    change, message = CHANGES[what]
    change(folder)
    rehash(folder)
    with pytest.raises(ParameterError, match=message):
        Result.read(folder)


def test_a_changed_statement_with_all_its_hashes(folder):
    """Facts, statement, file hashes and the signed hash are changed together: the seal breaks."""
    fact(lambda facts: facts["total"].update(epsilon=0.1))(folder)
    changed = json.loads((folder / "certificate.json").read_text())
    path = folder / "statement.txt"
    dates = path.read_text().rstrip("\n").split("\n")[-2:]
    made = PrivacyFacts.from_mapping(changed, where="facts").statement()
    assert "total      epsilon 0.1," in made
    path.write_text("\n".join([made, *dates]) + "\n")
    in_signed("privacy", rounded_hash(changed))(folder)
    rehash(folder)
    with pytest.raises(ParameterError, match="the server's signature does not fit"):
        Result.read(folder)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts and numbers of a JSON value are."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path


def changed_leaf(value: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Return a copy in which one text is longer, or one number is a little larger."""
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    place[path[-1]] = (
        f"{old}0" if isinstance(old, str) else old + 1 if isinstance(old, int) else old * 1.001
    )
    return copy


def test_every_value_of_the_certificate_is_under_the_signature(folder):
    path = folder / "certificate.json"
    true = json.loads(path.read_text())
    places = list(leaves(true))
    assert {place[0] for place in places} == set(true)
    for place in places:
        false = changed_leaf(true, place)
        path.write_text(json.dumps(false, indent=1) + "\n")
        rehash(folder)
        with pytest.raises(
            ParameterError, match=r"certificate\.json: not the privacy facts that the server signed"
        ):
            Result.read(folder)
        # With its signed hash changed as well, the seal breaks.
        before = (folder / "result.json").read_text()
        in_signed("privacy", rounded_hash(false))(folder)
        with pytest.raises(ParameterError, match="the server's signature does not fit"):
            Result.read(folder)
        (folder / "result.json").write_text(before)
    path.write_text(json.dumps(true, indent=1) + "\n")
    rehash(folder)
    assert Result.read(folder).signed


@pytest.mark.parametrize(
    "certificate", ["[]", "{}", '{"epsilon": 1}', '{"epsilon": {}}', '{"a":' * 5000, "null"]
)
def test_a_file_that_is_no_certificate_is_refused(folder, certificate):
    (folder / "certificate.json").write_text(certificate)
    rehash(folder)
    with pytest.raises(ParameterError, match=r"certificate\.json: "):
        Result.read(folder)


def test_another_server_cannot_sign(tmp_path):
    folder = write_signed(tmp_path / "result", keyed(), signer=OTHER)
    with pytest.raises(ParameterError, match="the server's signature does not fit"):
        Result.read(folder)


def test_a_simulation_with_a_signature_is_refused(tmp_path):
    folder = write_small_result(tmp_path / "result")
    entry(lambda head: head.update(signature="ab" * 64))(folder)
    with pytest.raises(ParameterError, match=r"study\.toml names no server_key"):
        Result.read(folder)


def test_a_simulation_is_compared_with_its_own_facts(tmp_path):
    folder = write_small_result(tmp_path / "result")
    text("statement.txt", "total      epsilon 1", "total      epsilon 0.1")(folder)
    rehash(folder)
    with pytest.raises(
        ParameterError, match=r"statement\.txt: does not follow from what the run recorded"
    ):
        Result.read(folder)


def test_hashes_of_costs_do_not_see_the_last_digits():
    """Machines add thousands of terms up in different orders."""
    total = {"total": {"epsilon": 0.999998877665544, "delta": 1e-5}}
    near = {"total": {"epsilon": 0.999998877665544 * (1 + 1e-12), "delta": 1e-5}}
    far = {"total": {"epsilon": 0.99999, "delta": 1e-5}}
    assert rounded_hash(total) == rounded_hash(near) != rounded_hash(far)


def test_dates():
    assert is_date(utc_now())
    assert re.fullmatch(r"20\d\d-.*Z", utc_now())
    assert not is_date("2026-02-30T00:00:00Z")
    assert not is_date("٢026-02-20T00:00:00Z")


# ---- fewer segments than asked for, and none ----


def test_fewer_segments_than_asked_for(tmp_path):
    study = small_study(n_clusters=4)
    result = Result.read(write_small_result(tmp_path / "result", study=study))
    assert result.remark is not None
    assert result.remark.startswith("asked for k = 4, found 2 with users")
    assert result.published.letters == ("A", "B")
    page = render(build_report(result))
    assert "asked for k = 4, found 2 with users" in page
    assert "The study asked for 4 segments" in page


def test_a_result_that_counts_nobody_can_be_read_and_reported(tmp_path):
    plan = make_plan(small_study())
    message = dataclasses.replace(
        small_message(plan),
        weights=np.zeros(4),
        centres=np.zeros((0, 4)),
        sizes=np.zeros(0),
    )
    result = Result.read(write_message(tmp_path / "result", plan, message))
    assert result.remark == NOBODY
    assert result.published.k == 0
    assert NOBODY in result._repr_html_()
    page = render(build_report(result))
    assert NOBODY in page
    assert "2026-01-31T12:00:00Z" in page
    assert "epsilon, server and readers" in page
    with pytest.raises(ParameterError, match="the released counts hold no user"):
        result.segments(2)
    assert (tmp_path / "result" / "centres.csv").read_text().count("\n") == 1


def test_a_single_segment_can_be_read_and_reported(tmp_path):
    """Noise may leave one place with users, so one segment, whatever was asked for."""
    plan = make_plan(small_study())
    usual = small_message(plan)
    message = dataclasses.replace(
        usual,
        weights=np.array([0.0, 0.0, 0.0, 300.0]),
        centres=usual.centres[1:],
        sizes=np.array([300.0]),
    )
    result = Result.read(write_message(tmp_path / "result", plan, message))
    assert result.published.letters == ("A",)
    assert result.compare_k([1]).losses == (result.published.loss,)
    assert "asked for k = 2, found 1 with users" in render(build_report(result))


@pytest.mark.parametrize("seed", range(150))
def test_a_damaged_head_is_one_error_that_names_the_folder(seed, tmp_path_factory, original):
    """Any value of `result.json`, at any depth, replaced by any other kind of value."""
    folder = tmp_path_factory.mktemp("damaged") / "result"
    shutil.copytree(original, folder)
    rng = np.random.default_rng(seed)
    odd = [None, True, 0, -1, 1e308, "", "\ud800", "x" * 300, [], [[]], {}, {"a": []}, 10**30]

    def damage(head: dict[str, Any]) -> None:
        place: Any = head
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = keys[rng.integers(len(keys))]
            deeper = place[key]
            if not isinstance(deeper, dict | list) or not deeper or rng.random() < 0.3:
                value = odd[rng.integers(len(odd))]
                while type(value) is type(deeper) and value == deeper:
                    value = odd[rng.integers(len(odd))]
                place[key] = value
                return
            place = deeper

    entry(damage)(folder)
    with pytest.raises(ParameterError, match="result"):
        Result.read(folder)
