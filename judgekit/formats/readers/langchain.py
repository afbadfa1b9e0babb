"""Conversations of LangChain and LangGraph: lists of messages, and states of graphs.

[{"type": "human", "data": {"content": "1+2?"}}, ...], or {"messages": [{"type": "human", "content": "1+2?"}, ...]}

Messages have three shapes:

messages_to_dict: {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c1"}]}}
dumpd:            {"lc": 1, "type": "constructor", "id": [..., "AIMessage"], "kwargs": {"content": "", ...}}
model_dump:       {"type": "ai", "content": "", "tool_calls": [...]}
"""

from collections.abc import Iterable

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import MEDIA, MediaKind, content_items, read_call, read_counts, read_parts
from judgekit.formats.blocks.openai_chat import read_message, read_tools, read_usage
from judgekit.formats.blocks.reply import (
    ReplyItem,
    is_blank,
    nonblank_calls,
    read_user_turn,
    split_reply,
    to_content,
    unknown_part,
)
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, without
from judgekit.traces.message import (
    AIMessage,
    JsonObject,
    MediaPart,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    parse_arguments,
)
from judgekit.traces.sample import Sample

_KINDS = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
"""The types of message classes; classes of streamed messages end in ``Chunk``."""

_ROLES = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system", "developer": "system"}
"""The roles that a ``ChatMessage`` may have."""
_PARTS: dict[str, type[TextPart | ReasoningPart | RefusalPart]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "text-plain"), TextPart),
    **dict.fromkeys(("reasoning", "thinking"), ReasoningPart),
    "refusal": RefusalPart,
}
_MEDIA: dict[str, MediaKind] = {**MEDIA, "image_url": "image", "input_audio": "audio", "file": "file"}
_CALLS = ("tool_call", "tool_use", "function_call")
_PROVIDER_CALLS = ("server_tool_call", "server_tool_use", "mcp_tool_use")


class LangChainReader(MessagesReader):
    """A reader of lists of messages, and of rows or states with ``messages``."""

    name = "langchain"
    shape = 'langchain: [{"type": "human", "content": ...}, ...] of any of its dumps, or a state with "messages"'

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Recognize messages by LangChain's types, without a role."""
        return are_messages(_row(document).get("messages"))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by the id of its row if there is one."""
        row = FieldTracker.of(_row(record))
        messages = read_messages(row.objects("messages"))
        if not messages:
            raise TraceError("messages: expected LangChain messages, found none")
        times = {"started_at": row.time("start_time"), "ended_at": row.time("end_time")}
        tools = read_tools(row.optional_objects("tools"))
        return build_sample(row, index, {"messages": messages, "tools": tools, **times})


def _row(record: JsonValue) -> JsonObject:
    """Return the record as an object with ``messages``, which states hold elsewhere."""
    row: JsonObject = record if isinstance(record, dict) else {"messages": record}
    if "messages" in row:
        return {**row, "messages": _single_batch(row["messages"])}
    values = row.get("values")
    if isinstance(values, dict) and are_messages(messages := _single_batch(values.get("messages"))):
        return {**row, "values": without(values, "messages"), "messages": messages}
    return row


def _single_batch(value: JsonValue) -> JsonValue:
    """Return the single batch of a run, whose lists are nested."""
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value


def are_messages(value: JsonValue) -> bool:
    """Return whether this is a list of messages: they have one of LangChain's types, and no role."""
    return bool(head(value)) and all(map(_kind, head(value)))


def _kind(message: JsonValue) -> str | None:
    """Return the type of a message if it is one of LangChain's."""
    if not isinstance(message, dict):
        return None
    if isinstance(message.get("kwargs"), dict) and message.get("lc") == 1:
        path = message.get("id")
        return _named(path[-1]) if isinstance(path, list) and path else None
    kind = _named(message.get("type"))
    if isinstance(message.get("data"), dict):
        return kind
    return kind if "content" in message and (kind == "chat" or "role" not in message) else None


def _named(name: JsonValue) -> str | None:
    if not isinstance(name, str):
        return None
    return name if name in _KINDS.values() else _KINDS.get(name.removesuffix("Chunk"))


def read_messages(recorded: Iterable[FieldTracker]) -> list[Message]:
    """Read messages. Results within a message follow it."""
    messages: list[Message] = []
    before: JsonValue = None
    for message in recorded:
        inner = message.peek("kwargs") or message.peek("data")
        fields: JsonObject = inner if isinstance(inner, dict) else {name: message.peek(name) for name in ("type", "id")}
        piece = fields.get("id") if str(fields.get("type")).endswith("Chunk") else None
        if piece is not None and piece == before:
            message.warn("a chunk of a streamed message, read as a separate message; add chunks up before writing them")
        messages += _messages(message)
        before = piece
    return messages


