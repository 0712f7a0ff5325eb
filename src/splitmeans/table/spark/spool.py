"""The folder that a cluster shares: where Spark keeps the frozen table and parts of messages.

In a classic session it is made, and removed, through Hadoop's file systems, so it may be wherever
Spark can write: a folder on a shared disk, HDFS, or an object store. A session of Spark Connect
knows no file systems, only tables: there the party says that nobody else can read the folder, and
rows are removed by writing none in their place.
"""

import logging
import secrets
from dataclasses import dataclass, field
from typing import Any

from splitmeans.errors import DataError, EngineError, ParameterError
from splitmeans.table.spark.session import is_remote, running

_log = logging.getLogger(__name__)

_LEFT = "%s holds rows and could not be removed; remove it by hand"

# Rows of these files are whole blocks of megabytes: few of them make a row group, which is what
# memory holds at a time, and pages must be measured after every one.
_PARQUET = {
    "parquet.block.size": str(2**24),
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "1",
    "parquet.enable.dictionary": "false",
    "compression": "snappy",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Spool:
    """A folder of its own that Spark writes to."""

    session: Any
    path: str

    def folder(self, name: str) -> str:
        """Return the path of something in it."""
        return f"{self.path}/{name}"

    def write(self, frame: Any, name: str, *, by: str | None = None, append: bool = False) -> None:
        """Write a frame as a set of parquet parts, in a folder for each value of column `by`."""
        writer = frame.write.options(**_PARQUET).mode("append" if append else "error")
        (writer.partitionBy(by) if by else writer).parquet(self.folder(name))

    def read(self, name: str, *, schema: str) -> Any:
        """Return what was written as a frame."""
        return self.session.read.schema(schema).parquet(self.folder(name))

    def remove(self, name: str = "") -> None:
        """Remove something in it, or all of it."""
        from py4j.protocol import Py4JError

        target = self.folder(name) if name else self.path
        try:
            path, system = _file_system(self.session, target)
            system.delete(path, True)
        except (Py4JError, EngineError, ConnectionError):
            # Often because Spark itself is gone, which has an error of its own already.
            _log.warning(_LEFT, target)


@dataclass(frozen=True, kw_only=True, eq=False)
class RemoteSpool(Spool):
    """The same where the session is one of Spark Connect.

    `written` has the names of what is in it.
    """

    written: set[str] = field(default_factory=set)

    def write(self, frame: Any, name: str, *, by: str | None = None, append: bool = False) -> None:
        """Write a frame; see `Spool`."""
        self.written.add(name)
        super().write(frame, name, by=by, append=append)

    def remove(self, name: str = "") -> None:
        """Put nothing in the place of something in it, or of all; folders stay, without rows."""
        for own in [name] if name else sorted(self.written):
            if own not in self.written:  # a job failed before it wrote
                continue
            try:
                with running("clearing the spool folder"):
                    nothing = self.session.range(0).write.mode("overwrite")
                    nothing.parquet(self.folder(own))
                self.written.discard(own)
            except EngineError:
                _log.warning(_LEFT, self.folder(own))


def make_spool(session: Any, parent: str, *, is_private: bool = False) -> Spool:
    """Make a new folder in `parent` that only its owner can look into.

    `is_private`: nobody else can read `parent`. A session of Spark Connect cannot see to that.

    Raises:
        DataError: If the folder cannot be made.
        ParameterError: If nobody says that it is private where that must be said.
    """
    path = f"{str(parent).rstrip('/')}/splitmeans-{secrets.token_hex(8)}"
    if is_remote(session):
        if not is_private:
            raise ParameterError(
                "spool_is_private must be True with Spark Connect, which cannot set who may read "
                f"the spool folder: make sure that nobody else can read {parent}, then say so"
            )
        _check_folder(session, parent)
        return RemoteSpool(session=session, path=path)
    from py4j.protocol import Py4JError

    try:
        place, system = _file_system(session, path)
        if not system.getFileStatus(place.getParent()).isDirectory():
            raise DataError(f"spool folder {parent}: must be a folder")
        owner_only = session._jvm.org.apache.hadoop.fs.permission.FsPermission("700")
        made = system.mkdirs(place, owner_only)
        # Spark's own process outlives a killed driver program, and removes the folder at its end.
        system.deleteOnExit(place)
    except Py4JError:
        made = False
    if not made:
        raise DataError(
            f"spool folder {parent}: must be a folder that exists and that Spark can write to"
        )
    return Spool(session=session, path=place.toString())


def _check_folder(session: Any, parent: str) -> None:
    """Refuse a folder that is not there: writing would make it, for whoever may read new ones."""
    from pyspark.errors import AnalysisException

    try:
        # Nothing is read: Spark looks for the folder when it works out the columns.
        session.read.format("binaryFile").load(str(parent)).columns  # noqa: B018
    except AnalysisException:
        raise DataError(
            f"spool folder {parent}: must be a folder that exists and that Spark can read"
        ) from None


def _file_system(session: Any, path: str) -> tuple[Any, Any]:
    with running("opening the spool folder"):
        place = session._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    return system.makeQualified(place), system
