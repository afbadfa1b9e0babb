"""Google's Gemini API: requests, responses, pairs of both, streamed chunks, and bare lists of contents.

{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "systemInstruction": {...}, "tools": [...]}
{"request": {"contents": [...]}, "response": {"candidates": [{"content": {"role": "model", "parts": [...]}}]}}
"""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.blocks.gemini import (
    candidate_numbers,
    is_contents,
    is_request,
    is_response,
    read_contents,
    read_request,
    read_response,
)
from judgekit.traces.found import Found
from judgekit.traces.message import JsonObject, Message, SystemMessage
from judgekit.traces.readers.foreign import first_of, items, sample_from
from judgekit.traces.sample import Sample


class GeminiReader:
    """Each candidate of a response is a conversation of its own, and those of one response are a group."""

    name = "gemini"
    gathers = False
    shape = 'gemini: {"contents": [{"role": "user", "parts": [{"text": ...}]}]}, {"candidates": [...]}, or {"request", "response"}'

    def recognises(self, value: JsonValue) -> bool:
        """Contents have parts without a type; responses have candidates."""
        return _is_one(value) or (isinstance(value, list) and bool(value) and _is_one(value[0]))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list is the contents of one conversation, the chunks of one response, or many records."""
        rows = [document] if is_contents(document) or _is_stream(document) else items(document)
        return [record for row in rows for record in _by_candidate(row)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation, named after its response's id if it has one."""
        if isinstance(record, list):
            record = {"response" if is_response(first_of(record)) else "contents": record}
        row = Found.of(record)
        responses = _responses(row)
        named = next((name for one in responses if (name := one.peek("responseId") or one.peek("response_id"))), None)
        identity = row.identity("id", "key") or (named if isinstance(named, str) else None)
        request = row.object("request") if "request" in row else row
        messages, tools = read_request(request or Found({}))
        messages = _with_past(messages, responses)
        known: dict[str, object] = {}
        candidate = row.count("candidate")
        if candidate is not None:
            known["group"] = identity or str(index - candidate)
            identity = f"{known['group']}#{candidate}"
        messages += read_response(responses, candidate or 0)
        if not messages:
            raise TraceError(f"{row.where or 'the record'}: holds no messages")
        return sample_from(row, index, {"messages": messages, "tools": tools}, identity=identity, **known)


def _is_one(value: JsonValue) -> bool:
    if isinstance(value, dict) and "response" in value:
        response = value["response"]
        chunk = response[0] if isinstance(response, list) and response else response
        return is_response(chunk)
    if isinstance(value, dict) and "request" in value:
        return is_request(value["request"])
    return is_contents(value) or is_request(value) or is_response(value)


def _is_stream(value: JsonValue) -> bool:
    """Whether a list holds the chunks of one response, and not responses: one id for all, or only the last is finished."""
    if not isinstance(value, list) or len(value) < 2 or not is_response(value[0]):
        return False
    chunks = [one for one in value if isinstance(one, dict)]
    ids = {str(one.get("responseId") or one.get("response_id")) for one in chunks}
    if len(chunks) < len(value) or len(ids) > 1:
        return False
    return "None" not in ids or not any(map(_is_finished, chunks[:-1]))


def _is_finished(chunk: JsonObject) -> bool:
    found = chunk.get("candidates")
    return any(
        isinstance(one, dict) and bool(one.get("finishReason") or one.get("finish_reason"))
        for one in (found if isinstance(found, list) else ())
    )


def _by_candidate(row: JsonValue) -> list[JsonValue]:
    """One record for each candidate, in which the others are empty."""
    record: JsonObject = row if isinstance(row, dict) else {"response": row}
    response = record.get("response", record)
    chunks = response if isinstance(response, list) else [response]
    streamed = len(chunks) > 1
    by_chunk = [
        candidate_numbers(chunk.get("candidates") if isinstance(chunk, dict) else None, streamed=streamed)
        for chunk in chunks
    ]
    numbers = sorted({number for one in by_chunk for number in one})
    if numbers in ([], [0]):
        return [row]
    records: list[JsonValue] = []
    for number in numbers:
        own = [_only(chunk, ours, number) for chunk, ours in zip(chunks, by_chunk, strict=True)]
        whole = own if isinstance(response, list) else own[0]
        about = whole if response is record and isinstance(whole, dict) else {**record, "response": whole}
        records.append({**about, "candidate": number})
    return records


def _only(chunk: JsonValue, numbers: Sequence[int], wanted: int) -> JsonValue:
    found = chunk.get("candidates") if isinstance(chunk, dict) else None
    if not isinstance(chunk, dict) or not isinstance(found, list):
        return chunk
    own: list[JsonValue] = [one if number == wanted else {} for one, number in zip(found, numbers, strict=True)]
    return {**chunk, "candidates": own}


def _responses(row: Found) -> list[Found]:
    if "response" not in row:
        return [row]
    if isinstance(row.peek("response"), list):
        return row.objects("response")
    response = row.object("response")
    return [] if response is None else [response]


def _with_past(messages: list[Message], responses: Sequence[Found]) -> list[Message]:
    """Messages of a request with those that the SDK added when it called functions by itself: it repeats the former."""
    names = ("automaticFunctionCallingHistory", "automatic_function_calling_history")
    past = [message for one in responses for message in read_contents(one.objects(*names))]
    system = [message for message in messages if isinstance(message, SystemMessage)]
    asked = messages[len(system) :]
    if past[: len(asked)] != asked and past:
        raise TraceError("the history of automatic function calling does not continue the request")
    return [*system, *past] if past else messages
