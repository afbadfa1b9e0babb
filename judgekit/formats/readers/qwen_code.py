"""Sessions of Qwen Code: rows like those of Claude Code, with contents of Gemini's API.

{"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "parts": [{"text": "list"}]}}
{"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": {"role": "model", "parts": [{"functionCall": {...}}]}, "model": "qwen3"}
{"type": "tool_result", "uuid": "u3", "parentUuid": "u2", "message": {"role": "user", "parts": [{"functionResponse": {...}}]}}
"""

from collections import Counter

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.gemini import read_content, read_usage
from judgekit.formats.blocks.reply import with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample, unpaired_warnings
from judgekit.formats.values import as_object, head, lookup, objects_in, str_or_none
from judgekit.traces.message import JsonObject, Message, SystemMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_OF_SESSION = ("sessionId", "cwd", "version", "gitBranch")
"""Fields that every row of a session repeats."""


class QwenCodeReader:
    """A reader of sessions, one conversation each. The rows of sub-agents are children without a known call."""

    name = "qwen-code"
    joins_lines = True
    shape = 'qwen-code: {"type": "user", "uuid": ..., "sessionId": ..., "message": {"role": "user", "parts": [{"text": ...}]}}, ...'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows of a session whose messages have parts."""
        return any(map(is_qwen_code, objects_in(head(as_records(value)))))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the rows of each session."""
        sessions: dict[str, list[JsonValue]] = {}
        for row in as_records(document):
            sessions.setdefault(str(lookup(row, "sessionId")), []).append(row)
        return [*sessions.values()]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read the path to the last row of one session. Other rows, and those that are not messages, are kept."""
        document = FieldTracker.of({"rows": as_records(record)})
        rows = document.objects("rows")
        first: JsonObject = {name: rows[0].peek(name) for name in _OF_SESSION if rows and name in rows[0]}
        threads: dict[str | None, list[Message]] = {None: []}
        path = _path(rows)
        unread: Counter[str] = Counter()
        for row in rows:
            if id(row) not in path:
                unread["abandoned branch"] += 1
            elif isinstance(lookup(row.peek("message"), "parts"), list):
                agent = str_or_none(row.peek("agentId")) if row.peek("isSidechain") is True else None
                threads.setdefault(agent, []).extend(_messages(row, first))
            elif row.peek("type") != "system":
                unread[str(row.peek("type"))] += 1
        if unread:
            kinds = ", ".join(f"{count} {kind}" for kind, count in unread.items())
            document.warn(f"unread rows, kept in extra: {kinds}", "rows")
        alone = [*threads][-1] if len(threads) == 2 and not threads[None] else None  # a sub-agent's own file
        messages, identity = threads.pop(alone), str_or_none(first.get("sessionId"))
        children = [
            Trace.model_validate({"id": name, "messages": turns, "warnings": unpaired_warnings(turns)})
            for name, turns in threads.items()
            if turns
        ]
        if not messages:
            raise TraceError("contains no messages")
        trace = {"messages": messages, "children": children, "metadata": first}
        return build_sample(document, index, trace, identity=f"{identity}#{alone}" if alone else identity)


def is_qwen_code(row: JsonObject) -> bool:
    """Return whether a row of a session has a content of Gemini's API as its message, or the program's own payload."""
    is_message = row.get("type") in ("user", "assistant", "tool_result") and "parts" in as_object(row.get("message"))
    return "sessionId" in row and (is_message or (row.get("type") == "system" and "systemPayload" in row))


def _path(rows: list[FieldTracker]) -> set[int]:
    """Return the rows that lead to the last one. A parent that is missing is the row before, and so is each sub-agent's."""
    places = {row.peek("uuid"): number for number, row in enumerate(rows) if isinstance(row.peek("uuid"), str)}
    path = {id(row) for row in rows if row.peek("isSidechain") is True}
    step = next((number for number in range(len(rows) - 1, -1, -1) if id(rows[number]) not in path), -1)
    while step >= 0:
        path.add(id(rows[step]))
        parent = rows[step].peek("parentUuid")
        before = -1 if parent is None else places.get(str(parent), step - 1)
        step = before if before < step else -1
    return path


def _messages(row: FieldTracker, session: JsonObject) -> list[Message]:
    kind, content = row.peek("type"), row.object("message")
    if content is None:
        raise row.type_error("message", "a content")
    messages = read_content(content, SystemMessage if kind == "system" else None)
    if isinstance(status := lookup(row.peek("toolCallResult"), "status"), str):
        failed = {"is_error": status != "success"}
        messages = with_fields(messages, every=failed)
    every: dict[str, object] = {"timestamp": row.time("timestamp")}
    if kind == "assistant":
        every |= {"agent": row.text("agentName"), "model": row.text("model")}
    usage = {"usage": read_usage(row.object("usageMetadata")), "id": row.id("uuid")}
    row.take("parentUuid")
    row.take_if("type", "user", "assistant", "tool_result")
    for name, shared in session.items():
        row.take_if(name, shared)
    return with_fields(messages, every=every, once=usage, extra=row.leftover())
