"""Pieces that the messages of most APIs have in common: content, tool calls, media and token counts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from pydantic import JsonValue

from judgekit.formats.found import Found
from judgekit.traces.message import JsonObject, OtherPart, TextPart, ToolCall, Usage, parse_arguments

MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]
Read = TypeVar("Read")

MEDIA: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""The kinds of media by the names that most APIs have for them."""


def media_kind(mime_type: str | None) -> MediaKind:
    """Return the kind of media that a MIME type such as ``image/png`` stands for."""
    return MEDIA.get((mime_type or "").partition("/")[0], "file")


def content_items(found: Found, wanted: str = "a list of blocks") -> list[Found | JsonValue]:
    """Return the content of a message or block, which is a text or a list, as a list. An empty text is nothing.

    Raises:
        TraceError: It is something else.
    """
    content = found.peek("content")
    if isinstance(content, list):
        return found.items("content")
    if content is not None and not isinstance(content, str):
        raise found.unfit("content", f"a text or {wanted}")
    found.take("content")
    return [content] if content else []


def read_parts(items: Iterable[Found | JsonValue], read: Callable[[Found], Read]) -> list[Read | TextPart | OtherPart]:
    """Return the parts of a content: objects as ``read`` reads them, texts as text, other values as they are."""
    return [read(one) if isinstance(one, Found) else bare_part(one) for one in items]


def bare_part(value: JsonValue) -> TextPart | OtherPart:
    """Return a part that is no object: a text, or another value as it is."""
    return TextPart(value) if isinstance(value, str) else OtherPart(value)


def tool_name(found: Found, *names: str) -> str:
    """Return the name of a tool, which is in the first of these fields that is there.

    Raises:
        TraceError: There is none.
    """
    name = found.text(*names)
    if name is None:
        raise found.unfit(names[0], "the name of a tool")
    return name


def provider_metadata(*, provided: bool) -> JsonObject:
    """Return the metadata of a tool call that the provider runs itself, or does not."""
    return {"executor": "provider"} if provided else {}


def read_call(
    found: Found,
    *,
    name: str = "name",
    ids: Sequence[str] = ("id",),
    args: Sequence[str] = ("arguments",),
    provided: bool = False,
    outer: Found | None = None,
) -> ToolCall:
    """Return a tool call.

    Args:
        found: The call.
        name: The field with the name of the tool.
        ids: The fields that may hold the call's id.
        args: The fields that may hold the arguments.
        provided: Whether the provider runs the tool.
        outer: The object around the call, if what is left of it belongs to the call too.

    Raises:
        TraceError: The call names no tool.
    """
    tool, identity = tool_name(found, name), found.identity(*ids)
    arguments = parse_arguments(found.take(*args))
    extra = (outer or found).leftover()
    return ToolCall(tool, id=identity, metadata=provider_metadata(provided=provided), **arguments, extra=extra)


def read_counts(
    found: Found | None,
    *,
    input: str = "input_tokens",
    output: str = "output_tokens",
    cached: str | None = None,
    reasoning: str | None = None,
) -> Usage | None:
    """Return the token counts in an object, if there is one, with its other fields in ``extra``.

    The options name the fields that hold each count; ``details.cached`` is a field of an object in it.
    """
    if found is None:
        return None
    names = {"input_tokens": input, "output_tokens": output, "cached_tokens": cached, "reasoning_tokens": reasoning}
    paths = {ours: theirs.rpartition(".") for ours, theirs in names.items() if theirs is not None}
    inner = {outer: found.object(outer) or Found({}) for outer, _, _ in paths.values() if outer}
    counts = {ours: inner.get(outer, found).count(name) for ours, (outer, _, name) in paths.items()}
    return Usage.model_validate({**counts, "extra": found.leftover()})
