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
        self, found: FieldTracker, *, agent: str | None = None, model: str | None = None, is_error: bool | None = None
    ) -> None:
        """Add an item.

        Args:
            found: The item.
            agent: The agent that made it, if it is the assistant's.
            model: The model that made it, if it is the assistant's.
            is_error: Whether a result is an error, if this is recorded outside the item.

        Raises:
            TraceError: It has an unknown role or content, or is a call without a tool name.
        """
        kind = "message" if found.peek("type") is None else found.peek("type")
        if not isinstance(kind, str):
            raise found.type_error("type", "an item type")
        if kind == "message":
            self._message(found, agent, model)
        elif kind in _RESULTS:
            self.messages().append(_result(found, kind, is_error=is_error))
        elif kind == "mcp_approval_response":
            self.messages().append(HumanMessage([OtherPart(found.leftover())]))
        elif kind == "additional_tools":
            self.messages().append(SystemMessage([OtherPart(found.leftover())], role="developer"))
        else:
            self._assistant(found, kind, self._turn_of(found, agent, model))

    def set_usage(self, usage: Usage) -> None:
        """End the assistant's message and set its usage, or that of the next message if it has one already."""
        messages = self.messages()
        place = len(messages) - 1
        while place >= 0 and isinstance(messages[place], ToolMessage):
            place -= 1
        if place >= 0 and isinstance(last := messages[place], AIMessage) and last.usage is None:
            messages[place] = last.model_copy(update={"usage": usage})
        else:
            self._reported = usage

    def messages(self) -> list[Message]:
        """Return the messages so far. This ends the last one."""
        if (turn := self._turn) is not None:
            said = AIMessage(
                to_content(turn.parts),
                tool_calls=turn.calls,
                id=turn.id,
                agent=turn.agent,
                model=turn.model,
                timestamp=turn.timestamp,
                usage=self._reported,
                extra=turn.extra,
            )
            self._messages.append(said)
            self._turn = self._reported = None
        return self._messages

    def _turn_of(self, found: FieldTracker, agent: str | None, model: str | None) -> _Turn:
        if self._turn is not None and (self._turn.agent, self._turn.model) != (agent, model):
            self.messages()
        if self._turn is None:
            self._turn = _Turn(agent, model, found.time("timestamp"))
        return self._turn

    def _message(self, found: FieldTracker, agent: str | None, model: str | None) -> None:
        role = found.one_of("role", _ROLES)
        for calls in ("tool_calls", "function_call"):
            if not is_blank(found.peek(calls)):
                found.warn("Chat Completions calls, which do not belong in an item; kept as is", calls)
        if role == "assistant":
            turn = self._turn_of(found, agent, model)
            turn.parts += _message_parts(found)
            found.take("type")
            found.take("role")
            if turn.id is None and not turn.extra:
                turn.id = found.id("id")
                turn.extra = found.leftover()
            elif rest := found.leftover():
                turn.extra["messages"] = [*cast("list[JsonValue]", turn.extra.get("messages", [])), rest]
            return
        found.take("type")
        content = to_content(_message_parts(found))
        identity, moment = found.id("id"), found.time("timestamp")
        if role == "user":
            found.take("role")
            name = found.text("name")
            message: Message = HumanMessage(content, id=identity, timestamp=moment, name=name, extra=found.leftover())
        else:
            told = cast("Literal['system', 'developer']", found.take("role"))
            message = SystemMessage(content, id=identity, timestamp=moment, role=told, extra=found.leftover())
        self.messages().append(message)

    def _assistant(self, found: FieldTracker, kind: str, turn: _Turn) -> None:
        if kind == "reasoning":
            turn.parts.append(_reasoning(found))
        elif kind in _CALLS and not (kind in _NAMED and is_blank(found)):
            call, result = _call(found, kind)
            turn.calls.append(call)
            if result is not None:
                self.messages().append(result)
        else:
            if kind in _ELSEWHERE:
                found.warn(f"part of the history is not in the file, only this {kind.replace('_', ' ')}")
            elif kind not in (*_KEPT, *_CALLS):
                found.warn(f"unknown item type {kind!r:.80}, kept as is")
            turn.parts.append(OtherPart(found.leftover()))


def read_items(found: Iterable[FieldTracker]) -> list[Message]:
    """Read items as messages.

    Raises:
        TraceError: An item cannot be read; see `ItemMessages.add`.
    """
    items = ItemMessages()
    for item in found:
        items.add(item)
    return items.messages()


