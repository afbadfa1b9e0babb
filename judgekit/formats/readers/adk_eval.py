"""Evaluations of Google's Agent Development Kit: eval sets and results.

{"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [{"user_content": {"parts": [...]}, "final_response": {...},
  "intermediate_data": {"tool_uses": [{"name", "args"}], ...}}]}]}
{"eval_set_result_id": "r", "eval_case_results": [{"eval_id", "session_id", "overall_eval_metric_results": [{"metric_name", "score"}],
  "eval_metric_result_per_invocation": [{"actual_invocation": {...}, "expected_invocation": {...}}]}]}
"""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import tool_name
from judgekit.formats.blocks.gemini import read_content, read_function_call, read_function_response
from judgekit.formats.blocks.reply import with_fields
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import combined_source, label_source
from judgekit.formats.readers.adk import read_events, read_time, warn_of_agent_tools
from judgekit.formats.readers.base import RowReader, as_records, build_sample, first_record, group_name
from judgekit.formats.values import lookup, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample

_CASES = ("eval_cases", "evalCases")
_RESULTS = ("eval_case_results", "evalCaseResults")
_CONVERSATION = ("conversation", "conversation_scenario", "conversationScenario")
_INVOCATIONS = ("eval_metric_result_per_invocation", "evalMetricResultPerInvocation")
_STATUS = {1: "passed", 2: "failed", 3: "not evaluated", 4: "informational"}
"""The numeric codes of verdicts."""
_COMPUTED = ("tool_trajectory_avg_score", "response_match_score")
_JUDGED = (
    *("final_response_match_v", "hallucinations_v", "multi_turn_", "per_turn_user_simulator_quality_v"),
    *("response_evaluation_score", "rubric_based_", "safety_v"),
)
"""Prefixes of the names of metrics that a model grades."""


class _Expected(NamedTuple):
    """The expectations for one invocation; ``None`` if there are none."""

    calls: list[JsonObject] | None = None
    answer: str | None = None


class ADKEvalReader(RowReader):
    """A reader of cases: user messages with expected calls by turn and the last expected answer.

    Results hold what an agent did and what was expected. Scores become labels.
    """

    name = "adk-eval"
    shape = 'adk-eval: {"eval_set_id", "eval_cases": [{"eval_id", "conversation": [...]}]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize cases by ``eval_id``, and sets of them by their name."""
        first = first_record(value)
        if not isinstance(first, dict):
            return False
        named = "eval_id" in first or "evalId" in first
        return any(isinstance(first.get(name), list) for name in (*_CASES, *_RESULTS)) or (
            named and any(name in first for name in (*_CONVERSATION, *_INVOCATIONS))
        )

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return cases and results, each with the fields of the whole set."""
        return [record for row in as_records(document) for record in _cases(row)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one case, or the result of one."""
        row = FieldTracker.of(record)
        if any(name in row for name in _INVOCATIONS):
            return _result(row, index)
        expected: list[_Expected] = []
        messages: list[Message] = []
        for turn, invocation in enumerate(row.objects("conversation"), 1):
            expected.append(_expected(invocation, turn))
            messages += _user_messages(invocation)
        if not messages:
            simulated = " (its user is simulated)" if any(name in row for name in _CONVERSATION) else ""
            raise TraceError(f"the case contains no messages{simulated}")
        row.warn("contains expected results but no agent run; only the user's messages are read")
        identity = row.id("eval_id", "evalId")
        return build_sample(row, index, {"messages": messages}, identity=identity, **_references(expected))


def _result(row: FieldTracker, index: int) -> Sample:
    expected: list[_Expected] = []
    messages: list[Message] = []
    for turn, invocation in enumerate(row.objects(*_INVOCATIONS), 1):
        wanted = invocation.object("expected_invocation", "expectedInvocation")
        expected.append(_Expected() if wanted is None else _expected(wanted, turn))
        if actual := invocation.object("actual_invocation", "actualInvocation"):
            messages += _actual_messages(actual)
    if not messages:
        raise TraceError("the result contains no messages")
    warn_of_agent_tools(row, messages)
    case = row.id("eval_id", "evalId")
    return build_sample(
        row,
        index,
        {"messages": messages, "labels": _labels(row)},
        identity=row.id("session_id", "sessionId") or case,
        group=group_name(case, _eval_set(row)),
        **_references(expected),
    )


