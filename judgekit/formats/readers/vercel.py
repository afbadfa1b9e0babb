"""Messages of the Vercel AI SDK: UI messages, and the messages that it sends to models.

{"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "tool-f", "toolCallId": "c1",
    "state": "output-available", "input": {"a": 1}, "output": 2}, {"type": "step-start"}, {"type": "text", ...}]}
{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}}]}
{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "json", "value": 2}}]}
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from judgekit.formats.blocks.common import content_items, media_kind, provider_metadata, read_parts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.reply import to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample
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
    parse_arguments,
)
from judgekit.traces.sample import Sample

_ROLES = ("system", "user", "assistant", "tool", "data")
_DECISIVE_PARTS = ("step-start", "dynamic-tool", "tool-invocation", "source-url", "source-document")
_DECISIVE_CONTENT = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response", "reasoning-file")
_KEPT = ("data-", "source", "tool-approval-", "reasoning-file")
"""Prefixes of kinds of parts that hold nothing of the conversation."""
_STREAMING = ("input-streaming", "partial-call")
_STATES = (
    *_STREAMING,
    *("input-available", "call", "approval-requested", "approval-responded"),
    *("output-available", "result", "output-error", "output-denied"),
)


class VercelReader:
    """A reader of rows with ``messages`` and of bare lists, also of UI messages of version 4 (``toolInvocations``).

    A UI message holds several answers of the model, each of which becomes a message. Source: ``ui-messages.ts`` and
    the types of model messages in the AI SDK.
    """

    name = "vercel"
    joins_lines = False
    shape = (
        'vercel: {"messages": [{"role": "assistant", "parts": [{"type": "tool-NAME", "state": ...}, ...]}, ...]}, or '
        '{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": ...}]}, or the list alone'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize parts by their kinds and states. Model messages of text alone are left to OpenAI's reader."""
        rows = self.records(value)
        return bool(rows) and _are_messages(messages_field(rows[0]))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return a list of messages as one conversation, and a list of rows or of such lists as many."""
        return [document] if _are_messages(document) else as_records(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation, named by the id of its chat."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        messages = [message for found in row.objects("messages") for message in _read(found)]
        if not messages:
            raise row.type_error("messages", "messages")
        tools = read_tools(row.optional_objects("tools"))
        return build_sample(row, index, {"messages": messages, "tools": tools})


def _are_messages(value: JsonValue) -> bool:
    return any("role" in message and _is_message(message) for message in objects_in(head(value)))


def _is_message(message: JsonObject) -> bool:
    if isinstance(message.get("toolInvocations"), list):
        return True
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


def _read(found: FieldTracker) -> list[Message]:
    role = found.one_of("role", _ROLES)
    found.take("role")
    if role == "assistant":
        return _assistant(found)
    if role == "tool":
        return _tool(found)
    identity, moment = found.id("id"), found.time("createdAt")
    parts = read_parts(_parts(found), _part)
    content = to_content([*parts, *map(_media, found.optional_objects("experimental_attachments"))])  # of version 4
    metadata = (found.maybe_object("metadata") or FieldTracker({})).leftover()
    extra = found.leftover()
    kind = HumanMessage if role == "user" else SystemMessage
    if role == "data":  # of version 3, for the developer's use
        extra["role"] = role
    return [kind(content, id=identity, timestamp=moment, metadata=metadata, extra=extra)]


def _parts(found: FieldTracker) -> Sequence[FieldTracker | JsonValue]:
    """Take the parts of a message from wherever they are."""
    if "parts" not in found:
        return content_items(found, "a list of parts")
    content, parts = found.peek("content"), found.items("parts")
    texts = [text for part in parts if isinstance(part, FieldTracker) and isinstance(text := part.peek("text"), str)]
    if isinstance(content, str) and content in "".join(texts):
        found.take("content")  # version 4 repeats it
    return parts


def _assistant(found: FieldTracker) -> list[Message]:
    identity, moment = found.id("id"), found.time("createdAt")
    steps = [_Step()]
    thought = found.text("reasoning") if isinstance(found.peek("reasoning"), str) and "parts" not in found else None
    if thought:
        steps[0].parts.append(ReasoningPart(thought))
    known: set[str] = set()
    parts = _parts(found)
    invoked = found.objects("toolInvocations") if isinstance(found.peek("toolInvocations"), list) else []
    if parts and not isinstance(parts[0], FieldTracker):  # version 4 without parts: the text comes after the calls
        _invocations(invoked, steps, known)
        invoked = []
    for part in parts:
        _add(part, steps, known)
    _invocations(invoked, steps, known)
    messages: list[Message] = []
    for step in [step for step in steps if step.parts or step.calls] or steps[:1]:
        said = AIMessage(to_content(step.parts), tool_calls=step.calls, id=identity, timestamp=moment)
        messages += [said, *step.results]
    metadata = (found.maybe_object("metadata") or FieldTracker({})).leftover()
    about = {"metadata": metadata, "extra": found.leftover()}
    return [messages[0].model_copy(update=about), *messages[1:]]


def _invocations(found: Sequence[FieldTracker], steps: list[_Step], known: set[str]) -> None:
    """Read the list of calls of version 4, which the parts may repeat."""
    step: JsonValue = None
    for one in found:
        if isinstance(identity := one.peek("toolCallId"), str) and identity in known:
            continue  # it stays in the message's extra
        if step is not None and one.peek("step") != step:
            steps.append(_Step())
        step = one.peek("step")
        _call(one, steps, known)
    if found and steps[-1].results:
        steps.append(_Step())


def _add(part: FieldTracker | JsonValue, steps: list[_Step], known: set[str]) -> None:
    """Add a part of an assistant message to its last step, or begin a new step."""
    kind = part.peek("type") if isinstance(part, FieldTracker) else None
    if not isinstance(part, FieldTracker) or not isinstance(kind, str):
        steps[-1].parts += read_parts([part], _part)
    elif kind == "step-start":
        part.take("type")
        steps.append(_Step())
        if rest := part.leftover():
            steps[-1].parts.append(OtherPart({"type": kind, **rest}))
    elif kind == "tool-invocation" and (inner := part.object("toolInvocation")) is not None:
        part.take("type")
        _call(inner, steps, known)
    elif kind == "tool-result":
        steps[-1].results.append(_tool_result(part))
        steps.append(_Step())
    elif kind == "tool-call" or (
        kind not in _DECISIVE_CONTENT and kind.startswith(("tool-", "dynamic-tool")) and "toolCallId" in part
    ):
        _call(part, steps, known)
    else:
        steps[-1].parts.append(_part(part))


def _call(found: FieldTracker, steps: list[_Step], known: set[str]) -> None:
    """Read a call, and its result if its state shows one. Only UI messages have states."""
    state, kind = found.peek("state"), found.peek("type")
    if state in _STREAMING:
        found.warn("an unfinished call, kept as a part of the message")
        steps[-1].parts.append(OtherPart(found.leftover()))
        return
    if state is not None and state not in _STATES:
        raise found.type_error("state", f"one of {', '.join(_STATES)}")
    name = found.text("toolName")
    if name is None and isinstance(kind, str) and kind.startswith("tool-") and kind != "tool-call":
        name = kind.removeprefix("tool-")
    if not name:
        raise found.type_error("toolName", "a tool name")
    if kind != "dynamic-tool":
        found.take("type")
    identity = found.id("toolCallId")
    if identity is not None:
        known.add(identity)
    arguments = parse_arguments(found.take("input", "args", "rawInput"))
    provided = found.peek("providerExecuted") is True
    result = _outcome(found, str(state), identity, name)
    metadata = provider_metadata(provided=provided)
    call = ToolCall(name, id=identity, metadata=metadata, **arguments, extra=found.leftover())
    steps[-1].calls.append(call)
    if result is not None:
        steps[-1].results.append(result)
        if provided:  # the model went on from here
            steps.append(_Step())


def _outcome(found: FieldTracker, state: str, identity: str | None, name: str) -> ToolMessage | None:
    metadata: JsonObject = {}
    if state == "output-available":
        failed: bool | None = False
        output = found.take("output")
        if found.peek("preliminary") is True:
            failed, metadata = None, {"preliminary": True}
    elif state == "result":  # version 4 does not record whether it failed
        failed, output = None, found.take("result")
    elif state == "output-error":
        failed, output = True, found.take("errorText")
    elif state == "output-denied":
        failed, output = True, lookup(found.peek("approval"), "reason")
        metadata = {"denied": True}
    else:
        return None
    told = found.take("resultProviderMetadata")
    return ToolMessage(
        "" if output is None else to_text(output),
        tool_call_id=identity,
        name=name,
        is_error=failed,
        metadata=metadata,
        extra={} if told is None else {"resultProviderMetadata": told},
    )


def _tool(found: FieldTracker) -> list[Message]:
    """Read results, and approvals of the user."""
    messages: list[Message] = []
    for part in found.objects("content"):
        kind = part.peek("type")
        if kind == "tool-result":
            messages.append(_tool_result(part))
        elif kind == "tool-approval-response":
            messages.append(HumanMessage([_part(part)]))
        else:
            raise part.type_error("type", "tool-result or tool-approval-response")
    if not messages:
        raise found.type_error("content", "results")
    rest = found.leftover()
    if rest:
        messages[0] = messages[0].model_copy(update={"extra": {**messages[0].extra, **rest}})
    return messages


def _tool_result(found: FieldTracker) -> ToolMessage:
    found.take("type")
    identity, name = found.id("toolCallId"), found.text("toolName")
    failed = found.boolean("isError")
    content: str | Sequence[Part]
    output = found.maybe_object("output")
    if output is None:
        content = "" if (result := found.take("output", "result")) is None else to_text(result)
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
    return ToolMessage(content, tool_call_id=identity, name=name, is_error=failed, extra=found.leftover())


def _part(found: FieldTracker) -> Part:
    kind = found.peek("type")
    if kind in ("text", "reasoning"):
        name = "reasoning" if kind == "reasoning" and "reasoning" in found else "text"
        if isinstance(text := found.peek(name), str):
            found.take("type")
            found.take(name)
            return (TextPart if kind == "text" else ReasoningPart)(text, extra=found.leftover())
    if kind in ("file", "image", "media", "file-data", "file-url", "image-data", "image-url"):
        return _media(found)
    is_kept = isinstance(kind, str) and kind.startswith(_KEPT)
    return OtherPart(found.leftover()) if is_kept else unknown_part(found)


def _media(found: FieldTracker) -> Part:
    names = ("url", "data", "image")
    name = next((name for name in names if isinstance(found.peek(name), str)), None)
    if name is None:  # bytes, or an id
        return OtherPart(found.leftover())
    told = found.text(name) or ""
    kind = str(found.peek("type"))
    mime = found.text("mediaType", "mimeType", "contentType")
    is_url = name == "url" or told.startswith(("data:", "http:", "https:"))
    return MediaPart(
        kind="image" if kind.startswith("image") else media_kind(mime),
        url=told if is_url else None,
        data=None if is_url else told,
        mime_type=mime,
        name=found.text("filename", "name"),
        extra=found.leftover(),
    )
