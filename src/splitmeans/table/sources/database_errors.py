"""What went wrong with a database, in our words.

What a driver says is read here to choose among fixed texts, and none of it is passed on.
"""

from typing import Any

_LOGIN = (
    "the database refuses the login; the password comes from PGPASSWORD, a password file "
    "(PGPASSFILE, ~/.pgpass) or a service file (PGSERVICE), the user from PGUSER or the URL"
)
_UNREACHABLE = "the database cannot be reached; check host, port and network, and that it runs"
_LOST = (
    "the connection was lost while rows were read; nothing was sent and nothing spent, so run the "
    "same command again"
)
_NO_COLUMN = "the query names a column that does not exist; try it in the database's own client"
_NO_TABLE = "the query names a table that does not exist or that this user cannot see"
_SYNTAX = "the query is not valid SQL; try it in the database's own client"
_VALUE = (
    "the query fails at a value that it cannot convert or compute with; which one is not shown "
    "here, try it in the database's own client"
)
_REFUSED = "the database refuses the query: this user may not read what it names"
_CANCELLED = "the query was cancelled, or took longer than the database allows"
_READ_ONLY = "the query must only read: it would change the database"

# By PostgreSQL's SQLSTATE, the longest prefix that fits.
_STATES = {
    "28": _LOGIN,
    "3D000": "there is no such database on the server",
    "08": _LOST,
    "25006": _READ_ONLY,
    "42501": _REFUSED,
    "42703": _NO_COLUMN,
    "42P01": _NO_TABLE,
    "3F000": _NO_TABLE,
    "42": _SYNTAX,
    "22": _VALUE,
    "53": "the database has no more room, memory or connections for the query",
    "57014": _CANCELLED,
    "57P": _LOST,
}
# By what the client library says where there is no SQLSTATE, in its fixed English words or those
# of the server's usual language.
_WORDS = {
    "password authentication failed": _LOGIN,
    "no password supplied": _LOGIN,
    "no pg_hba.conf entry": _LOGIN,
    "authentication": _LOGIN,
    "server closed the connection": _LOST,
    "terminating connection": _LOST,
    "connection not open": _LOST,
    "could not receive data": _LOST,
    "SSL": "the database and this machine do not agree on TLS; see sslmode of the URL",
    "does not exist": "there is no such database or user on the server",
    "Failed to connect": _UNREACHABLE,
    "read-only transaction": _READ_ONLY,
    # In the middle of a stream there is never an SQLSTATE.
    "division by zero": _VALUE,
    "invalid input": _VALUE,
    "out of range": _VALUE,
    "canceling statement": _CANCELLED,
}


def explain_postgresql(problem: Any) -> str:
    """Say what is wrong, by SQLSTATE or by what libpq says."""
    state = getattr(problem, "sqlstate", None) or ""
    for length in (5, 3, 2):
        if state[:length] in _STATES and len(state) == 5:
            return _STATES[state[:length]]
    said = str(problem)
    for words, text in _WORDS.items():
        if words in said:
            return text
    code = f" (SQLSTATE {state})" if state.isalnum() and len(state) == 5 else ""
    return f"the database stopped with an error{code}; try the query in its own client"


_SQLITE = {
    "no such column": _NO_COLUMN,
    "no such table": _NO_TABLE,
    "readonly database": _READ_ONLY,
    "syntax error": _SYNTAX,
    "incomplete input": _SYNTAX,
    "not a database": "the file is no SQLite database",
    "failed to open": "the file cannot be opened as a SQLite database",
    "database is locked": "the database is locked by another program; try again later",
    "expected": (
        "a column has values of different kinds; write cast(... as real) or cast(... as text) in "
        "the query"
    ),
    "": "the database stopped with an error; try the query in its own client",
}
# By the kind of exception, but for one that has no kind of its own.
_DUCKDB = {
    "read-only": _READ_ONLY,
    "CatalogException": _NO_TABLE,
    "BinderException": _NO_COLUMN,
    "ParserException": _SYNTAX,
    "SyntaxException": _SYNTAX,
    "ConversionException": _VALUE,
    "OutOfRangeException": _VALUE,
    "InvalidInputException": _VALUE,
    "IOException": "the file cannot be opened; is it open in another program?",
    "OutOfMemoryException": "the query needs more memory than DuckDB may use",
    "PermissionException": _REFUSED,
    "HTTPException": "a file that the query names cannot be fetched",
    "": "the database stopped with an error; try the query in DuckDB",
}


def explain_sqlite(problem: Any) -> str:
    """Say what is wrong, by what the driver says."""
    return _first(_SQLITE, str(problem))


def explain_duckdb(problem: Any) -> str:
    """Say what is wrong, by the kind of exception."""
    kind = "read-only" if "read-only" in str(problem) else type(problem).__name__
    return _first(_DUCKDB, kind)


def _first(texts: dict[str, str], said: str) -> str:
    return next(text for words, text in texts.items() if words in said)
