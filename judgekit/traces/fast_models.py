"""Fast on purpose: records that are made without validation, and JSON in records that is checked in C.

Reading a file makes dozens of records for each conversation. These ways are for fields that are valid for sure, because
a JSON parser or a reader has just made them.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, GetCoreSchemaHandler, JsonValue, TypeAdapter
from pydantic_core import CoreSchema, core_schema, from_json, to_json

Model = TypeVar("Model", bound=BaseModel)


class CheckedInC:
    """Marks JSON in a record. Otherwise pydantic would call Python for each value in it, to check it and to write it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        parsed: CoreSchema = core_schema.any_schema()
        if is_object := source != JsonValue:
            parsed = core_schema.dict_schema(core_schema.str_schema(), parsed)

        def copied(original: object) -> object:
            if isinstance(original, dict):
                mapping = cast("dict[object, object]", original)
                if not mapping:
                    return {}
                if {*map(type, mapping), *map(type, mapping.values())} <= {str}:
                    return dict(mapping)  # nothing to check, and texts may be long
            try:
                copy: JsonValue = from_json(to_json(original))
            except ValueError:
                copy = None
            if copy == original and (isinstance(copy, dict) or not is_object):
                return copy
            return _adapter(source).validate_python(original)  # which also finds what is wrong

        written = core_schema.simple_ser_schema("any")
        checked = core_schema.no_info_plain_validator_function(copied)
        return core_schema.json_or_python_schema(parsed, checked, serialization=written)


def is_encodable(value: JsonValue) -> bool:
    """Return whether all text in a parsed value can be encoded, and it is not nested more deeply than a record may be."""
    try:
        to_json(value)
    except ValueError:
        return False
    return True


@cache
def _adapter(kind: Any) -> TypeAdapter[object]:
    return TypeAdapter(kind)


_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""The slots of frozen models, which take half the time of ``object.__setattr__``."""


def set_unvalidated(model: BaseModel, **fields: object) -> None:
    """Set fields of a new model, which is not shared yet, to values that are valid for sure."""
    vars(model).update(fields)
    model.__pydantic_fields_set__.update(fields)


def validated(kind: type[Model], fields: Mapping[str, object], **parsed: dict[str, JsonValue] | None) -> Model:
    """Return a model of fields that are validated, and of JSON objects from a parser, whose values are not."""
    unchecked = {name: json for name, json in parsed.items() if json}
    if not all(map(is_encodable, unchecked.values())):
        return kind.model_validate({**fields, **unchecked})
    model = kind.model_validate(fields)
    set_unvalidated(model, **unchecked)
    return model


def construct(kind: type[Model], fields: dict[str, object]) -> Model:
    """Return a model of all its fields, which were validated before; pydantic's ``model_construct`` takes five times as long."""
    model = object.__new__(kind)
    _set_values(model, fields)
    _set_names(model, _all_fields(kind))
    _set_extra(model, None)
    _set_private(model, None)
    return model


@cache
def _all_fields(kind: type[BaseModel]) -> set[str]:
    """Return the fields of a kind of models, in a set that all such models share: frozen ones have none to add."""
    return set(kind.model_fields)
