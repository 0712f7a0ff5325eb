"""Where data is: names without credentials, and no credential is ever taken or shown."""

import pytest

from splitmeans.errors import DataError
from splitmeans.table.sources.place import find_place


@pytest.mark.parametrize(
    ("text", "kind", "shown", "source"),
    [
        ("exports/bank.parquet", "file", "exports/bank.parquet", "bank.parquet"),
        ("file:///exports/bank.csv", "file", "/exports/bank.csv", "bank.csv"),
        ("exports", "file", "exports", "exports"),
        ("exports/part-*.parquet", "file", "exports/part-*.parquet", "exports"),
        ("exports/*/part-?.csv", "file", "exports/*/part-?.csv", "exports"),
        ("crm.duckdb", "duckdb", "crm.duckdb", "crm.duckdb"),
        ("duckdb:///data/crm.db", "duckdb", "duckdb:///data/crm.db", "crm.db"),
        ("duckdb:////data/crm.db", "duckdb", "duckdb:////data/crm.db", "crm.db"),
        ("duckdb://", "duckdb", "duckdb://", ""),
        ("crm.sqlite3", "sqlite", "crm.sqlite3", "crm.sqlite3"),
        ("sqlite:///my%20crm.db", "sqlite", "sqlite:///my crm.db", "my crm.db"),
        ("postgresql://db/crm", "postgresql", "postgresql://db/crm", "postgresql://db/crm"),
        (
            "postgres://me@db:5433/crm?sslmode=require",
            "postgresql",
            *["postgresql://db:5433/crm"] * 2,
        ),
        ("postgresql:///crm?host=/run/pg", "postgresql", *["postgresql:///run/pg/crm"] * 2),
        ("postgresql://?service=crm", "postgresql", *["postgresql:///crm"] * 2),
        ("s3://bucket/a/b.parquet", "store", *["s3://bucket/a/b.parquet"] * 2),
        ("s3://bucket/a/*.parquet", "store", "s3://bucket/a/*.parquet", "s3://bucket/a"),
        ("sftp://me@host/a.csv", "store", *["sftp://host/a.csv"] * 2),
    ],
)
def test_kind_and_names(text, kind, shown, source):
    place = find_place(text)
    assert (place.kind, place.shown, place.source) == (kind, shown, source)


def test_the_ledgers_name_does_not_depend_on_who_asks_or_how():
    """Runs on the same data add up, whatever user, options or query they use."""
    same = ["postgresql://db/crm", "postgresql://a@db/crm", "postgres://b@db/crm?connect_timeout=3"]
    assert {find_place(text).source for text in same} == {"postgresql://db/crm"}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@db/crm",
        "postgresql://me:@db/hunter2",
        "postgresql://me:hun/ter2@db/crm",
        "postgresql://me:1234/hunter2@db/crm",
        "postgresql://db/crm?password=hunter2",
        "postgresql://db/crm?sslpassword=hunter2",
        "postgresql://db/crm?pass%77ord=hunter2",
        "host=db dbname=crm PASSWORD = hunter2",
        "s3://key:hunter2@bucket/a.parquet",
        "https://store/a.parquet?X-Amz-Signature=hunter2",
        "https://store/a.parquet?sv=1&sig=hunter2",
        "https://store/a.parquet?hunter2",
        "abfs://c@a/f.parquet#hunter2",
        "gs://bucket/a.parquet?access_token=hunter2",
    ],
)
def test_a_credential_is_refused_and_not_shown(text):
    with pytest.raises(DataError, match=r"must not|valid URL") as caught:
        find_place(text)
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)
    if "valid URL" not in str(caught.value):
        assert "PGPASSWORD" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sqlite://crm.db", "sqlite:///relative/path or sqlite:////absolute/path"),
        ("sqlite://", "sqlite:// must name a file"),
        ("postgresql://db:port/crm", "must be a path or a valid URL"),
    ],
)
def test_what_is_no_place(text, message):
    with pytest.raises(DataError, match=message):
        find_place(text)
