"""Google's Gemini API: requests, responses, pairs of both, streamed chunks, and bare lists of contents.

{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "systemInstruction": {...}, "tools": [...]}
{"request": {"contents": [...]}, "response": {"candidates": [{"content": {"role": "model", "parts": [...]}}]}}
"""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.gemini import (
    FEEDBACK_FIELDS,
    OUTCOME_FIELDS,
    PART_FIELDS,
    SPEAKERS,
    USAGE_FIELDS,
    read_contents,
    read_request,
    read_response,
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
)
from judgekit.formats.values import as_list, as_object, head, lookup, objects_in, str_or_none
from judgekit.traces.message import Message, SystemMessage
from judgekit.traces.sample import Sample

_HISTORY = ("automaticFunctionCallingHistory", "automatic_function_calling_history")
_PARAMETERS = frozenset(("config", "generationConfig", "generation_config", "systemInstruction", "system_instruction"))
_VERSION = frozenset(("modelVersion", "model_version"))
_OF_EVENTS = frozenset(("author", "content"))
"""Fields of ADK's events, which otherwise look much like a response."""


class GeminiReader(RowReader):
    """A reader of requests and responses."""

    name = "gemini"
    shape = 'gemini: {"contents": [{"role": "user", "parts": [{"text": ...}]}]}, {"candidates": [...]}, or {"request", "response"}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize contents by parts without a type, and responses by candidates."""
        return _is_record(value) or (isinstance(value, list) and bool(value) and _is_record(value[0]))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list as the contents of one conversation, the chunks of one response, or many records."""
        return [document] if _is_contents(document) or _is_stream(document) else as_records(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by its response's id if there is one."""
        if isinstance(record, list):
            record = {"response" if _is_response(first_record(record)) else "contents": record}
        row = FieldTracker.of(record)
        responses = _responses(row, record)
        names = (response.peek("responseId") or response.peek("response_id") for response in responses)
        identity = row.id("id", "key") or str_or_none(next(filter(None, names), None))
        request = (row.object("request") or FieldTracker({})) if "request" in row else row
        messages, tools = read_request(request)
        longest = max(map(len, map(_history, responses)), default=0)
        # The responses with a shorter history are part of the longest one.
        responses = [response for response in responses if len(_history(response)) == longest]
        messages = _with_history(messages, responses, request)
        messages = append_reply(messages, read_response(responses), row)
        if not messages:
            raise TraceError(f"{row.path or 'the record'}: contains no messages")
        return build_sample(row, index, {"messages": messages, "tools": tools}, identity=identity)


def _is_record(value: JsonValue) -> bool:
    if isinstance(value, dict) and not {"request", "response"}.isdisjoint(value):
        request, response = value.get("request"), value.get("response")
        if _is_request(request):
            return may_be_response_of("gemini", response)
        return _is_response(first_record(response)) and not (isinstance(request, dict) and "messages" in request)
    return _is_contents(value) or _is_request(value) or _is_response(value)


def _is_contents(value: JsonValue) -> bool:
    """Return whether a list holds contents: roles with parts that have no type."""
    first = head(value)
    return all(map(_may_be_content, first)) and any(map(_is_content, first))


def _is_request(value: JsonValue) -> bool:
    """Return whether an object is a request with contents. Of bare texts or parts, other fields must show it."""
    if not isinstance(value, dict):
        return False
    contents, model = value.get("contents"), value.get("model")
    listed: list[JsonValue] = contents if isinstance(contents, list) else [contents]
    if _is_contents(listed):
        return True
    of_gemini = isinstance(model, str) and model.startswith(("gemini", "models/"))
    if not of_gemini and _PARAMETERS.isdisjoint(value):
        return False
    return bool(listed) and all(isinstance(content, str) or _may_be_content(content) for content in head(listed))


