"""What Chroma, SQLite and the disk raise, in our words: one door for the store."""

from __future__ import annotations

import errno
import re
import shutil
import sqlite3
from pathlib import Path

from rag.errors import LockedError, StoreError

#: A batch of papers needs about 1 MB for itself and as much for SQLite's journal; ten times that is too little to go on.
FULL_BELOW_BYTES = 20_000_000
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


def is_theirs(error: BaseException) -> bool:
    """Whether an error is one of theirs, and no interrupt or error of ours."""
    from chromadb.errors import ChromaError

    # What pyo3 raises where Chroma's Rust code panics is no Exception, and is in no module that could be imported.
    known = isinstance(error, ChromaError | sqlite3.Error | OSError | ValueError | KeyError | TypeError | RuntimeError)
    return known or type(error).__name__ == "PanicException"


def ours(error: BaseException, folder: Path, done: str, rebuild: str) -> StoreError:
    """A vendor's error in our words. Chroma gives SQLite's result codes in its messages.

    Args:
        error: one that `is_theirs`.
        folder: where the index is.
        done: what could not be done with it: "read", "written to" …
        rebuild: the hint that says how to make it anew.
    """
    reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())[:200].rstrip(".")
    told = f"The index in {folder} cannot be {done}: {reason or type(error).__name__}."
    number = error.errno if isinstance(error, OSError) else None
    found = re.search(r"\(code: (\d+)\)", str(error))
    code = int(found[1]) if found else getattr(error, "sqlite_errorcode", 0)
    code &= 0xFF  # the rest tells apart kinds of one error
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(told, "Wait until the other process is done, and try again.")
    if number in _NOT_WRITABLE or code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(told, "Set ASK_HOME to a folder that you may write to.")
    if number in _DISK_IS_FULL or code == sqlite3.SQLITE_FULL or _is_full(folder):
        return StoreError(told, "Free some space on the disk and run the same command again; it goes on from where it was.")
    if done == "written to":
        return StoreError(told, f"Make sure that the disk is not full and run the same command again. If that does not help: {rebuild}")
    return StoreError(told, rebuild)


def _is_full(folder: Path) -> bool:
    """Whether the disk of a folder is as good as full: Chroma often says no more than that it failed, and what it had begun is undone."""
    try:
        return shutil.disk_usage(folder).free < FULL_BELOW_BYTES
    except OSError:
        return False
