"""The names and kinds in a record by which readers recognize it."""

import re
from collections.abc import Collection, Sequence

from pydantic import JsonValue

from judgekit.formats.readers.base import MarkedReader, first_record
from judgekit.formats.values import as_object, lookup, objects_in
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import References

_PLAIN_CHAT = frozenset(
    (
        *("id", "messages", "tools", "model", "temperature", "top_p", "n", "stop", "seed", "stream", "tool_choice"),
        *("response_format", "parallel_tool_calls", *References.__annotations__),
    )
)
_PLAIN_MESSAGE = frozenset(("role", "content", "name", "tool_calls", "tool_call_id"))
_NULL_FIELDS = frozenset(("refusal", "audio", "function_call"))
"""Fields that the SDK writes as null in each reply."""
_PLAIN_CALL = frozenset(("id", "type", "function"))
_PLAIN_PART = {"type", "text"}
_FUNCTION = frozenset(("function",))
_ROLES = ("system", "user", "assistant", "tool")
_HOLDERS = frozenset(("request", "response", "input", "output"))
"""Fields that hold an object or a list in all formats that are recognized by them; rows have texts there."""
_NESTED = (dict, list)
_TEXT = frozenset(("text",))
"""A kind of parts that many formats have."""
_SEPARATORS = re.compile(r"[._]")
_LOOKED_AT = 1_000
"""The most items of a list that a reader looks at."""


def candidates(value: JsonValue, readers: Collection[MarkedReader], marks: frozenset[str]) -> list[MarkedReader]:
    """Return the readers that may recognize a value, without fallbacks; ``marks`` are those of all readers."""
    if isinstance(first_record(value), str):  # it may hold JSON
        return [reader for reader in readers if reader.marks]
    found = names_in(value) & marks
    return [reader for reader in readers if not reader.marks.isdisjoint(found)] if found else []


def names_in(value: JsonValue) -> set[str]:
    """Return the names and kinds by which readers recognize a record, a list of records, or messages.

    These are the names of the fields of records, of their messages, and of the parts and calls in these, and the
    ``type`` of each, with its words; of a part with a type, only that. Of a dotted name, they include the first part.
    Fields with texts in place of objects are left out, as are the messages of what is plainly OpenAI's chat.
    """
    names: set[str] = set()
    kinds: set[str] = set()
    pending = value[:_LOOKED_AT] if isinstance(value, list) else [value]
    for node in pending:
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            names.update(node if _HOLDERS.isdisjoint(node) or "model" in node else _without_texts(node))
            if isinstance(kind := node.get("type"), str):
                kinds.add(kind)
            if isinstance(messages := node.get("messages"), list) and not _are_plain(messages, node):
                pending += messages
            if isinstance(content := node.get("content"), list):
                for part in content:
                    if isinstance(part, dict):
                        kind = part.get("type")
                        if isinstance(kind, str):
                            kinds.add(kind)
                        elif "type" not in part:
                            names.update(part)
            if calls := node.get("tool_calls"):
                for call in objects_in(calls):
                    names.update(call.keys() - _FUNCTION if isinstance(call.get("function"), dict) else call)
            if isinstance(first := next(iter(node.values()), None), dict):  # an object of records by name
                pending.append(first)
    names.update([name.partition(".")[0] for name in names if "." in name], *map(_words, kinds - _TEXT))
    return names


def _words(kind: str) -> list[str]:
    return [kind, *_SEPARATORS.split(kind)]


def _without_texts(record: JsonObject) -> list[str]:
    return [name for name, held in record.items() if name not in _HOLDERS or isinstance(held, _NESTED)]


def is_plain_chat(value: JsonValue) -> bool:
    """Return whether a value is a record that is plainly OpenAI's chat, and no object of records by name."""
    messages = value.get("messages") if isinstance(value, dict) else None
    return (
        isinstance(value, dict)
        and isinstance(messages, list)
        and bool(messages)
        and value.keys() <= _PLAIN_CHAT
        and not isinstance(next(iter(value.values())), dict)
        and _are_plain(messages, value)
    )


def _are_plain(messages: Sequence[JsonValue], record: JsonObject) -> bool:
    """Return whether messages are plainly OpenAI's, so that looking through them for marks would waste time.

    A first call in OpenAI's form decides if the record has no other fields and all messages before it are texts.
    """
    model = record.get("model")
    of_others = isinstance(model, str) and model.startswith(("claude", "gemini"))
    call_decides = record.keys() <= _PLAIN_CHAT and not of_others
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return False
        if not message.keys() <= _PLAIN_MESSAGE and not _has_only_nulls_beside(message):
            return False
        if not (isinstance(content := message.get("content"), str) or content is None):
            if not isinstance(content, list) or not all(map(_is_plain_part, content)):
                return False
            call_decides = False
        if calls := message.get("tool_calls"):
            if not isinstance(calls, list) or not all(map(_is_plain_call, calls)):
                return False
            if call_decides:
                return True
    return True


def _has_only_nulls_beside(message: JsonObject) -> bool:
    """Return whether fields that plain messages lack are those that the SDK writes, and null."""
    return all(name in _NULL_FIELDS and message[name] is None for name in message.keys() - _PLAIN_MESSAGE)


def _is_plain_part(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.keys() == _PLAIN_PART and part["type"] == "text"


def _is_plain_call(call: JsonValue) -> bool:
    return as_object(call).keys() <= _PLAIN_CALL and isinstance(lookup(call, "function"), dict)
