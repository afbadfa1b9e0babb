"""ragas rows: multi-turn ones with typed messages, single-turn ones with a question and an answer.

{"user_input": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello", "tool_calls": [
    {"name": "f", "args": {"a": 1}}]}], "reference": "...", "reference_tool_calls": [...], "reference_topics": [...]}
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, explain
from judgekit.traces.known import Text, fields_of, known_of, sample_of
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolMessage,
    parse_arguments,
)
from judgekit.traces.readers.foreign import Foreign, items, unpaired
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace


class _Call(Foreign):
    name: str
    args: JsonValue = None


class _Message(Foreign):
    type: Literal["human", "ai", "tool"]
    content: str = ""
    tool_calls: list[_Call] | None = None
    metadata: JsonObject | None = None


class _Row(Foreign):
    user_input: list[_Message] | str
    id: Text | None = None
    response: Text | None = None
    reference_tool_calls: list[_Call] | None = None
    retrieved_contexts: list[str] | None = None


class RagasReader:
    """Rows of a ragas dataset. What has no place here (rubrics, reference contexts) goes into the sample's fields."""

    name = "ragas"
    shape = 'ragas: {"user_input": [{"type": "human", "content": ...}, ...], "reference": ...}'

    def recognises(self, value: JsonValue) -> bool:
        """Rows have a ``user_input``."""
        record = next(iter(items(value)), None)
        return isinstance(record, dict) and "user_input" in record

    def records(self, document: JsonValue) -> list[JsonValue]:
        """One row, or a list of them."""
        return items(document)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One row. Without an id, the index names it."""
        try:
            row = _Row.model_validate(record)
            known = known_of(row.unknown)
            beside = {name: value for name, value in row.unknown.items() if name not in References.__annotations__}
            fields = {**beside, **fields_of(known)}
            if isinstance(row.user_input, str):
                messages: list[Message] = [HumanMessage(row.user_input)]
                if row.response is not None:
                    messages.append(AIMessage(row.response))
            else:
                messages = [_message(message) for message in row.user_input]
                if row.response is not None:
                    fields["response"] = row.response
            identity = str(index) if row.id is None else row.id
            trace = Trace(id=identity, messages=messages, warnings=unpaired(messages))
            own: dict[str, object] = {}
            if row.retrieved_contexts is not None:
                if "documents" in known:
                    raise TraceError("'retrieved_contexts' are documents, and there are 'documents' too; keep one")
                own["documents"] = row.retrieved_contexts
            if row.reference_tool_calls is not None:
                own["reference_tool_calls"] = _calls(row.reference_tool_calls)
            return sample_of(identity, {**known, **own, "fields": fields, "trace": trace})
        except ValidationError as error:
            raise TraceError(explain(error, record)) from error


def _message(found: _Message) -> Message:
    fields = {"content": found.content, "metadata": found.metadata or {}, "extra": found.unknown}
    if found.type == "tool":
        return ToolMessage.model_validate(fields)
    kind = HumanMessage if found.type == "human" else AIMessage
    return kind.model_validate({**fields, "tool_calls": _calls(found.tool_calls or ())})


def _calls(found: Iterable[_Call]) -> list[ToolCall]:
    return [ToolCall(call.name, extra=call.unknown, **parse_arguments(call.args)) for call in found]