def _messages(outer: FieldTracker) -> list[Message]:
    kind = _kind({"content": None, **{name: outer.peek(name) for name in outer}})
    if kind is None:
        raise outer.type_error("type", "a LangChain message")
    if kind == "remove":
        outer.warn("a message that only removes another, dropped")
        return []
    message = outer
    if "lc" in outer and (kwargs := outer.object("kwargs")) is not None:
        message = kwargs
        path = outer.peek("id")
        if isinstance(path, list) and path[:-1] == ["langchain", "schema", "messages"]:
            outer.take("id")
        outer.take("lc")
        outer.take_if("type", "constructor")
    elif (data := outer.maybe_object("data")) is not None:
        message = data
        outer.take("type")
    if _named(message.peek("type")) is not None:
        message.take("type")
    if kind == "chat":
        role = message.peek("role")
        kind = _ROLES.get(role.lower()) if isinstance(role, str) else None
        if kind is None:
            raise message.type_error("role", f"one of {', '.join(_ROLES)}")
        message.take("role")
    if message.peek("example") is False:
        message.take("example")
    if kind == "ai":
        return _reply(message, outer)
    if kind == "human":
        return _user_content(message, outer)
    fields: dict[str, object] = {"id": message.id("id")}
    if kind != "system" and not isinstance(message.peek("content"), str | list | None):
        fields["content"] = to_text(message.take("content"))
    else:
        fields["content"] = to_content(read_parts(content_items(message), _part))
    if kind == "system":
        return [SystemMessage.model_validate({**fields, "extra": _nonempty_leftover(message, outer)})]
    fields |= {"name": message.text("name"), "tool_call_id": message.id("tool_call_id"), "is_error": _failed(message)}
    return [ToolMessage.model_validate({**fields, "extra": _nonempty_leftover(message, outer)})]


def _failed(message: FieldTracker) -> bool | None:
    status = message.peek("status")
    if status not in ("error", "success"):
        return message.boolean("is_error")
    return message.take("status") == "error"


def _nonempty_leftover(message: FieldTracker, outer: FieldTracker) -> JsonObject:
    """Return the leftover of a message, without empty lists and objects, of which these messages have many."""
    left = {**message.leftover(), **outer.leftover()}
    return {name: field for name, field in left.items() if field not in ([], {})}


def _user_content(message: FieldTracker, outer: FieldTracker) -> list[Message]:
    turn = read_parts(content_items(message), _item)
    fields: dict[str, object] = {"id": message.id("id")}
    if not turn or not isinstance(turn[-1], ToolMessage):
        fields["name"] = message.text("name")
    *others, last = read_user_turn(turn, _nonempty_leftover(message, outer))
    return [*others, last.model_copy(update=fields)]


def _reply(message: FieldTracker, outer: FieldTracker) -> list[Message]:
    openai = message.object("additional_kwargs") or FieldTracker({})
    about = message.object("response_metadata") or FieldTracker({})
    calls = [_call(call) for call in nonblank_calls(message, "tool_calls")]
    calls += [_broken(call) for call in nonblank_calls(message, "invalid_tool_calls")]
    calls = calls or _openai_calls(openai)
    repeated = openai.peek("tool_calls")
    if repeated is not None and calls == _openai_calls(FieldTracker({"tool_calls": repeated})):
        openai.take("tool_calls")
    thought, refusal = openai.text("reasoning_content"), openai.text("refusal")
    parts: list[ReplyItem] = [ReasoningPart(thought)] if thought else []
    for item in read_parts(content_items(message), _item):
        if isinstance(item, ToolCall) and "executor" not in item.metadata:
            _add_call(item, calls)
        else:
            parts.append(item)
    if refusal:
        parts.append(RefusalPart(refusal))
    spent = message.object("usage_metadata")  # the input includes the cached tokens
    usage = read_counts(spent, cached="input_token_details.cache_read", reasoning="output_token_details.reasoning")
    each = {"agent": message.text("name"), "model": about.text("model_name", "model", "model_id")}
    whole: dict[str, object] = {
        "id": message.id("id"),
        "finish_reason": about.text("finish_reason", "stop_reason", "stopReason", "done_reason"),
        "usage": read_usage(about.object("token_usage")) if usage is None else usage,
    }
    return split_reply([*parts, *calls], each, {**whole, "extra": _nonempty_leftover(message, outer)})


