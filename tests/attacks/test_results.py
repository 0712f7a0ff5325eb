"""Attacks with the published result: forged, of another run, too early, different for each party.

A server can publish what it likes within the form; that costs accuracy and never privacy. A party
takes nothing that cannot be a result of its run, and every refusal is a typed error that ends it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.result.publish import published_facts, read_published
from splitmeans.result.result import Result
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS

from .harness import World

Change = Callable[[PublishedResult], Any]


@pytest.fixture
def forger(stage: Any) -> Callable[..., World]:
    """Returns a function that gives the bank a result, true but for the changed fields."""
    template = stage("finished").message(SERVER, "bank", PublishedResult)

    def forge(
        receivers: tuple[str, ...] = ("bank",), *, signer: str = SERVER, **changes: Change
    ) -> World:
        world = stage("released")
        own = [world.message(name, SERVER, PartyRelease).centres for name in ("bank", "shop")]
        centres = np.concatenate([local.ravel() for local in own])
        true = dataclasses.replace(template, local_centres=centres)
        values = {field: change(true) for field, change in changes.items()}
        for name in receivers:
            world.forge(name, _signed(world, dataclasses.replace(true, **values), signer=signer))
        return world

    return forge


def _signed(world: World, result: PublishedResult, *, signer: str) -> PublishedResult:
    """Sign a result as the server does; it may sign what it likes, also what no party takes."""
    plan = make_plan(world.study)
    try:
        synopsis = read_published(plan, result)
    except ProtocolError:
        return result
    facts = published_facts(plan, PrivacyFacts.of(plan), synopsis, result, run="1")
    return dataclasses.replace(result, signature=KEYS[signer].sign(facts.data))


def refuses(world: World, *, match: str) -> None:
    """The bank ends the run for good; it wrote no result, and cannot be made to look again."""
    with pytest.raises(ProtocolError, match=match):
        world.visit("bank")
    assert world.stage_of("bank") == "failed"
    assert not (world.home("bank") / "results" / "1").exists()
    assert world.charged("bank") == 4


def test_the_template_itself_is_a_good_result(forger):
    """The forgeries below are refused for what is changed in them, and for nothing else."""
    world = forger()
    assert world.visit("bank")
    assert world.stage_of("bank") == "done"


def test_result_on_other_centres(forger):
    """The server publishes a result on local centres that the bank never released.

    Gain: a party that works with segments which were not made from its data.
    Fails: the party compares the centres with those that it released.
    """
    refuses(
        forger(local_centres=lambda true: np.roll(true.local_centres, 1)),
        match="not built on the centres that party 'bank' released",
    )


def test_result_of_another_plan(forger):
    """The server publishes a result under the fingerprint of another plan.

    Gain: a statement about privacy that does not fit the result.
    Fails: the fingerprint is compared with the plan that the party ran.
    """
    refuses(forger(fingerprint=lambda _: "0" * 64), match="belongs to another plan")


@pytest.mark.parametrize(
    "change",
    [
        {"centres": lambda true: true.centres[:2]},
        {"centres": lambda true: true.centres[:, :3]},
        {"centres": lambda true: true.centres.ravel()},
        {"weights": lambda true: true.weights[:-1]},
        {"weights": lambda true: np.empty(0), "labels": lambda true: true.labels[:0]},
        {"labels": lambda true: true.labels[:, :1]},
        {"labels": lambda true: true.labels + 200},
        {"local_centres": lambda true: true.local_centres[:-1]},
        {"local_centres": lambda true: np.empty(0, dtype=np.int64)},
        {
            "labels": lambda true: np.repeat(true.labels, 10, axis=0),
            "weights": lambda true: np.repeat(true.weights, 10),
            "nodes": lambda true: np.repeat(true.nodes, 10, axis=0),
        },
        {"nodes": lambda true: true.nodes[:-1]},
        {"nodes": lambda true: true.nodes[:, :1]},
        {"nodes": lambda true: true.nodes[:0]},
        {"nodes": lambda true: true.nodes + 2**30},
        {"nodes": lambda true: true.nodes - 2**30},
    ],
    ids=lambda change: "-".join(change),
)
def test_result_with_wrong_shapes(forger, change):
    """The server publishes arrays of other shapes, with labels of clusters that do not exist,
    with points beyond the bounds, or with far more of them than the plan has.

    Gain: an index error, or the party's memory.
    Fails: shapes and labels follow from the plan, and are compared with it.
    """
    refuses(forger(**change), match="the published result has")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0])
def test_result_with_weights_that_are_no_counts(forger, value):
    """The server publishes weights that are not numbers, infinite or negative.

    Gain: files with values on which later programs fail.
    Fails: weights must be finite and not negative.
    """
    refuses(forger(weights=lambda true: np.full_like(true.weights, value)), match="no counts")


def test_result_with_weights_whose_sum_overflows(forger):
    """The server publishes weights that are finite one by one, and infinite together.

    Gain: an untyped error when the result is written, at this start and at every later one.
    Fails: no weight can be larger than any number of users.
    """
    refuses(forger(weights=lambda true: np.full_like(true.weights, 1e308)), match="no counts")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, -1e308, 1.01])
def test_result_with_segments_outside_the_bounds(forger, value):
    """The server publishes segments that are not numbers, or lie outside of all columns' bounds.

    Gain: as above; or segments that no mean of users can have.
    Fails: a segment is a mean of points within the bounds, so it lies within them.
    """
    refuses(forger(centres=lambda true: np.full_like(true.centres, value)), match="has centres")


@pytest.mark.parametrize("value", [2**62, -(2**62), -(2**63), 2**21])
def test_result_with_points_outside_the_bounds(forger, value):
    """The server publishes the shop's local centres far outside the bounds.

    Gain: numbers that overflow; the smallest integer has no absolute value.
    Fails: each is compared with both bounds.
    """

    def others(true: PublishedResult) -> Any:
        changed = true.local_centres.copy()
        changed[-1] = value
        return changed

    refuses(forger(local_centres=others), match="points outside the study's bounds")


def test_result_that_the_server_did_not_sign(forger):
    """The server publishes a result with another participant's signature.

    Gain: a result that nobody can show to be the server's.
    Fails: the bank checks the signature against the key in its study before it keeps a result.
    """
    refuses(forger(signer="shop"), match="not signed with the server's key")


def test_result_of_another_run(stage):
    """The server publishes, in a second run, the result of the first.

    Gain: parties that believe an old result.
    Fails: moved, it does not open; sealed anew, it is not built on what was released in this run.
    """
    world = stage("finished")
    old = world.message(SERVER, "bank", PublishedResult)
    moved = world.box.files[world.path(SERVER, "bank", PublishedResult)]
    assert world.play("bank", "shop", run="2") == {}
    world.ask_for_releases(run="2")
    world.box.files[world.path(SERVER, "bank", PublishedResult, run="2")] = moved
    assert world.play("bank", "shop", run="2") == {}
    assert world.stage_of("bank", run="2") == "Released"
    world.forge("bank", old, run="2")
    with pytest.raises(ProtocolError, match="not built on the centres"):
        world.visit("bank", run="2")


def test_result_before_the_release(stage):
    """The server publishes before it has the bank's release, with centres of its own.

    Gain: a party that is content with a result and forgets to check it; or one that releases
    differently, knowing the result.
    Fails: nobody looks at the result before the release, and then it is not built on it.
    """
    early = stage("finished").message(SERVER, "bank", PublishedResult)
    world = stage("prepared")
    world.forge("bank", early)
    assert not world.visit("bank")
    assert world.stage_of("bank") == "Prepared"
    world.ask_for_releases("bank")
    refuses(world, match="not built on the centres")
    assert len(world.releases("bank")) == 1


def test_different_results_to_different_parties(forger):
    """The server publishes other weights and segments to the shop than to the bank.

    Gain: nothing about users: both results are made from the same releases, which it had anyway.
    Fails: harmless for privacy. Parties notice when they compare `result_hash` in result.json.
    """
    world = forger(receivers=("bank",))
    other = forger(receivers=("shop",), weights=lambda true: true.weights / 2)
    world.box.files |= {
        path: data for path, data in other.box.files.items() if "/publishedresult." in path
    }
    assert world.visit("bank")
    assert world.visit("shop")
    hashes = {
        json.loads((world.home(name) / "results" / "1" / "result.json").read_text())["result_hash"]
        for name in ("bank", "shop")
    }
    assert len(hashes) == 2


def test_same_results_have_the_same_hash(stage):
    """The comparison above can succeed: an honest server gives all parties one `result_hash`."""
    world = stage("finished")
    hashes = {
        json.loads((world.home(name) / "results" / "1" / "result.json").read_text())["result_hash"]
        for name in ("bank", "shop", SERVER)
    }
    assert len(hashes) == 1


def test_columns_renamed_in_a_result_folder(stage):
    """Whoever holds a result folder gives a column another name or other bounds in its grid.

    Gain: readers who take one column, or one unit, for another under the server's signature.
    Fails: columns follow from the study and the released values, which are signed, and every file
    is made again from signed parts and compared.
    """
    place = stage("finished").home("bank") / "results" / "1"
    path, main = place / "synopsis.parquet", place / "result.json"
    table = pq.read_table(path)
    (key, header), *_ = table.schema.metadata.items()
    for old, new in ((b'"x"', b'"income"'), (b"100.0", b"100000.0")):
        changed = table.replace_schema_metadata({key: header.replace(old, new)})
        pq.write_table(changed, path)
        head = json.loads(main.read_text())
        head["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        main.write_text(json.dumps(head, indent=1) + "\n")
        with pytest.raises(ParameterError, match=r"synopsis\.parquet: its columns .* the study"):
            Result.read(place)


def test_second_result_after_the_first(stage):
    """The server publishes again after the run has ended.

    Gain: to replace a result that people already use.
    Fails: a finished run takes nothing; the files stay as they are.
    """
    world = stage("finished")
    place = world.home("bank") / "results" / "1"
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    result = world.message(SERVER, "bank", PublishedResult)
    world.forge("bank", dataclasses.replace(result, weights=result.weights * 2))
    assert world.visit("bank")
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
