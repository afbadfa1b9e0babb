r"""Items of OpenAI's Responses API, which the Agents SDK and the Codex CLI also record.

[{"role": "user", "content": "Hi"}, {"type": "reasoning", "summary": []},
 {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"a\": 1}"},
 {"type": "function_call_output", "call_id": "call_1", "output": "2"},
 {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from pydantic import JsonValue

from judgekit.formats.blocks.common import MediaKind, provider_metadata, read_parts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.reply import is_blank, to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, head, lookup, objects_in
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    parse_arguments,
)
from judgekit.traces.recording import ToolDefinition

_ROLES = ("system", "developer", "user", "assistant")
_CALLS = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "mcp_call": ("arguments",),
    "hosted_tool_call": ("arguments",),  # the JavaScript SDK's name for all tools of the provider
    "tool_search_call": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
    "computer_call": ("action", "actions"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "program": ("code",),
}
"""Kinds of items that are calls, and the fields with their arguments."""
_NAMED = ("function_call", "custom_tool_call", "mcp_call", "hosted_tool_call")
_PROVIDED = {
    "web_search_call": "sources",
    "file_search_call": "results",
    "code_interpreter_call": "outputs",
    "image_generation_call": "result",
    "mcp_call": "output",
    "hosted_tool_call": "output",
}
"""Kinds of calls that the provider runs, and the field of the same item with their result."""
_RESULTS = {
    "function_call_output": None,
    "function_call_result": None,  # in JavaScript
    "custom_tool_call_output": None,
    "computer_call_output": "computer",
    "computer_call_result": "computer",  # in JavaScript
    "local_shell_call_output": "local_shell",
    "shell_call_output": "shell",
    "apply_patch_call_output": "apply_patch",
    "tool_search_output": "tool_search",
    "program_output": "program",
}
"""Kinds of items that are results, and the tool's name if the kind implies it."""
_ELSEWHERE = ("item_reference", "compaction", "compaction_summary")
_KEPT = (*_ELSEWHERE, "compaction_trigger", "mcp_list_tools", "mcp_approval_request", "configuration_update")
DECISIVE = {*_CALLS, *_RESULTS, "reasoning", "item_reference", "mcp_list_tools", "additional_tools"} - {"program"}
"""Kinds of items that no other API has."""
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal", "logs": "logs"}
_MEDIA: dict[str, MediaKind] = {
    "input_image": "image",
    "image": "image",
    "computer_screenshot": "image",
    "input_file": "file",
    "file": "file",
    "input_audio": "audio",
    "output_audio": "audio",
    "audio": "audio",
}


@dataclass
class _Turn:
    """Consecutive items of the assistant."""

    agent: str | None
    model: str | None
    timestamp: datetime | None
    id: str | None = None
    parts: list[Part] = field(default_factory=list[Part])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    extra: JsonObject = field(default_factory=dict[str, JsonValue])


