"""Options that name a party's data, for `party run`, `party check` and `result label`."""

from pathlib import Path

import typer

from splitmeans.errors import ParameterError
from splitmeans.privacy.data_sets import check_source, printable
from splitmeans.table.sources.place import find_place

DATA = typer.Option(
    ...,
    "--data",
    help="Your table: file, folder or pattern (.parquet, .csv, .arrow), or the URL of a store or "
    "database. Never a password: that comes from the environment.",
)
SOURCE = typer.Option(
    None,
    "--source",
    help="What the ledger calls this data, the same in every run on it; default: from --data.",
)
ALLOW_CLIPPING = typer.Option(
    False,
    "--allow-clipping",
    help="Pass a table also if more than half of a column's values lie outside the bounds.",
)
QUERY = typer.Option(None, "--query", help="For a database: the query whose result is the table.")
QUERY_FILE = typer.Option(None, "--query-file", help="File with that query.")


def chosen_query(query: str | None, query_file: Path | None) -> str | None:
    """Return the query of either option."""
    if query_file is None:
        return query
    if query is not None:
        raise ParameterError("--query and --query-file: give one of them")
    try:
        return query_file.read_text(encoding="utf-8")
    except OSError as problem:
        raise ParameterError(f"{query_file}: cannot be read ({problem.strerror})") from problem
    except UnicodeDecodeError:
        raise ParameterError(f"{query_file}: must be text in UTF-8") from None


def source_name(chosen: str | None, data: str) -> str:
    """Return what the ledger calls the data: the same in every run on it, and no credential.

    A name that a party gives must be one that the ledger takes; one that comes from --data is made
    so (`privacy.source_names.printable`), because nobody chose it.
    """
    if chosen is not None:
        check_source(chosen)
        return chosen
    name = printable(find_place(data).source)
    if not name.strip():
        raise ParameterError(
            f"--source is missing: {find_place(data).shown} does not say what the data is, and the "
            "ledger needs a name that is the same in every run on it"
        )
    return name
