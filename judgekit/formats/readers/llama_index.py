r"""Messages of LlamaIndex, as ``ChatMessage.model_dump()`` returns them, and its chat stores.

[{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Weather?"}]},
 {"role": "assistant", "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": "{}"}}]}, "blocks": []},
 {"role": "tool", "additional_kwargs": {"tool_call_id": "c1", "name": "weather"}, "blocks": [{"block_type": "text", "text": "rain"}]}]
"""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.formats.readers.framework import FrameworkReader, media_part
from judgekit.formats.values import as_object, head, objects_in, parse_if_json, without
from judgekit.traces.message import JsonObject

_OF_CHAT = ("tool_calls", "function_call", "tool_call_id", "name")
_ROLES: JsonObject = {"chatbot": "assistant", "model": "assistant"}
_MEDIA = {"image": "image_url", "audio": "audio_url", "video": "video_url", "document": "file"}
"""Kinds of blocks with media, and the kinds of parts that they become."""


class LlamaIndexReader(FrameworkReader):
    """A reader of messages of LlamaIndex. Each conversation of a chat store is named by its key."""

    name = "llama-index"
    shape = 'llama-index: [{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": ...}]}, ...], rows of "messages", or {"store": {...}}'

    def is_message(self, message: JsonObject, /) -> bool:
        """Recognize blocks by their ``block_type``, and a text by the arguments next to it."""
        blocks = message.get("blocks")
        if blocks and any("block_type" in block for block in objects_in(head(blocks))):
            return True
        has_arguments = isinstance(message.get("additional_kwargs"), dict) and "type" not in message
        return has_arguments and "role" in message and ("content" in message or "blocks" in message)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the conversations of a chat store, or those of any other document."""
        store = as_object(document).get("store")
        if not isinstance(store, dict):
            return super().records(document)
        rest = without(as_object(document), "store")
        return [{**rest, "id": name, "messages": messages} for name, messages in store.items()]

    def restated(self, message: JsonObject, /) -> Sequence[JsonObject]:
        """Return one message, with calls from its blocks and its arguments."""
        arguments, role = as_object(message.get("additional_kwargs")), message.get("role")
        fields = without(message, "blocks", "additional_kwargs")
        if isinstance(blocks := message.get("blocks"), list):
            fields["content"] = [_part(block) for block in blocks if block != {"block_type": "text", "text": ""}]
        fields["role"] = _ROLES.get(role, role) if isinstance(role, str) else role
        own = {name: arguments[name] for name in _OF_CHAT if name in arguments}
        return [{**fields, **own, "additional_kwargs": without(arguments, *own) or None}]


def _part(block: JsonValue) -> JsonValue:
    if not isinstance(block, dict):
        return block
    kind, part = block.get("block_type"), without(block, "block_type")
    if kind == "tool_call":
        call: JsonObject = {"id": part.get("tool_call_id"), "name": part.get("tool_name")}
        rest = without(part, "tool_call_id", "tool_name", "tool_kwargs")
        return {"type": "tool_use", **call, "input": parse_if_json(part.get("tool_kwargs")), **rest}
    if kind == "thinking":
        return {"type": "thinking", "thinking": part.get("content"), **without(part, "content")}
    if isinstance(kind, str) and kind in _MEDIA:
        return media_part(_MEDIA[kind], part, ("url", kind, "data", "path"), f"{kind}_mimetype")
    return {"type": kind, **part}
