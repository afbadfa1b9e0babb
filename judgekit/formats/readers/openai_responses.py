"""Conversations with OpenAI's Responses API: requests, responses, and the lists of items that SDKs keep.

{"model": "gpt-5", "instructions": "Be brief", "input": [{"role": "user", "content": "Hi"}, ...], "tools": [...]}
{"object": "response", "output": [{"type": "message", "role": "assistant", "content": [...]}], ...}
"""

from collections.abc import Mapping

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.openai_responses import (
    is_items,
    may_be_item,
    read_items,
    read_request,
    read_response,
    tools_in_items,
)
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import (
    RowReader,
    append_reply,
    as_records,
    build_sample,
    first_record,
    may_be_response_of,
    take_response,
    unwrap_batch_line,
)
from judgekit.formats.row_facts import FACT_COLUMNS
from judgekit.formats.values import as_object, head, lookup, objects_in, str_or_none
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample

_PARAMETERS = {
    *("background", "context_management", "conversation", "frequency_penalty", "include", "input", "instructions"),
    *("max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls"),
    *("presence_penalty", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options"),
    *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream"),
    *("stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation"),
    *("user", "verbosity"),
}
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.done")
"""The events that end a response; the last one is the Realtime API's."""


class OpenAIResponsesReader(RowReader):
    """A reader of requests, responses, pairs of both, rows of items, and bare lists of items.

    Rows may have the fields of a `Sample` next to them. Source: the types of OpenAI's SDK.
    """

    name = "openai-responses"
    shape = 'openai-responses: {"model": ..., "input": [{"type": "function_call", ...}, ...]}, {"object": "response", "output": [...]}, {"request": {...}, "response": {...}}, or a list of items'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize items by their kinds, and requests with text alone by having only parameters of this API."""
        rows = self.records(value)
        return bool(rows) and _is_row(rows[0])

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of items as one conversation, and a list of rows or of such lists as many."""
        return [document] if is_items(document) else [unwrap_batch_line(row) for row in as_records(document)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one row, named by its id or the response's. Rows of one conversation are a group."""
        row = FieldTracker.of({"input": record} if isinstance(record, list) else record)
        if _are_events(row.peek("response")):
            whole = [_assembled(events, "response") for events in _by_response(row.take("response"))]
            output: JsonValue = [item for response, _ in whole for item in as_records(response["output"])]
            response: JsonValue = {**whole[-1][0], "output": output}
            record = {**row.leftover(), "response": response}
            row = FieldTracker(record, warnings=[warning for _, warning in whole])
        return _sample(row, record, index)


class OpenAIResponsesStreamReader:
    """A reader of streamed responses from a list or from lines, one conversation per response."""

    name = "openai-responses-stream"
    joins_lines = True
    shape = 'openai-responses-stream: {"type": "response.output_item.done", "item": {...}, ...} in each line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events by their kinds."""
        return _are_events(as_records(value)) or _are_events(first_record(value))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the events of each response."""
        return [*_by_response([event for row in as_records(document) for event in as_records(row)])]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one response."""
        response, warning = _assembled(record, None)
        return _sample(FieldTracker(response, warnings=[warning]), response, index)


def _sample(row: FieldTracker, record: JsonValue, index: int) -> Sample:
    request = row.object("request") or row
    response = take_response(row, record, "output") or (row if request is row else FieldTracker({}))
    tools = read_tools(request.optional_objects("tools"))
    for source, name in ((row, "messages"), (request, "input"), (response, "output")):
        tools += tools_in_items(source.peek(name))
    messages = [*read_items(row.objects("messages")), *read_request(request)]
    if response.peek("output") or (messages and "output" in response):
        messages = append_reply(messages, read_response(response), row)
    if not messages and "error" in response:
        raise TraceError(f"contains no answer: {short_repr(response.peek('error'))}")
    if not messages:
        raise row.type_error("input", "messages in input or output")
    identity = row.id("id") or response.id("id")
    named = _conversation(request) or _conversation(response)
    facts = {} if named is None else {"group": named}
    return build_sample(row, index, {"messages": messages, "tools": tools}, identity=identity, **facts)


def _conversation(holder: FieldTracker) -> str | None:
    named = holder.peek("conversation")
    return str_or_none(lookup(named, "id") if isinstance(named, dict) else named)


def _is_row(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return is_items(value)
    if _kind(value).startswith("response."):
        return False  # an event that may hold a response
    request, response = value.get("request"), value.get("response")
    if isinstance(request, dict) and _is_request(request):
        return may_be_response_of("openai-responses", response)
    if isinstance(request, dict) or isinstance(response, dict | list):
        is_answer = _is_response(response) or _are_events(response)
        return is_answer and not (isinstance(request, dict) and "messages" in request)
    return _is_response(value) or _is_request(value) or is_items(value.get("messages"))


def _is_response(value: JsonValue) -> bool:
    return (
        isinstance(value, dict)
        and value.get("object") in ("response", "realtime.response")
        and isinstance(value.get("output"), list)
    )


def _is_request(value: Mapping[str, JsonValue]) -> bool:
    messages = value.get("input")
    if isinstance(messages, str):
        return "model" in value and value.keys() <= _PARAMETERS
    if is_items(messages):
        return "messages" not in value and "output" not in value
    plain = bool(head(messages)) and all(map(may_be_item, head(messages)))
    return plain and value.keys() <= _PARAMETERS | FACT_COLUMNS | {"id"}


def _kind(event: JsonValue) -> str:
    return str_or_none(lookup(event, "type")) or ""


def _are_events(value: JsonValue) -> bool:
    return any(_kind(event).startswith("response.") for event in head(value))


def _by_response(events: JsonValue) -> list[list[JsonValue]]:
    responses: list[list[JsonValue]] = [[]]
    for event in as_records(events):
        if _kind(event) == "response.created" and _are_events(responses[-1]):
            responses.append([])
        responses[-1].append(event)
    return [response for response in responses if response]


def _assembled(events: JsonValue, where: str | None) -> tuple[JsonObject, TraceWarning]:
    """Return the response that events form: the last event holds all of it, or else each item has its own event."""
    own_events = objects_in(as_records(events))
    whole = [event for event in own_events if isinstance(event.get("response"), dict)]
    ended = bool(whole) and _kind(whole[-1]) in _ENDS
    response = dict(as_object(whole[-1]["response"])) if whole else {}
    if not response.get("output"):
        response["output"] = [event.get("item") for event in own_events if _kind(event) == "response.output_item.done"]
    message = f"{len(own_events)} streamed events; only finished items are kept"
    if not ended:
        message += "; the stream ends before the response is complete"
    message += "".join(f"; an error: {short_repr(event)}" for event in own_events if _kind(event) == "error")
    return response, TraceWarning(message, path=where)
