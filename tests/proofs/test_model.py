"""The encoder and the server do what the definitions of the machine-checked proof say.

`proofs/model.py` is section 3 of `proofs/theory/Definitions.v` in Python, `proofs/instance.py`
makes small random instances and runs the real code on them.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.instance import Instance, random_instance
from proofs.model import Release, counted, decoys, drawn, message, messages, sort
from splitmeans.kernels.counts import sort_records
from splitmeans.membership.decoy.law import DecoyLaw

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_encoder_and_server_follow_the_definitions(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed))
    sent = instance.sent()
    for group in instance.groups:
        release, records = instance.release_of(group), instance.records_of(group)
        assert instance.sent_to(group, sent) == messages(release, records)
        assert instance.server_counts(group, sent) == counted(release, records)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_counts_are_users_and_decoys(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed))
    for group in instance.groups:
        users = list(instance.users_in(group).values())
        cells = [*users, *decoys(instance.decoy_counts(group))]
        assert sorted(cell for _, cell in instance.records_of(group)) == sorted(cells)


def test_random_instances_are_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    found = [random_instance(rng) for _ in range(60)]
    assert {len(one.users) for one in found} == {2, 3, 4}
    kinds = {(one.presence is not None, one.sample_rate < 1) for one in found}
    assert kinds == {(here, sampled) for here in (True, False) for sampled in (True, False)}


@settings(max_examples=100, deadline=None)
@given(st.permutations([(4, 1), (4, 0), (4, 1), (2, 3), (9, 0)]))
def test_the_order_in_which_records_are_made_does_not_show(records: list[tuple[int, int]]) -> None:
    assert sort(records) == [(2, 3), (4, 0), (4, 1), (4, 1), (9, 0)]


def test_a_party_whose_tags_repeat_sends_them_in_model_and_code() -> None:
    release = Release(parties=(0, 1), labels=((1, 1, 0), (0, 0, None)))
    records = [(7, 0), (7, 2), (5, 1)]
    assert message(release, 0, records) == ([5, 7, 7], [1, 0, 1])
    assert message(release, 1, records) == ([5, 7], [0, 0])  # one of the two is not at this party
    tags, labels = np.array([7, 7, 5], dtype=np.uint64), np.array([1, 0, 1], dtype=np.uint8)
    ordered = sort_records([(tags << np.uint64(48), labels)])
    assert (ordered[0] >> np.uint64(48)).tolist() == [5, 7, 7]
    assert ordered[1].tolist() == [1, 0, 1]


def test_a_word_is_looked_up_as_the_code_does() -> None:
    law = DecoyLaw(sigma=0.8, truncation=2, server_sigma=1.0)
    edges = [int(edge) for edge in law.cdf_table]
    words = [0, 2**64 - 1, *edges, *(edge - 1 for edge in edges)]
    expected = np.searchsorted(law.cdf_table, np.array(words, dtype=np.uint64), side="right")
    assert [drawn(law.weights, word) for word in words] == expected.tolist()


def test_broken_joins_are_noticed() -> None:
    """The comparison fails where a decoy, the tag order or a label is wrong."""
    rng = np.random.default_rng(4)
    instance = next(one for one in iter(lambda: random_instance(rng), None) if one.users[0])
    group = instance.groups[0]
    sent = instance.sent_to(group, instance.sent())
    release, records = instance.release_of(group), instance.records_of(group)
    assert sent == messages(release, records)
    assert sent != messages(release, records[:-1])
    other_key = Instance(**{**vars(instance), "run_key": bytes(32)})
    assert sent != messages(release, other_key.records_of(group))
