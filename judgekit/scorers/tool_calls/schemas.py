"""Validation of a call's arguments against the JSON Schema of its tool."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import SchemaValidator, core_schema

from judgekit.errors import truncated
from judgekit.traces.message import JsonObject, ToolCall
from judgekit.traces.recording import ToolDefinition

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    Errors: TypeAlias = Iterator[ValidationError]
    Keyword: TypeAlias = Callable[[Any, Any, JsonValue, JsonObject], Errors]

_MOST_PROBLEMS = 20
_MOST_STEPS = 100_000
_steps: ContextVar[Iterator[int]] = ContextVar("judgekit_schema_steps")


def schema_problems(call: ToolCall, tools: Sequence[ToolDefinition]) -> tuple[str, ...]:
    """Return up to twenty problems that keep the arguments of a call from conforming to its tool; none if they conform.

    The schema is read as the draft named by ``$schema``, else as 2020-12. Nothing is fetched, and ``format`` is
    ignored. A tool without parameters accepts any object; of two definitions with the same name, the first counts.
    Unreadable arguments and calls of undefined tools do not conform.

    Schemas are recorded data and may be hostile: patterns are matched in linear time, which rules out lookaround and
    backreferences, and validation is aborted after 100,000 keywords.

    Raises:
        ValueError: No tool is defined, or the schema is unusable: it is invalid, has broken references, or takes too
            many steps.
    """
    if not tools:
        raise ValueError("the trace defines no tools, so there is no schema to validate arguments against")
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return (f"tool {call.name!r} is not defined",)
    if call.args_error is not None:
        return (f"args: {call.args_error}",)
    if tool.parameters is None:
        return ()
    token = _steps.set(iter(range(_MOST_STEPS)))
    try:
        errors = _validator(json.dumps(tool.parameters)).iter_errors(cast("Any", call.args))
        return tuple(f"args{error.json_path[1:]}: {_line(error.message)}" for error in islice(errors, _MOST_PROBLEMS))
    except Exception as error:  # a reference to something other than a schema can raise anything
        raise ValueError(f"the JSON Schema of the tool {call.name!r} is unusable: {_line(str(error))}") from error
    finally:
        _steps.reset(token)


def _line(text: str) -> str:
    return truncated(" ".join(text[:1_000].split()), 200)


@lru_cache(maxsize=256)
def _validator(text: str) -> "Validator":
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slower to import than all scorers
    from referencing.jsonschema import EMPTY_REGISTRY  # noqa: PLC0415

    draft = validators.validator_for(json.loads(text), default=Draft202012Validator)
    # If the schema named a draft, jsonschema would use that draft's own keywords.
    schema = json.loads(text, object_hook=_without_draft)
    for flaw in draft(draft.META_SCHEMA, registry=EMPTY_REGISTRY).iter_errors(schema):
        raise ValueError(f"{flaw.json_path}: {flaw.message}")
    if "unevaluatedProperties" in text and "patternProperties" in text:
        raise ValueError("patternProperties with unevaluatedProperties is not supported")
    keywords = {
        **draft.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    counted = {name: _counted(keyword) for name, keyword in keywords.items()}
    extended = cast("type[Validator]", cast("Any", validators).extend(draft, counted))  # untyped
    return extended(schema, registry=EMPTY_REGISTRY)


def _without_draft(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key != "$schema" or not isinstance(value, str)}


def _counted(keyword: "Keyword") -> "Keyword":
    def check(validator: Any, keyword_value: Any, value: JsonValue, schema: JsonObject) -> "Errors":
        if next(_steps.get(), None) is None:
            raise ValueError(f"it takes more than {_MOST_STEPS:,} steps")
        return keyword(validator, keyword_value, value, schema)

    return check


def _pattern(_: Any, pattern: str, value: JsonValue, _schema: JsonObject) -> "Errors":
    if isinstance(value, str) and not _search(pattern)(value):
        yield _error(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: JsonObject, value: JsonValue, _: JsonObject) -> "Errors":
    if isinstance(value, dict):
        for pattern, inner in patterns.items():
            for name in filter(_search(pattern), value):
                yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: JsonValue, value: JsonValue, schema: JsonObject) -> "Errors":
    if isinstance(value, dict):
        properties = cast("JsonObject", schema.get("properties", {}))
        searches = [_search(pattern) for pattern in cast("JsonObject", schema.get("patternProperties", {}))]
        for name in value:
            if name in properties or any(search(name) for search in searches):
                continue
            if allowed is False:
                yield _error(f"{name!r} is not one of the properties")
            else:
                yield from validator.descend(value[name], allowed, path=name)


def _error(message: str) -> "ValidationError":
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    return ValidationError(message)


@lru_cache(maxsize=256)
def _search(pattern: str) -> Callable[[str], bool]:
    """Return a test of whether a text contains the pattern, using pydantic's engine, which does not backtrack."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