def _eval_set(row: FieldTracker) -> str | None:
    """Return the id of a case's eval set, from the case or from the whole result."""
    names = ("eval_set_id", "evalSetId")
    candidates = [*map(row.peek, names), *(lookup(row.peek("eval_set_result"), name) for name in names)]
    return next((name for name in candidates if isinstance(name, str) and name), None)


def _references(expected: Sequence[_Expected]) -> dict[str, object]:
    facts: dict[str, object] = {}
    if (last := expected[-1].answer) is not None:
        facts["reference"] = last
    if any(turn.calls is not None for turn in expected):
        facts["reference_tool_calls"] = [call for turn in expected for call in turn.calls or ()]
    if len(expected) > 1 and any(turn.answer for turn in expected):
        facts["fields"] = {"final_responses": [turn.answer for turn in expected]}
    return facts


def _user_messages(invocation: FieldTracker) -> list[Message]:
    """Read the user's message, with the leftover of its invocation."""
    content = invocation.object("user_content", "userContent")
    messages = read_content(content, HumanMessage) if content else []
    if not messages:
        raise invocation.type_error("user_content", "the user's message")
    when = read_time(invocation, "creation_timestamp", "creationTimestamp")
    return with_fields(messages, every={"timestamp": when}, extra=invocation.leftover())


def _actual_messages(invocation: FieldTracker) -> list[Message]:
    messages: list[Message] = []
    if data := invocation.object("intermediate_data", "intermediateData"):
        calls = [read_function_call(call) for call in data.objects("tool_uses", "toolUses")]
        results = [read_function_response(response) for response in data.objects("tool_responses", "toolResponses")]
        messages += [AIMessage(tool_calls=calls)] if calls else []
        messages += results
        messages += read_events(data.objects("invocation_events", "invocationEvents"))
        if data.peek("intermediate_responses") or data.peek("intermediateResponses"):
            data.warn("agent messages between the calls, kept in extra because their position is not recorded")
    if final := invocation.object("final_response", "finalResponse"):
        messages += read_content(final, AIMessage)
    return [*_user_messages(invocation), *messages]


def _expected(invocation: FieldTracker, turn: int) -> _Expected:
    calls: list[JsonObject] | None = None
    if data := invocation.object("intermediate_data", "intermediateData"):
        calls = [_expected_call(call, turn) for call in data.objects("tool_uses", "toolUses")]
        for event in data.objects("invocation_events", "invocationEvents"):
            content = event.object("content")
            for part in content.objects("parts") if content else ():
                if call := part.object("function_call", "functionCall"):
                    calls.append(_expected_call(call, turn))
    answer = None
    if final := invocation.object("final_response", "finalResponse"):
        texts = [text for part in final.objects("parts") if not part.peek("thought") and (text := part.text("text"))]
        answer = "\n".join(texts)
        final.take_if("role", "model")
    return _Expected(calls, answer or None)


def _expected_call(call: FieldTracker, turn: int) -> JsonObject:
    name, args = tool_name(call, "name"), call.take("args")
    fields: JsonObject = {"name": name, "args": {} if args is None else args, "id": call.id("id"), "turn": turn}
    return {**fields, "extra": call.leftover()}


def _labels(row: FieldTracker) -> list[Label]:
    metrics = row.optional_objects("overall_eval_metric_results", "overallEvalMetricResults")
    labels: list[Label] = []
    for metric in metrics:
        if (score := metric.number("score")) is not None:
            name = metric.text("metric_name", "metricName") or "score"
            judged = True if name.startswith(_JUDGED) else False if name in _COMPUTED else None
            labels.append(Label(name, score, source=label_source(name, judged=judged)))
    status = row.peek("final_eval_status") or row.peek("finalEvalStatus")
    if isinstance(status, int) and status in _STATUS:
        row.take("final_eval_status", "finalEvalStatus")
        source = combined_source(label.source for label in labels)
        labels.insert(0, Label("final_eval_status", _STATUS[status], source=source))
    return labels


def _cases(document: JsonValue) -> list[JsonValue]:
    if not isinstance(document, dict):
        return [document]
    for names, known_as in ((_CASES, "eval_set"), (_RESULTS, "eval_set_result")):
        for name in names:
            cases = document.get(name)
            if isinstance(cases, list):
                about = without(document, name)
                return [{**case, known_as: about} if isinstance(case, dict) else case for case in cases]
    return [document]
