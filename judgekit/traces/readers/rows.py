"""Rows of datasets, as tables and many tools have them.

{"input": "Where is my order?", "response": "On its way.", "expected_output": "It is on its way.", "label": "shipping"}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError, shortened
from judgekit.traces.known import KEPT, as_text, fields_of, known_of, sample_of
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.readers.foreign import items, must_be_object, unpaired
from judgekit.traces.readers.openai_chat import OpenAIChatReader
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace

RESPONSES = ("response", "output")
_CONVERSATIONS = ("messages", "trace", "user_input")
_COMMON = ("fields", "group", "domain", "metadata")
_KNOWN = {*KEPT, *References.__annotations__} - {*_COMMON, "results"}


class RowsReader:
    """Rows of what was asked, what was answered, and what is known to be right.

    That is ``input``, ``response`` or ``output``, and ``reference`` (a text or a list), ``expected_output``, ``label`` or
    other fields of a `Sample`; all other columns go into the sample's fields. A row without a response has no message of
    the agent; with an empty one, the agent said nothing.
    """

    name = "rows"
    gathers = False
    shape = (
        'rows: {"input": ..., "response": ..., "reference": ...}, or a table with such columns; '
        "others are renamed: --column question=input, columns={...}"
    )

    def recognises(self, value: JsonValue) -> bool:
        """Rows have no conversation in another format, and say what was asked or answered, or what is known to be right.

        Much else has an input to a model, an output that is no text, or results that are no list.
        """
        record = next(iter(items(value)), None)
        if not isinstance(record, dict) or not record.keys().isdisjoint(_CONVERSATIONS):
            return False
        answered = any(name in record and not isinstance(record[name], list | dict) for name in RESPONSES)
        asked = "input" in record and "model" not in record
        return asked or answered or isinstance(record.get("results"), list) or not _KNOWN.isdisjoint(record)

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
        known = known_of(row)
        known["fields"] = {**beside, **fields_of(known)}
        trace = Trace(id=identity, messages=messages, warnings=unpaired(messages))
        return sample_of(identity, {**known, "trace": trace})


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
