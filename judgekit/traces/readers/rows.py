"""Rows of datasets, as tables and many tools have them.

{"input": "Where is my order?", "response": "On its way.", "expected_output": "It is on its way.", "label": "shipping"}
"""

import json
import sys

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, explain, shortened
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.readers.foreign import items, must_be_object, unpaired
from judgekit.traces.readers.openai_chat import OpenAIChatReader
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace

NUMBERS = ("task_quality", "communication_rounds", "task_time", "original_score", "transferred_score")
KEPT = ("expected_output", "results", *NUMBERS)
"""Columns that go into the fields of a sample under their own names."""
RESPONSES = ("response", "output")
_CONVERSATIONS = ("messages", "trace", "user_input")
_COMMON = ("fields", "group", "domain", "metadata")
_KNOWN = {"input", *RESPONSES, *KEPT, *References.__annotations__} - {*_COMMON}


class RowsReader:
    """Rows of what was asked, what was answered, and what is known to be right.

    That is ``input``, ``response`` or ``output``, and ``reference`` (a text or a list), ``expected_output``, ``label`` or
    other fields of a `Sample`; all other columns go into the sample's fields. A row without a response has no message of
    the agent; with an empty one, the agent said nothing.
    """

    name = "rows"
    shape = 'rows: {"input": ..., "response": ..., "reference": ...}, or a table with such columns'

    def recognises(self, value: JsonValue) -> bool:
        """Rows have one of the columns, and no conversation in another format."""
        record = next(iter(items(value)), None)
        return isinstance(record, dict) and not _KNOWN.isdisjoint(record) and record.keys().isdisjoint(_CONVERSATIONS)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """One row, or a list of them."""
        return items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One row. Without an id, the index names it."""
        row: JsonObject = {name: value for name, value in must_be_object(record).items() if value is not None}
        identity = as_text(row.pop("id", str(index)))
        messages = _asked(row.pop("input", None))
        messages += _answered({name: row.pop(name) for name in RESPONSES if name in row})
        beside = {name: value for name, value in row.items() if name not in References.__annotations__}
        known = references(row)
        known["fields"] = {**beside, **_fields(known)}
        trace = Trace(id=identity, messages=messages, warnings=unpaired(messages))
        try:
            return Sample.model_validate({**known, "id": identity, "trace": trace})
        except ValidationError as error:
            raise TraceError(explain(error, known)) from error


def references(row: JsonObject) -> JsonObject:
    """What a row knows about its trace, as fields of a `Sample`; what else is in the row is left.

    Raises:
        TraceError: A value that cannot be taken over.
    """
    known = {name: row[name] for name in References.__annotations__ if name in row}
    for name in NUMBERS:
        if name in row and not _is_number(row[name]):
            raise TraceError(f"{name}: expected a finite number, found {shortened(row[name])}")
    for name in ("label", "prediction"):
        if isinstance(known.get(name), bool) or _is_number(known.get(name)):
            known[name] = as_text(known[name])
    if isinstance(known.get("reference"), list):
        if "references" in known:
            raise TraceError("'reference' is a list, and there are 'references' too; keep one")
        known["references"] = known.pop("reference")
    if "expected_output" in row and known.keys().isdisjoint(("reference", "references")):
        known["reference"] = as_text(row["expected_output"])
    if kept := {name: row[name] for name in KEPT if name in row}:
        known["fields"] = {**_fields(known), **kept}
    return known


def as_text(value: JsonValue) -> str:
    """A text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fields(known: JsonObject) -> JsonObject:
    fields = known.get("fields", {})
    if not isinstance(fields, dict):
        raise TraceError(f"fields: expected an object, found {shortened(fields)}")
    return fields


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _asked(found: JsonValue) -> list[Message]:
    """What stands before the response: one message of the user, or a conversation in OpenAI's form."""
    if found is None:
        return []
    chat = OpenAIChatReader()
    if isinstance(found, list) and found and chat.records(found)[0] is found:
        try:
            return list(chat.sample(found, 0).trace.messages)
        except TraceError as error:
            raise TraceError(f"input: {error.found}") from error
    return [HumanMessage(as_text(found))]


def _answered(found: JsonObject) -> list[Message]:
    said = {name: as_text(value) for name, value in found.items()}
    if len(set(said.values())) > 1:
        which = " and ".join(f"{name!r} is {shortened(text)}" for name, text in said.items())
        raise TraceError(f"two responses that differ: {which}; keep one of the columns")
    return [AIMessage(text) for text in list(said.values())[:1]]