class ItemMessages:
    """Messages that are built item by item.

    Consecutive items of the assistant form one message. Recorders may give items a ``timestamp``, which is not part of
    the API; the message has that of its first item.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._turn: _Turn | None = None
        self._reported: Usage | None = None

    def add(
        self, record: FieldTracker, *, agent: str | None = None, model: str | None = None, is_error: bool | None = None
    ) -> None:
        """Add an item.

        Args:
            record: The item.
            agent: The agent that made it, if it is the assistant's.
            model: The model that made it, if it is the assistant's.
            is_error: Whether a result is an error, if this is recorded outside the item.

        Raises:
            TraceError: It has an unknown role or content, or is a call without a tool name.
        """
        kind = "message" if record.peek("type") is None else record.peek("type")
        if not isinstance(kind, str):
            raise record.type_error("type", "an item type")
        if kind == "message":
            self._message(record, agent, model)
        elif kind in _RESULTS:
            self.messages().append(_result(record, kind, is_error=is_error))
        elif kind == "mcp_approval_response":
            self.messages().append(HumanMessage([OtherPart(record.leftover())]))
        elif kind == "additional_tools":
            self.messages().append(SystemMessage([OtherPart(record.leftover())], role="developer"))
        else:
            self._assistant(record, kind, self._turn_of(record, agent, model))

    def set_usage(self, usage: Usage) -> None:
        """End the assistant's message and set its usage, or that of the next message if it has one already."""
        messages = self.messages()
        index = len(messages) - 1
        while index >= 0 and isinstance(messages[index], ToolMessage):
            index -= 1
        if index >= 0 and isinstance(last := messages[index], AIMessage) and last.usage is None:
            messages[index] = last.model_copy(update={"usage": usage})
        else:
            self._reported = usage

    def messages(self) -> list[Message]:
        """Return the messages so far. This ends the last one."""
        if (turn := self._turn) is not None:
            message = AIMessage(
                to_content(turn.parts),
                tool_calls=turn.calls,
                id=turn.id,
                agent=turn.agent,
                model=turn.model,
                timestamp=turn.timestamp,
                usage=self._reported,
                extra=turn.extra,
            )
            self._messages.append(message)
            self._turn = self._reported = None
        return self._messages

    def _turn_of(self, record: FieldTracker, agent: str | None, model: str | None) -> _Turn:
        if self._turn is not None and (self._turn.agent, self._turn.model) != (agent, model):
            self.messages()
        if self._turn is None:
            self._turn = _Turn(agent, model, record.time("timestamp"))
        return self._turn

    def _message(self, record: FieldTracker, agent: str | None, model: str | None) -> None:
        role = record.one_of("role", _ROLES)
        for calls in ("tool_calls", "function_call"):
            if not is_blank(record.peek(calls)):
                record.warn("Chat Completions calls, which do not belong in an item; kept as is", calls)
        if role == "assistant":
            turn = self._turn_of(record, agent, model)
            turn.parts += _message_parts(record)
            record.take("type")
            record.take("role")
            if turn.id is None and not turn.extra:
                turn.id = record.id("id")
                turn.extra = record.leftover()
            elif rest := record.leftover():
                turn.extra["messages"] = [*cast("list[JsonValue]", turn.extra.get("messages", [])), rest]
            return
        record.take("type")
        content = to_content(_message_parts(record))
        identity, moment = record.id("id"), record.time("timestamp")
        if role == "user":
            record.take("role")
            name = record.text("name")
            message: Message = HumanMessage(content, id=identity, timestamp=moment, name=name, extra=record.leftover())
        else:
            role = cast("Literal['system', 'developer']", record.take("role"))
            message = SystemMessage(content, id=identity, timestamp=moment, role=role, extra=record.leftover())
        self.messages().append(message)

    def _assistant(self, record: FieldTracker, kind: str, turn: _Turn) -> None:
        if kind == "reasoning":
            turn.parts.append(_reasoning(record))
        elif kind in _CALLS and not (kind in _NAMED and is_blank(record)):
            call, result = _call(record, kind)
            turn.calls.append(call)
            if result is not None:
                self.messages().append(result)
        else:
            if kind in _ELSEWHERE:
                record.warn(f"part of the history is not in the file, only this {kind.replace('_', ' ')}")
            elif kind not in (*_KEPT, *_CALLS):
                record.warn(f"unknown item type {kind!r:.80}, kept as is")
            turn.parts.append(OtherPart(record.leftover()))


def read_items(items: Iterable[FieldTracker]) -> list[Message]:
    """Read items as messages.

    Raises:
        TraceError: An item cannot be read; see `ItemMessages.add`.
    """
    messages = ItemMessages()
    for record in items:
        messages.add(record)
    return messages.messages()


def read_request(request: FieldTracker) -> list[Message]:
    """Read a request: its instructions, then its input. Warns if the provider holds more of the history."""
    for name in ("previous_response_id", "conversation", "prompt"):
        if name in request:
            request.warn(f"part of the history is not in the file, only this {name}", name)
    messages: list[Message] = []
    for name, role in (("instructions", SystemMessage), ("input", HumanMessage)):
        value = request.peek(name)
        if isinstance(value, str):
            request.take(name)
            messages += [role(value)] if value or role is HumanMessage else []
        else:
            messages += read_items(request.objects(name))
    return messages


def read_response(response: FieldTracker) -> list[Message]:
    """Read a response. Its last assistant message has the usage and the reason why it ended."""
    messages = read_items(response.objects("output"))
    places = [index for index, message in enumerate(messages) if isinstance(message, AIMessage)]
    if not places:
        places = [len(messages)]
        messages.append(AIMessage())
    usage = response.object("usage")
    details = response.object("incomplete_details") or FieldTracker({})
    model = response.text("model")
    ended = details.text("reason") or response.text("status")
    for index in places:
        messages[index] = messages[index].model_copy(update={"model": model})
    spent = None if usage is None else read_usage(usage)
    last = {"usage": spent, "finish_reason": ended, "timestamp": response.time("created_at")}
    messages[places[-1]] = messages[places[-1]].model_copy(update=last)
    return messages


