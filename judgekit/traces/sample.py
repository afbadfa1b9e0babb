"""A trace and what is known to be right about it."""

import hashlib
from collections.abc import Sequence
from typing import Literal, TypedDict

from pydantic import Field, FiniteFloat, model_validator
from typing_extensions import Unpack

from judgekit.traces.message import JsonObject, Many, Message, Record, Requestor, ToolCall
from judgekit.traces.trace import Trace


class ExpectedCall(ToolCall):
    """A tool call that the agent should have made.

    Attributes:
        compare_args: The arguments that matter; ``None`` means all, and an empty list means the tool's name alone.
        requestor: Who should have made it: the agent, or a user who calls tools too.
        turn: After how many messages of the user it was to be made, for scorers that compare turn by turn.
    """

    compare_args: Many[str] | None = None
    requestor: Requestor = "assistant"
    turn: int | None = Field(default=None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _from_a_call(cls, data: object) -> object:
        return dict(data) if type(data) is ToolCall else data

    @model_validator(mode="after")
    def _must_be_readable(self) -> "ExpectedCall":
        if self.args_error is not None:
            raise ValueError(f"arguments of an expected call must be a JSON object, found {self.args_raw!r}")
        return self


class Ranking(Record):
    """A ranked list of ids, best first, and how relevant each id is known to be (0 where it is not named)."""

    ranked: Many[str] = Field(kw_only=False)
    relevance: dict[str, FiniteFloat] = Field(kw_only=False)
    scores: Many[FiniteFloat] | None = None


class References(TypedDict, total=False):
    """The fields of a `Sample` that say what is known about its trace."""

    rival: Trace | None
    reference: str | None
    references: Many[str] | None
    reference_tool_calls: Many[ToolCall] | None
    reference_topics: Many[str] | None
    label: str | None
    prediction: str | None
    prediction_score: float | None
    documents: Many[str] | None
    ranking: Ranking | None
    fields: JsonObject
    group: str | None
    domain: str | None
    metadata: JsonObject


class Sample(Record):
    """A trace and what is known to be right about it: the one thing that a scorer is given.

    ``None`` means that nothing is known; an empty list of ``reference_tool_calls`` means that no call was right.
    ``rival`` is a second trace of the same task. Samples of one ``group`` (trials of one task) are not independent.
    """

    schema_version: Literal[1] = 1
    id: str
    trace: Trace = Field(default_factory=Trace)
    rival: Trace | None = None
    reference: str | None = None
    references: Many[str] | None = None
    reference_tool_calls: Many[ExpectedCall] | None = None
    reference_topics: Many[str] | None = None
    label: str | None = None
    prediction: str | None = None
    prediction_score: FiniteFloat | None = None
    documents: Many[str] | None = None
    ranking: Ranking | None = None
    fields: JsonObject = Field(default_factory=dict)
    group: str | None = None
    domain: str | None = None
    metadata: JsonObject = Field(default_factory=dict)

    @classmethod
    def of(cls, messages: Sequence[Message], *, id: str | None = None, **known: Unpack[References]) -> "Sample":
        """A sample from messages. Without an ``id`` it is named after the hash of its messages."""
        trace = Trace(id=id, messages=messages)
        name = id or hashlib.sha256(trace.model_dump_json().encode()).hexdigest()[:12]
        return cls.model_validate({"id": name, "trace": trace, **known})
