"""SQLite files of judgekit: creates, opens and shares them, and classifies their errors."""

import sqlite3
from pathlib import Path

from judgekit.errors import StoreError

ACCESS_CODES = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
"""The result codes of a file that may not be opened, read or written."""
CORRUPTION_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""The result codes of a file that is damaged, or not a database."""

BUSY_SECONDS = 10.0
"""Seconds that a writer waits for another one."""

DATABASE_ERRORS = (sqlite3.Error, OSError, MemoryError, UnicodeDecodeError)
"""Errors of using a file. A damaged one may contain a length beyond any memory, or invalid text in a message."""


def create_parent_folder(path: Path) -> None:
    """Create the folder of a new file if needed, with a ``.gitignore`` in judgekit's own that admits audit records and issues."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # another process may be creating it
    ignored = path.parent / ".gitignore"  # it admits itself, so that a clone has it too
    if path.parent.name == ".judgekit" and not ignored.exists():  # the user decides on their own folders
        ignored.write_text("*\n!/.gitignore\n!/audits/\n!/audits/*.json*\n!/failures/\n!/failures/*.json\n")


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection to a file, or to memory if there is no path.

    The file and its folder are created if they do not exist, unless ``read_only``. Transactions are begun explicitly,
    and writers wait for each other for `BUSY_SECONDS`. Any thread may use the connection, one at a time.
    """
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    mode = "rwc"
    if not read_only:
        create_parent_folder(path)
    else:
        # To read a WAL, SQLite creates an index of it. If there is none, it does not need to look for one.
        in_use = any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal"))
        mode = "ro" if in_use else "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def schema_version(
    db: sqlite3.Connection, path: Path | None, application: int, newest: int, own_trigger: str = ""
) -> int:
    """Return the version of the schema of a database, within a transaction; 0 if it is new.

    Its triggers and views would run with what is read and written, so there may be none but judgekit's ``own_trigger``.

    Raises:
        StoreError: The database is another program's, holds triggers or views, or was written by another version of
            judgekit.
    """
    (owner,), (version,), (tables,) = (
        db.execute(sql).fetchone()
        for sql in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    if owner != application and (owner or version or tables):
        raise StoreError(f"{path}: belongs to another program; name another file")
    foreign = "SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view') AND sql != ?"
    if db.execute(foreign, [own_trigger]).fetchone():
        raise StoreError(f"{path}: holds triggers or views, which judgekit does not run; name another file")
    if version > newest:
        raise StoreError(
            f"{path}: written by a newer judgekit (schema {version}); update judgekit, or name another file"
        )
    if 0 < version < newest:
        raise StoreError(f"{path}: written by an older judgekit (schema {version}); name another file")
    return int(version)


def enable_wal(db: sqlite3.Connection) -> str | None:
    """Let processes read while one writes, and return the obstacle to that, if any, as on network file systems."""
    try:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as error:
        # The process that is writing has done this, or will do it when it opens the file the next time.
        return None if result_code(error) == sqlite3.SQLITE_BUSY else str(error)
    journal = mode.decode() if isinstance(mode, bytes) else str(mode)
    return None if journal == "wal" else f"journal_mode is {journal}"


def result_code(error: Exception) -> int:
    """Return SQLite's primary result code of an error."""
    damaged = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError | MemoryError) else 0
    return getattr(error, "sqlite_errorcode", damaged) & 0xFF
