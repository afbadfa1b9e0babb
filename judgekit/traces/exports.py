"""What exports of tracing and evaluation systems have around their records: pages, and traces in several records."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError, number_of
from judgekit.traces.message import JsonObject

_HELD = ("data", "events")
_CURSORS = ("next_cursor", "nextCursor", "cursor", "next", "next_page_token", "nextPageToken")
_MARKS = frozenset((*_CURSORS, "has_more", "hasMore", "meta", "pagination"))
_BESIDE = _MARKS | {"object", "first_id", "last_id", "total", "totalItems", "count", "limit", "page", "status"}
_TRACES = ("trace_id", "traceId", "root_span_id", "rootSpanId")
_PARENTS = (
    *(
        "parent_run_id",
        "parent_observation_id",
        "parentObservationId",
        "parent_span_id",
        "parentSpanId",
        "span_parents",
    ),
    *("parent_id", "parentId"),
)


class Page(NamedTuple):
    """The records of one page that a REST API answered, and whether it said that there are more."""

    records: list[JsonValue]
    has_more: bool


def page_of(value: JsonValue) -> Page | None:
    """Returns the records of a page such as ``{"data": [...], "next_cursor": ...}``; ``None`` if the value is none."""
    if not isinstance(value, dict) or _MARKS.isdisjoint(value):
        return None
    held = [name for name in _HELD if isinstance(value.get(name), list)]
    if len(held) != 1 or not value.keys() <= {*held, *_BESIDE}:
        return None
    records, meta = value[held[0]], value.get("meta") or value.get("pagination")
    places = (value, meta) if isinstance(meta, dict) else (value,)
    return Page(records, any(map(_continues, places))) if isinstance(records, list) else None


def _continues(place: JsonObject) -> bool:
    page, pages = place.get("page"), place.get("totalPages") or place.get("total_pages")
    more = isinstance(page, int) and isinstance(pages, int) and page < pages
    return more or any(place.get(name) for name in (*_CURSORS, "has_more", "hasMore"))


def must_be_no_frame(value: JsonValue) -> None:
    """Checks that a document is no data frame written column by column, as ``DataFrame.to_json()`` does by default.

    Raises:
        TraceError: It is one; says how to write it.
    """
    if not isinstance(value, dict) or not value:
        return
    columns = list(value.values())
    index = columns[0].keys() if isinstance(columns[0], dict) else ()
    alike = all(isinstance(column, dict) and column.keys() == index for column in columns)
    if index and alike and all(name == str(at) for at, name in enumerate(index)):
        raise TraceError('is a data frame by columns; write df.to_json(path, orient="records", lines=True)')


def names_trace(record: JsonValue | TraceError) -> bool:
    """Returns whether a record says to which trace, or to which parent, it belongs."""
    return isinstance(record, dict) and any(record.get(name) for name in (*_TRACES, *_PARENTS))


def must_be_whole(records: Iterable[JsonValue | TraceError]) -> None:
    """Checks that no trace is spread over several records, each of which would count as a sample.

    Raises:
        TraceError: One is; says how many, and what to do.
    """
    traces: dict[str, Counter[str]] = {}
    for record in records:
        if isinstance(record, dict) and (found := _trace(record)) is not None:
            name, trace = found
            traces.setdefault(trace, Counter())[name] += 1
    spread = [names for names in traces.values() if names.total() > 1]
    if spread:
        parts, every = sum(names.total() for names in spread), sum(names.total() for names in traces.values())
        column = next((name for names in spread for name in names if name in _TRACES), None)
        hint = f"; if each record is a conversation, make the trace their group: --column {column}=group"
        raise TraceError(
            f"{parts:,} of {every:,} records are parts of {number_of(len(spread), 'trace')} and would count as samples "
            f"of their own; export whole traces, or the root runs alone{hint if column else ''}"
        )


def _trace(record: JsonObject) -> tuple[str, str] | None:
    """The trace of a record, or its parent, for whose record this is its own id; with the name of the field."""
    for name in (*_TRACES, *_PARENTS, "id"):
        value = record.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, str | int) and value != "":
            return name, str(value)
    return None
