"""What parties derive from a key is compared: by vectors in the transcript, and in every run."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.kernels import counts
from splitmeans.membership.decoy import encode as decoy
from splitmeans.membership.decoy.layout import cell_count, cell_shape
from splitmeans.membership.sketch import encode as sketch
from splitmeans.party import derivation, shared_check
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.wire import keys
from splitmeans.wire.envelope import PROTOCOL

VECTORS = Path(__file__).parents[1] / "vectors" / "derivation.json"
KEY = bytes(range(32))


def test_vectors_are_those_of_this_protocol():
    """A change here keeps older versions out: raise PROTOCOL and say so in the changelog."""
    stored = json.loads(VECTORS.read_text())
    assert derivation.derivation_vectors() == stored["vectors"]
    assert derivation.derivation_digest().hex() == stored["digest"]
    assert stored["protocol"] == PROTOCOL


def swapped_keys(a: bytes, b: bytes, **facts: Any) -> Any:
    return counts.decoy_records(b, a, **facts)


TWINS: dict[str, Any] = {
    "decoys": ("decoy_records", swapped_keys),
    "sample": ("sample_threshold", lambda rate: 7),
    "tags": ("hash_ids", lambda key, ids: np.zeros((len(ids), 2), dtype=np.uint64)),
    "labels": ("nearest", lambda rows, centres: np.zeros(len(rows), dtype=np.int32)),
    "phantoms": ("raise_to_phantoms", lambda registers, **facts: None),
    "grid": ("to_grid_column", lambda values, **facts: facts["out"].fill(1)),
}


@pytest.mark.parametrize(("name", "twin"), TWINS.values(), ids=TWINS)
def test_another_derivation_has_other_vectors(name, twin, monkeypatch):
    honest = derivation.derivation_vectors()
    monkeypatch.setattr(derivation, name, twin)
    assert derivation.derivation_vectors() != honest


def test_another_way_to_derive_keys_has_other_vectors(monkeypatch):
    honest = derivation.derivation_vectors()
    own = keys.subkey
    monkeypatch.setattr(
        keys, "subkey", lambda key, label, group=(): own(key, label, group=group[::-1])
    )
    changed = derivation.derivation_vectors()
    assert {name for name in honest if honest[name] != changed[name]} == {"subkeys"}


# ---- the decoys of a run ----


def check(plan: Plan, run_key: bytes = KEY) -> bytes:
    return shared_check.shared_check(plan, run_key=run_key)


CASES: dict[str, Any] = {
    "two parties": ("decoy", 2, {}),
    "presence": ("decoy", 3, {}),
    "sketch": ("sketch", 2, {}),
}


@pytest.fixture
def plan_of(small_study: Any) -> Any:
    def make(case: str) -> Plan:
        membership, n_parties, changes = CASES[case]
        return make_plan(small_study(membership, n_parties, **changes))

    return make


@pytest.mark.parametrize("case", CASES)
def test_a_check_is_the_same_for_the_same_run_and_no_other(case, plan_of):
    plan = plan_of(case)
    assert check(plan) == check(plan)
    assert len(check(plan)) == 32
    assert check(plan, bytes(32)) != check(plan)


@pytest.mark.parametrize("case", ["two parties", "presence"])
@pytest.mark.parametrize("n_cell", [0, -1])
def test_one_decoy_more_in_one_cell_of_one_group_shows(case, n_cell, plan_of, monkeypatch):
    plan = plan_of(case)
    honest, own = check(plan), decoy.decoy_counts
    last = keys.subkey(KEY, keys.DECOY_COUNT, group=plan.groups[-1])

    def another(key: bytes, **facts: Any) -> Any:
        found = own(key, **facts)
        found[n_cell] += key == last
        return found

    monkeypatch.setattr(decoy, "decoy_counts", another)
    assert check(plan) != honest


def test_counts_are_those_of_the_records_that_a_party_sends(plan_of):
    """The check and the release see one derivation: decoys of all cells, by their labels."""
    plan = plan_of("two parties")
    (group,) = plan.groups
    found, _, _ = decoy.decoys_to_compare(
        plan.membership,
        group,
        n_local_clusters=plan.n_local_clusters,
        run_key=KEY,
        tagged_cells=1,
    )
    shape = cell_shape(group, n_local_clusters=plan.n_local_clusters)
    assert len(found) == cell_count(shape)
    table = np.append(found, 0).reshape(shape)
    for axis in (0, 1):
        _, labels = decoy._decoys(plan.membership, group, shape=shape, axis=axis, run_key=KEY)
        own = table.sum(axis=1 - axis)[:-1]
        assert np.bincount(labels, minlength=len(own)).tolist() == own.tolist()


def test_other_tags_show(plan_of, monkeypatch):
    plan = plan_of("two parties")
    honest = check(plan)
    monkeypatch.setattr(decoy, "decoy_records", swapped_keys)
    assert check(plan) != honest


def test_other_phantoms_show(plan_of, monkeypatch):
    plan = plan_of("sketch")
    honest = check(plan)
    monkeypatch.setattr(sketch, "raise_to_phantoms", lambda registers, **facts: None)
    assert check(plan) != honest


def test_the_work_is_that_of_the_cells_not_of_their_decoys(plan_of):
    """Of the largest table of two parties: all counts, and tags of 64 cells at most."""
    plan = plan_of("two parties")
    found, tags, labels = decoy.decoys_to_compare(
        plan.membership,
        (0, 1),
        n_local_clusters=(250, 250),
        run_key=KEY,
        tagged_cells=decoy._TAGGED_CELLS,
    )
    assert found.shape == (251**2 - 1,)
    assert len(tags) == len(labels) == found[: decoy._TAGGED_CELLS].sum()
    assert len(tags) <= decoy._TAGGED_CELLS * 2 * plan.membership.truncation
    large = dataclasses.replace(plan, n_local_clusters=(250, 250), n_labels=(250, 250))
    assert check(large) != check(plan)
