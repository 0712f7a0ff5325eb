"""Shares of categories in every centre are never below 0 and add up to 1."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans import protocol
from splitmeans.errors import ProtocolError
from splitmeans.party import release as party_release
from splitmeans.party.release import release_party
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.result.publish import read_published
from splitmeans.server.combine import check_release
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.category_shares import shares_are_valid, to_valid_shares
from splitmeans.study.coding import coding_of, even_shares
from splitmeans.study.features import features_of
from splitmeans.table.prepare import prepare_table

JOBS = tuple(f"job {number}" for number in range(14))
MIXED = PartySpec(
    name="bank",
    columns=(
        Column(name="x", low=0, high=1),
        Column(name="job", categories=JOBS, weight=2.5, missing="level"),
        Column(name="y", low=0, high=1, weight=0.3),
        Column(name="own", categories=("no", "yes"), weight=0.01, missing="spread"),
    ),
)
SHOP = PartySpec(name="shop", columns=(Column(name="z", low=0, high=1),))
# Which of the 19 features belong to each categorical column.
PLACES = (slice(1, 16), slice(17, 19))


def shares(centres, place, party=MIXED):
    bound = features_of(party)[place.start].bound
    return (centres[:, place] + bound) / (2 * bound)


def test_by_hand():
    party = PartySpec(name="p", columns=(Column(name="c", categories=("a", "b", "c")),))
    b = features_of(party)[0].bound
    # Shares (1, 1, 0): 0.5 too much at two levels. (0.2, 0.2, 0): 0.2 missing at each.
    centres = np.array([[b, b, -b], [-b, -b, b], [0, 0, -b]])
    valid = to_valid_shares(party, centres)
    assert valid.tolist() == [[0, 0, -b], [-b, -b, b], [0, 0, -b]]
    low = np.array([[-b + 2 * b // 5, -b + 2 * b // 5, -b]])
    assert shares(to_valid_shares(party, low), slice(0, 3), party)[0] == pytest.approx(
        [0.4, 0.4, 0.2], abs=1e-6
    )


@given(
    st.integers(2, 40),
    st.integers(1, 2**27),
    st.integers(0, 2**32 - 1),
)
def test_shares_are_whole_and_exact_for_any_centre(n_levels, bound, seed):
    assert (even_shares(n_levels, bound=bound) + bound).sum() == 2 * bound
    assert np.ptp(even_shares(n_levels, bound=bound)) <= 1
    column = Column(name="c", categories=tuple(str(i) for i in range(n_levels)), weight=0.7)
    party = PartySpec(name="p", columns=(column,))
    limit = features_of(party)[0].bound
    centres = np.random.default_rng(seed).integers(-limit, limit + 1, size=(5, n_levels))
    valid = to_valid_shares(party, centres)
    assert shares_are_valid(party, valid)
    assert np.abs(valid).max() <= limit
    assert np.array_equal(to_valid_shares(party, valid), valid)


def study(*, epsilon=0.3, **rest):
    return Study(
        name="s",
        parties=(MIXED, SHOP),
        n_clusters=3,
        budget=Budget(epsilon=epsilon, delta=1e-6),
        n_local_clusters=6,
        **rest,
    )


def tables(n=400):
    rng = np.random.default_rng(5)
    job = [None if number == 14 else JOBS[number] for number in rng.integers(0, 15, n)]
    own = [None if number == 2 else ("no", "yes")[number] for number in rng.integers(0, 3, n)]
    bank = pa.table(
        {"id": range(n), "x": rng.random(n), "job": job, "y": rng.random(n), "own": own}
    )
    return [
        prepare_table(MIXED, bank),
        prepare_table(SHOP, pa.table({"id": range(n), "z": rng.random(n)})),
    ]


def test_releases_have_valid_shares():
    plan = plan_for(study(), users=400)
    own = tables()[0]
    for seed in range(3):
        noise, rng = InsecureSeededNoise(seed), np.random.default_rng(seed)
        release = release_party(plan, own, run_key=b"k" * 32, noise=noise, rng=rng)
        points = coding_of(MIXED).features(release.points.astype(np.int64))
        for centres in (release.centres, points):
            assert shares_are_valid(MIXED, centres)
            for place in PLACES:
                found = shares(centres, place)
                assert (found >= 0).all()
                assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_noise_alone_breaks_the_shares(monkeypatch):
    """The twin without the projection must be caught by the checks above."""
    monkeypatch.setattr(party_release, "to_valid_shares", lambda spec, centres: centres)
    plan = plan_for(study(), users=400)
    valid = []
    for seed in range(8):
        noise, rng = InsecureSeededNoise(seed), np.random.default_rng(seed)
        raw = release_party(plan, tables()[0], run_key=b"k" * 32, noise=noise, rng=rng)
        valid.append(shares_are_valid(MIXED, raw.centres))
    assert not all(valid)


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_segments_and_nodes_of_a_run_keep_them(membership):
    done = protocol.run(
        study(epsilon=3.0, membership=membership),
        tables(),
        noise=InsecureSeededNoise(2),
        rng=np.random.default_rng(2),
    )
    synopsis, found = done.server.synopsis, done.server.clustering
    assert synopsis.feature_names[15] == "bank: job=(missing)"
    for place in PLACES:
        for centres in (synopsis.nodes, found.centres):
            assert centres[:, place].min() >= 0
            assert centres[:, place].sum(axis=1) == pytest.approx(1, abs=1e-9)


def test_synthetic_rows_have_missing_values_again():
    done = protocol.run(
        study(epsilon=12.0),
        tables(),
        noise=InsecureSeededNoise(3),
        rng=np.random.default_rng(3),
    )
    drawn = done.server.synopsis.sample(2000, random_state=1)["bank: job"]
    assert 20 < drawn.null_count < 500
    assert set(drawn.drop_null().to_pylist()) <= set(JOBS)


def test_server_and_party_refuse_shares_that_do_not_add_up():
    plan = make_plan(study())
    party_tables = tables()
    noise = InsecureSeededNoise(4)
    release = release_party(
        plan, party_tables[0], run_key=b"k" * 32, noise=noise, rng=np.random.default_rng(4)
    )
    check_release(plan, "bank", release)
    centres = release.centres.copy()
    place = 1 + int(np.argmin(centres[0, 1:16]))
    centres[0, place] += 1
    with pytest.raises(ProtocolError, match="sent centres with shares of categories that do not"):
        check_release(plan, "bank", dataclasses.replace(release, centres=centres))
    points = release.points.copy()
    points[7, int(np.argmax(coding_of(MIXED).levels))] = 1000
    with pytest.raises(ProtocolError, match="sent points with levels that no category has"):
        check_release(plan, "bank", dataclasses.replace(release, points=points))

    done = protocol.run(plan.study, party_tables, noise=noise, rng=np.random.default_rng(4))
    wrong = done.server.published.local_centres.copy()
    wrong[1 + int(np.argmin(wrong[1:16]))] += 1
    result = dataclasses.replace(done.server.published, local_centres=wrong)
    with pytest.raises(ProtocolError, match="shares of categories do not add up to 1"):
        read_published(done.plan, result)
