"""Exports of tracing and evaluation systems: pages of records, data frames, and traces spread over records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError, count_text
from judgekit.formats.values import as_object, lookup
from judgekit.traces.message import JsonObject
from judgekit.traces.trace import Trace

_CURSORS = ("next_cursor", "nextCursor", "cursor", "next", "next_page_token", "nextPageToken")
_PAGE_KEYS = frozenset((*_CURSORS, "has_more", "hasMore", "meta", "pagination"))
_BESIDE = _PAGE_KEYS | {
    *("object", "first_id", "last_id", "total", "totalItems", "count", "limit", "page", "previous", "status"),
}
_TRACES = ("trace_id", "traceId", "root_span_id", "rootSpanId")
_PARENTS = (
    *("parent_run_id", "parent_observation_id", "parentObservationId", "parent_span_id", "parentSpanId"),
    *("span_parents", "parent_id", "parentId"),
)
_SESSIONS = ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId")
MORE_PAGES = "the next page is not in this file"


class Page(NamedTuple):
    """A page of records from a REST API, and whether there are more pages."""

    records: list[JsonValue]
    has_more: bool


def read_page(value: JsonValue) -> Page | None:
    """Return the records of a page such as ``{"data": [...], "next_cursor": ...}``; ``None`` for any other value."""
    if not isinstance(value, dict) or _PAGE_KEYS.isdisjoint(value):
        return None
    held = [name for name in ("data", "events", "items", "results") if isinstance(value.get(name), list)]
    if len(held) != 1 or not value.keys() <= {*held, *_BESIDE}:
        return None
    records, meta = value[held[0]], value.get("meta") or value.get("pagination")
    places = (value, meta) if isinstance(meta, dict) else (value,)
    return Page(records, any(map(_continues, places))) if isinstance(records, list) else None


def _continues(fields: JsonObject) -> bool:
    page, pages = fields.get("page"), fields.get("totalPages") or fields.get("total_pages")
    more = isinstance(page, int) and isinstance(pages, int) and page < pages
    return more or any(fields.get(name) for name in (*_CURSORS, "has_more", "hasMore"))


def reject_column_frame(value: JsonValue) -> None:
    """Check that a record is not a data frame by columns, which ``DataFrame.to_json()`` writes by default."""
    if not isinstance(value, dict) or not value:
        return
    index = as_object(next(iter(value.values()))).keys()
    is_frame = bool(index) and all(as_object(column).keys() == index for column in value.values())
    if is_frame and all(name.isdecimal() for name in index):
        raise TraceError('is a data frame written by column; write df.to_json(path, orient="records", lines=True)')


def reject_mixed_conversations(messages: JsonValue) -> None:
    """Check that a list read as one conversation does not hold those of several; the error names what differs."""
    if not isinstance(messages, list) or any(not isinstance(row, dict) or "attributes" in row for row in messages):
        return  # other values, or spans
    for name in (*_TRACES, *_SESSIONS):
        ids = {str(value) for message in messages if (value := lookup(message, name)) is not None}
        if len(ids) > 1:
            raise TraceError(
                f"contains messages of {len(ids):,} conversations (by {name!r}) in one list; "
                f"write one list per conversation: jq -c 'group_by(.{name})[]' FILE > conversations.jsonl"
            )


def has_trace_id(record: JsonValue | TraceError) -> bool:
    """Return whether a record has the id of a trace, parent or session."""
    return isinstance(record, dict) and any(
        fields.get(name) for fields in _places(record) for name in (*_TRACES, *_PARENTS, *_SESSIONS)
    )


def reject_spread_traces(records: Iterable[JsonValue | TraceError]) -> str | None:
    """Check that no trace is spread over several records. Return a notice about records that share a session, if any."""
    traces: dict[str, str] = {}
    spread: Counter[str] = Counter()
    columns: dict[str, None] = {}
    sessions: Counter[tuple[str, str]] = Counter()
    for record in records:
        if not isinstance(record, dict):
            continue
        if (named_id := _first(record, (*_TRACES, *_PARENTS))) or (named_id := _first(record, ("id",))):
            name, trace = named_id
            if trace in traces and (name, traces[trace]) != ("id", "id"):
                spread[trace] += 1
                columns[traces[trace] if name == "id" else name] = None
            traces.setdefault(trace, name)
        if record.get("group") is None and (session := _first(record, _SESSIONS)):
            sessions[session] += 1
    if spread:
        parts = spread.total() + len(spread)
        hint = f"; if each record is a conversation, use the trace as its group: --column {next(iter(columns))}=group"
        raise TraceError(
            f"{parts:,} records are parts of {count_text(len(spread), 'trace')} and would count as separate samples; "
            f"export whole traces, or only the root runs{hint}"
        )
    shared = {session: times for session, times in sessions.items() if times > 1}
    if not shared:
        return None
    name = next(iter(shared))[0]
    return (
        f"{sum(shared.values()):,} records share a session and count as independent samples; "
        f"if they are turns of one conversation, write them as one record, otherwise use --column {name}=group"
    )


class RepeatedHistories:
    """A detector of conversations that begin with all of an earlier one, as in a log of every model call."""

    def __init__(self) -> None:
        self._latest: dict[int, dict[tuple[int, int], None]] = {}
        self._repeated = 0

    def add(self, trace: Trace) -> None:
        """Compare a conversation with earlier ones that begin like it, by their last messages."""
        messages = trace.messages
        if len(messages) < 2 or messages[-1].role != "assistant":
            return
        ends = self._latest.setdefault(hash((messages[0].text, messages[1].text)), {})
        if ends:
            self._repeated += any(size < len(messages) and hash(messages[size - 1].text) == end for size, end in ends)
        ends[len(messages), hash(messages[-1].text)] = None
        if len(ends) > 20:
            del ends[next(iter(ends))]
        if len(self._latest) > 1_000:
            del self._latest[next(iter(self._latest))]

    def repeated(self) -> Iterator[TraceError]:
        """Yield a notice with the number of such conversations, if there are any. Call it after the last `add`."""
        if self._repeated:
            yield TraceError(
                f"{count_text(self._repeated, 'conversation')} repeat an earlier one and continue it, and each counts as a "
                "sample; if they are calls of one conversation, keep only the longest"
            )


def _first(record: JsonObject, names: Sequence[str]) -> tuple[str, str] | None:
    for fields in _places(record):
        for name in names:
            value = fields.get(name)
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return name, str(value)
    return None


def _places(record: JsonObject) -> Iterator[JsonObject]:
    """Yield a record and the objects in it that may hold its trace id."""
    yield record
    for name in ("metadata", "context"):
        if isinstance(inner := record.get(name), dict):
            yield inner
