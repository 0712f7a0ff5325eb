"""Errors of the database that ledger and journal share: which of them may pass."""

import sqlite3


def passing(problem: sqlite3.Error) -> str | None:
    """Say what is in the way, if nothing is wrong with the database itself and it may pass."""
    code = getattr(problem, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "is in use by another splitmeans process: wait until it ends, or stop it"
        case sqlite3.SQLITE_FULL:
            return "cannot be written: database or disk is full; make room"
    return None
