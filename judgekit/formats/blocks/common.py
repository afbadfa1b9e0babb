"""Pieces that messages of most APIs share: content, tool calls, media and token counts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from pydantic import JsonValue

from judgekit.formats.field_tracker import FieldTracker
from judgekit.traces.message import JsonObject, OtherPart, TextPart, ToolCall, Usage

MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]
Read = TypeVar("Read")

MEDIA: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""The kinds of media by the names that most APIs give them."""
PROVIDED: JsonObject = {"executor": "provider"}
"""The metadata of calls of tools that the provider runs."""


def media_kind(mime_type: str | None) -> MediaKind:
    """Return the kind of media of a MIME type such as ``image/png``."""
    return MEDIA.get((mime_type or "").partition("/")[0], "file")


def content_items(holder: FieldTracker, kind: str = "a list of blocks") -> list[FieldTracker | JsonValue]:
    """Return the content of a message or block as a list. A text becomes a list of one, an empty text an empty list."""
    content = holder.peek("content")
    if isinstance(content, list):
        return holder.items("content")
    if content is not None and not isinstance(content, str):
        raise holder.type_error("content", f"a string or {kind}")
    holder.take("content")
    return [content] if content else []


def list_or_single(holder: FieldTracker, name: str) -> list[FieldTracker | JsonValue]:
    """Take a list, or a text or object as a list of one."""
    if (single := holder.maybe_object(name)) is not None:
        return [single]
    return [holder.take(name)] if isinstance(holder.peek(name), str) else holder.items(name)


def checked_text(holder: FieldTracker, name: str = "content") -> str:
    """Take a text, which is empty if the field is missing."""
    if name in holder and not isinstance(holder.peek(name), str):
        raise holder.type_error(name, "a string")
    return holder.text(name) or ""


def read_parts(
    parts: Iterable[FieldTracker | JsonValue], read: Callable[[FieldTracker], Read]
) -> list[Read | TextPart | OtherPart]:
    """Return the parts of a content: objects are read by ``read``, texts become text parts, other values are kept."""
    return [read(part) if isinstance(part, FieldTracker) else bare_part(part) for part in parts]


def bare_part(value: JsonValue) -> TextPart | OtherPart:
    """Return a value that is not an object as a part: a text, or the value as it is."""
    return TextPart(value) if isinstance(value, str) else OtherPart(value)


def tool_name(call: FieldTracker, *names: str) -> str:
    """Return the name of a tool from the first of these fields that exists."""
    name = call.text(*names)
    if name is None:
        raise call.type_error(names[0], "a tool name")
    return name


def read_call(
    call: FieldTracker,
    *,
    name: str = "name",
    ids: Sequence[str] = ("id",),
    args: Sequence[str] = ("arguments",),
    provided: bool = False,
    outer: FieldTracker | None = None,
) -> ToolCall:
    """Read a tool call from the fields with these names.

    The remaining fields of an ``outer`` object belong to the call too. The provider runs tools that are ``provided``.
    """
    tool, identity = tool_name(call, name), call.id(*ids)
    arguments = call.take(*args)
    extra = (outer or call).leftover()
    return ToolCall.recorded(tool, arguments, id=identity, metadata=PROVIDED if provided else None, extra=extra)


def plain_usage(sent: int | None, received: int | None) -> Usage | None:
    """Return the counts of input and output tokens as usage, if there are any."""
    return None if sent is received is None else Usage(input_tokens=sent, output_tokens=received)


def read_cached_counts(usage: FieldTracker | None, *, input: Sequence[str], cached: str, output: str) -> Usage | None:
    """Read the token counts of an API that counts cache writes and reads apart from the first of the ``input`` fields."""
    if usage is None:
        return None
    raw: JsonObject = {name: usage.peek(name) for name in input if name in usage}
    sent = {name: usage.count(name) for name in input}
    details = usage.object("output_tokens_details") or FieldTracker({})
    return Usage(
        input_tokens=None if sent[input[0]] is None else sum(filter(None, sent.values())),
        output_tokens=usage.count(output),
        cached_tokens=sent[cached],
        reasoning_tokens=details.count("thinking_tokens"),
        extra={**raw, **usage.leftover()},
    )


def read_counts(
    usage: FieldTracker | None,
    *,
    input: str = "input_tokens",
    output: str = "output_tokens",
    cached: str | None = None,
    reasoning: str | None = None,
) -> Usage | None:
    """Read the token counts of an object, if there is one. Its other fields go into ``extra``.

    The parameters name the field of each count; ``details.cached`` is a field of a nested object.
    """
    if usage is None:
        return None
    names = {"input_tokens": input, "output_tokens": output, "cached_tokens": cached, "reasoning_tokens": reasoning}
    holders: dict[str, FieldTracker | None] = {"": usage}
    counts: dict[str, object] = {}
    for ours, theirs in names.items():
        outer, _, name = (theirs or "").rpartition(".")
        if outer not in holders:
            holders[outer] = usage.object(outer)
        if name and (holder := holders[outer]):
            counts[ours] = holder.count(name)
    return Usage.model_validate({**counts, "extra": usage.leftover()})