def _is_response(value: JsonValue) -> bool:
    """Return whether an object is a response, or a chunk of a streamed one."""
    if not isinstance(value, dict):
        return False
    candidates = value.get("candidates")
    first = next(iter(as_list(candidates)), None)
    if isinstance(first, dict):
        content = first.get("content")
        has_content = _may_be_content(content) and not {"parts", "role"}.isdisjoint(as_object(content))
        return has_content or "finishReason" in first or "finish_reason" in first
    if candidates:
        return False
    if any(isinstance(value.get(name), dict) for name in FEEDBACK_FIELDS):
        return True
    is_whole = "candidates" in value or (_OF_EVENTS.isdisjoint(value) and not _VERSION.isdisjoint(value))
    return is_whole and any(isinstance(value.get(name), dict) for name in USAGE_FIELDS)


def _may_be_content(value: JsonValue) -> bool:
    if not isinstance(value, dict) or "content" in value:
        return False
    role, parts = value.get("role"), value.get("parts")
    if not (role is None or (isinstance(role, str) and role in SPEAKERS)):
        return False
    return all(
        isinstance(part, str) or (isinstance(part, dict) and {"type", "part_kind"}.isdisjoint(part))
        for part in (parts if isinstance(parts, list) else () if parts is None else [parts])
    )


def _is_content(value: JsonValue) -> bool:
    parts = lookup(value, "parts")
    return any(
        isinstance(part, str) or (isinstance(part, dict) and not PART_FIELDS.isdisjoint(part))
        for part in (parts if isinstance(parts, list) else [parts])
    )


def _is_stream(value: JsonValue) -> bool:
    """Return whether a list holds chunks of one response: all have one id, or only the last is finished."""
    if not isinstance(value, list) or len(value) < 2 or not _is_response(value[0]):
        return False
    chunks = [chunk for chunk in value if isinstance(chunk, dict)]
    ids = {str(chunk.get("responseId") or chunk.get("response_id")) for chunk in chunks}
    if len(chunks) < len(value) or len(ids) > 1:
        return False
    candidates = [candidate for chunk in chunks[:-1] for candidate in objects_in(chunk.get("candidates"))]
    is_finished = any(candidate.get("finishReason") or candidate.get("finish_reason") for candidate in candidates)
    return "None" not in ids or not is_finished


def _responses(row: FieldTracker, record: JsonValue) -> list[FieldTracker]:
    if not isinstance(record, dict) or {"request", "response"}.isdisjoint(record):
        return [row]
    response = row.peek("response")
    if isinstance(response, list) and any(map(_is_response, response)):
        chunks = row.objects("response")
        for chunk in chunks:
            if "error" in chunk:
                chunk.warn(f"the stream reports an error: {short_repr(chunk.peek('error'))}", "error")
        return chunks
    answer = take_response(row, record, *OUTCOME_FIELDS)
    return [] if answer is None else [answer]


def _history(response: FieldTracker) -> list[JsonValue]:
    return as_list(next((history for name in _HISTORY if (history := response.peek(name))), None))


def _with_history(messages: list[Message], responses: Sequence[FieldTracker], request: FieldTracker) -> list[Message]:
    """Return a request's messages with those that the SDK added to them by calling functions.

    The SDK's history repeats the request, recorded differently (another base64), so only roles and texts are compared.
    """
    history = _history(responses[-1]) if responses else []
    past = read_contents(responses[-1].objects(*_HISTORY)) if history else []
    for response in responses[:-1]:  # chunks, each of which has the history
        if _history(response) == history:
            response.take(*_HISTORY)
    system = [message for message in messages if isinstance(message, SystemMessage)]
    sent = [(message.role, message.text) for message in messages[len(system) :]]
    if not past:
        return messages
    if sent == [(message.role, message.text) for message in past[: len(sent)]]:
        return [*messages, *past[len(sent) :]]
    problem = "the history of automatic function calling replaces these messages instead of continuing them"
    request.warn(problem, "contents")
    return [*system, *past]
