"""Helpers for JSON values of any type."""

import json
import sys
from typing import TypeGuard

from pydantic import JsonValue

from judgekit.traces.equality import loses_keys
from judgekit.traces.message import JsonObject


def lookup(value: JsonValue, *path: str) -> JsonValue:
    """Return the value at a path of names; ``None`` if a name is missing or its parent is not an object."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def messages_field(record: JsonValue) -> JsonValue:
    """Return the ``messages`` of a row, and any other value, such as a list of messages, as it is."""
    return record.get("messages") if isinstance(record, dict) else record


def as_object(value: JsonValue) -> JsonObject:
    """Return an object as it is, and an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and an empty one for any other value."""
    return value if isinstance(value, list) else []


def head(value: JsonValue) -> list[JsonValue]:
    """Return the first items of a list, enough to recognize its format, and no items for any other value."""
    return value[:50] if isinstance(value, list) else []


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Return the objects in a list, and none for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_object(value: JsonValue) -> JsonObject:
    """Return the first object among the first items of a list, and an empty one if there is none."""
    objects = objects_in(head(value))
    return objects[0] if objects else {}


def str_or_none(value: JsonValue) -> str | None:
    """Return a text as it is, and ``None`` for any other value."""
    return value if isinstance(value, str) else None


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Return whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def first_value(fields: JsonObject, *names: str) -> JsonValue:
    """Return the first of some fields that has a value."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def without(fields: JsonObject, *names: str) -> JsonObject:
    """Return a copy of an object without some of its fields."""
    return {name: value for name, value in fields.items() if name not in names}


def parse_if_complete(field: JsonValue) -> JsonValue:
    """Return `parse_if_json` of a field, but a text that repeats a key as it is: it may be the arguments of a call."""
    parsed = parse_if_json(field)
    return field if isinstance(field, str) and loses_keys(field, parsed) else parsed


def parse_if_json(value: JsonValue) -> JsonValue:
    """Return the JSON value of a text; any other value, or a text that is not JSON, as it is."""
    if not isinstance(value, str):
        return value
    try:
        held: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return held


def unpacked(value: JsonValue) -> JsonValue:
    """Return a value, or the object or list that it holds as JSON."""
    return parse_if_json(value) if isinstance(value, str) and value.lstrip().startswith(("{", "[")) else value
