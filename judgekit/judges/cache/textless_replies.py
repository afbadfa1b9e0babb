"""Verdicts without text, for replies whose text is not to be stored."""

from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue, RootModel

from judgekit.judges.answer import read_answer
from judgekit.judges.answer_forms import in_form
from judgekit.judges.decisions import known_fields
from judgekit.judges.request import Reply, Request
from judgekit.traces.message import JsonObject
from judgekit.traces.rendering import compact_json

_LEAST, _MOST = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
_SMALL = 10_000


def without_judge_text(request: Request, reply: Reply) -> Reply | None:
    """Return a reply with all texts emptied except those that its schema lists.

    Numbers stay that its schema lists or bounds, and integers of at most four digits, such as numbers of messages.

    Returns:
        The reply; ``None`` if it is no longer an answer, or holds another number, which may be that of a card.
    """
    try:
        if request.typed_questions:
            return reply.model_copy(update={"text": known_fields(reply.text)})
        fields = in_form(read_answer(reply.text, RootModel[JsonObject]).root, request.schema, request.schema)
        text = compact_json(_emptied(fields, [request.schema], request.schema))
        request.accept(text)
    except ValueError:
        return None
    usage = None if reply.usage is None else reply.usage.model_copy(update={"extra": {}})
    return reply.model_copy(update={"text": text, "logprobs": None, "usage": usage})


def _emptied(value: JsonValue, schemas: list[JsonValue], root: JsonObject) -> JsonValue:
    """Return a value without its free texts; one of the ``schemas`` describes it."""
    allowed = [branch for schema in schemas for branch in _branches(schema, root)]
    if isinstance(value, str):
        return value if any(value in _listed(branch) for branch in allowed) else ""
    if isinstance(value, list):
        items = [branch["items"] for branch in allowed if "items" in branch]
        return [_emptied(item, items, root) for item in value]
    if isinstance(value, dict):
        properties = [cast("JsonObject", branch.get("properties", {})) for branch in allowed]
        if unknown := value.keys() - {name for branch in properties for name in branch}:
            raise ValueError(f"{len(unknown)} names are not in the schema")
        return {
            name: _emptied(inner, [branch[name] for branch in properties if name in branch], root)
            for name, inner in value.items()
        }
    if isinstance(value, int | float):
        is_small = abs(value) < _SMALL and value == int(value)
        if not is_small and not any(_bounds(branch, value) for branch in allowed):
            raise ValueError("a number is not limited by the schema")
    return value


def _bounds(schema: JsonObject, number: float) -> bool:
    """Return whether a schema lists a number, or bounds its range."""
    return number in _listed(schema) or bool(schema.keys() & _LEAST and schema.keys() & _MOST)


def _branches(schema: JsonValue, root: JsonObject) -> Iterator[JsonObject]:
    """Yield the alternatives of a schema, with references resolved."""
    if not isinstance(schema, dict):
        return
    if isinstance(reference := schema.get("$ref"), str):
        yield from _branches(cast("JsonObject", root["$defs"])[reference.rpartition("/")[2]], root)
    for branch in cast("list[JsonValue]", schema.get("anyOf", [])):
        yield from _branches(branch, root)
    yield schema


def _listed(schema: JsonObject) -> list[JsonValue]:
    return [*cast("list[JsonValue]", schema.get("enum", [])), *([schema["const"]] if "const" in schema else [])]
