"""SQLite files of judgekit's own: how they are made and opened, and what is said where they cannot be used."""

import sqlite3
from pathlib import Path

from judgekit.errors import StoreError

BARRED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
"""Result codes of a file that may not be used so."""
CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""The result codes of a file that is damaged, or no database."""

DATABASE_ERRORS = (sqlite3.Error, OSError, MemoryError, UnicodeDecodeError)
"""The errors of using a file. In a damaged one, a length may ask for any memory, and a message may quote what is no text."""


def make_folder(path: Path) -> None:
    """Makes the folder of a file that is to be made, where there is none. Of one of ours, only receipts are to be committed."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # another process may be making it
    ignored = path.parent / ".gitignore"  # it lets itself through, so that a clone with receipts has it
    if path.parent.name == ".judgekit" and not ignored.exists():  # a folder of the user's own is theirs to commit
        ignored.write_text("*\n!/.gitignore\n!/receipts/\n!/receipts/*.json\n")


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection to a file, which is made where there is none and it is not only to be read.

    Transactions are begun by hand, and writers wait for each other for ten seconds. It may be used by any thread, one
    at a time.
    """
    mode = "rwc"
    if read_only:
        # To read what is in a WAL, SQLite makes an index of it; where nobody writes, it need not look for one.
        in_use = any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal"))
        mode = "ro" if in_use else "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None, check_same_thread=False)


def schema_version(db: sqlite3.Connection, path: Path | None, application: int, newest: int) -> int:
    """The version of the schema of a database, within a transaction; 0 where it is new.

    Raises:
        StoreError: It is another program's, or of a newer judgekit.
    """
    (found,), (version,), (tables,) = (
        db.execute(sql).fetchone()
        for sql in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    if found != application and (found or version or tables):
        raise StoreError(f"{path}: is a database of another program; name another file")
    if version > newest:
        raise StoreError(f"{path}: written by a newer judgekit (schema {version}); update, or use another file")
    return int(version)


def share(db: sqlite3.Connection) -> str | None:
    """Lets processes read while one writes. Returns what stands in the way, as on network file systems."""
    try:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as error:
        # Who writes just now did this before, or will do it when opening the file the next time.
        return None if code(error) == sqlite3.SQLITE_BUSY else str(error)
    found = mode.decode() if isinstance(mode, bytes) else str(mode)
    return None if found == "wal" else f"journal_mode is {found}"


def code(error: Exception) -> int:
    """SQLite's primary result code."""
    damaged = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError | MemoryError) else 0
    return getattr(error, "sqlite_errorcode", damaged) & 0xFF
