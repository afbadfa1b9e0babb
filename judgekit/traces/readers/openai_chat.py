"""Conversations with an API like OpenAI's Chat Completions: its messages, requests, responses and streamed chunks.

{"messages": [{"role": "user", "content": "Hi"}, ...], "tools": [...]}
{"request": {"messages": [...]}, "response": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}}
{"object": "chat.completion.chunk", "id": "a", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}
"""

import hashlib

from pydantic import JsonValue

from judgekit.errors import TraceError, shortened
from judgekit.traces.blocks.openai_chat import read_message, read_messages, read_tools, read_usage
from judgekit.traces.blocks.openai_chat_chunks import are_chunks, assemble, is_chunk
from judgekit.traces.found import Found
from judgekit.traces.message import AIMessage, JsonObject, Message, SystemMessage
from judgekit.traces.readers.foreign import first_of, items, sample_from, unbatched, warn_unanswered, with_reply
from judgekit.traces.sample import Sample
from judgekit.traces.unread import RESPONSES

_OF_RESPONSES = ("id", "model", "choices", "usage", "error")


class OpenAIChatReader:
    """Messages, requests, responses, and pairs of the last two. Fields of a `Sample` may stand beside."""

    name = "openai-chat"
    gathers = False
    shape = (
        'openai-chat: {"messages": [{"role": "user", "content": ...}, ...]}, or the list alone; '
        '{"choices": [{"message": ...}]}; {"request": ..., "response": ...}'
    )

    def recognises(self, value: JsonValue) -> bool:
        """Messages have a role, and responses choices."""
        row = value if _is_conversation(value) else unbatched(first_of(value))
        if _is_conversation(row) or _is_response(row):
            return True
        if not isinstance(row, dict):
            return False
        if "input" in row and "request" not in row:
            return False  # a row of a data set, with a request
        response = row.get("response")
        return _is_response(response) or are_chunks(response) or _is_conversation(row.get("request"))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list of messages is one conversation; a list of rows, or of such lists, is many. So are several choices."""
        rows = [document] if _is_conversation(document) else items(document)
        return [record for row in rows for record in _choices(unbatched(row))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One row. Without an id of the row or of the response, the index names it."""
        row = Found.of({"messages": record} if isinstance(record, list) else record)
        request = row if "messages" in row else row.object("request") or row
        messages = read_messages(request.objects("messages"))
        system = request.peek("system")
        if system and isinstance(system, str) and not isinstance(next(iter(messages), None), SystemMessage):
            request.take("system")
            messages.insert(0, SystemMessage(system))
        identity = None
        if (response := _response(row)) is not None:
            if "streamed_ids" in row:
                row.warn("chunks with an id each, read as one response; several that were streamed at once are mixed")
            if others := response.count("streamed_with"):
                response.warn(
                    f"its chunks stand in one list with those of other responses, each of which is a sample, found {others}"
                )
            said = _reply(response)
            messages, identity = with_reply(messages, [said], row), said.id
        elif request is row and messages and (text := _answer(row, messages[-1])) is not None:
            messages.append(text)
        elif isinstance(record, dict) and ("request" in record or (messages and messages[-1].role != "assistant")):
            warn_unanswered(row, record)
        if not messages:
            raise TraceError("holds no messages")
        trace = {
            "messages": messages,
            "tools": read_tools([*request.details("tools"), *request.details("functions")]),
            "usage": read_usage(row.object("usage")),
        }
        return sample_from(row, index, trace, identity=row.identity("id") or identity)


class OpenAIChatChunksReader(OpenAIChatReader):
    """Responses as they were streamed, each in many chunks. The chunks of several may follow one another."""

    name = "openai-chat-chunks"
    gathers = True
    shape = 'openai-chat-chunks: {"object": "chat.completion.chunk", "choices": [{"delta": ...}]}, or a list of these'

    def recognises(self, value: JsonValue) -> bool:
        """What a choice adds stands in its delta."""
        return is_chunk(value) or are_chunks(value) or are_chunks(next(iter(items(value)), None))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """The responses, put together."""
        rows = items(document)
        lists = [row for row in rows if isinstance(row, list)]
        loose = [row for row in rows if not isinstance(row, list)]
        responses = [response for chunks in lists for response in assemble(chunks)]
        responses += assemble(loose) if loose else []
        return [record for response in responses for record in _choices(response)]


def _is_conversation(value: JsonValue) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else value
    return isinstance(messages, list) and bool(messages) and isinstance(messages[0], dict) and "role" in messages[0]


def _is_response(value: JsonValue) -> bool:
    return isinstance(value, dict) and _hold_messages(value.get("choices"))


def _hold_messages(choices: JsonValue) -> bool:
    return isinstance(choices, list) and bool(choices) and isinstance(choices[0], dict) and "message" in choices[0]


def _choices(row: JsonValue) -> list[JsonValue]:
    """The row once for each choice of its response; the first has the usage, which is that of all."""
    if not isinstance(row, dict):
        return [row]
    response = row.get("response")
    if isinstance(response, list) and are_chunks(response):
        wholes = assemble(response)
        told: JsonObject = {"streamed_with": len(wholes) - 1}
        return [record for whole in wholes for record in _choices({**row, "response": {**whole, **told}})]
    if isinstance(response, dict) and _is_response(response):
        reply, beside = response, row
    else:
        reply = {name: row[name] for name in _OF_RESPONSES if name in row}
        beside = {name: value for name, value in row.items() if name not in reply}
    choices = reply.get("choices")
    if not isinstance(choices, list) or not _hold_messages(choices) or len(choices) == 1:
        return [row]
    name = Found(row).identity("id") or Found(reply).identity("id")
    name = name or hashlib.sha256(repr(row).encode(errors="replace")).hexdigest()[:12]
    records: list[JsonValue] = []
    for number, choice in enumerate(choices):
        one: JsonObject = {**reply, "choices": [choice], "usage": None if number else reply.get("usage")}
        named: JsonObject = {"id": f"{name}#{number}", "group": row.get("group") or name}
        records.append({**beside, "response": one, **named})
    return records


def _response(row: Found) -> Found | None:
    """The response in a row, which may be the row itself."""
    response = row.peek("response")
    if isinstance(response, dict) and response.get("choices"):
        return row.object("response")
    return row if _hold_messages(row.peek("choices")) else None


def _answer(row: Found, last: Message) -> AIMessage | None:
    """The answer that a row of a data set has beside its messages, as a text."""
    name = next((name for name in RESPONSES if name in row), "")
    text = row.peek(name)
    if last.role == "assistant" or not isinstance(text, str) or text.lstrip().startswith(("{", "[{")):
        return None  # JSON may be a response, or an error: it stays with a warning
    row.take(name)
    return AIMessage(text)


def _reply(response: Found) -> Message:
    choice = next(iter(response.objects("choices")), response)
    message = choice.object("message")
    if message is None:
        raise choice.unfit("message", "that of the assistant")
    if message.peek("role") != "assistant":
        raise message.unfit("role", "'assistant'")
    if choice.take("breaks_off"):
        choice.warn("the stream breaks off before the response ends")
    if "error" in response:
        response.warn(f"the response reports an error: {shortened(response.peek('error'))}", "error")
    about = {
        "model": response.text("model"),
        "finish_reason": choice.text("finish_reason"),
        "usage": read_usage(response.object("usage")),
    }
    if "id" not in message:
        about["id"] = response.identity("id")
    return read_message(message).model_copy(update=about)
