"""Items of datasets on tracing platforms: an input, what is expected, and no run of an agent."""

from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import build_sample
from judgekit.formats.readers.payloads import parse_structured_json, take_payload
from judgekit.formats.row_facts import STRUCTURE_WARNING, to_text
from judgekit.formats.values import as_object
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.sample import Sample


def read_item(row: FieldTracker, index: int, input_name: str, output_name: str) -> Sample:
    """Return the sample of a dataset's item.

    The values next to the question are fields of the sample. The expected output is the reference: its text, the texts
    of a list, or the last message and the calls of messages.
    """
    row.warn("an item of a dataset, without a run of an agent; its expected output is the reference")
    fields: JsonObject = {}
    messages = _texts(row, input_name, HumanMessage, fields)
    if not isinstance(row.peek("metadata"), dict | None):
        fields["metadata"] = row.take("metadata")
    facts = read_expected(row, output_name, fields)
    return build_sample(row, index, {"messages": messages}, identity=row.id("id"), **facts)


def read_expected(row: FieldTracker, name: str, fields: JsonObject) -> dict[str, object]:
    """Take an expected output as references and fields of the sample, which are these and what it holds next to its text.

    Messages stay where they are too, since they say more than references can.
    """
    facts: dict[str, object] = {"fields": fields}
    expected = parse_structured_json(row.peek(name))
    if isinstance(expected, list) and expected and all(isinstance(text, str) for text in expected):
        row.take(name)
        return {**facts, "references": expected}
    holder = FieldTracker({name: expected}, row.path, row.warnings)
    outputs = [message for message in _texts(holder, name, AIMessage, fields) if isinstance(message, AIMessage)]
    calls = [call for message in outputs for call in message.tool_calls]
    text = next((message.text for message in reversed(outputs) if message.text), None)
    is_text = text == to_text(expected) or ("role" not in as_object(expected) and text in as_object(expected).values())
    if outputs and not is_text:
        row.warn("messages, of which the last answer and the calls are the reference", name)
    else:
        row.take(name)
    facts |= {} if text is None else {"reference": text}
    return {**facts, "reference_tool_calls": calls} if calls else facts


def _texts(row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage], fields: JsonObject) -> list[Message]:
    """Take a field with messages, a text or any other value, whose JSON is the text. The rest goes into ``fields``."""
    if row.peek(name) in (None, {}, ""):
        return []
    payload = take_payload(row, name, kind)
    fields |= {key: held for key, held in payload.extra.items() if key not in fields}
    if kept := {key: held for key, held in payload.extra.items() if fields[key] != held}:
        fields[name] = kept
    if payload.messages:
        return [*payload.messages]
    row.warn(STRUCTURE_WARNING, name)
    return [kind(to_text(parse_structured_json(row.take(name))))]