def _add_call(block: ToolCall, calls: list[ToolCall]) -> None:
    """Add a call from the content's blocks, unless ``tool_calls`` has it too."""
    for at, call in enumerate(calls):
        if (call.id, call.name) == (block.id, block.name):
            rest: JsonObject = dict(block.extra)
            if (block.args, block.args_raw) != (call.args, call.args_raw):
                rest["args"] = block.args_raw or block.args
            if rest:
                calls[at] = call.model_copy(update={"extra": {**call.extra, "block": rest}})
            return
    calls.append(block)


def _call(call: FieldTracker) -> ToolCall:
    call.take_if("type", *_CALLS)
    provided = call.peek("type") in _PROVIDER_CALLS
    return read_call(call, ids=("call_id", "id"), args=("args", "input", "arguments"), provided=provided)


def _broken(call: FieldTracker) -> ToolCall:
    """Read a call that LangChain could not parse."""
    call.take_if("type", "invalid_tool_call")
    name, identity, raw = call.text("name") or "", call.id("id"), call.take("args")
    problem = call.text("error") or parse_arguments(raw).get("args_error") or "LangChain could not parse it"
    text = None if raw is None else to_text(raw)
    return ToolCall(name, id=identity, args_raw=text, args_error=problem, extra=call.leftover())


def _openai_calls(fields: FieldTracker) -> list[ToolCall]:
    """Read calls in OpenAI's form. Older messages have only these, newer ones repeat them."""
    calls: JsonObject = {name: fields.take(name) for name in ("tool_calls", "function_call") if name in fields}
    message = read_message(FieldTracker({"role": "assistant", **calls}, fields.path, fields.warnings))
    return list(message.tool_calls) if isinstance(message, AIMessage) else []


def _item(block: FieldTracker) -> ReplyItem:
    kind = block.peek("type")
    if not isinstance(kind, str):
        return _part(block)
    if kind in (*_CALLS, *_PROVIDER_CALLS) and isinstance(block.peek("name"), str) and not is_blank(block):
        return _call(block)
    if kind.endswith("tool_result"):
        return _result(block)
    return _part(block)


def _result(block: FieldTracker) -> ToolMessage:
    """Read a result among the blocks: of a provider's tool or, in Anthropic's form, in a user message."""
    block.take_if("type", "tool_result", "server_tool_result")
    failed, identity = _failed(block), block.id("tool_use_id", "tool_call_id")
    output = block.take("content", "output")
    text = "" if output is None else to_text(output)
    return ToolMessage(text, tool_call_id=identity, name=block.text("name"), is_error=failed, extra=block.leftover())


def _part(block: FieldTracker) -> Part:
    kind = block.peek("type")
    if kind is None and isinstance(block.peek("text"), str):  # Bedrock's blocks have no type
        kind = "text"
    if not isinstance(kind, str):
        return unknown_part(block)
    name = kind if isinstance(block.peek(kind), str) else "text"
    if kind in _PARTS and isinstance(block.peek(name), str):
        block.take("type")
        return _PARTS[kind](block.text(name) or "", extra=block.leftover())
    if kind == "reasoning":  # of OpenAI's Responses
        texts = (part.text("text") for part in block.items("summary") if isinstance(part, FieldTracker))
        return ReasoningPart("\n".join(filter(None, texts)), extra=block.leftover())
    if kind == "reasoning_content" and (inner := block.object(kind)) is not None:
        return ReasoningPart(inner.text("text") or "", extra=block.leftover())
    if kind == "redacted_thinking":
        return ReasoningPart("", extra=block.leftover())
    if kind in _MEDIA:
        return _media(block, kind)
    return unknown_part(block)


def _media(block: FieldTracker, kind: str) -> MediaPart:
    """Read media by URL or as data: next to the type, in an object named after the type, or in ``source``."""
    if isinstance(address := block.peek(kind), str):
        block.take(kind)
    inner = block.object(kind, "source") if address is None or isinstance(address, dict) else None
    holder = inner or block
    block.take("type")
    url = address if isinstance(address, str) else holder.text("url", "file_uri")
    data, mime_type = holder.text("base64", "data"), holder.text("mime_type", "media_type")
    name = holder.text("filename", "title")
    return MediaPart(kind=_MEDIA[kind], url=url, data=data, mime_type=mime_type, name=name, extra=block.leftover())
