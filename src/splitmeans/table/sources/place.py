"""Where a party's data is, from the text of `--data`: never a credential, in or out.

A place has a name for messages and one for the ledger. Both are made of scheme, host, path and
database name only. A text that holds a password is refused without being shown.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from splitmeans.errors import DataError

FILE, STORE, DUCKDB, SQLITE, POSTGRESQL = "file", "store", "duckdb", "sqlite", "postgresql"
DATABASES = (DUCKDB, SQLITE, POSTGRESQL)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_DATABASE_FILES = {".duckdb": DUCKDB, ".ddb": DUCKDB, ".sqlite": SQLITE, ".sqlite3": SQLITE}
_SCHEMES = {
    "duckdb": DUCKDB,
    "sqlite": SQLITE,
    "postgresql": POSTGRESQL,
    "postgres": POSTGRESQL,
    "file": FILE,
}
# "password=...", also as part of a longer name such as sslpassword, and in a libpq string.
_SECRET_WORD = re.compile(
    r"(?i)(passw|pwd|secret|token|signature|credential|access_?key|[?&]sig)[a-z_-]*\s*="
)
_WILD = frozenset("*?[")

_WHERE_CREDENTIALS_GO = (
    "it must not hold a password, key or token: command lines are seen by other users and kept in "
    "histories. PostgreSQL takes PGPASSWORD, a password file (PGPASSFILE) or a service file "
    "(PGSERVICE); object stores take their own variables or files"
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where data is.

    Attributes:
        kind: "file" (also a folder or pattern), "store" (files through fsspec) or a database.
        target: The path, or what the driver connects to.
        shown: Its name in messages.
        source: Its name in the ledger, unless the party gives another; empty if there is none.
    """

    kind: str
    target: str
    shown: str
    source: str

    @property
    def is_database(self) -> bool:
        """Whether it takes a query."""
        return self.kind in DATABASES


def find_place(data: str | Path) -> Place:
    """Return the place that a text names.

    The text is the path of a file or folder, a pattern such as `part-*.parquet`, or a URL.

    Raises:
        DataError: If the text holds a credential or names no place.
    """
    text = str(data)
    if _SECRET_WORD.search(unquote(text)):
        raise DataError(f"the data source is not shown: {_WHERE_CREDENTIALS_GO}")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _local(text)
    try:
        url = urlsplit(text)
        has_password = url.password is not None
        _ = url.port  # checks it
    except ValueError:
        raise DataError("the data source must be a path or a valid URL") from None
    kind = _SCHEMES.get(scheme[1].lower(), STORE)
    # An unescaped slash in a password would end the host and begin the path.
    if has_password or (kind == POSTGRESQL and "@" in url.path):
        raise DataError(f"the data source is not shown: {_WHERE_CREDENTIALS_GO}")
    match kind:
        case "postgresql":
            return _postgresql(text)
        case "file":
            return _local(unquote(url.path))
        case "duckdb" | "sqlite":
            return _database_file(kind, unquote(text[len(scheme[0]) :]))
    return _store(text)


def _local(text: str) -> Place:
    path = Path(text)
    kind = _DATABASE_FILES.get(path.suffix.lower(), FILE)
    if kind != FILE:
        return Place(kind=kind, target=text, shown=text, source=path.name)
    return Place(kind=FILE, target=text, shown=text, source=_file_source(path))


def _file_source(path: Path) -> str:
    """Return the name of a file or folder; a pattern is named by the folder that it is in."""
    while _WILD & set(path.name):
        path = path.parent
    return path.name or path.resolve().name


def _database_file(kind: str, rest: str) -> Place:
    # As usual with such URLs: three slashes and a relative path, or four and an absolute one.
    if rest and not rest.startswith("/"):
        raise DataError(
            f"{kind}://{rest}: a file is written {kind}:///relative/path or {kind}:////absolute/path"
        )
    target = rest[1:]
    if not target and kind == SQLITE:
        raise DataError("sqlite:// must name a file: sqlite:///relative/path")
    shown = f"{kind}:///{target}" if target else f"{kind}://"
    # A database in memory has no name: its query says where the rows are.
    return Place(kind=kind, target=target, shown=shown, source=Path(target).name)


def _postgresql(text: str) -> Place:
    url = urlsplit(text)
    options = dict(parse_qsl(url.query))
    # Without user and options: they say who asks and how, not what the data is.
    host = url.netloc.rpartition("@")[2]
    database = unquote(url.path.strip("/")) or options.get("dbname", options.get("service", ""))
    name = f"postgresql://{host or options.get('host', '')}/{database}"
    return Place(kind=POSTGRESQL, target=text, shown=name, source=name)


def _store(text: str) -> Place:
    url = urlsplit(text)
    if url.query or url.fragment:
        raise DataError(
            f"{url.scheme}://...: the URL of a file must not have a part after '?' or '#'; "
            f"{_WHERE_CREDENTIALS_GO}"
        )
    host = url.netloc.rpartition("@")[2]
    shown = f"{url.scheme}://{host}{url.path}"
    path = url.path
    while _WILD & set(path.rpartition("/")[2]):
        path = path.rpartition("/")[0]
    return Place(kind=STORE, target=text, shown=shown, source=f"{url.scheme}://{host}{path}")
