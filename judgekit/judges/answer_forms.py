"""Other forms in which a reply writes a value that a schema wants."""

import re
from typing import cast

from pydantic import JsonValue

from judgekit.judges.schema import MESSAGE_NUMBER
from judgekit.traces.message import JsonObject

_MESSAGE = re.compile(r"\s*\[?(?:messages?\s*)?#?\s*([1-9][0-9]*(?:\.[0-9]+)*)\]?\s*", re.IGNORECASE)


def in_form(value: JsonValue, schema: JsonValue, root: JsonObject) -> JsonValue:
    """Return a value in the form that the schema wants, where it says the same in another; else the value as it is.

    A text or an integer stands for the one listed text that differs only in case, spaces and hyphens; ``"message 2"``
    for the number of a message; a number or object for a list of one; null for an empty list.
    """
    wanted = _resolved(schema, root)
    if "anyOf" in wanted:
        branches = [branch for branch in cast("list[JsonValue]", wanted["anyOf"]) if branch != {"type": "null"}]
        return value if value is None or len(branches) != 1 else in_form(value, branches[0], root)
    if labels := [*cast("list[JsonValue]", wanted.get("enum", [])), *([wanted["const"]] if "const" in wanted else [])]:
        meant = [label for label in labels if _same_label(label, value)]
        return meant[0] if len(meant) == 1 and value not in labels else value
    if wanted.get("type") == "array" and "items" in wanted:
        if value is None:
            return []
        if isinstance(value, list):
            return [in_form(element, wanted["items"], root) for element in value]
        only = in_form(value, wanted["items"], root)
        return [only] if isinstance(only, dict) or type(only) in (int, float) or only != value else value
    if isinstance(value, dict):
        properties = cast("JsonObject", wanted.get("properties", {}))
        return {name: in_form(inner, properties.get(name, {}), root) for name, inner in value.items()}
    if wanted.get("format") == MESSAGE_NUMBER and isinstance(value, str) and (number := _MESSAGE.fullmatch(value)):
        return number[1] if "." in number[1] else int(number[1])
    return value


def _resolved(schema: JsonValue, root: JsonObject) -> JsonObject:
    wanted = schema if isinstance(schema, dict) else {}  # true stands for anything
    while isinstance(reference := wanted.get("$ref"), str):
        wanted = cast("JsonObject", cast("JsonObject", root["$defs"])[reference.rpartition("/")[2]])
    return wanted


def folded_label(label: str) -> str:
    """Return a label without what does not tell labels apart: case, and which of spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "_", label.strip().casefold())


def _same_label(label: JsonValue, value: JsonValue) -> bool:
    text = str(value) if type(value) is int else value
    return isinstance(label, str) and isinstance(text, str) and folded_label(label) == folded_label(text)
