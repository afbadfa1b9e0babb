r"""Chat histories of Semantic Kernel in Python, as ``history.model_dump()`` and ``history.serialize()`` return them.

{"messages": [{"content_type": "message", "role": "user", "items": [{"content_type": "text", "text": "Weather?"}]},
 {"content_type": "message", "role": "assistant", "items": [{"content_type": "function_call", "id": "c1", "name": "city-weather", "arguments": "{}"}]},
 {"content_type": "message", "role": "tool", "items": [{"content_type": "function_result", "id": "c1", "result": "rain", ...}]}]}
"""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.formats.readers.framework import FrameworkReader, media_part
from judgekit.formats.values import as_list, as_object, first_value, lookup, objects_in, without
from judgekit.traces.message import JsonObject

_MEDIA = {"image": "image_url", "audio": "audio_url", "binary": "file"}
"""Kinds of items with media, and the kinds of parts that they become."""


class SemanticKernelReader(FrameworkReader):
    """A reader of chat histories. Functions have the names that the model calls: ``plugin-function``."""

    name = "semantic-kernel"
    shape = 'semantic-kernel: {"messages": [{"content_type": "message", "role": "user", "items": [{"content_type": "text", "text": ...}]}, ...]}'

    def is_message(self, message: JsonObject, /) -> bool:
        """Recognize messages of items."""
        return message.get("content_type") == "message" and isinstance(message.get("items"), list)

    def restated(self, message: JsonObject, /) -> Sequence[JsonObject]:
        """Return the results in a message, and the rest of it if there is any."""
        items, metadata = message.get("items"), as_object(message.get("metadata"))
        fields = without(message, "items", "metadata", "ai_model_id")
        fields["content_type"] = None if fields.get("content_type") == "message" else fields.get("content_type")
        if message.get("role") == "assistant":
            fields |= {"model": message.get("ai_model_id"), "usage": metadata.get("usage")}
            metadata = without(metadata, "usage")
        fields["metadata"] = metadata or None
        results = [_result(part) for part in objects_in(items) if part.get("content_type") == "function_result"]
        others = [_part(part) for part in as_list(items) if lookup(part, "content_type") != "function_result"]
        if not results:
            return [{**fields, "content": others}]
        role = message.get("role")
        results[0] = {**fields, **results[0], "speaker": None if role == "tool" else role}
        return [*results, {"role": role, "content": others}] if others else results


def _result(part: JsonObject) -> JsonObject:
    rest = without(part, "content_type", "id", "call_id", "result", "metadata")
    identity, content = first_value(part, "call_id", "id"), part.get("result")
    metadata = part.get("metadata") or None
    return {**rest, "role": "tool", "tool_call_id": identity, "content": content, "item_metadata": metadata}


def _part(part: JsonValue) -> JsonValue:
    if not isinstance(part, dict):
        return part
    kind, fields = part.get("content_type"), {**without(part, "content_type"), "metadata": part.get("metadata") or None}
    if kind == "function_call":
        return {**fields, "type": "tool_use"}
    if kind == "reasoning":
        return {**without(fields, "text"), "type": "thinking", "thinking": fields.get("text")}
    if isinstance(kind, str) and kind in _MEDIA:
        return media_part(_MEDIA[kind], fields, ("uri", "data_uri", "data"))
    return {**fields, "type": kind}
