"""References and other known facts in dataset rows, by the field names of a `Sample`."""

import json
from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, short_repr, validation_message
from judgekit.formats.values import is_number
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import MEASUREMENT_FIELDS, References, Sample

VERBATIM_COLUMNS = ("expected_output", "results", *MEASUREMENT_FIELDS)
"""Columns that become fields of a sample under their own names."""
_NO_TEXTS = ("error", "id", "type", "role", "status")
"""Names of texts that are not part of a conversation."""
SINGLE_TEXT_WARNING = "an object with one string, read as that string"
STRUCTURE_WARNING = "neither a string nor messages, read as its JSON text"
FACT_COLUMNS = frozenset((*References.__annotations__, *VERBATIM_COLUMNS))
"""Columns that hold known facts."""


def read_facts(row: JsonObject, warnings: list[TraceWarning]) -> JsonObject:
    """Return the known facts of a row as fields of a `Sample`. Other columns are ignored.

    A list of texts in ``reference`` becomes ``references``; ``expected_output`` is the reference, or the references,
    if the row has no other; numbers in place of texts become text, and so do objects with one text, and other objects
    and lists as their JSON, with a warning.
    """
    facts = {name: row[name] for name in References.__annotations__ if row.get(name) is not None}
    kept = {name: row[name] for name in VERBATIM_COLUMNS if row.get(name) is not None}
    if not facts and not kept:
        return facts
    for name, fields in (("reference", facts), ("expected_output", kept)):
        if (text := single_text(fields.get(name))) is not None:
            warnings.append(TraceWarning(SINGLE_TEXT_WARNING, path=name))
            fields[name] = text
    for name in MEASUREMENT_FIELDS:
        if name in kept and not is_number(kept[name]):
            raise TraceError(f"{name}: expected a finite number, found {short_repr(kept[name])}")
    for name in ("label", "prediction", "reference", "group", "domain"):
        if name in facts:
            facts[name] = _text(facts[name])
    if isinstance(references := facts.get("references"), list):
        facts["references"] = [_as_text(text, f"references[{at}]", warnings) for at, text in enumerate(references)]
    expected = _text_or_texts(facts.pop("reference", None), "reference", warnings)
    if "expected_output" in kept and not (_says(expected) or _says(facts.get("references"))):
        facts.pop("references", None)
        expected = _text_or_texts(kept["expected_output"], "expected_output", warnings)
        expected = expected if isinstance(expected, list) else to_text(expected)
    if isinstance(expected, list):
        if facts.get("references"):
            raise TraceError("found a list in 'reference' and also 'references'; keep one")
        facts["references"] = expected
    elif expected is not None:
        facts["reference"] = expected
    if kept:
        facts["fields"] = {**extra_fields(facts), **kept}
    return facts


def read_expected(value: JsonValue, name: str, warnings: list[TraceWarning]) -> dict[str, object]:
    """Return an expected output as the ``reference`` of a `Sample`, or a list of texts as ``references``.

    An object with one text is read as that text, and any other object or list as its JSON text, with a warning.
    """
    if value is None:
        return {}
    if isinstance(value, list) and value and _are_texts(value):
        return {"references": value}
    if (text := single_text(value)) is not None:
        warnings.append(TraceWarning(SINGLE_TEXT_WARNING, path=name))
        return {"reference": text}
    return {"reference": to_text(_as_text(value, name, warnings))}


def extra_fields(facts: JsonObject) -> JsonObject:
    """Return the ``fields`` of a sample that is not made yet."""
    fields = facts.get("fields", {})
    if not isinstance(fields, dict):
        raise TraceError(f"fields: expected an object, found {short_repr(fields)}")
    return fields


def make_sample(identity: str, facts: Mapping[str, object]) -> Sample:
    """Return the sample of a row."""
    fields = {"id": identity, **facts}
    try:
        return Sample.model_validate(fields)
    except ValidationError as error:
        raise TraceError(validation_message(error, facts)) from error


def single_text(value: JsonValue) -> str | None:
    """Return the text of an object that holds nothing else, such as ``{"question": "2+2?"}``."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, text)] = value.items()
    return text if isinstance(text, str) and name.lower() not in _NO_TEXTS else None


def to_text(value: JsonValue) -> str:
    """Return a text as it is, and any other value as JSON. Whole numbers are written without a fraction."""
    # Tables turn whole numbers into fractions if one is missing; beyond 2**53 these are no longer exact.
    if isinstance(value, float) and value.is_integer() and abs(value) <= 1 << 53:
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(value: JsonValue) -> JsonValue:
    """Return numbers and booleans as text, even in a list of nothing else and texts, and other values as they are."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return [_text(item) for item in value]
    return to_text(value) if isinstance(value, bool) or is_number(value) else value


def _text_or_texts(expected: JsonValue, name: str, warnings: list[TraceWarning]) -> JsonValue:
    """Return a list of texts as it is, and any other list or object as its JSON text, with a warning."""
    return expected if _are_texts(expected) else _as_text(expected, name, warnings)


def _as_text(expected: JsonValue, name: str, warnings: list[TraceWarning]) -> JsonValue:
    """Return an object or list as its JSON text, with a warning, and other values as `_text` does."""
    if not isinstance(expected, dict | list):
        return _text(expected)
    warnings.append(TraceWarning("neither a string nor a list of strings, read as its JSON text", path=name))
    return to_text(expected)


def _are_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _says(value: JsonValue) -> bool:
    """Return whether there is a reference that is not blank. Other types are left for the schema to reject."""
    if isinstance(value, list):
        return any(map(_says, value))
    return bool(value.strip()) if isinstance(value, str) else value is not None
