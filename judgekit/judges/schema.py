"""The JSON Schema of a reply, as strict structured output takes it."""

from typing import cast

from pydantic import BaseModel, JsonValue

from judgekit.traces.message import JsonObject

_NOT_SENT = {"title", "default"}


def strict_schema(answer: type[BaseModel]) -> JsonObject:
    """The schema of a model with every property required and no other allowed.

    Properties keep their order, in which the judge writes them: explanations stand before verdicts. See OpenAI's guide
    on structured outputs, "Supported schemas".
    """
    return cast("JsonObject", _strict(cast("JsonValue", answer.model_json_schema())))


def _strict(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict: JsonObject = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            strict[key] = {name: _strict(inner) for name, inner in value.items()}
        elif key not in _NOT_SENT:
            strict[key] = _strict(value)
    if isinstance(properties := strict.get("properties"), dict):
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict
