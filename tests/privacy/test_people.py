"""Records of people: what they tell, and how well."""

import numpy as np
import pytest

from splitmeans.errors import JournalError
from splitmeans.run.charged_data import people_of
from splitmeans.run.people_records import SIZE, People, secret_name
from tests.scene import make_study, make_table

SECRET, OTHER = bytes(32), bytes(range(32))


def record(numbers: range, *, seed: int = 0) -> People:
    """The record of some people, whose hashes are random but the same every time."""
    hashes = np.random.default_rng(seed).permutation(2**20)[list(numbers)]
    return People.smallest(hashes.astype(np.uint64) << np.uint64(40))


def test_by_hand() -> None:
    """Fewer people than a record holds: it has all of them, and counting is exact."""
    one = People.smallest(np.array([5, 1, 9, 9, 7], dtype=np.uint64))
    two = People.smallest(np.array([1, 7, 8], dtype=np.uint64))
    assert one.hashes.tolist() == [1, 5, 7, 9]
    assert one.overlap(two) == (2 / 4, 2 / 3)
    assert two.overlap(one) == (2 / 3, 2 / 4)
    assert one.overlap(People.smallest(np.array([2], dtype=np.uint64))) == (0, 0)
    assert one.overlap(People.smallest(np.empty(0, dtype=np.uint64))) == (0, 0)


@pytest.mark.parametrize(
    ("new", "known"),
    [
        ((0, 50_000), (0, 50_000)),
        ((5_000, 55_000), (0, 50_000)),
        ((0, 2_000), (0, 50_000)),
        ((0, 200_000), (0, 50_000)),
        ((40_000, 90_000), (0, 50_000)),
        ((50_000, 60_000), (0, 50_000)),
    ],
)
def test_against_counting(new: tuple[int, int], known: tuple[int, int]) -> None:
    """Each share is a mean over a sample of people.

    Five standard deviations: false failures below 1e-5 in all, and the seed is fixed.
    """
    common = max(0, min(new[1], known[1]) - max(new[0], known[0]))
    one, two = record(range(*new)), record(range(*known))
    found = one.overlap(two)
    end = min(one.hashes[-1], two.hashes[-1])
    for share, size, own in ((found[0], new, one), (found[1], known, two)):
        true = common / (size[1] - size[0])
        sampled = int(np.sum(own.hashes <= end))
        assert share == pytest.approx(true, abs=5 * np.sqrt(true * (1 - true) / sampled) + 1e-9)
    assert found.are_same == (common > 0)


def test_an_extract_of_a_hundredth_is_found() -> None:
    """Of 2,000 out of 200,000, about ten are among the 1,024: none with probability e^-10."""
    assert record(range(2_000)).overlap(record(range(200_000))).of_new == 1


def test_records_of_a_table_do_not_depend_on_order_blocks_or_writing() -> None:
    study = make_study()
    ids = [f"user-{number}" for number in range(3000)]
    one = people_of(make_table(study, "org0", n_users=3000, ids=ids), secret=SECRET)
    assert len(one.hashes) == SIZE
    turned = people_of(make_table(study, "org1", n_users=3000, ids=ids[::-1]), secret=SECRET)
    written = [f" 00{text.upper()}" for text in ids]
    loose = people_of(make_table(study, "org1", n_users=3000, ids=written), secret=SECRET)
    assert one.dump() == turned.dump() == loose.dump()


def test_without_the_secret_records_have_nothing_in_common() -> None:
    table = make_table(make_study(), "org0", n_users=3000)
    one, two = (people_of(table, secret=secret) for secret in (SECRET, OTHER))
    assert one.overlap(two) == (0, 0)
    assert secret_name(SECRET) != secret_name(OTHER)


def test_bytes() -> None:
    one = record(range(5000))
    assert People.load(one.dump()).dump() == one.dump()
    assert len(one.dump()) == 8 * SIZE
    assert len(one.sha256) == 64
    for data in (one.dump()[:-1], one.dump() + bytes(8), one.dump()[8:16] + one.dump()[:8]):
        with pytest.raises(JournalError, match="a record of people is damaged"):
            People.load(data)
