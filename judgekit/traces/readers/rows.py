"""Rows of datasets, as tables and many tools have them.

{"input": "Where is my order?", "response": "On its way.", "expected_output": "It is on its way.", "label": "shipping"}
"""

from contextlib import suppress

from pydantic import JsonValue

from judgekit.errors import TraceError, listed, shortened
from judgekit.traces.found import Found
from judgekit.traces.known import KEPT, MEASURED, ONE_TEXT, as_text, only_text
from judgekit.traces.merging.said import atoms, parted
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject
from judgekit.traces.readers.foreign import items, must_be_object, row_sample, with_reply
from judgekit.traces.readers.native import Payload, exchanged, messages_in, parsed
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import ToolDefinition
from judgekit.traces.unread import RESPONSES, meaning

_CONVERSATIONS = ("messages", "trace", "user_input")
_KNOWN = {*KEPT, *References.__annotations__} - {"fields", "group", "domain", "metadata", "results"}
_SUFFICIENT = ("prediction", "ranking", "fields", "results", *MEASURED)
"""Columns that can be scored without a conversation."""


class RowsReader:
    """Rows of what was asked, what was answered, and what is known to be right.

    That is ``input``, ``response`` or ``output``, and ``reference`` (a text or a list), ``expected_output``, ``label`` or
    other fields of a `Sample`. What was asked and answered is text, or messages in the format of any provider. Other
    columns go into the sample's fields; those with a meaning in other evaluation systems are named in warnings. A row
    without a response has no message of the agent; with an empty one, the agent said nothing.
    """

    name = "rows"
    gathers = False
    shape = (
        'rows: {"input": ..., "response": ..., "reference": ...}, or a table with such columns; '
        "others are renamed: --column question=input, columns={...}"
    )

    def recognises(self, value: JsonValue) -> bool:
        """Rows hold no conversation of another format, and say what was asked and answered, or what is known to be right.

        That some columns have the names of another system is enough, so that `sample` can say how to rename them.
        """
        record = next(iter(items(value)), None)
        if not isinstance(record, dict) or any(record.get(name) is not None for name in _CONVERSATIONS):
            return False
        names = {meaning(name) or name for name in record}
        if record.get("model") is not None and names.isdisjoint(RESPONSES):
            names.discard("input")  # a request to a model
        known = not _KNOWN.isdisjoint(names) or isinstance(record.get("results"), list)
        answered = isinstance(record.get("response"), str | int | float)
        return known or answered or ("input" in names and not names.isdisjoint(RESPONSES))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """One row, or a list of them."""
        return items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One row. Without an id, the index names it."""
        row = Found(must_be_object(record))
        identity = row.identity("id") or str(index)
        tools: list[ToolDefinition] = []
        asked = _payload(row, "input", HumanMessage)
        messages, replies = exchanged(asked, _payload(row, _response(row), AIMessage), tools)
        systems, said = parted(messages)
        if said and len(replies) > len(said) and atoms(replies[: len(said)]) == atoms(said):
            messages = [*systems]  # the response repeats what was asked
        sample = row_sample(row, identity, with_reply(messages, replies, row), {}, tools)
        _must_suffice(sample, must_be_object(record))
        return sample


def _response(row: Found) -> str:
    """The name of the column with the response."""
    found = {name: as_text(row.peek(name)) for name in RESPONSES if name in row}
    if len(set(found.values())) > 1:
        which = " and ".join(f"{name!r} is {shortened(text)}" for name, text in found.items())
        raise TraceError(f"two responses that differ: {which}; keep one of the columns")
    for name in list(found)[1:]:
        row.take(name)
    return next(iter(found), RESPONSES[0])


def _payload(row: Found, name: str, kind: type[HumanMessage | AIMessage]) -> Payload:
    """What was asked or answered: messages in the format of any provider, or a text, which may hold these as JSON."""
    value = row.peek(name)
    if value is None:
        return Payload()
    text = only_text(value)
    if text is not None:
        row.warn(ONE_TEXT, name)
    elif isinstance(value, str):
        text = value
        with suppress(TraceError):  # a text that only looks like messages
            if (payload := messages_in(parsed(value), row, name, kind)) is not None and payload.messages:
                row.warn("JSON text that holds messages, read as these", name)
                row.take(name)
                return payload
    elif (payload := messages_in(value, row, name, kind)) is not None and payload.messages:
        row.take(name)
        return payload
    elif isinstance(value, dict | list):
        row.warn("neither a text nor messages, read as its JSON", name)
    row.take(name)
    return Payload((kind(as_text(value) if text is None else text),))


def _must_suffice(sample: Sample, row: JsonObject) -> None:
    """Checks that a row has what it needs, and that no column of another system has it instead.

    Raises:
        TraceError: It does not; says which columns to rename.
    """
    messages, fields = sample.trace.messages, sample.fields
    answered = any(isinstance(message, AIMessage) for message in messages)
    there = {
        "input": any(message.text.strip() for message in messages if not isinstance(message, AIMessage)),
        "response": answered,
        "reference": answered or any(row.get(name) is not None for name in _KNOWN),
    }
    renamed = {theirs: ours for theirs in fields if not there.get(ours := meaning(theirs) or "", True)}
    if renamed:
        lacking = " and no ".join(dict.fromkeys(renamed.values()))
        if "input" in renamed.values() and "input" in row:  # which is blank
            renamed["input"] = "context"
        columns = " ".join(f"--column {theirs}={ours}" for theirs, ours in renamed.items())
        raise TraceError(f"no {lacking} in this row; if it has another name: {columns}")
    lost = [one for one in sample.trace.warnings if one.where in fields and one.where not in KEPT]
    if not messages and (lost or all(row.get(name) is None for name in _SUFFICIENT)):
        found = listed(f"{one.where}: {one.found}" for one in lost) or f"found the columns {', '.join(map(repr, row))}"
        needed = "what was asked or answered ('input', 'response'), a prediction, a ranking or measured numbers"
        raise TraceError(f"a row needs {needed}; {found}")
