"""Samples: a trace and its references."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, TypeGuard, Unpack, cast

from pydantic import Field, FiniteFloat, JsonValue, field_validator, model_validator
from pydantic_core import PydanticSerializationError

from judgekit.errors import ConfigError, join_limited, short_repr
from judgekit.traces.message import FrozenModel, JsonObject, Many, Message, RecordId, Requestor, ToolCall
from judgekit.traces.trace import Trace

MEASUREMENT_FIELDS = ("task_quality", "communication_rounds", "task_time", "original_score", "transferred_score")
"""The ``fields`` of a `Sample` that are measurements."""


class ExpectedCall(ToolCall):
    """A tool call that the agent should have made.

    Attributes:
        compare_args: The arguments to compare; ``None`` means all, and an empty list means only the tool's name.
        requestor: The side that should have made the call: the agent, or a user who calls tools too.
        turn: The number of user messages before the call, for scorers that compare turn by turn.
        agent: The name of the agent that should have made the call; ``None`` for any.
    """

    compare_args: Many[str] | None = None
    requestor: Requestor = "assistant"
    turn: int | None = Field(default=None, ge=0)
    agent: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_a_call(cls, data: object) -> object:
        return dict(data) if type(data) is ToolCall else data

    @model_validator(mode="after")
    def _must_be_readable(self) -> "ExpectedCall":
        if self.args_error is not None:
            raise ValueError(f"arguments of an expected call must be a JSON object, found {self.args_raw!r}")
        return self


class Ranking(FrozenModel):
    """Retrieved documents, best first, and the known relevance of documents.

    Attributes:
        retrieved: Document ids, best first. Given as (id, score) pairs or with ``scores``, they are sorted by
            descending score, and ids with equal scores in descending order, as trec_eval does (which stores scores as
            32-bit floats, so that it treats scores as equal that differ only in the eighth digit).
        relevance: Grades of the judged documents by id: above 0 is relevant, and higher is more relevant.
        scores: The score of each id in ``retrieved``, if there are scores.

    Raises:
        ValidationError: An id occurs twice, the scores do not match the ids, or a number is not finite.
    """

    retrieved: Many[RecordId] = Field(kw_only=False)
    relevance: dict[RecordId, FiniteFloat] = Field(kw_only=False)
    scores: Many[FiniteFloat] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            retrieved: Sequence[str | int] | Sequence[tuple[str | int, float]],
            relevance: Mapping[str, float] | Mapping[int, float],
            *,
            scores: Sequence[float] | None = None,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _from_pairs(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, object]", data)
        retrieved = fields.get("retrieved")
        if not _is_list(retrieved):
            return fields
        if not any(map(_is_list, retrieved)):
            return {**fields, "retrieved": _whole_floats_as_integers(retrieved)}
        if fields.get("scores") is not None:
            raise ValueError("retrieved already has (id, score) pairs; omit scores, or pass only ids")
        if odd := [pair for pair in retrieved if not _is_list(pair) or len(pair) != 2]:
            raise ValueError(f"retrieved mixes (id, score) pairs with {short_repr(odd[0])}")
        ids, scores = zip(*cast("Sequence[tuple[object, object]]", retrieved), strict=True)
        return {**fields, "retrieved": _whole_floats_as_integers(ids), "scores": scores}

    @field_validator("relevance", mode="before")
    @classmethod
    def _one_grade_each(cls, data: JsonValue) -> JsonValue:
        if isinstance(data, dict):
            _must_differ([str(identity) for identity in data], "relevance")  # in Python, an id may also be a number
        return data

    @model_validator(mode="after")
    def _best_first(self) -> "Ranking":
        _must_differ(self.retrieved, "retrieved")
        if self.scores is not None:
            ids, scores = len(self.retrieved), len(self.scores)
            if ids != scores:
                raise ValueError(f"expected a score for each of {ids} ids, found {scores} scores")
            pairs = sorted(zip(self.scores, self.retrieved, strict=True), reverse=True)
            object.__setattr__(self, "retrieved", tuple(identity for _, identity in pairs))
            object.__setattr__(self, "scores", tuple(score for score, _ in pairs))
        return self


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _whole_floats_as_integers(ids: Sequence[object]) -> Sequence[object]:
    """Return ids with whole floats as integers: tables turn integers into floats if one is missing."""
    return [int(identity) if isinstance(identity, float) and identity.is_integer() else identity for identity in ids]


def _must_differ(ids: Sequence[str], field: str) -> None:
    if len(set(ids)) < len(ids):
        twice = (short_repr(identity) for identity, count in Counter(ids).items() if count > 1)
        raise ValueError(f"{field} has duplicate ids: {join_limited(twice, separator=', ')}")


class References(TypedDict, total=False):
    """The fields of a `Sample` that hold what is known about its trace."""

    baseline: Trace | None
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


class Sample(FrozenModel):
    """A trace and its references: the single input of a scorer. ``None`` means unknown.

    Attributes:
        schema_version: The version of this schema.
        id: The id, by which references and the samples of other runs are matched.
        trace: The conversation; empty if there is none, as for measured numbers.
        baseline: A second trace of the same task, for comparisons.
        reference: The correct answer, or the desired outcome.
        references: Several answers, each correct on its own.
        reference_tool_calls: The expected calls; an empty list means that no call was expected.
        reference_topics: The topics that the agent should stay within.
        label: The true class, or the expected answer, for classification.
        prediction: The predicted class; scorers use the response if it is ``None``.
        prediction_score: The score of the prediction, such as a probability.
        documents: The documents that the answer should rest on.
        ranking: The retrieved documents and their known relevance.
        fields: Further facts for scorers, such as a dataset row's other columns.
        group: The name of the task; samples of one group (its trials) are not independent.
        domain: The domain of the task, such as ``airline``.
        metadata: Other facts about the sample, such as keys by which references are joined.
    """

    schema_version: Literal[1] = 1
    id: str
    trace: Trace = Field(default_factory=Trace)
    baseline: Trace | None = None
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

    @property
    def all_references(self) -> tuple[str, ...]:
        """``reference`` and ``references``, each correct on its own, without blanks and duplicates."""
        texts = (self.reference or "", *(self.references or ()))
        return tuple(dict.fromkeys(text for text in texts if text.strip()))

    @property
    def has_sub_agents(self) -> bool:
        """Whether the trace or its baseline has children."""
        return bool(self.trace.children) or (self.baseline is not None and bool(self.baseline.children))

    def without_sub_agents(self) -> "Sample":
        """Return the sample with the agent's own conversations alone, without those of sub-agents."""
        if not self.has_sub_agents:
            return self
        alone = {"children": ()}
        baseline = None if self.baseline is None else self.baseline.model_copy(update=alone)
        return self.model_copy(update={"trace": self.trace.model_copy(update=alone), "baseline": baseline})

    @classmethod
    def of(cls, messages: Sequence[Message], *, id: str | None = None, **references: Unpack[References]) -> "Sample":
        """Return a sample made of messages. Without an ``id``, it is named after the hash of its messages.

        Raises:
            ConfigError: There is no such argument.
        """
        for name in references.keys() - References.__annotations__.keys():
            raise ConfigError.unknown("argument of Sample.of", name, References.__annotations__)
        trace = Trace(id=id, messages=messages)
        name = id or hashlib.sha256(_json(trace).encode()).hexdigest()[:12]
        return cls.model_validate({"id": name, "trace": trace, **references})


def _json(trace: Trace) -> str:
    try:
        return trace.model_dump_json()
    except PydanticSerializationError:  # lone surrogates, which json.dumps escapes
        return json.dumps(trace.model_dump(mode="json"))
