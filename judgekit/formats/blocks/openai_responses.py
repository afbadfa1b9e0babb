r"""Items of OpenAI's Responses API, which the Agents SDK and the Codex CLI also record.

[{"role": "user", "content": "Hi"}, {"type": "reasoning", "summary": []},
 {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"a\": 1}"},
 {"type": "function_call_output", "call_id": "call_1", "output": "2"},
 {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}]
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from pydantic import JsonValue

from judgekit.formats.blocks.common import read_counts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.openai_responses_items import (
    CALLS,
    NAMED_CALLS,
    RESULTS,
    read_call,
    read_content,
    read_reasoning,
    read_result,
)
from judgekit.formats.blocks.reply import is_blank, to_content, with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.values import head, lookup, objects_in
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    Message,
    OtherPart,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.recording import ToolDefinition

_ROLES = ("system", "developer", "user", "assistant")
_ELSEWHERE = ("item_reference", "compaction", "compaction_summary")
_KEPT = (*_ELSEWHERE, "compaction_trigger", "mcp_list_tools", "mcp_approval_request", "configuration_update")
DECISIVE = {*CALLS, *RESULTS, "reasoning", "item_reference", "mcp_list_tools", "additional_tools"} - {"program"}
"""Kinds of items that no other API has."""


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
        """Add an item, with its agent and model if it is the assistant's; ``is_error`` is known from elsewhere."""
        kind = "message" if record.peek("type") is None else record.peek("type")
        if not isinstance(kind, str):
            raise record.type_error("type", "an item type")
        if kind == "message":
            self._message(record, agent, model)
        elif kind in RESULTS:
            self.messages().append(read_result(record, kind, is_error=is_error))
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
            turn.parts += read_content(record)
            record.take("type")
            record.take("role")
            if turn.id is None and not turn.extra:
                turn.id = record.id("id")
                turn.extra = record.leftover()
            elif rest := record.leftover():
                turn.extra["messages"] = [*cast("list[JsonValue]", turn.extra.get("messages", [])), rest]
            return
        record.take("type")
        content = to_content(read_content(record))
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
            turn.parts.append(read_reasoning(record))
        elif kind in CALLS and not (kind in NAMED_CALLS and is_blank(record)):
            call, result = read_call(record, kind)
            turn.calls.append(call)
            if result is not None:
                self.messages().append(result)
        else:
            if kind in _ELSEWHERE:
                record.warn(f"part of the history is not in the file, only this {kind.replace('_', ' ')}")
            elif kind not in (*_KEPT, *CALLS):
                record.warn(f"unknown item type {kind!r:.80}, kept as is")
            turn.parts.append(OtherPart(record.leftover()))


def read_items(items: Iterable[FieldTracker]) -> list[Message]:
    """Read items as messages."""
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
    if not any(isinstance(message, AIMessage) for message in messages):
        messages.append(AIMessage())
    details = response.object("incomplete_details") or FieldTracker({})
    model = response.text("model")
    reply = {
        "finish_reason": details.text("reason") or response.text("status"),
        "usage": read_usage(response.object("usage")),
        "timestamp": response.time("created_at"),
    }
    return with_fields(messages, every={"model": model}, once=reply)


def read_usage(counts: FieldTracker | None) -> Usage | None:
    """Read token counts as this API reports them. Unknown counts are kept."""
    return read_counts(
        counts, cached="input_tokens_details.cached_tokens", reasoning="output_tokens_details.reasoning_tokens"
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
    if lookup(value, "object") == "realtime.item":
        return True
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
