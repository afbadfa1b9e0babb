"""Sessions of Google's Agent Development Kit, in snake_case or camelCase, and bare lists of their events.

{"id": "s1", "app_name": "shop", "user_id": "u1", "state": {...}, "last_update_time": 1741218714.2, "events": [
  {"author": "user", "content": {"role": "user", "parts": [{"text": "Hi"}]}, "invocation_id": "i1", "timestamp": 1741218414.9},
  {"author": "shop_agent", "content": {"role": "model", "parts": [...]}, "invocation_id": "i1", "actions": {...}}]}
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.gemini import read_content, read_usage
from judgekit.formats.blocks.reply import with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample, first_record, recorded_error
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, as_object, lookup
from judgekit.traces.message import AIMessage, HumanMessage, Message
from judgekit.traces.rendering import quoted_name
from judgekit.traces.sample import Sample

_INVOCATION = ("invocation_id", "invocationId")
_REWOUND = ("rewind_before_invocation_id", "rewindBeforeInvocationId")


class ADKReader:
    """A reader of events, which are messages of their authors. Those without content stay in ``extra``."""

    name = "adk"
    joins_lines = True
    shape = 'adk: {"app_name", "user_id", "events": [{"author", "invocation_id", "content": {"parts": [...]}}, ...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events by author and invocation, and empty sessions by application and user."""
        record = as_object(first_record(value))
        names, events = record.keys(), record.get("events")
        is_empty = events == [] and ({"app_name", "user_id"} <= names or {"appName", "userId"} <= names)
        return is_empty or _is_event(record) or _is_event(first_record(as_list(events)))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return all events as one session; any other row is a session of its own."""
        events = [row for row in as_records(document) if _is_event(row)]
        sessions = [row for row in as_records(document) if not _is_event(row)]
        return [events, *sessions] if events else sessions

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one session, which records neither instructions nor tools."""
        row = FieldTracker.of({"events": record} if isinstance(record, list) else record)
        if "event_logs" in row:  # in old sessions
            row.warn("logs of requests (instructions, tools and token counts) are not read; kept as is", "event_logs")
        events = row.objects("events")
        messages = read_events(events)
        if not messages:
            raise TraceError("events: the session contains no messages")
        warn_of_agent_tools(row, messages)
        ended_at = read_time(row, "last_update_time", "lastUpdateTime")
        failures = (events[-1].peek(name) for name in ("error_message", "errorMessage", "error_code", "errorCode"))
        error = recorded_error(next(filter(None, failures), None), None)
        return build_sample(row, index, {"messages": messages, "ended_at": ended_at, "error": error})


def read_events(events: Sequence[FieldTracker]) -> list[Message]:
    """Read events as messages. A streamed part is left out if the whole message follows."""
    _drop_parts(events)
    return [message for event in events for message in _read_event(event)]


def warn_of_agent_tools(row: FieldTracker, messages: Iterable[Message]) -> None:
    """Warn of calls that have the form of an agent used as a tool, which runs in a session of its own that is discarded.

    Sessions do not say which tools are agents. Without an ``input_schema``, an agent is called with a text named
    ``request`` and nothing else, which few functions are.
    """
    calls = (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls)
    called = {call.name for call in calls if call.args.keys() == {"request"} and isinstance(call.args["request"], str)}
    for name in map(quoted_name, sorted(called)):
        row.warn(f"{name} is called as agents are: if it is one, its own calls and messages are not recorded")


def read_time(fields: FieldTracker, *names: str) -> datetime | None:
    """Take a time in seconds. 0 means that there is none."""
    return fields.time(*names) if any(fields.peek(name) for name in names) else None


def _read_event(event: FieldTracker) -> list[Message]:
    if error := [to_text(event.peek(name)) for name in ("error_code", "errorCode") if name in event]:
        event.warn(f"the agent failed here: {error[0]}")
    if any(lookup(event.peek("actions"), name) is not None for name in _REWOUND):
        event.warn("the session was rewound here; the undone messages are still in the conversation")
    by_user = event.peek("author") == "user"
    messages = _event_messages(event, HumanMessage if by_user else AIMessage)
    if not messages:
        return []
    every: dict[str, object] = {"timestamp": read_time(event, "timestamp")}
    once: dict[str, object] = {"id": event.id("id")}
    if any(isinstance(message, AIMessage) for message in messages):
        every |= {"agent": event.text("author"), "model": event.text("model_version", "modelVersion")}
        once["finish_reason"] = event.text("finish_reason", "finishReason")
        once["usage"] = read_usage(event.object("usage_metadata", "usageMetadata"))
    elif by_user and any(isinstance(message, HumanMessage) for message in messages):
        event.take("author")
    return with_fields(messages, every=every, once=once, extra=event.leftover())


def _event_messages(event: FieldTracker, speaker: type[HumanMessage] | type[AIMessage]) -> list[Message]:
    if content := event.maybe_object("content"):
        return read_content(content, speaker)
    if "content" in event:
        raise event.type_error("content", "an object")
    if _is_partial(event):
        return []
    input_transcript = event.object("input_transcription", "inputTranscription")  # its audio is elsewhere
    if input_transcript and (text := input_transcript.text("text")):
        return [HumanMessage(text)]
    output_transcript = event.object("output_transcription", "outputTranscription")
    return [AIMessage(text)] if output_transcript and (text := output_transcript.text("text")) else []


def _drop_parts(events: Sequence[FieldTracker]) -> None:
    spoken = [event for event in events if "content" in event]
    last_whole = {_source(event): number for number, event in enumerate(spoken) if not _is_partial(event)}
    for number, event in enumerate(spoken):
        if _is_partial(event) and number < last_whole.get(_source(event), -1):
            event.discard("content", "a piece of a streamed message, which appears in full later")
        elif _is_partial(event):
            event.warn("a piece of a streamed message; the rest is missing", "content")


def _source(event: FieldTracker) -> str:
    return to_text([event.peek("author"), *map(event.peek, _INVOCATION)])


def _is_partial(event: FieldTracker) -> bool:
    return event.peek("partial") is True or lookup(event.peek("options"), "partial") is True


def _is_event(value: JsonValue) -> bool:
    return isinstance(value, dict) and "author" in value and not value.keys().isdisjoint(_INVOCATION)