def read_usage(counts: FieldTracker) -> Usage:
    """Read token counts as this API reports them. Unknown counts are kept."""
    input_details = _object(counts, "input_tokens_details")
    output_details = _object(counts, "output_tokens_details")
    return Usage(
        input_tokens=counts.count("input_tokens"),
        output_tokens=counts.count("output_tokens"),
        cached_tokens=input_details.count("cached_tokens"),
        reasoning_tokens=output_details.count("reasoning_tokens"),
        extra=counts.leftover(),
    )


def tools_in_items(items: JsonValue) -> list[ToolDefinition]:
    """Return the tool definitions among the items. The items keep them too."""
    return [
        tool
        for item in objects_in(items)
        if item.get("type") in ("additional_tools", "mcp_list_tools", "tool_search_output")
        for tool in _tools(item.get("tools"))
    ]


def is_items(value: JsonValue) -> bool:
    """Return whether a list holds items, and not messages of another API."""
    seen = head(value)
    return all(map(may_be_item, seen)) and any(map(is_item, seen))


def may_be_item(value: JsonValue) -> bool:
    """Return whether a value may be an item. Text messages of most APIs look the same."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind is None or kind == "message":
        return value.get("role") in _ROLES and isinstance(value.get("content"), str | list)
    return isinstance(kind, str)


def is_item(value: JsonValue) -> bool:
    """Return whether a value can only be an item."""
    kind, content = lookup(value, "type"), lookup(value, "content")
    if isinstance(kind, str) and kind != "message":
        return kind in DECISIVE
    if any(lookup(block, "type") in ("input_text", "output_text") for block in head(content)):
        return True
    return kind == "message" and lookup(value, "role") in _ROLES and isinstance(content, str)


def _tools(value: JsonValue) -> list[ToolDefinition]:
    # MCP servers have another name for the parameters.
    spelled: list[JsonValue] = [
        {"parameters" if name == "input_schema" else name: item for name, item in tool.items()}
        for tool in objects_in(value)
    ]
    return read_tools(FieldTracker({"tools": spelled}).objects("tools"))


def _object(holder: FieldTracker, name: str) -> FieldTracker:
    return holder.maybe_object(name) or FieldTracker({})


def _message_parts(record: FieldTracker) -> list[Part]:
    content = record.peek("content")
    if content is None:
        return []
    if isinstance(content, str):
        record.take("content")
        return [TextPart(content)]
    if not isinstance(content, list):
        raise record.type_error("content", "a string or a list of parts")
    return read_parts(record.items("content"), _part)


def _nonempty_leftover(part: FieldTracker) -> JsonObject:
    """Return what is left over, without empty lists and objects, of which these parts have many."""
    return {name: value for name, value in part.leftover().items() if value not in ([], {})}


def _part(part: FieldTracker) -> Part:
    kind = str(part.peek("type"))
    if kind in _TEXTS and isinstance(text := part.peek(_TEXTS[kind]), str):
        part.take(_TEXTS[kind])
        part.take("type")
        return (RefusalPart if kind == "refusal" else TextPart)(text, extra=_nonempty_leftover(part))
    if kind in _MEDIA:
        return _media(part, kind)
    return unknown_part(part)


def _media(part: FieldTracker, kind: str) -> MediaPart:
    inner = _object(part, kind) if kind == "input_audio" else part
    url = _text_of(inner, "image_url", "file_url", "url")
    data = _text_of(inner, "data", "file_data", "image", "audio", "file")
    if data is not None and url is None and data.startswith(("data:", "http:", "https:")):
        url, data = data, None
    name = part.text("filename")
    if kind.startswith("input_"):
        part.take("type")
    return MediaPart(kind=_MEDIA[kind], url=url, data=data, name=name, extra=part.leftover())


def _text_of(holder: FieldTracker, *names: str) -> str | None:
    """Take the first of these fields that is a text. Other values are left."""
    return next((holder.text(name) for name in names if isinstance(holder.peek(name), str)), None)


def _reasoning(record: FieldTracker) -> ReasoningPart:
    record.take("type")
    texts = _texts(record, "content") or _texts(record, "rawContent") or _texts(record, "summary")
    return ReasoningPart("\n\n".join(texts), extra=_nonempty_leftover(record))


def _texts(record: FieldTracker, name: str) -> list[str]:
    """Take the texts of parts if all parts are texts."""
    value = record.peek(name)
    if isinstance(value, str):
        record.take(name)
        return [value]
    if not isinstance(value, list):
        return []
    texts = [text for part in value if isinstance(part, dict) and isinstance(text := part.get("text"), str)]
    if len(texts) < len(value):
        return []
    for part in record.objects(name):
        part.take_if("type", "summary_text", "reasoning_text", "input_text")
        part.take("text")
    return texts


def _call(record: FieldTracker, kind: str) -> tuple[ToolCall, ToolMessage | None]:
    """Read a call, and its result if the same item holds it."""
    provided = kind in _PROVIDED or kind == "program" or record.peek("execution") == "server"
    identity = record.id("call_id", "callId") or (record.id("id") if kind in _PROVIDED else None)
    name = record.text("name") if kind in _NAMED else kind.removesuffix("_call")
    if name is None:
        raise record.type_error("name", "a tool name")
    arguments = _arguments(record, kind)
    result = _provided(record, kind, arguments, identity, name) if kind in _PROVIDED else None
    record.take_if("type", "function_call")
    metadata = provider_metadata(provided=provided)
    call = ToolCall(name, id=identity, metadata=metadata, **parse_arguments(arguments), extra=record.leftover())
    return call, result


def _arguments(record: FieldTracker, kind: str) -> JsonValue:
    names = _CALLS[kind]
    if names == ("arguments",):
        return record.take("arguments")
    if whole := record.maybe_object(names[0]):
        return whole.leftover()
    return {name: value for name in names if (value := record.take(name)) is not None}


def _provided(
    record: FieldTracker, kind: str, arguments: JsonValue, identity: str | None, name: str
) -> ToolMessage | None:
    """Read the result of a call that the provider ran."""
    content: str | Sequence[Part] = ""
    if kind == "web_search_call":
        sources = arguments.pop("sources", None) if isinstance(arguments, dict) else None
        content = "" if sources is None else to_text(sources)
    elif kind == "image_generation_call" and isinstance(record.peek("result"), str):
        written = record.peek("output_format")
        mime = f"image/{written}" if isinstance(written, str) else None
        content = [MediaPart(kind="image", data=record.text("result"), mime_type=mime)]
    else:
        content = _content(record, _PROVIDED[kind])
    failed = {"completed": False, "failed": True}.get(str(record.peek("status")))
    extra: JsonObject = {}
    if "error" in record:
        failed = True
        content, extra = _error(record, content)
    if not content and not failed:
        return None  # most of these calls do not record their results
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, extra=extra)


def _error(record: FieldTracker, content: str | Sequence[Part]) -> tuple[str | Sequence[Part], JsonObject]:
    """Return the content of a failed result, and what else the error says."""
    error = record.peek("error")
    if content:
        return content, {"error": record.take("error")}
    if not isinstance(error, dict):
        return to_text(record.take("error")), {}
    inner = _object(record, "error")
    text = _content(inner, "message" if "message" in inner else "content")
    rest = inner.leftover()
    return text, {"error": rest} if rest else {}


def _result(record: FieldTracker, kind: str, *, is_error: bool | None) -> ToolMessage:
    output = record.peek("output")
    if isinstance(output, dict) and isinstance(output.get("success"), bool) and "content" in output:
        inner = _object(record, "output")  # as older versions of Codex wrote it
        is_error = inner.boolean("success") is False
        content = _content(inner, "content")
    else:
        content = _content(record, {"tool_search_output": "tools", "program_output": "result"}.get(kind, "output"))
        if kind == "program_output" and not content:
            content = _content(record, "output")  # in JavaScript
    if kind in ("apply_patch_call_output", "computer_call_output"):
        is_error = {"completed": False, "failed": True}.get(str(record.peek("status")), is_error)
    elif kind == "shell_call_output":
        is_error = _outcome(output)
    identity = record.id("call_id", "callId")
    if identity is None and kind == "local_shell_call_output":
        identity = record.id("id")
    record.take_if("type", "function_call_output")
    return ToolMessage(
        content,
        tool_call_id=identity,
        name=record.text("name") or _RESULTS[kind],
        is_error=is_error,
        timestamp=record.time("timestamp"),
        extra=record.leftover(),
    )


def _outcome(outputs: JsonValue) -> bool | None:
    """Return whether a command of a shell call failed; ``None`` if that is not recorded."""
    outcomes = objects_in([lookup(output, "outcome") for output in as_list(outputs)])
    if not outcomes:
        return None
    return any(outcome.get("type") == "timeout" or outcome.get("exit_code") not in (0, None) for outcome in outcomes)


def _content(record: FieldTracker, name: str) -> str | Sequence[Part]:
    """Return the content of a result: text, parts, or any other value as JSON."""
    value = record.peek(name)
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return to_content(read_parts(record.items(name), _part))
    if isinstance(value, dict) and _is_part(value):
        return to_content([_part(_object(record, name))])
    return "" if record.take(name) is None else to_text(value)


def _is_part(value: JsonValue) -> bool:
    kind = lookup(value, "type")
    return isinstance(kind, str) and (kind in _TEXTS or kind in _MEDIA)
