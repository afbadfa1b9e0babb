"""Dataset rows, as in tables and many tools.

{"input": "Where is my order?", "response": "On its way.", "expected_output": "It is on its way.", "label": "shipping"}
"""

import re
from contextlib import nullcontext, suppress

from pydantic import JsonValue

from judgekit.errors import TraceError, join_limited, short_repr
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging.comparison import split_instructions, utterances
from judgekit.formats.readers.base import RowReader, append_reply, as_records, build_row_sample, require_object
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in
from judgekit.formats.row_facts import SINGLE_TEXT_WARNING, STRUCTURE_WARNING, VERBATIM_COLUMNS, single_text, to_text
from judgekit.formats.unread import RESPONSE_COLUMNS, canonical_column, column_option
from judgekit.formats.values import unpacked
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import MEASUREMENT_FIELDS, References, Sample

_CONVERSATIONS = ("messages", "trace", "user_input")
_KNOWN = {*VERBATIM_COLUMNS, *References.__annotations__} - {"fields", "group", "domain", "metadata", "results"}
_PYTHON = re.compile(r"\s*(\[\s*)?\{'\w+':")
_SUFFICIENT = ("prediction", "ranking", "fields", "results", *MEASUREMENT_FIELDS)
"""Columns that can be scored without a conversation."""


class RowsReader(RowReader):
    """A reader of rows of input, response and references.

    These are ``input``, ``response`` or ``output``, and ``reference`` (a text or a list), ``expected_output``,
    ``label`` or other fields of a `Sample`. Input and response are text, or messages in any provider's format. Other
    columns go into the sample's fields; warnings name those with a meaning in other evaluation systems. A row without a
    response has no message of the agent; with an empty response, the agent said nothing.
    """

    name = "rows"
    shape = (
        'rows: {"input": ..., "response": ..., "reference": ...}, or a table with such columns; '
        "rename others: --column question=input, columns={...}"
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows without a conversation of another format, by columns of input, response or references.

        Columns that other systems use for these are enough, so that `sample` can say how to rename them.
        """
        record = next(iter(as_records(value)), None)
        if not isinstance(record, dict) or any(record.get(name) is not None for name in _CONVERSATIONS):
            return False
        names = {canonical_column(name) or name for name in record}
        if record.get("model") is not None and names.isdisjoint(RESPONSE_COLUMNS):
            names.discard("input")  # a request to a model
        has_facts = not _KNOWN.isdisjoint(names) or _are_scores(record.get("results"))
        answered = isinstance(record.get("response"), str | int | float) and record.get("done") is not False  # a chunk
        return has_facts or answered or ("input" in names and not names.isdisjoint(RESPONSE_COLUMNS))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one row. Without an id, the index is its name."""
        row = FieldTracker(require_object(record))
        identity = row.id("id") or str(index)
        tools: list[ToolDefinition] = []
        request = take_value(row, "input", HumanMessage)
        messages, replies = exchange_messages(request, take_value(row, _response(row), AIMessage), tools)
        (systems, spoken), (own, rest) = split_instructions(messages), split_instructions(replies)
        if spoken and len(rest) > len(spoken) and utterances(rest[: len(spoken)]) == utterances(spoken):
            messages, replies = [*(own or systems)], rest  # the response repeats the input
        sample = build_row_sample(row, identity, append_reply(messages, replies, row), {}, tools)
        _check_complete(sample, require_object(record))
        return sample


def _are_scores(results: JsonValue) -> bool:
    """Return whether results are scores, which are measured without a conversation."""
    scores = results if isinstance(results, list) else [None]
    return all(isinstance(score, int | float) or (isinstance(score, dict) and "score" in score) for score in scores)


def _response(row: FieldTracker) -> str:
    responses = {name: to_text(row.peek(name)) for name in RESPONSE_COLUMNS if name in row}
    if len(set(responses.values())) > 1:
        which = " and ".join(f"{name!r} is {short_repr(text)}" for name, text in responses.items())
        raise TraceError(f"two different responses: {which}; keep one of the columns")
    for name in list(responses)[1:]:
        row.take(name)
    return next(iter(responses), RESPONSE_COLUMNS[0])


def take_value(row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> Payload:
    """Take an input or response: messages in any provider's format, or a text, which may hold these as JSON."""
    value = row.take(name)
    if value is None:
        return Payload()
    opened = unpacked(value)
    text = single_text(opened if kind is HumanMessage else value)  # an answer in JSON may be meant as it is
    if text is not None:
        row.warn(SINGLE_TEXT_WARNING, name)
        return Payload((kind(text),))
    with suppress(TraceError) if isinstance(value, str) else nullcontext():  # a text that only looks like messages
        payload = messages_in(opened, row, name, kind)
        messages = () if payload is None else payload.messages  # in a response, one is the agent's or a tool's
        if payload and any(kind is HumanMessage or isinstance(turn, AIMessage | ToolMessage) for turn in messages):
            if isinstance(value, str):
                row.warn("messages as JSON text, read as messages", name)
            return payload
    if isinstance(value, dict | list):
        row.warn(STRUCTURE_WARNING, name)
    elif isinstance(value, str) and _PYTHON.match(value):
        row.warn("a list or dict as Python prints it, read as plain text; write JSON instead", name)
    return Payload((kind(to_text(value)),))


def _check_complete(sample: Sample, row: JsonObject) -> None:
    """Check that a row has what it needs, and that no column of another system holds it; else say how to rename."""
    messages, fields = sample.trace.messages, sample.fields
    answered = any(isinstance(message, AIMessage) for message in messages)
    there = {
        "input": any(message.text.strip() for message in messages if not isinstance(message, AIMessage)),
        "response": answered,
        "reference": answered or any(row.get(name) is not None for name in _KNOWN),
    }
    theirs = {canonical_column(name): name for name in reversed(fields)}  # the first of several
    renamed = {theirs[ours]: ours for ours, exists in there.items() if not exists and ours in theirs}
    if renamed:
        lacking = " and no ".join(dict.fromkeys(renamed.values()))
        if "input" in renamed.values() and "input" in row:  # it is blank
            renamed["input"] = "context"
        columns = " ".join(column_option(name, ours) for name, ours in renamed.items())
        problem = f"this row has no {lacking}; if the column has another name: {columns}"
        answers = [name for name, ours in renamed.items() if (name.lower(), ours) == ("answer", "response")]
        if answers and not there["reference"]:
            option = column_option(answers[0], "reference")
            problem += f"; if {answers[0]!r} is the expected answer, as in most datasets: {option}"
        raise TraceError(problem)
    own = fields.keys() - VERBATIM_COLUMNS
    lost = [warning for warning in sample.trace.warnings if warning.path in own]
    if not messages and (lost or all(row.get(name) is None for name in _SUFFICIENT)):
        problem = join_limited(f"{warning.path}: {warning.message}" for warning in lost)
        problem = problem or f"found the columns {', '.join(map(repr, row))}"
        needed = "an 'input' or 'response', a prediction, a ranking or measured numbers"
        raise TraceError(f"a row needs {needed}; {problem}")
