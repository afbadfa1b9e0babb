"""Plain values of a recording, which may be of any kind."""

import json
import sys

from pydantic import JsonValue

from judgekit.traces.message import JsonObject

_LOOKED_AT = 50


def lookup(value: JsonValue, *path: str) -> JsonValue:
    """Return the value below these names, ``None`` if one of them is missing or stands in no object."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def messages_of(record: JsonValue) -> JsonValue:
    """Return the field ``messages`` of a row, and anything else, such as a list of messages, as it is."""
    return record.get("messages") if isinstance(record, dict) else record


def as_object(value: JsonValue) -> JsonObject:
    """Return an object as it is, and an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def head(value: JsonValue) -> list[JsonValue]:
    """Return the first items of a list, by which its format is recognized; none if it is no list."""
    return value[:_LOOKED_AT] if isinstance(value, list) else []


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Return the objects in a list; none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def only_str(value: JsonValue) -> str | None:
    """Return a text as it is, and ``None`` in place of anything else."""
    return value if isinstance(value, str) else None


def is_number(value: JsonValue) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def without(fields: JsonObject, *names: str) -> JsonObject:
    """Return an object without some of its fields."""
    return {name: value for name, value in fields.items() if name not in names}


def loaded(value: JsonValue) -> JsonValue:
    """Return what a text holds as JSON; a text that is no JSON, and any other value, as it is."""
    if not isinstance(value, str):
        return value
    try:
        held: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return held
