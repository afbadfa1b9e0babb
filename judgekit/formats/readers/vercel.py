"""Messages of the Vercel AI SDK: UI messages, and the messages that it sends to models.

{"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "tool-f", "toolCallId": "c1",
    "state": "output-available", "input": {"a": 1}, "output": 2}, {"type": "step-start"}, {"type": "text", ...}]}
{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}}]}
{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "json", "value": 2}}]}
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from judgekit.formats.blocks.common import PROVIDED, content_items, media_kind, read_parts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.reply import to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import head, lookup, messages_field, objects_in
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
)
from judgekit.traces.sample import Sample

_ROLES = ("system", "user", "assistant", "tool")
_DECISIVE_PARTS = ("step-start", "dynamic-tool", "tool-invocation", "source-url", "source-document")
_DECISIVE_CONTENT = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response", "reasoning-file")
_KEPT = ("data-", "source", "tool-approval-", "reasoning-file")
"""Prefixes of kinds of parts that hold nothing of the conversation."""
_STATES = (
    *("input-streaming", "input-available", "approval-requested", "approval-responded"),
    *("output-available", "output-error", "output-denied"),
)


class VercelReader(MessagesReader):
    """A reader of rows with ``messages`` and of bare lists.

    A UI message holds several answers of the model, each of which becomes a message. Source: ``ui-messages.ts`` and
    the types of model messages in the AI SDK.
    """

    name = "vercel"
    shape = 'vercel: {"messages": [{"role": "assistant", "parts": [{"type": "tool-NAME", "state": ...}, ...]}, ...]}, or {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": ...}]}, or the list alone'

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Recognize parts by their kinds and states. Model messages of text alone are left to OpenAI's reader."""
        return any(map(_is_message, objects_in(head(messages_field(document)))))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by the id of its chat."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        messages = [message for turn in row.objects("messages") for message in _read(turn)]
        if isinstance(row.peek("system"), str) and not any(isinstance(message, SystemMessage) for message in messages):
            messages.insert(0, SystemMessage(row.text("system") or ""))
        if not messages:
            raise row.type_error("messages", "messages")
        tools = read_tools(row.optional_objects("tools"))
        return build_sample(row, index, {"messages": messages, "tools": tools})


def _is_message(message: JsonObject) -> bool:
    if "role" not in message:
        return False
    if isinstance(parts := message.get("parts"), list):
        return any(map(_is_ui_part, objects_in(head(parts))))
    content = message.get("content")
    return isinstance(content, list) and any(lookup(part, "type") in _DECISIVE_CONTENT for part in head(content))


def _is_ui_part(part: JsonObject) -> bool:
    kind = part.get("type")
    if not isinstance(kind, str):
        return False
    if kind in ("text", "reasoning"):
        return isinstance(part.get("text"), str)
    if kind == "file":
        return "mediaType" in part and "url" in part
    return kind in _DECISIVE_PARTS or kind.startswith(("tool-", "data-"))


@dataclass
class _Step:
    """An answer of the model within a message."""

    parts: list[Part] = field(default_factory=list[Part])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolMessage] = field(default_factory=list[ToolMessage])


def _read(message: FieldTracker) -> list[Message]:
    role = message.one_of("role", _ROLES)
    message.take("role")
    if role == "assistant":
        return _assistant(message)
    if role == "tool":
        return _tool(message)
    identity, moment = message.id("id"), message.time("createdAt")
    content = to_content(read_parts(_parts(message), _part))
    metadata = (message.maybe_object("metadata") or FieldTracker({})).leftover()
    kind = HumanMessage if role == "user" else SystemMessage
    return [kind(content, id=identity, timestamp=moment, metadata=metadata, extra=message.leftover())]


def _parts(message: FieldTracker) -> Sequence[FieldTracker | JsonValue]:
    """Take the parts of a UI message, or those of a message to a model."""
    return message.items("parts") if "parts" in message else content_items(message, "a list of parts")


def _assistant(message: FieldTracker) -> list[Message]:
    identity, moment = message.id("id"), message.time("createdAt")
    steps = [_Step()]
    for part in _parts(message):
        _add(part, steps)
    messages: list[Message] = []
    for step in [step for step in steps if step.parts or step.calls] or steps[:1]:
        reply = AIMessage(to_content(step.parts), tool_calls=step.calls, id=identity, timestamp=moment)
        messages += [reply, *step.results]
    metadata = (message.maybe_object("metadata") or FieldTracker({})).leftover()
    about = {"metadata": metadata, "extra": message.leftover()}
    return [messages[0].model_copy(update=about), *messages[1:]]


def _add(part: FieldTracker | JsonValue, steps: list[_Step]) -> None:
    kind = part.peek("type") if isinstance(part, FieldTracker) else None
    if not isinstance(part, FieldTracker) or not isinstance(kind, str):
        steps[-1].parts += read_parts([part], _part)
    elif kind == "step-start":
        part.take("type")
        steps.append(_Step())
        if rest := part.leftover():
            steps[-1].parts.append(OtherPart({"type": kind, **rest}))
    elif kind == "tool-result":
        steps[-1].results.append(_tool_result(part))
        steps.append(_Step())
    elif kind == "tool-call" or (
        kind not in _DECISIVE_CONTENT and kind.startswith(("tool-", "dynamic-tool")) and "toolCallId" in part
    ):
        _call(part, steps)
    else:
        steps[-1].parts.append(_part(part))


