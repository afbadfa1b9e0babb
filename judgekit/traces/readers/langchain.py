"""Conversations of LangChain and LangGraph: lists of messages, states of graphs, and runs of LangSmith.

[{"type": "human", "data": {"content": "1+2?"}}, ...], or {"messages": [{"type": "human", "content": "1+2?"}, ...]}
{"inputs": {"messages": [[...]]}, "outputs": {"generations": [[{"message": {...}}]]}}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.blocks.langchain import are_messages, read_messages
from judgekit.traces.found import Found
from judgekit.traces.message import JsonObject
from judgekit.traces.readers.foreign import items, sample_from
from judgekit.traces.sample import Sample


class LangChainReader:
    """Lists of messages, rows or states that hold one in ``messages``, and runs with ``inputs`` and ``outputs``."""

    name = "langchain"
    gathers = False
    shape = 'langchain: [{"type": "human", "content": ...}, ...] of any of its dumps, or a state with "messages"'

    def recognises(self, value: JsonValue) -> bool:
        """Messages have a type of LangChain's, and no role."""
        return any(are_messages(_row(record).get("messages")) for record in self.records(value)[:1])

    def records(self, document: JsonValue) -> list[JsonValue]:
        """A list of messages is one conversation; a list of rows, or of such lists, is many."""
        return [document] if are_messages(document) else items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation, named by the id of its run or row, if it has one."""
        row = Found.of(_row(record))
        messages = read_messages(row.objects("messages"))
        if not messages:
            raise TraceError("messages: expected messages of LangChain, found none")
        times = {"started_at": row.moment("start_time"), "ended_at": row.moment("end_time")}
        return sample_from(row, index, {"messages": messages, **times})


def _row(record: JsonValue) -> JsonObject:
    """The record as an object with its ``messages``, which runs and states hold in other places."""
    row: JsonObject = record if isinstance(record, dict) else {"messages": record}
    if "messages" in row:
        return {**row, "messages": _only(row["messages"])}
    values, inputs, outputs = row.get("values"), row.get("inputs"), row.get("outputs")
    if isinstance(values, dict) and are_messages(messages := _only(values.get("messages"))):
        return {**row, "values": _without(values, "messages"), "messages": messages}
    given = _only(inputs.get("messages")) if isinstance(inputs, dict) else None
    for name in ("messages", "output"):
        answer = items(_only(outputs.get(name))) if isinstance(outputs, dict) else []
        if isinstance(outputs, dict) and are_messages(answer):
            row = {**row, "outputs": _without(outputs, name)}
            asked = [_as_message(one) for one in given] if isinstance(given, list) else []
            place = next((at for at, one in enumerate(asked) if _is_same(one, answer[0])), len(asked))
            if not isinstance(inputs, dict) or not are_messages(asked) or not place:
                return {**row, "messages": answer}
            return {**row, "inputs": _without(inputs, "messages"), "messages": [*asked[:place], *answer]}
    if not isinstance(inputs, dict) or not isinstance(given, list):
        return row
    generations = _only(outputs.get("generations")) if isinstance(outputs, dict) else None
    first = generations[0] if isinstance(generations, list) and generations else None
    said = first.get("message") if isinstance(first, dict) else None
    if isinstance(outputs, dict) and isinstance(generations, list) and isinstance(first, dict) and said is not None:
        given = [*given, said]
        row = {**row, "outputs": {**outputs, "generations": [_without(first, "message"), *generations[1:]]}}
    return {**row, "inputs": _without(inputs, "messages"), "messages": given}


def _as_message(value: JsonValue) -> JsonValue:
    """A message as graphs take it too: with a role and without a type."""
    return {"type": "chat", **value} if isinstance(value, dict) and "role" in value else value


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    first, second = _fields(one), _fields(other)
    ids = first.get("id"), second.get("id")
    return (
        ids[0] == ids[1]
        if None not in ids
        else bool(first.get("content")) and first.get("content") == second.get("content")
    )


def _fields(message: JsonValue) -> JsonObject:
    whole = message if isinstance(message, dict) else {}
    inner = whole.get("kwargs") or whole.get("data")
    return inner if isinstance(inner, dict) else whole


def _only(value: JsonValue) -> JsonValue:
    """The one batch of a run, whose lists are nested."""
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value


def _without(value: JsonObject, name: str) -> JsonObject:
    return {key: item for key, item in value.items() if key != name}
