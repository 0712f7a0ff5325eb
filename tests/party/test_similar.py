"""Lookalikes and audiences: lifts by hand, files with ids as they are, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from splitmeans import VerticalKMeans
from splitmeans.errors import DataError, ParameterError
from splitmeans.party.similar import audience, chosen_segments, lifts, scoring_segments
from splitmeans.party.similar_file import write_audience, write_similar


def quiet(*arguments, **keywords):
    pass


@pytest.fixture(scope="module")
def scene():
    """Two parties, three kinds of users, ids with zeros in front."""
    rng = np.random.default_rng(4)
    kinds = rng.choice(3, size=3000, p=[0.5, 0.3, 0.2])
    places = np.array([[-0.6, -0.5, 0.6], [0.5, -0.6, -0.5], [0.1, 0.7, 0.0]])
    rows = np.clip(places[kinds] + rng.normal(scale=0.2, size=(3000, 3)), -1, 1)
    ids = [f"{at:06d}" for at in range(3000)]
    bank = pa.table({"id": ids, "x": rows[:, 0], "y": rows[:, 1]})
    shop = pa.table({"id": ids, "z": rows[:, 2]})
    model = VerticalKMeans(3, epsilon=4.0, bounds=(-1, 1), random_state=0)
    model.fit({"bank": bank, "shop": shop}, ids="id")
    return model.published_.rename({"C": "few"}), bank, kinds


def test_lifts_by_hand():
    shares = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    seeds = np.zeros(20, dtype=bool)
    seeds[:5] = True
    found = lifts(shares, seeds)
    # Base 1/2 each; seeds (5 + 5 / 2) / (10 / 2) = 1.5 and (0 + 5 / 2) / 5 = 0.5.
    assert found.tolist() == pytest.approx([1.5] * 10 + [0.5] * 10)


def test_too_few_seeds_or_nobody_else_is_refused():
    shares = np.full((10, 2), 0.5)
    with pytest.raises(DataError, match="at least 5 users of the table, got 4"):
        lifts(shares, np.arange(10) < 4)
    with pytest.raises(DataError, match="leave somebody out"):
        lifts(shares, np.ones(10, dtype=bool))


def test_half_of_a_group_finds_the_other_half(scene, tmp_path):
    result, bank, kinds = scene
    members = np.flatnonzero(kinds == 2)
    seed, hidden = members[::2], set(members[1::2].tolist())
    pq.write_table(bank, tmp_path / "bank.parquet")
    (tmp_path / "seed.csv").write_text("id\n" + "\n".join(f"{at:06d}" for at in seed) + "\n")
    users, seeds = write_similar(
        result,
        tmp_path / "bank.parquet",
        tmp_path / "like.csv",
        party="bank",
        seed=tmp_path / "seed.csv",
        segments=scoring_segments(result, None),
        progress=quiet,
    )
    assert (users, seeds) == (3000 - len(seed), len(seed))
    text = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
    found = pyarrow.csv.read_csv(tmp_path / "like.csv", convert_options=text)
    listed = found.column("id").to_pylist()
    assert all(len(one) == 6 for one in listed)
    assert not {int(one) for one in listed} & set(seed.tolist())
    top = [int(one) in hidden for one in listed[: len(hidden)]]
    assert np.mean(top) > 0.8
    lift = found.column("lift").to_numpy()
    assert (np.diff(lift) <= 0).all()
    assert (tmp_path / "like.csv").stat().st_mode & 0o77 == 0


def test_a_frame_gets_the_same_lifts_from_ids_and_from_truth_values(scene):
    result, bank, kinds = scene
    frame = bank.to_pandas()
    members = np.flatnonzero(kinds == 2)[::2]
    by_ids = result.similar(frame, seed=frame["id"].iloc[members].tolist())
    by_mask = result.similar(frame, seed=np.isin(np.arange(3000), members))
    assert by_ids["seed"].sum() == len(members)
    assert by_ids["lift"].tolist() == by_mask["lift"].tolist()
    assert by_ids["id"].tolist() == frame["id"].tolist()


def test_an_audience_says_how_many_are_expected_to_be_right(scene, tmp_path):
    result, bank, kinds = scene
    pq.write_table(bank, tmp_path / "bank.parquet")
    found = write_audience(
        result,
        tmp_path / "bank.parquet",
        tmp_path / "few.parquet",
        party="bank",
        wanted=["few", " B"],
        at_least=0.7,
        segments=result.published,
        progress=quiet,
    )
    table = pq.read_table(tmp_path / "few.parquet")
    assert table.num_rows == found.users
    assert set(table.column("name").to_pylist()) == {"few", "B"}
    assert table.column("probability").to_numpy().min() >= 0.7
    assert found.precision == pytest.approx(table.column("probability").to_numpy().mean())
    # Whom the largest kind does not hold, by the truth.
    right = np.mean([kinds[int(one)] != 0 for one in table.column("id").to_pylist()])
    assert right == pytest.approx(found.precision, abs=0.05)
    assert found.reach > 0.9


def test_segments_by_letter_or_name_and_thresholds(scene):
    result, _, _ = scene
    assert chosen_segments(result, result.published, ["A", "few"]).tolist() == [True, False, True]
    with pytest.raises(ParameterError, match=r"some of A, B, C \(few\), got 'many'"):
        chosen_segments(result, result.published, ["many"])
    kept, own = audience(np.array([[0.3, 0.7], [0.6, 0.4]]), np.array([False, True]), at_least=0.5)
    assert (kept.tolist(), own.tolist()) == ([True, False], [0.7, 0.4])
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        write_audience(
            result,
            "no table",
            None,
            party="bank",
            wanted=["A"],
            at_least=0.0,
            segments=result.published,
            progress=quiet,
        )


def test_an_audience_of_a_frame_is_that_of_the_file(scene, tmp_path):
    result, bank, _ = scene
    pq.write_table(bank, tmp_path / "bank.parquet")
    for k, wanted in ((None, ["few", "B"]), (4, ["A"])):
        worth = write_audience(
            result,
            tmp_path / "bank.parquet",
            tmp_path / "file.parquet",
            party="bank",
            wanted=wanted,
            at_least=0.7,
            segments=result.segments(k),
            progress=quiet,
        )
        written = pq.read_table(tmp_path / "file.parquet")
        frame, own = result.audience(bank.to_pandas(), segments=wanted, at_least=0.7, k=k)
        assert own == worth
        for name in written.column_names:
            assert frame[name].tolist() == written.column(name).to_pylist()
    arrow, _ = result.audience(bank, segments="few", at_least=0.7)
    assert isinstance(arrow, pa.Table)
    places, _ = result.audience(
        np.column_stack([bank["x"], bank["y"]]), segments="few", at_least=0.7, party="bank"
    )
    assert [f"{at:06d}" for at in places["row"].to_pylist()] == arrow["id"].to_pylist()


def test_probabilities_of_segments_are_about_right(scene):
    """The mean probability of the likeliest segment is how often it is the true one."""
    result, bank, kinds = scene
    labels = result.label(bank.to_pandas(), k=3)
    letters = sorted(set(labels["segment"]))
    table = np.array(
        [
            [np.sum((labels["segment"] == one) & (kinds == kind)) for kind in range(3)]
            for one in letters
        ]
    )
    right = table.max(axis=1).sum() / len(kinds)
    assert right == pytest.approx(labels["probability"].mean(), abs=0.05)