def _call(part: FieldTracker, steps: list[_Step]) -> None:
    """Read a call, and its result if its state shows one. Only UI messages have states."""
    state, kind = part.peek("state"), part.peek("type")
    if state == "input-streaming":
        part.warn("an unfinished call, kept as a part of the message")
        steps[-1].parts.append(OtherPart(part.leftover()))
        return
    if state is not None and state not in _STATES:
        raise part.type_error("state", f"one of {', '.join(_STATES)}")
    name = part.text("toolName")
    if name is None and isinstance(kind, str) and kind.startswith("tool-") and kind != "tool-call":
        name = kind.removeprefix("tool-")
    if not name:
        raise part.type_error("toolName", "a tool name")
    if kind != "dynamic-tool":
        part.take("type")
    identity = part.id("toolCallId")
    arguments = part.take("input", "args", "rawInput")
    provided = part.peek("providerExecuted") is True
    result = _outcome(part, str(state), identity, name)
    metadata = PROVIDED if provided else None
    steps[-1].calls.append(ToolCall.recorded(name, arguments, id=identity, metadata=metadata, extra=part.leftover()))
    if result is not None:
        steps[-1].results.append(result)
        if provided:  # the model went on from here
            steps.append(_Step())


def _outcome(part: FieldTracker, state: str, identity: str | None, name: str) -> ToolMessage | None:
    metadata: JsonObject = {}
    if state == "output-available":
        failed: bool | None = False
        output = part.take("output")
        if part.peek("preliminary") is True:
            failed, metadata = None, {"preliminary": True}
    elif state == "output-error":
        failed, output = True, part.take("errorText")
    elif state == "output-denied":
        failed, output = True, lookup(part.peek("approval"), "reason")
        metadata = {"denied": True}
    else:
        return None
    content = "" if output is None else to_text(output)
    of_provider = part.take("resultProviderMetadata")
    extra: JsonObject = {} if of_provider is None else {"resultProviderMetadata": of_provider}
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, metadata=metadata, extra=extra)


def _tool(message: FieldTracker) -> list[Message]:
    messages: list[Message] = []
    for part in message.objects("content"):
        kind = part.peek("type")
        if kind == "tool-result":
            messages.append(_tool_result(part))
        elif kind == "tool-approval-response":
            messages.append(HumanMessage([_part(part)]))
        else:
            raise part.type_error("type", "tool-result or tool-approval-response")
    if not messages:
        raise message.type_error("content", "results")
    if rest := message.leftover():
        messages[0] = messages[0].model_copy(update={"extra": {**messages[0].extra, **rest}})
    return messages


def _tool_result(part: FieldTracker) -> ToolMessage:
    part.take("type")
    identity, name = part.id("toolCallId"), part.text("toolName")
    failed = part.boolean("isError")
    content: str | Sequence[Part]
    output = part.maybe_object("output")
    if output is None:
        content = "" if (result := part.take("output", "result")) is None else to_text(result)
    else:
        kind = output.peek("type")
        if not isinstance(kind, str):
            raise output.type_error("type", "a result type")
        failed = kind.startswith("error-") or kind == "execution-denied"
        value = output.peek("value")
        if kind == "content" and isinstance(value, list):
            content = to_content(read_parts(output.items("value"), _part))
        else:
            value = output.take("value", "reason")
            content = "" if value is None else to_text(value)
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, extra=part.leftover())


def _part(part: FieldTracker) -> Part:
    kind = part.peek("type")
    if kind in ("text", "reasoning") and isinstance(text := part.peek("text"), str):
        part.take("type")
        part.take("text")
        return (TextPart if kind == "text" else ReasoningPart)(text, extra=part.leftover())
    if kind in ("file", "image", "media", "file-data", "file-url", "image-data", "image-url"):
        return _media(part)
    is_kept = isinstance(kind, str) and kind.startswith(_KEPT)
    return OtherPart(part.leftover()) if is_kept else unknown_part(part)


def _media(part: FieldTracker) -> Part:
    name = next((name for name in ("url", "data", "image") if isinstance(part.peek(name), str)), None)
    if name is None:  # bytes, or an id
        return OtherPart(part.leftover())
    source = part.text(name) or ""
    kind = str(part.peek("type"))
    mime = part.text("mediaType", "mimeType", "contentType")
    is_url = name == "url" or source.startswith(("data:", "http:", "https:"))
    url, data = (source, None) if is_url else (None, source)
    media, title = "image" if kind.startswith("image") else media_kind(mime), part.text("filename", "name")
    return MediaPart(kind=media, url=url, data=data, mime_type=mime, name=title, extra=part.leftover())
