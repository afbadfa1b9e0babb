"""Messages of Haystack, as ``ChatMessage.to_dict()`` returns them since version 2.9.

[{"role": "user", "meta": {}, "name": null, "content": [{"text": "Weather?"}]},
 {"role": "assistant", "content": [{"tool_call": {"tool_name": "weather", "arguments": {"city": "a"}, "id": "c1"}}], ...},
 {"role": "tool", "content": [{"tool_call_result": {"result": "rain", "origin": {"id": "c1", ...}, "error": false}}], ...}]
"""

from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.formats.readers.framework import FrameworkReader, media_part
from judgekit.formats.values import as_object, head, objects_in, without
from judgekit.traces.message import JsonObject

_PARTS = frozenset(("text", "tool_call", "tool_call_result", "image", "file", "reasoning"))
_OF_REPLIES = ("model", "finish_reason", "usage")


class HaystackReader(FrameworkReader):
    """A reader of messages of Haystack."""

    name = "haystack"
    shape = 'haystack: [{"role": "user", "meta": {}, "content": [{"text": ...}]}, ...], or rows of "messages"'

    def is_message(self, message: JsonObject, /) -> bool:
        """Recognize parts that are named by their only key, next to metadata."""
        if "meta" not in message and "_meta" not in message:
            return False
        parts = objects_in(head(message.get("content", message.get("_content"))))
        return any("type" not in part and not _PARTS.isdisjoint(part) for part in parts)

    def restated(self, message: JsonObject, /) -> Sequence[JsonObject]:
        """Return the results in a message, and the rest of it if there is any."""
        fields = {name.removeprefix("_"): field for name, field in message.items()}
        content, meta = fields.pop("content", None), as_object(fields.get("meta"))
        results = [outcome for part in objects_in(content) if (outcome := as_object(part.get("tool_call_result")))]
        if fields.get("role") == "assistant":
            fields |= {name: meta[name] for name in _OF_REPLIES if name in meta}
            fields["meta"] = without(meta, *_OF_REPLIES)
        fields["meta"] = fields.get("meta") or None
        role = fields.get("role")
        if not results:
            return [{**fields, "content": list(map(_part, content)) if isinstance(content, list) else content}]
        others = [_part(part) for part in objects_in(content) if "tool_call_result" not in part]
        messages = [{**({} if number else fields), **_result(outcome)} for number, outcome in enumerate(results)]
        messages[0]["speaker"] = None if role == "tool" else role
        return [*messages, {"role": role, "content": others}] if others else messages


def _result(outcome: JsonObject) -> JsonObject:
    origin, content = as_object(outcome.get("origin")), outcome.get("result")
    return {
        "role": "tool",
        "content": list(map(_part, content)) if isinstance(content, list) else content,
        "tool_call_id": origin.get("id"),
        "name": origin.get("tool_name"),
        "is_error": outcome.get("error"),
        "origin": without(origin, "id", "tool_name") or None,
        **without(outcome, "result", "origin", "error"),
    }


def _part(part: JsonValue) -> JsonValue:
    if not isinstance(part, dict) or "type" in part:
        return part
    if "text" in part:
        return {"type": "text", **part}
    if isinstance(call := part.get("tool_call"), dict):
        names = {"tool_name": "name", "arguments": "input"}
        return {"type": "tool_use", **{names.get(name, name): field for name, field in call.items()}}
    if isinstance(reasoning := part.get("reasoning"), dict) and "reasoning_text" in reasoning:
        return {"type": "thinking", "thinking": reasoning["reasoning_text"], **without(reasoning, "reasoning_text")}
    if isinstance(image := part.get("image"), dict):
        return media_part("image_url", image, ["base64_image"])
    if isinstance(file := part.get("file"), dict):
        return media_part("file", file, ["base64_data"])
    return part
