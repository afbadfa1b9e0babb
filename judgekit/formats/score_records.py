"""Scores that platforms keep apart from conversations: Langfuse's scores, LangSmith's feedback and Phoenix's annotations.

{"traceId": "t1", "name": "correct", "value": 1, "dataType": "BOOLEAN", "source": "ANNOTATION", "authorUserId": "u1", "comment": "ok"}
{"name": "correct", "value": true, "dataType": "BOOLEAN", "source": "ANNOTATION", "subject": {"kind": "trace", "id": "t1"}}
{"run_id": "r1", "trace_id": "r1", "key": "correct", "score": 1, "comment": "fine", "feedback_source": {"type": "app", "user_id": "u1"}}
{"trace_id": "t1", "name": "correct", "annotator_kind": "HUMAN", "result": {"label": "yes", "score": 1, "explanation": "fine"}, "user_id": "u1"}
"""

from typing import Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue

from judgekit.formats.label_sources import label_source
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, first_value, is_number, str_or_none
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import Label, LabelSource

ScoreSystem: TypeAlias = Literal["Langfuse", "LangSmith", "Phoenix"]

_LANGFUSE = frozenset(("dataType", "data_type", "subject", "traceId", "trace_id", "observationId", "observation_id"))
_LANGFUSE_JUDGED = {"EVAL": True, "ANNOTATION": None, "API": None}
_LANGSMITH_JUDGED = {"model": True, "auto_eval": True, "evaluator": True}
_LANGSMITH_PEOPLE = ("app", "user", "human")
_PHOENIX_JUDGED = {"LLM": True, "CODE": False}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
AUDIT_HINT = "use it with the run of these conversations: judgekit audit RUN --labels FILE"


class ScoreRecord(NamedTuple):
    """A score as a label, and what it is about: the trace, and the span in it if it is not the whole.

    There is no label without a value, and no trace if the score belongs to a session or an experiment, or names only a
    span. A score may state the correct output instead: a ``correction``.
    """

    label: Label | None
    trace: str | None = None
    span: str | None = None
    correction: str | None = None


def score_system(value: JsonValue) -> ScoreSystem | None:
    """Return the system whose score this is; ``None`` for any other value."""
    if not isinstance(value, dict):
        return None
    if "annotator_kind" in value and "name" in value and not {"trace_id", "span_id", "session_id"}.isdisjoint(value):
        return "Phoenix"
    if "key" in value and "run_id" in value and not {"score", "value"}.isdisjoint(value):
        return "LangSmith"
    named = isinstance(value.get("name"), str) and "value" in value and not _LANGFUSE.isdisjoint(value)
    return "Langfuse" if named and str_or_none(value.get("source")) in _LANGFUSE_JUDGED else None


def read_score(score: JsonObject, system: ScoreSystem) -> ScoreRecord:
    """Read a score, feedback or annotation."""
    if system == "Langfuse":
        return _langfuse(score)
    return _langsmith(score) if system == "LangSmith" else _phoenix(score)


def _langfuse(score: JsonObject) -> ScoreRecord:
    name, kind, given_by = str(score.get("name")), first_value(score, "dataType", "data_type"), score.get("source")
    subject = as_object(score.get("subject"))
    if subject:
        about, identity = subject.get("kind"), str_or_none(subject.get("id"))
        trace = identity if about == "trace" else str_or_none(first_value(subject, "traceId", "trace_id"))
        span = identity if about == "observation" else None
    else:
        trace = str_or_none(first_value(score, "traceId", "trace_id"))
        span = str_or_none(first_value(score, "observationId", "observation_id"))
    value, text = score.get("value"), str_or_none(first_value(score, "stringValue", "string_value"))
    if kind == "CORRECTION":
        corrected = value if isinstance(value, str) else text
        return ScoreRecord(None, trace, span, corrected or None)
    if kind == "BOOLEAN":
        value = _TRUTH.get(str(value).lower().removesuffix(".0"), value)
    elif kind in ("CATEGORICAL", "TEXT") and not isinstance(value, str):
        value = value if text is None else text
    judged = _LANGFUSE_JUDGED.get(str(given_by))
    source: LabelSource = "human" if given_by == "ANNOTATION" else label_source(name, judged=judged)
    author = first_value(score, "authorUserId", "author_user_id")
    return ScoreRecord(make_label(name, value, source, author, score.get("comment")), trace, span)


def _langsmith(score: JsonObject) -> ScoreRecord:
    name, origin = str(score.get("key")), as_object(score.get("feedback_source"))
    kind = origin.get("type")
    judged = _LANGSMITH_JUDGED.get(kind) if isinstance(kind, str) else None
    source: LabelSource = "human" if kind in _LANGSMITH_PEOPLE else label_source(name, judged=judged)
    trace, run = str_or_none(score.get("trace_id")), str_or_none(score.get("run_id"))
    value = first_value(score, "score", "value")
    label = make_label(name, value, source, first_value(origin, "user_name", "user_id"), score.get("comment"))
    return ScoreRecord(label, trace, None if run == trace else run)


def _phoenix(score: JsonObject) -> ScoreRecord:
    name, kind, result = str(score.get("name")), str(score.get("annotator_kind")), as_object(score.get("result"))
    source: LabelSource = "human" if kind == "HUMAN" else label_source(name, judged=_PHOENIX_JUDGED.get(kind))
    author = first_value(score, "user_id") or (score.get("identifier") or None)
    label = make_label(name, first_value(result, "score", "label"), source, author, result.get("explanation"))
    return ScoreRecord(label, str_or_none(score.get("trace_id")), str_or_none(score.get("span_id")))


def make_label(
    name: str, value: JsonValue, source: LabelSource, annotator: JsonValue = None, reason: JsonValue = None
) -> Label | None:
    """Return a label, or ``None`` if there is no value. A value of another type becomes its JSON text."""
    if value is None or value == "":
        return None
    is_plain = isinstance(value, bool | str) or is_number(value)
    return Label(
        name,
        cast("bool | float | str", value) if is_plain else to_text(value),
        source=source,
        annotator=str(annotator) if isinstance(annotator, str | int) else None,
        reason=str_or_none(reason) or None,
    )
