"""The tables of a file of runs, and the checksums of their rows."""

import marshal
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from judgekit.score import ScoreStatus

APPLICATION_ID = int.from_bytes(b"jrun")
SCHEMA_VERSION = 10
COMPRESSION_LEVEL = 1
"""The fastest level of zlib."""
_EQUAL_ALIKE = 2
"""The version of marshal, which is fixed and writes equal values alike."""

_COLUMNS = {
    "runs": "number INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL",
    "samples": """
        run INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, trace_id TEXT, "group" TEXT, domain TEXT,
        labels TEXT, label_sources TEXT, usage TEXT, references_hash INTEGER, fields_hash INTEGER,
        first_message_hash INTEGER, recording_hash INTEGER
    """,
    "conversations": "run INTEGER NOT NULL, number INTEGER NOT NULL, sample BLOB NOT NULL",
    "scores": """
        run INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL, status TEXT NOT NULL, value REAL,
        confidence REAL, label TEXT, error TEXT, aggregate TEXT, warnings TEXT, calls TEXT, explanation TEXT NOT NULL
    """,
    "exchanges": """
        run INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL, call INTEGER NOT NULL,
        exchange BLOB NOT NULL
    """,
    "unscored_calls": """
        run INTEGER NOT NULL, id INTEGER NOT NULL, sample INTEGER NOT NULL, scorer INTEGER NOT NULL, calls TEXT NOT NULL
    """,
    "labels": """
        run INTEGER NOT NULL, given_at INTEGER NOT NULL, sample INTEGER NOT NULL, scorer TEXT NOT NULL, annotator TEXT,
        value TEXT, message TEXT, reason TEXT NOT NULL, role TEXT, selection TEXT, probability REAL, source TEXT NOT NULL,
        file TEXT
    """,
    "results": """
        run INTEGER NOT NULL, scorer INTEGER NOT NULL, scores INTEGER NOT NULL, failed INTEGER NOT NULL,
        n INTEGER NOT NULL, mean REAL, low REAL, high REAL
    """,
    "issues": "run INTEGER NOT NULL, scorer TEXT NOT NULL, sample INTEGER NOT NULL, issue TEXT NOT NULL, stability REAL",
    "descriptions": "run INTEGER NOT NULL, name TEXT NOT NULL, note TEXT NOT NULL, tags TEXT NOT NULL",
    "stamps": "run INTEGER NOT NULL, at INTEGER NOT NULL",
}
KEYS = {
    "samples": "run, number",
    "conversations": "run, number",
    "scores": "run, sample, scorer",
    "exchanges": "run, sample, scorer, call",
    "unscored_calls": "run, id",
    "labels": "run, given_at, sample",
    "results": "run, scorer",
    "issues": "run, scorer, sample",
    "descriptions": "run",
    "stamps": "run",
}
"""The primary keys of the tables that hold the parts of runs."""
_WITHOUT_ROWID = ("samples", "scores", "unscored_calls", "results", "issues")
"""Tables with short rows; with long rows, searching for a key would be slow."""

OTHER_TABLES = ("results", "issues", "descriptions", "stamps")
"""The tables of what is computed from a run, typed by people, or true while it is running."""
PART_TABLES = tuple(table for table in KEYS if table not in OTHER_TABLES)
"""The tables that hold the parts of a run."""


class SampleRow(NamedTuple):
    """A row of the table of samples."""

    run: int
    number: int
    id: str
    trace_id: str | None
    group: str | None
    domain: str | None
    labels: str | None
    label_sources: str | None
    usage: str | None
    references_hash: int | None
    fields_hash: int | None
    first_message_hash: int | None
    recording_hash: int | None
    checksum: int


class ScoreRow(NamedTuple):
    """A row of the table of scores. ``scorer`` is the index of the scorer in the run."""

    run: int
    sample: int
    scorer: int
    status: ScoreStatus
    value: float | None
    confidence: float | None
    label: str | None
    error: str | None
    aggregate: str | None
    warnings: str | None
    calls: str | None
    explanation: str
    checksum: int


class LabelRow(NamedTuple):
    """A row of the table of human labels, to which labels are only added, so that changes can be counted.

    ``given_at`` is the time in nanoseconds since 1970; no two labels that are added to a file have the same. ``sample`` is the
    number of the sample in the run, and ``value`` and ``message`` are JSON, or ``None`` if the sample was drawn and left blank. ``file`` is
    the name of the file that the label came from. The other columns are fields of `judgekit.analysis.labels.HumanLabel`.
    """

    run: int
    given_at: int
    sample: int
    scorer: str
    annotator: str | None
    value: str | None
    message: str | None
    reason: str
    role: str | None
    selection: str | None
    probability: float | None
    source: str
    file: str | None


class IssueRow(NamedTuple):
    """A row of the table of issues: the issue of a failed sample, by the scorer that analyzed it, see `judgekit.failures`."""

    run: int
    scorer: str
    sample: int
    issue: str
    stability: float | None


SCHEMA = (
    *(
        f"CREATE TABLE {table} ({columns}, checksum INTEGER NOT NULL"
        f"{f', PRIMARY KEY ({KEYS[table]})' if table in KEYS else ''}) STRICT"
        f"{', WITHOUT ROWID' if table in _WITHOUT_ROWID else ''}"
        for table, columns in _COLUMNS.items()
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


def checksum(row: Sequence[Any]) -> int:
    """Return the checksum of a row of texts, numbers, bytes and ``None``."""
    return zlib.crc32(marshal.dumps(tuple(row), _EQUAL_ALIKE))


def is_intact(row: tuple[Any, ...]) -> bool:
    """Return whether a row, with its checksum in the last place, is what was written."""
    return bool(checksum(row[:-1]) == row[-1])
