"""Readers of the paper's data files, in their original formats, on a few made-up lines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.data import Recipe, load, split_columns
from benchmarks.data_files import (
    LOAN_COLUMNS,
    PAPER_ROWS,
    describe_file,
    find_file,
    read_rows,
)
from splitmeans.errors import DataError, ParameterError

TAXI_HEADING = (
    "id,vendor_id,pickup_datetime,dropoff_datetime,passenger_count,pickup_longitude,"
    "pickup_latitude,dropoff_longitude,dropoff_latitude,store_and_fwd_flag,trip_duration"
)


def taxi_line(number: int, *, longitude: float = -73.98, seconds: int = 600) -> str:
    # 14 March 2016 was a Monday.
    return (
        f"id{number},1,2016-03-14 00:0{number}:00,2016-03-14 01:00:00,{number},{longitude},40.7,"
        f"-73.9{number},40.75,N,{seconds}"
    )


class TestLetter:
    def lines(self) -> list[str]:
        return [
            f"{letter},{','.join(str(v + i) for v in range(16))}" for i, letter in enumerate("TIDN")
        ]

    def test_original_file_without_heading(self, tmp_path: Path) -> None:
        (tmp_path / "letter-recognition.data").write_text("\n".join(self.lines()) + "\n")
        rows = read_rows("letter", tmp_path)
        assert rows.shape == (4, 16)
        np.testing.assert_allclose(rows[:, 0], [-1, -1 / 3, 1 / 3, 1])

    def test_heading_is_skipped(self, tmp_path: Path) -> None:
        heading = "lettr," + ",".join(f"a{number}" for number in range(16))
        text = "\n".join([heading, *self.lines()]) + "\n"
        (tmp_path / "letter-recognition.data").write_text(text)
        assert read_rows("letter", tmp_path).shape == (4, 16)

    def test_splits_are_the_paper_s(self, tmp_path: Path) -> None:
        (tmp_path / "letter-recognition.data").write_text("\n".join(self.lines()) + "\n")
        drawn = load("letter", n_parties=4, seed=0, recipe=Recipe(), data_dir=tmp_path)
        assert list(drawn.party_columns[0] + 1) == [1, 6, 9, 14]

    def test_a_file_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "letter-recognition.data").write_text("T,1,2\n")
        with pytest.raises(DataError, match="is not the letter file"):
            read_rows("letter", tmp_path)


class TestTaxi:
    @pytest.mark.parametrize("name", ["train.csv", "nyc-taxi-trip-duration.csv"])
    def test_original_file(self, tmp_path: Path, name: str) -> None:
        lines = [taxi_line(number) for number in range(1, 4)]
        lines += [taxi_line(4, longitude=0.0), taxi_line(5, seconds=90_000)]
        (tmp_path / name).write_text("\n".join([TAXI_HEADING, *lines]) + "\n")
        rows = read_rows("taxi", tmp_path)
        # Two trips have no position, or a meter that ran on.
        assert rows.shape == (3, 8)
        # Pickup times are evenly spaced; the passenger count is the third column.
        np.testing.assert_allclose(rows[:, 0], [-1, 0, 1])
        np.testing.assert_allclose(rows[:, 2], [-1, 0, 1])
        # A column of one value has no range.
        np.testing.assert_allclose(rows[:, 1], -1)
        file = describe_file("taxi", tmp_path)
        assert file is not None
        assert (file.name, file.rows_read, file.rows_used) == (name, 5, 3)
        assert file.period == ("2016-03-14", "2016-03-14")

    def test_times_are_seconds_of_the_week(self, tmp_path: Path) -> None:
        # Sunday midnight minus a second is the last second of the week, Monday 0:00 the first.
        lines = [
            "a,1,2016-03-14 00:00:00,2016-03-14 00:10:00,1,-73.9,40.7,-73.9,40.7,N,600",
            "b,1,2016-03-20 23:59:59,2016-03-14 00:10:00,2,-73.8,40.8,-73.8,40.8,N,700",
            "c,1,2016-03-17 12:00:00,2016-03-14 00:10:00,2,-73.8,40.8,-73.8,40.8,N,700",
        ]
        (tmp_path / "train.csv").write_text("\n".join([TAXI_HEADING, *lines]) + "\n")
        np.testing.assert_allclose(read_rows("taxi", tmp_path)[:, 0], [-1, 1, 0], atol=1e-5)

    def test_missing_column_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "train.csv").write_text("id,trip_duration\na,5\n")
        with pytest.raises(DataError, match="is not the taxi file"):
            read_rows("taxi", tmp_path)


class TestLoan:
    def test_original_file(self, tmp_path: Path) -> None:
        heading = ["SK_ID_CURR", "TARGET", *reversed(LOAN_COLUMNS), "OCCUPATION_TYPE"]
        lines = []
        for number in range(21):
            # The credit is missing once; one entrance share is an outlier.
            values = {name: str(number) for name in LOAN_COLUMNS}
            values["AMT_CREDIT"] = "" if number == 20 else str(1000 + number % 2)
            values["ENTRANCES_AVG"] = "1000" if number == 20 else "0.5" if number else "0"
            lines.append(
                ",".join([str(number), "0", *(values[n] for n in reversed(LOAN_COLUMNS)), "Core"])
            )
        (tmp_path / "application_train.csv").write_text("\n".join([",".join(heading), *lines]))
        rows = read_rows("loan", tmp_path)
        assert rows.shape == (21, 16)
        # Missing: at the mean of the others, 1000.5.
        np.testing.assert_allclose(rows[20, 0], 0, atol=1e-12)
        # The outlier is clipped to the 95 % quantile, which is 0.5 here.
        np.testing.assert_allclose(rows[[0, 1, 20], 2], [-1, 1, 1])

    def test_parquet_copy_is_taken_first_and_cut_to_the_paper_s_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(PAPER_ROWS, "loan", 5)
        table = pa.table({name: np.arange(9.0) for name in LOAN_COLUMNS})
        pq.write_table(table, tmp_path / "loan.parquet")
        (tmp_path / "application_train.csv").write_text("not,read\n")
        assert find_file("loan", tmp_path) == tmp_path / "loan.parquet"
        assert read_rows("loan", tmp_path).shape == (5, 16)

    def test_rows_cannot_be_changed_by_accident(self, tmp_path: Path) -> None:
        table = pa.table({name: np.arange(9.0) for name in LOAN_COLUMNS})
        pq.write_table(table, tmp_path / "loan.parquet")
        with pytest.raises(ValueError, match="read-only"):
            read_rows("loan", tmp_path)[0, 0] = 1.0


def test_no_folder_and_no_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"needs --data-dir with letter\.parquet or letter-"):
        read_rows("letter", None)
    with pytest.raises(DataError, match=r"has no loan\.parquet or application_train\.csv"):
        read_rows("loan", tmp_path)
    assert describe_file("taxi", tmp_path) is None
    assert describe_file("taxi", None) is None


def test_digest_changes_with_the_content(tmp_path: Path) -> None:
    digests = []
    for low in (0.0, 1.0):
        table = pa.table({name: low + np.arange(9.0) for name in LOAN_COLUMNS})
        pq.write_table(table, tmp_path / "loan.parquet")
        file = describe_file("loan", tmp_path)
        assert file is not None
        digests.append(file.digest)
    assert digests[0] != digests[1]


class TestUnevenSplit:
    def test_sizes_are_kept_and_every_column_is_dealt_once(self) -> None:
        rows = np.zeros((2, 8))
        parts = split_columns(rows, 2, rng=np.random.default_rng(0), sizes=(2, 6))
        assert [len(part) for part in parts] == [2, 6]
        assert sorted(np.concatenate(parts)) == list(range(8))

    def test_even_sizes_are_the_even_split(self) -> None:
        rows = np.zeros((2, 8))
        even = split_columns(rows, 2, rng=np.random.default_rng(3))
        sized = split_columns(rows, 2, rng=np.random.default_rng(3), sizes=(4, 4))
        for one, other in zip(even, sized, strict=True):
            np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("sizes", [(4, 5), (8,), (0, 8)])
    def test_wrong_sizes_are_refused(self, sizes: tuple[int, ...]) -> None:
        with pytest.raises(ParameterError, match="sizes must be 2 numbers from 1 on"):
            split_columns(np.zeros((2, 8)), 2, rng=np.random.default_rng(0), sizes=sizes)


@pytest.mark.parametrize(
    ("n_parties", "sizes"), [(1, [8]), (2, [4, 4]), (3, [3, 3, 2]), (8, [1] * 8)]
)
def test_split_columns_is_even_and_complete(n_parties, sizes):
    parts = split_columns(np.zeros((2, 8)), n_parties, rng=np.random.default_rng(0))
    assert [len(part) for part in parts] == sizes
    assert sorted(np.concatenate(parts)) == list(range(8))
    assert all((np.diff(part) > 0).all() for part in parts)


def test_split_columns_is_random_but_seeded():
    def split(seed):
        parts = split_columns(np.zeros((2, 8)), 2, rng=np.random.default_rng(seed))
        return tuple(map(tuple, parts))

    assert split(1) == split(1)
    assert len({split(seed) for seed in range(20)}) > 5


def test_split_columns_needs_enough_columns():
    with pytest.raises(ParameterError, match="n_parties must be at most the number of columns 2"):
        split_columns(np.zeros((2, 2)), 3, rng=np.random.default_rng(0))
