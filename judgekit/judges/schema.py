"""The JSON Schema of a reply, as strict structured output requires it."""

from functools import cache
from typing import cast

from pydantic import BaseModel, JsonValue
from pydantic.errors import PydanticUserError

from judgekit.errors import ConfigError
from judgekit.traces.message import JsonObject

_SENT = {
    *("type", "required", "enum", "const", "description", "$ref", "pattern", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_NOT_SENT = {
    *("title", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator", "additionalProperties"),
    *("minLength", "maxLength", "uniqueItems"),  # the answer's model still checks them
}
MESSAGE_NUMBER = "message-number"
"""The format of an integer that is the number of a message: in a recording with sub-agents, a path written as text."""
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


@cache
def strict_schema(answer: type[BaseModel], *, has_sub_agents: bool = False) -> JsonObject:
    """Return the schema of a model, with every property required and no others allowed.

    Properties keep their order, in which the judge writes them: explanations come before verdicts. See OpenAI's guide
    on structured outputs, "Supported schemas".

    Args:
        answer: The model.
        has_sub_agents: Whether the recording has sub-agents, whose messages are numbered by paths such as ``4.2.1``.

    Raises:
        ConfigError: The model has a part that strict structured output does not support.
    """
    name = answer.__name__
    try:
        schema = cast("JsonObject", answer.model_json_schema())
        if has_sub_agents:
            schema = cast("JsonObject", _with_paths(schema))
    except PydanticUserError as error:
        raise ConfigError(f"{name} has no JSON Schema: {error.message}") from error
    if isinstance(reference := schema.pop("$ref", None), str):  # a recursive model
        definitions = cast("dict[str, JsonObject]", schema["$defs"])
        schema |= definitions[reference.rpartition("/")[2]]
    strict = _strict(schema, name)
    if "properties" not in strict:
        raise _unsupported_error(name, "a type other than an object", "use a model with fields")
    return strict


def _with_paths(schema: JsonValue) -> JsonValue:
    """Return the schema with text in place of the numbers of messages."""
    if isinstance(schema, list):
        return [_with_paths(part) for part in schema]
    if isinstance(schema, dict):
        if schema.get("format") == MESSAGE_NUMBER:
            return {"type": "string"}
        return {name: _with_paths(value) for name, value in schema.items()}
    return schema


def _strict(schema: JsonValue, path: str) -> JsonObject:
    parts = cast("JsonObject", schema)
    if parts.get("type") == "object" and "properties" not in parts:
        raise _unsupported_error(path, "an object with arbitrary names", "use a list of models with a name and a value")
    strict: JsonObject = {}
    for key, value in parts.items():
        if key == "properties":
            strict[key] = {name: _strict(inner, f"{path}.{name}") for name, inner in cast("JsonObject", value).items()}
        elif key == "$defs":
            strict[key] = {name: _strict(inner, name) for name, inner in cast("JsonObject", value).items()}
        elif key == "items":
            strict[key] = _strict(value, f"{path}[]")
        elif key in ("anyOf", "oneOf"):
            strict["anyOf"] = [_strict(branch, path) for branch in cast("list[JsonValue]", value)]
        elif key in _SENT or (key == "format" and value in _FORMATS):
            strict[key] = value
        elif key == "prefixItems":
            raise _unsupported_error(path, "a tuple", "use a model with a field for each of its items")
        elif key not in _NOT_SENT and key != "format":
            raise _unsupported_error(path, repr(key), "leave it out of the schema")
    if strict.keys() <= {"description"} or (strict.get("type") == "array" and "items" not in strict):
        raise _unsupported_error(path, "a value of any type", "give it a type")
    if isinstance(properties := strict.get("properties"), dict):
        strict |= {"required": list(properties), "additionalProperties": False}
    if "$ref" in strict and len(strict) > 1:  # $ref may not have siblings
        strict["anyOf"] = [{"$ref": strict.pop("$ref")}]
    return strict


def _unsupported_error(path: str, feature: str, advice: str) -> ConfigError:
    return ConfigError(f"{path}: a judge's answer cannot have {feature}; {advice}")
