"""Ways in which a careless colleague passes a limit by accident, each of which must fail.

The home has charged run 1 on a file of customers, and has room for nothing more. Whatever way the
same people come in again, the run is refused before it joins: by the limit of the data set that the
people belong to, or because somebody must first say whose data it is.
"""

import contextlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from splitmeans.cli.data_options import source_name
from splitmeans.errors import BudgetError, ParameterError, WaitingError
from splitmeans.mailbox.files import FileMailbox
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.limits import Limit
from splitmeans.run import people_records
from splitmeans.run.journal import Journal
from splitmeans.run.party import run_party
from splitmeans.run.party_run import PartyRun
from splitmeans.run.records import RunKey
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from tests.scene import KEYS, keyed_study

STUDY = keyed_study(n_local_clusters="auto")  # it costs epsilon 4
N = 3000


def customers(start: int = 0, n: int = N, form: str = "c{:06d}") -> pa.Table:
    rng = np.random.default_rng(5)
    values = rng.uniform(0, 100, (2, n))
    ids = [form.format(start + number) for number in range(n)]
    return pa.table({"id": ids, "x": values[0], "y": values[1]})


def join(
    folder: Path, data: str, *, home: str = "bank", run: str = "2", source: str | None = None
) -> str:
    """Begin a run as `party run` does; return what it would be charged to."""
    own = folder / home
    (folder / "mail").mkdir(exist_ok=True)
    with Journal.open(own) as journal:
        journal.approve(STUDY.hash, STUDY.to_toml())
    what = PartyRun(
        study=STUDY,
        party="bank",
        run=run,
        source=source_name(source, data),
        is_source_chosen=source is not None,
        open_table=partial(
            open_source, STUDY.party("bank"), data, options=SourceOptions(rules=STUDY.id_rules)
        ),
        identity=KEYS["bank"],
        mailbox=FileMailbox(str(folder / "mail")),
        result_folder=folder / f"result-{home}-{run}",
        say=lambda text: None,
    )
    with contextlib.suppress(WaitingError):
        run_party(what, own, timeout=0.0)
    with Journal.open(own) as journal:
        saved = journal.load(key(run))
        assert saved is not None
        return saved.details["source"]


def key(run: str) -> RunKey:
    return RunKey(study_hash=STUDY.hash, run=run, participant="bank")


def pay(folder: Path, source: str, *, run: str = "1", home: str = "bank") -> None:
    """Charge a run that was begun, as its first release does."""
    cost = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=4.0, delta=1e-4)
    with Journal.open(folder / home) as journal, journal.transaction():
        Ledger(journal.connection).charge(
            source,
            cost,
            study_hash=STUDY.hash,
            run=run,
            party="bank",
            what="PartyRelease",
            release_sha256="ab" * 32,
            note=people_records.note_of(journal.connection, key(run)),
        )


def act(folder: Path, kind: str, **facts: str) -> None:
    with Journal.open(folder / "bank") as journal, journal.transaction():
        Ledger(journal.connection).act(kind, **facts)


def limit(folder: Path, source: str, *, epsilon: float = 5.0) -> None:
    with Journal.open(folder / "bank") as journal, journal.transaction():
        Ledger(journal.connection).set_limit(source, Limit(epsilon=epsilon, delta=1e-2))


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has charged one run on customers.parquet."""
    folder = tmp_path_factory.mktemp("office")
    pq.write_table(customers(), folder / "customers.parquet")
    assert join(folder, str(folder / "customers.parquet"), run="1") == "customers.parquet"
    pay(folder, "customers.parquet")
    return folder


@pytest.fixture
def office(charged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(charged, tmp_path / "office", symlinks=True))


Way = Callable[[Path], tuple[str, str | None]]


def copy(folder: Path) -> tuple[str, str | None]:
    shutil.copy(folder / "customers.parquet", folder / "copy.parquet")
    return str(folder / "copy.parquet"), None


def symlink(folder: Path) -> tuple[str, str | None]:
    (folder / "link.parquet").symlink_to(folder / "customers.parquet")
    return str(folder / "link.parquet"), None


def pattern(folder: Path) -> tuple[str, str | None]:
    (folder / "parts").mkdir()
    for number in range(3):
        part = customers().slice(number * 1000, 1000)
        pq.write_table(part, folder / "parts" / f"part-{number}.parquet")
    return str(folder / "parts" / "part-*.parquet"), None


def dated(folder: Path) -> tuple[str, str | None]:
    """A quarter later: a tenth has left, and as many have come."""
    pq.write_table(customers(start=N // 10), folder / "customers-2026-09.parquet")
    return str(folder / "customers-2026-09.parquet"), None


def text_file(folder: Path) -> tuple[str, str | None]:
    pyarrow.csv.write_csv(customers(), folder / "export.csv")
    return str(folder / "export.csv"), None


def other_order(folder: Path) -> tuple[str, str | None]:
    table = customers().take(pa.array(np.random.default_rng(1).permutation(N)))
    pq.write_table(table, folder / "sorted.parquet")
    return str(folder / "sorted.parquet"), None


def extract(folder: Path) -> tuple[str, str | None]:
    pq.write_table(customers().slice(500, 150), folder / "extract.parquet")
    return str(folder / "extract.parquet"), None


def superset(folder: Path) -> tuple[str, str | None]:
    pq.write_table(customers(n=4 * N), folder / "everyone.parquet")
    return str(folder / "everyone.parquet"), None


def other_writing(folder: Path) -> tuple[str, str | None]:
    pq.write_table(customers(form=" C{:06d}"), folder / "crm.parquet")
    return str(folder / "crm.parquet"), None


def other_source(folder: Path) -> tuple[str, str | None]:
    return str(folder / "customers.parquet"), "marketing"


def dated_source(folder: Path) -> tuple[str, str | None]:
    return dated(folder)[0], "customers-2026-09"


WAYS = [
    copy,
    symlink,
    pattern,
    dated,
    text_file,
    other_order,
    extract,
    superset,
    other_writing,
    other_source,
    dated_source,
]


@pytest.mark.parametrize("way", WAYS)
def test_with_a_limit_on_the_name_of_the_file(office: Path, way: Way) -> None:
    limit(office, "customers.parquet")
    refused(office, way)


@pytest.mark.parametrize("way", WAYS)
def test_with_a_declared_data_set(office: Path, way: Way) -> None:
    act(office, "source", source="customers", what="retail customers")
    act(office, "same", source="customers.parquet", what="customers")
    limit(office, "customers")
    refused(office, way)


@pytest.mark.parametrize("way", WAYS)
def test_with_no_limit_at_all_the_people_are_one_data_set(office: Path, way: Way) -> None:
    """A name that nobody chose yields to the data set; one that was chosen is refused."""
    data, source = way(office)
    if source is None:
        assert join(office, data) == "customers.parquet"
        return
    with pytest.raises(BudgetError, match=r"are those of 'customers.parquet' \(about \d+% in com"):
        join(office, data, source=source)


def refused(office: Path, way: Way) -> None:
    data, source = way(office)
    with pytest.raises((BudgetError, ParameterError)):
        join(office, data, source=source)
    with Journal.open(office / "bank") as journal:
        assert journal.load(key("2")) is None
    assert not list((office / "mail").glob("*/2/*"))


def test_the_words_name_the_ways_out(office: Path) -> None:
    limit(office, "customers.parquet")
    data, _ = dated(office)
    with pytest.raises(ParameterError) as told:
        join(office, data)
    text = str(told.value)
    assert "'customers-2026-09.parquet' is a new name, and this home has limits" in text
    assert "splitmeans ledger source customers-2026-09.parquet --people WHO" in text
    act(office, "source", source="customers-2026-09.parquet", what="those of September")
    with pytest.raises(BudgetError) as told_again:
        join(office, data)
    text = str(told_again.value)
    assert "give --source customers.parquet" in text
    assert "splitmeans ledger source customers-2026-09.parquet --apart customers.parquet" in text


def test_declaring_the_same_people_under_another_name(office: Path) -> None:
    limit(office, "customers.parquet")
    act(office, "source", source="fresh", what="other people, says somebody in a hurry")
    with pytest.raises(BudgetError, match=r"people of 'fresh' are those of 'customers.parquet'"):
        join(office, copy(office)[0], source="fresh")


def test_a_limit_on_another_name(office: Path) -> None:
    limit(office, "fresh", epsilon=50.0)
    with pytest.raises(BudgetError, match=r"people of 'fresh' are those of 'customers.parquet'"):
        join(office, copy(office)[0], source="fresh")


def test_other_people_are_other_people(office: Path) -> None:
    """Nothing in common, or a twentieth: they need their own name and nothing else."""
    for number, start in (("2", 10 * N), ("3", N - N // 20)):
        name = f"suppliers-{number}"
        act(office, "source", source=name, what="suppliers")
        pq.write_table(customers(start=start), office / f"{name}.parquet")
        path = str(office / f"{name}.parquet")
        assert join(office, path, run=number, source=name) == name


def test_declared_to_be_apart(office: Path) -> None:
    act(office, "source", source="fresh", what="test ids that look like customers")
    act(office, "apart", source="fresh", what="customers.parquet", note="ids are made up")
    assert join(office, copy(office)[0], source="fresh") == "fresh"


def test_a_run_that_is_taken_up_again_under_another_name(office: Path) -> None:
    assert join(office, copy(office)[0]) == "customers.parquet"
    with pytest.raises(BudgetError, match="the people of 'fresh' are those of"):
        join(office, str(office / "copy.parquet"), source="fresh")


def test_two_runs_at_once_under_two_names(tmp_path: Path) -> None:
    """Neither is charged yet, and the second one sees the first."""
    pq.write_table(customers(), tmp_path / "a.parquet")
    assert join(tmp_path, str(tmp_path / "a.parquet"), run="1", source="one") == "one"
    with pytest.raises(BudgetError, match="the people of 'two' are those of 'one'"):
        join(tmp_path, str(tmp_path / "a.parquet"), run="2", source="two")


def test_a_lost_secret(office: Path) -> None:
    (office / "bank" / people_records.SECRET_FILE).unlink()
    with pytest.raises(BudgetError, match=r"people.key of this home is not the one under which"):
        join(office, copy(office)[0])


def test_lost_records(office: Path) -> None:
    with Journal.open(office / "bank") as journal:
        journal.connection.execute("DELETE FROM people")
    with pytest.raises(BudgetError, match="has lost 1 records of the people that it charged"):
        join(office, copy(office)[0])


def test_charges_without_a_record_of_people(office: Path) -> None:
    """Whose data they are is not known, so the home asks for every new name."""
    pay(office, "old.parquet", run="0")
    with pytest.raises(ParameterError, match="1 charges in this home were added without a record"):
        join(office, str(office / "customers.parquet"), source="fresh")
    assert join(office, str(office / "customers.parquet")) == "customers.parquet"


def test_a_second_home_knows_nothing_of_the_first(office: Path) -> None:
    """What cannot be known: the secret of the first home stays there."""
    assert join(office, copy(office)[0], home="second", run="7") == "copy.parquet"