def read_request(found: FieldTracker) -> list[Message]:
    """Read a request: its instructions, then its input. Warns if the provider holds more of the history."""
    for name in ("previous_response_id", "conversation", "prompt"):
        if name in found:
            found.warn(f"part of the history is not in the file, only this {name}", name)
    messages: list[Message] = []
    for name, role in (("instructions", SystemMessage), ("input", HumanMessage)):
        value = found.peek(name)
        if isinstance(value, str):
            found.take(name)
            messages += [role(value)] if value or role is HumanMessage else []
        else:
            messages += read_items(found.objects(name))
    return messages


def read_response(found: FieldTracker) -> list[Message]:
    """Read a response. Its last assistant message has the usage and the reason why it ended."""
    messages = read_items(found.objects("output"))
    places = [index for index, message in enumerate(messages) if isinstance(message, AIMessage)]
    if not places:
        places = [len(messages)]
        messages.append(AIMessage())
    usage = found.object("usage")
    details = found.object("incomplete_details") or FieldTracker({})
    model = found.text("model")
    ended = details.text("reason") or found.text("status")
    for index in places:
        messages[index] = messages[index].model_copy(update={"model": model})
    spent = None if usage is None else read_usage(usage)
    last = {"usage": spent, "finish_reason": ended, "timestamp": found.time("created_at")}
    messages[places[-1]] = messages[places[-1]].model_copy(update=last)
    return messages


def read_usage(found: FieldTracker) -> Usage:
    """Read token counts as this API reports them. Unknown counts are kept."""
    asked = _object(found, "input_tokens_details")
    answered = _object(found, "output_tokens_details")
    return Usage(
        input_tokens=found.count("input_tokens"),
        output_tokens=found.count("output_tokens"),
        cached_tokens=asked.count("cached_tokens"),
        reasoning_tokens=answered.count("reasoning_tokens"),
        extra=found.leftover(),
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


def _object(found: FieldTracker, name: str) -> FieldTracker:
    return found.maybe_object(name) or FieldTracker({})


def _message_parts(found: FieldTracker) -> list[Part]:
    content = found.peek("content")
    if content is None:
        return []
    if isinstance(content, str):
        found.take("content")
        return [TextPart(content)]
    if not isinstance(content, list):
        raise found.type_error("content", "a string or a list of parts")
    return read_parts(found.items("content"), _part)


def _nonempty_leftover(found: FieldTracker) -> JsonObject:
    """Return what is left over, without empty lists and objects, of which these parts have many."""
    return {name: value for name, value in found.leftover().items() if value not in ([], {})}


def _part(found: FieldTracker) -> Part:
    kind = str(found.peek("type"))
    if kind in _TEXTS and isinstance(text := found.peek(_TEXTS[kind]), str):
        found.take(_TEXTS[kind])
        found.take("type")
        return (RefusalPart if kind == "refusal" else TextPart)(text, extra=_nonempty_leftover(found))
    if kind in _MEDIA:
        return _media(found, kind)
    return unknown_part(found)


def _media(found: FieldTracker, kind: str) -> MediaPart:
    inner = _object(found, kind) if kind == "input_audio" else found
    url = _text_of(inner, "image_url", "file_url", "url")
    data = _text_of(inner, "data", "file_data", "image", "audio", "file")
    if data is not None and url is None and data.startswith(("data:", "http:", "https:")):
        url, data = data, None
    name = found.text("filename")
    if kind.startswith("input_"):
        found.take("type")
    return MediaPart(kind=_MEDIA[kind], url=url, data=data, name=name, extra=found.leftover())


def _text_of(found: FieldTracker, *names: str) -> str | None:
    """Take the first of these fields that is a text. Other values are left."""
    return next((found.text(name) for name in names if isinstance(found.peek(name), str)), None)


def _reasoning(found: FieldTracker) -> ReasoningPart:
    found.take("type")
    texts = _texts(found, "content") or _texts(found, "rawContent") or _texts(found, "summary")
    return ReasoningPart("\n\n".join(texts), extra=_nonempty_leftover(found))


def _texts(found: FieldTracker, name: str) -> list[str]:
    """Take the texts of parts if all parts are texts."""
    value = found.peek(name)
    if isinstance(value, str):
        found.take(name)
        return [value]
    if not isinstance(value, list):
        return []
    texts = [text for part in value if isinstance(part, dict) and isinstance(text := part.get("text"), str)]
    if len(texts) < len(value):
        return []
    for part in found.objects(name):
        part.take_if("type", "summary_text", "reasoning_text", "input_text")
        part.take("text")
    return texts


def _call(found: FieldTracker, kind: str) -> tuple[ToolCall, ToolMessage | None]:
    """Read a call, and its result if the same item holds it."""
    provided = kind in _PROVIDED or kind == "program" or found.peek("execution") == "server"
    identity = found.id("call_id", "callId") or (found.id("id") if kind in _PROVIDED else None)
    name = found.text("name") if kind in _NAMED else kind.removesuffix("_call")
    if name is None:
        raise found.type_error("name", "a tool name")
    arguments = _arguments(found, kind)
    result = _provided(found, kind, arguments, identity, name) if kind in _PROVIDED else None
    found.take_if("type", "function_call")
    metadata = provider_metadata(provided=provided)
    call = ToolCall(name, id=identity, metadata=metadata, **parse_arguments(arguments), extra=found.leftover())
    return call, result


def _arguments(found: FieldTracker, kind: str) -> JsonValue:
    names = _CALLS[kind]
    if names == ("arguments",):
        return found.take("arguments")
    if whole := found.maybe_object(names[0]):
        return whole.leftover()
    return {name: value for name in names if (value := found.take(name)) is not None}


def _provided(
    found: FieldTracker, kind: str, arguments: JsonValue, identity: str | None, name: str
) -> ToolMessage | None:
    """Read the result of a call that the provider ran."""
    content: str | Sequence[Part] = ""
    if kind == "web_search_call":
        sources = arguments.pop("sources", None) if isinstance(arguments, dict) else None
        content = "" if sources is None else to_text(sources)
    elif kind == "image_generation_call" and isinstance(found.peek("result"), str):
        written = found.peek("output_format")
        mime = f"image/{written}" if isinstance(written, str) else None
        content = [MediaPart(kind="image", data=found.text("result"), mime_type=mime)]
    else:
        content = _content(found, _PROVIDED[kind])
    failed = {"completed": False, "failed": True}.get(str(found.peek("status")))
    extra: JsonObject = {}
    if "error" in found:
        failed = True
        content, extra = _error(found, content)
    if not content and not failed:
        return None  # most of these calls do not record their results
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, extra=extra)


