"""Conversations with an API like OpenAI's Chat Completions: messages, requests, responses and streamed chunks.

{"messages": [{"role": "user", "content": "Hi"}, ...], "tools": [...]}
{"request": {"messages": [...]}, "response": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}}
{"object": "chat.completion.chunk", "id": "a", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.openai_chat import read_message, read_messages, read_tools, read_usage
from judgekit.formats.blocks.reply import is_blank
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import (
    RowReader,
    append_reply,
    as_records,
    build_sample,
    first_record,
    unwrap_batch_line,
    warn_missing_response,
)
from judgekit.formats.unread import RESPONSE_COLUMNS
from judgekit.formats.values import as_object, head, lookup, messages_field, objects_in, parse_if_json, without
from judgekit.traces.message import AIMessage, JsonObject, Message, SystemMessage
from judgekit.traces.sample import Sample

_PIECES = {
    *("content", "reasoning_content", "reasoning", "refusal", "arguments", "input"),
    *("text", "thinking", "summary", "data", "transcript"),  # in reasoning_details, thinking_blocks and audio
}
"""Fields that are streamed piece by piece. Other fields are sent once, or repeated."""
_OF_PARTS = ("content", "thinking", "thinking_blocks", "reasoning_details")
"""Lists of parts whose texts servers stream piece by piece."""

_UNCLEAR = "unclear_calls"
"""The field of an assembled choice with the number of calls that may be several."""


class OpenAIChatReader(RowReader):
    """A reader of messages, requests, responses, and pairs of the last two, with fields of a `Sample` next to them."""

    name = "openai-chat"
    shape = 'openai-chat: {"messages": [{"role": "user", "content": ...}, ...]}, or the list alone; {"choices": [{"message": ...}]}; {"request": ..., "response": ...}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize messages by their role, and responses by their choices."""
        row = value if _is_conversation(value) else unwrap_batch_line(first_record(value))
        if _is_conversation(row) or _is_response(row):
            return True
        if not isinstance(row, dict):
            return False
        if "input" in row and "request" not in row:
            return False  # a dataset row with a request
        response = row.get("response")
        return _is_response(response) or are_chunks(response) or _is_conversation(row.get("request"))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return each list of messages as one conversation, and each choice of a response."""
        rows = [document] if _is_conversation(document) else as_records(document)
        return [record for row in rows for record in _choices(unwrap_batch_line(row))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one row. Without an id of the row or of the response, the index is its name."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        request = row if "messages" in row else row.object("request") or row
        messages = read_messages(request)
        system = request.peek("system")
        if system and isinstance(system, str) and not isinstance(next(iter(messages), None), SystemMessage):
            request.take("system")
            messages.insert(0, SystemMessage(system))
        identity = None
        if (response := _response(row)) is not None:
            if "streamed_ids" in row:
                problem = "chunks with different ids, read as one response"
                row.warn(f"{problem}; responses streamed at the same time get mixed")
            reply = _reply(response)
            messages, identity = append_reply(messages, [reply], row), reply.id
        elif request is row and messages and (text := _answer(row, messages[-1])) is not None:
            messages.append(text)
        elif isinstance(record, dict) and ("request" in record or (messages and messages[-1].role != "assistant")):
            warn_missing_response(row, record)
        if not messages:
            raise TraceError("contains no messages")
        trace = {
            "messages": messages,
            "tools": read_tools([*request.optional_objects("tools"), *request.optional_objects("functions")]),
            "usage": read_usage(row.object("usage")),
        }
        return build_sample(row, index, trace, identity=row.id("id") or identity or str(index))


class OpenAIChatChunksReader(OpenAIChatReader):
    """A reader of responses streamed in many chunks. Chunks of several responses may follow one another."""

    name = "openai-chat-chunks"
    joins_lines = True
    shape = 'openai-chat-chunks: {"object": "chat.completion.chunk", "choices": [{"delta": ...}]}, or a list of these'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize choices with a delta."""
        return is_chunk(value) or are_chunks(value) or are_chunks(next(iter(as_records(value)), None))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the assembled responses."""
        rows = as_records(document)
        lists = [row for row in rows if isinstance(row, list)]
        loose = [row for row in rows if not isinstance(row, list)]
        responses = [response for chunks in lists for response in assemble_chunks(chunks)]
        responses += assemble_chunks(loose) if loose else []
        return [record for response in responses for record in _choices(response)]


def _is_conversation(value: JsonValue) -> bool:
    messages = messages_field(value)
    return isinstance(messages, list) and bool(messages) and "role" in as_object(messages[0])


def _is_response(value: JsonValue) -> bool:
    return _hold_messages(lookup(value, "choices"))


def _hold_messages(choices: JsonValue) -> bool:
    return isinstance(choices, list) and bool(choices) and "message" in as_object(choices[0])


def _choices(row: JsonValue) -> list[JsonValue]:
    """Return the row once for each choice of its response. The first one gets the usage, which covers all choices."""
    if not isinstance(row, dict) or row.keys().isdisjoint(("response", "choices")):
        return [row]
    response = row.get("response")
    if isinstance(response, list) and are_chunks(response):
        return [record for whole in assemble_chunks(response) for record in _choices({**row, "response": whole})]
    if isinstance(response, dict) and _is_response(response):
        reply, rest = response, row
    else:
        reply = {name: row[name] for name in ("id", "model", "choices", "usage", "error") if name in row}
        rest = without(row, *reply)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not _hold_messages(choices) or len(choices) == 1:
        return [row]
    name = FieldTracker(row).id("id") or FieldTracker(reply).id("id")
    name = name or hashlib.sha256(repr(row).encode(errors="replace")).hexdigest()[:12]
    records: list[JsonValue] = []
    for number, choice in enumerate(choices):
        alone: JsonObject = {**reply, "choices": [choice], "usage": None if number else reply.get("usage")}
        named: JsonObject = {"id": f"{name}#{number}", "group": row.get("group") or name}
        records.append({**rest, "response": alone, **named})
    return records


def _response(row: FieldTracker) -> FieldTracker | None:
    response = row.peek("response")
    if isinstance(response, dict) and response.get("choices"):
        return row.object("response")
    return row if _hold_messages(row.peek("choices")) else None


def _answer(row: FieldTracker, last: Message) -> AIMessage | None:
    """Return the answer that a dataset row has next to its messages as text."""
    if last.role == "assistant":
        return None
    name = row.first(*RESPONSE_COLUMNS) or ""
    text = row.peek(name)
    if not isinstance(text, str) or text.lstrip().startswith(("{", "[{")):
        return None  # JSON may be a response or an error: it stays, with a warning
    row.take(name)
    return AIMessage(text)


def _reply(response: FieldTracker) -> Message:
    choice = next(iter(response.objects("choices")), response)
    message = choice.object("message")
    if message is None:
        raise choice.type_error("message", "the assistant's message")
    if message.peek("role") != "assistant":
        raise message.type_error("role", "'assistant'")
    if count := choice.take(_UNCLEAR):
        problem = "pieces of calls with one index and no id, each read as one call that may be several"
        choice.warn(f"{problem}, found {count}")
    if choice.take("breaks_off"):
        choice.warn("the stream ends before the response is complete")
    if "error" in response:
        response.warn(f"the response reports an error: {short_repr(response.peek('error'))}", "error")
    about = {
        "model": response.text("model"),
        "finish_reason": choice.text("finish_reason"),
        "usage": read_usage(response.object("usage")),
    }
    if "id" not in message:
        about["id"] = response.id("id")
    return read_message(message, **about)


def is_chunk(value: JsonValue) -> bool:
    """Return whether a value is a chunk. Some servers omit ``object``."""
    chunk = as_object(value)
    return chunk.get("object") == "chat.completion.chunk" or any("delta" in choice for choice in _chunk_choices(chunk))


def are_chunks(value: JsonValue) -> bool:
    """Return whether a value is a list of chunks. Some servers begin a stream with something else."""
    return any(map(is_chunk, head(value)))


def assemble_chunks(chunks: Sequence[JsonValue]) -> list[JsonObject]:
    """Return the responses in the form that the API gives them without streaming.

    Chunks belong together by id; a chunk without an id belongs to the chunk before it. If an ended response's id
    returns with more content, this is another response. Some servers give each chunk its own id: consecutive chunks
    with unique ids are one response up to its end, which keeps their ids in ``streamed_ids``. After the end, a chunk
    without choices, such as usage, still belongs to it, and one with choices begins another response.
    """
    responses: list[list[JsonObject]] = []
    under_way: dict[str, tuple[list[JsonObject], set[int]]] = {}
    early: list[JsonObject] = []
    uses = Counter(map(_id, chunks))
    last = ""
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, dict):
            raise TraceError(f"[{number}]: expected a chunk, found {short_repr(chunk)}")
        identity = _id(chunk)
        ends = {_index(choice) for choice in _chunk_choices(chunk) if choice.get("finish_reason")}
        indexes = map(_index, _chunk_choices(chunk))
        goes_on = last in under_way and uses[last] == 1 and under_way[last][1].isdisjoint(indexes)
        # Groq gives the ends of all responses the same id.
        is_next = uses[identity] == 1 or (identity not in under_way and bool(ends) and not _speaking(chunk))
        if identity and not (goes_on and is_next):
            last = identity
        elif last not in under_way and not _chunk_choices(chunk):
            early.append(chunk)
            continue
        if last not in under_way or not under_way[last][1].isdisjoint(_speaking(chunk)):
            under_way[last] = ([*early], set())
            early = []
            responses.append(under_way[last][0])
        response, ended = under_way[last]
        response.append(chunk)
        ended |= ends
    if not responses:
        raise TraceError("contains no messages")
    return [_assembled(chunks) for chunks in responses]


def _chunk_choices(chunk: JsonObject) -> list[JsonObject]:
    return objects_in(chunk.get("choices"))


def _id(chunk: JsonValue) -> str:
    identity = as_object(chunk).get("id")
    return identity if isinstance(identity, str) else ""


def _index(choice: JsonObject) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _speaking(chunk: JsonObject) -> set[int]:
    """Return the choices to which a chunk adds something."""
    deltas = ((_index(choice), without(as_object(choice.get("delta")), "role")) for choice in _chunk_choices(chunk))
    return {index for index, delta in deltas if any(value and not is_blank(value) for value in delta.values())}


def _assembled(chunks: Sequence[JsonObject]) -> JsonObject:
    choices: dict[int, list[JsonObject]] = {}
    for chunk in chunks:
        for choice in _chunk_choices(chunk):
            choices.setdefault(_index(choice), []).append(choice)
    response = _joined(without(chunk, "choices") for chunk in chunks)
    response["choices"] = [_assembled_choice(choices[index]) for index in sorted(choices)]
    ids: list[JsonValue] = list(dict.fromkeys(identity for chunk in chunks if (identity := _id(chunk))))
    if len(ids) > 1:
        response |= {"id": ids[0], "streamed_ids": ids}
    usages: list[JsonValue] = [usage for chunk in chunks if (usage := chunk.get("usage"))]
    if len(usages) > 1:  # cumulative, in each chunk
        response["usage"] = usages[-1]
        response["usage_before"] = usages[:-1]
    return response


def _assembled_choice(pieces: Sequence[JsonObject]) -> JsonObject:
    choice = _joined(pieces)
    message = choice.pop("delta", {})
    choice["message"] = {"role": "assistant", **message} if isinstance(message, dict) else message
    if unclear := [call for call in objects_in(as_object(message).get("tool_calls")) if call.pop(_UNCLEAR, False)]:
        choice[_UNCLEAR] = len(unclear)
    if not choice.get("finish_reason"):
        choice["breaks_off"] = True
    return choice


def _joined(pieces: Iterable[JsonObject]) -> JsonObject:
    fields: dict[str, list[JsonValue]] = {}
    for piece in pieces:
        for name, value in piece.items():
            if value is not None:
                fields.setdefault(name, []).append(value)
    return {name: _joined_values(name, values) for name, values in fields.items()}


def _joined_values(name: str, values: list[JsonValue]) -> JsonValue:
    texts = [value for value in values if isinstance(value, str)]
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    if len(texts) == len(values) and name in _PIECES:
        return "".join(texts)
    if len(texts) == len(values) and name == "name":
        return "".join(dict.fromkeys(texts))
    if len(objects) == len(values):
        return _joined(objects)
    if len(lists) == len(values) or (lists and name in _PIECES):
        parts: list[JsonValue] = [part for value in values for part in (value if isinstance(value, list) else [value])]
        if name in _OF_PARTS:
            parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        return _listed(name, parts)
    different = {repr(value): value for value in values if value != ""} or {"": ""}
    return next(iter(different.values())) if len(different) == 1 else list(different.values())


def _listed(name: str, parts: list[JsonValue]) -> JsonValue:
    """Join a list of parts: those with one ``index`` are pieces of one object, as are those of one tool call."""
    pieces = [part for part in parts if isinstance(part, dict)]
    if len(pieces) < len(parts):
        return parts
    if name == "executed_tools":  # Groq sends them again when they have a result
        return parts
    if name != "tool_calls" and not all("index" in piece for piece in pieces):
        return _neighbors(pieces) if name in _OF_PARTS else parts
    groups: list[list[JsonObject]] = []
    latest: dict[str, list[JsonObject]] = {}
    for piece in pieces:
        index = repr(piece.get("index"))
        if index not in latest or _begins(piece, latest[index]):
            latest[index] = []
            groups.append(latest[index])
        latest[index].append(piece)
    return [_joined(group) for group in groups] if name != "tool_calls" else [_joined_call(group) for group in groups]


def _joined_call(pieces: Sequence[JsonObject]) -> JsonObject:
    """Join the pieces of a call, each of which may repeat all arguments so far.

    A call that may be several gets the field `_UNCLEAR`: pieces without an id that have several names, or are the same.
    """
    call = _joined(pieces)
    functions = [as_object(piece.get("function")) for piece in pieces]
    names = {name for function in functions if isinstance(name := function.get("name"), str) and name}
    arguments = [text for function in functions if isinstance(text := function.get("arguments"), str) and text]
    grows = all(later.startswith(earlier) for earlier, later in pairwise(arguments))
    repeats = len(arguments) > 1 and grows and _is_complete(arguments[-1])
    if repeats and isinstance(function := call.get("function"), dict):
        function["arguments"] = arguments[-1]
    if not call.get("id") and (len(names) > 1 or (repeats and arguments[0] == arguments[-1])):
        call[_UNCLEAR] = True
    return call


def _is_complete(arguments: str) -> bool:
    """Return whether the arguments of a call are whole, so that more of them could only be those of another call."""
    return isinstance(parse_if_json(arguments), dict)


def _neighbors(pieces: Iterable[JsonObject]) -> list[JsonValue]:
    """Join adjacent parts of text, up to a signature."""
    groups: list[list[JsonObject]] = []
    for piece in pieces:
        before = groups[-1][-1] if groups else {}
        is_text = "index" not in piece and not piece.keys().isdisjoint(("text", "thinking", "summary"))
        if is_text and groups and before.get("type") == piece.get("type") and not before.get("signature"):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [_joined(group) for group in groups]


def _begins(piece: JsonObject, group: Sequence[JsonObject]) -> bool:
    """Return whether a piece begins another object. Some servers give all calls one index, or none.

    Without an id, a name begins another call if the arguments before it are complete, and it does not repeat that call.
    """
    identity, function = piece.get("id"), as_object(piece.get("function"))
    if identity:
        return any(before.get("id") not in (identity, None, "") for before in group[:1])
    if not (name := function.get("name")):
        return False
    if "index" not in piece:
        return True
    before = [as_object(earlier.get("function")) for earlier in group]
    arguments = "".join(str(earlier.get("arguments") or "") for earlier in before)
    return _is_complete(arguments) and (name, function.get("arguments")) != (before[0].get("name"), arguments)
