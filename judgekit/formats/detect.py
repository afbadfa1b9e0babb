"""Detection of a recording's format."""

import json
import re
import shlex
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.readers import FALLBACKS, MARKS, READERS, installed_readers
from judgekit.formats.readers.base import MarkedReader, Reader, first_record
from judgekit.formats.unread import column_option
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
_PLAIN_CALL = frozenset(("id", "type", "function"))
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


def detect(value: JsonValue) -> Reader:
    """Return the reader that recognizes a parsed file or one line of a JSONL file.

    Raises:
        TraceError: No reader or several recognize it. The error says what was found and which formats are close.
    """
    if (reader := _only(_fitting(value), value)) is not None:
        return reader
    keys, flat = _keys(value), _is_flat(value)
    near = [
        reader.shape
        for reader in (*READERS.values(), *installed_readers())
        if (flat and reader.name == "rows") or keys & set(re.findall(r'"(\w+)"', reader.shape))
    ]
    hint = (
        "".join(f"\n  {shape}" for shape in near)
        or f" {', '.join(READERS)} (judgekit formats shows what they look like); name a reader of your own with --format"
    )
    raise TraceError(
        f"unknown format: found {_value_text(value)}{_format_hint(value)}. {'Closest' if near else 'Known'} formats:{hint}"
    )


def _format_hint(value: JsonValue) -> str:
    """Return a hint for a record of unknown format: the field that holds its messages, or its records."""
    record = value if isinstance(value, dict) else {}
    for name, held in record.items():
        first = first_record(held) if isinstance(held, list) else None
        if isinstance(first, dict) and "role" in first and name != "messages":
            return f"; if {name!r} holds the conversation: {column_option(name, 'messages')}"
        if isinstance(first, dict) and len(record) == 1:
            records = f".{name}[]" if name.isidentifier() else f".{json.dumps(name)}[]"
            return f"; if {name!r} holds the records: jq -c {shlex.quote(records)} FILE > records.jsonl"
    return ""


def reader_for_record(record: JsonValue, known: Reader) -> Reader:
    """Return the reader of one record in a file of the format ``known``, or another reader that recognizes it better.

    Raises:
        TraceError: Several other readers recognize the record, or one whose records belong together.
    """
    if known.name not in FALLBACKS and known.recognizes(record):
        return known
    reader = _only(_fitting(record), record)
    if reader is not None and reader.joins_lines:
        raise TraceError(
            f"is a record of {reader.name}, whose records belong together; move them to a file of their own"
        )
    return reader or known


def _fitting(value: JsonValue) -> Sequence[Reader]:
    fitting = [reader for reader in (*installed_readers(), *_candidates(value)) if reader.recognizes(value)]
    if fitting:
        return fitting
    fallback = next((READERS[name] for name in FALLBACKS if name in READERS and READERS[name].recognizes(value)), None)
    return [] if fallback is None else [fallback]


def _candidates(value: JsonValue) -> list[MarkedReader]:
    """Return the readers that may recognize a value, without the fallbacks."""
    if isinstance(first_record(value), str):  # it may hold JSON
        return [reader for reader in READERS.values() if reader.marks]
    found = names_in(value) & MARKS
    return [reader for reader in READERS.values() if not reader.marks.isdisjoint(found)] if found else []


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
            if "." in "".join(node):
                names.update(name.partition(".")[0] for name in node)
            if isinstance(kind := node.get("type"), str):
                kinds.add(kind)
            if isinstance(messages := node.get("messages"), list) and not _is_plain_chat(node, messages):
                pending += messages
            for part in objects_in(node.get("content")):
                if "type" not in part:
                    names.update(part)
                elif isinstance(kind := part["type"], str):
                    kinds.add(kind)
            for call in objects_in(node.get("tool_calls")):
                names.update(call.keys() - _FUNCTION if isinstance(call.get("function"), dict) else call)
            if isinstance(first := next(iter(node.values()), None), dict):  # an object of records by name
                pending.append(first)
    return names.union(*map(_words, kinds - _TEXT)) if kinds else names


def _words(kind: str) -> list[str]:
    return [kind, *_SEPARATORS.split(kind)]


def _without_texts(record: JsonObject) -> list[str]:
    return [name for name, held in record.items() if name not in _HOLDERS or isinstance(held, _NESTED)]


def _only(fitting: Sequence[Reader], value: JsonValue) -> Reader | None:
    if len(fitting) > 1:
        names = " or ".join(reader.name for reader in fitting)
        raise TraceError(f"may be {names}: found {_value_text(value)}; choose one (format=, --format)")
    return next(iter(fitting), None)


def _is_plain_chat(record: JsonObject, messages: Sequence[JsonValue]) -> bool:
    """Return whether a record is so plainly OpenAI's chat that looking through its messages would waste time."""
    model = record.get("model")
    of_others = isinstance(model, str) and model.startswith(("claude", "gemini"))
    return record.keys() <= _PLAIN_CHAT and not of_others and _are_plain(messages)


def _are_plain(messages: Sequence[JsonValue]) -> bool:
    """Return whether all messages up to the first call are OpenAI's. A call in OpenAI's form decides."""
    for message in messages:
        if not isinstance(message, dict) or not message.keys() <= _PLAIN_MESSAGE or message.get("role") not in _ROLES:
            return False
        if not (isinstance(content := message.get("content"), str) or content is None):
            return False
        if calls := message.get("tool_calls"):
            return isinstance(calls, list) and all(map(_is_plain_call, calls))
    return bool(messages)


def _is_plain_call(call: JsonValue) -> bool:
    return as_object(call).keys() <= _PLAIN_CALL and isinstance(lookup(call, "function"), dict)


def _keys(value: JsonValue) -> set[str]:
    """Return the keys of an object, or of the first object in a list."""
    return _keys(value[0]) if isinstance(value, list) and value else set(as_object(value))


def _is_flat(value: JsonValue) -> bool:
    """Return whether a value may be a dataset row: an object without nested values, or a list that begins with one."""
    row = as_object(first_record(value))
    return bool(row) and not any(isinstance(item, dict | list) for item in row.values())


def _value_text(value: JsonValue) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list whose first item is {_value_text(value[0])}" if value else "an empty list"
    return f"{value!r:.80}"