def _error(found: FieldTracker, content: str | Sequence[Part]) -> tuple[str | Sequence[Part], JsonObject]:
    """Return the content of a failed result, and what else the error says."""
    error = found.peek("error")
    if content:
        return content, {"error": found.take("error")}
    if not isinstance(error, dict):
        return to_text(found.take("error")), {}
    inner = _object(found, "error")
    text = _content(inner, "message" if "message" in inner else "content")
    rest = inner.leftover()
    return text, {"error": rest} if rest else {}


def _result(found: FieldTracker, kind: str, *, is_error: bool | None) -> ToolMessage:
    told = found.peek("output")
    if isinstance(told, dict) and isinstance(told.get("success"), bool) and "content" in told:
        inner = _object(found, "output")  # as older versions of Codex wrote it
        is_error = inner.boolean("success") is False
        content = _content(inner, "content")
    else:
        content = _content(found, {"tool_search_output": "tools", "program_output": "result"}.get(kind, "output"))
        if kind == "program_output" and not content:
            content = _content(found, "output")  # in JavaScript
    if kind in ("apply_patch_call_output", "computer_call_output"):
        is_error = {"completed": False, "failed": True}.get(str(found.peek("status")), is_error)
    elif kind == "shell_call_output":
        is_error = _outcome(told)
    identity = found.id("call_id", "callId")
    if identity is None and kind == "local_shell_call_output":
        identity = found.id("id")
    found.take_if("type", "function_call_output")
    return ToolMessage(
        content,
        tool_call_id=identity,
        name=found.text("name") or _RESULTS[kind],
        is_error=is_error,
        timestamp=found.time("timestamp"),
        extra=found.leftover(),
    )


def _outcome(outputs: JsonValue) -> bool | None:
    """Return whether a command of a shell call failed; ``None`` if that is not recorded."""
    outcomes = objects_in([lookup(output, "outcome") for output in as_list(outputs)])
    if not outcomes:
        return None
    return any(outcome.get("type") == "timeout" or outcome.get("exit_code") not in (0, None) for outcome in outcomes)


def _content(found: FieldTracker, name: str) -> str | Sequence[Part]:
    """Return the content of a result: text, parts, or any other value as JSON."""
    value = found.peek(name)
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return to_content(read_parts(found.items(name), _part))
    if isinstance(value, dict) and _is_part(value):
        return to_content([_part(_object(found, name))])
    return "" if found.take(name) is None else to_text(value)


def _is_part(value: JsonValue) -> bool:
    kind = lookup(value, "type")
    return isinstance(kind, str) and (kind in _TEXTS or kind in _MEDIA)
