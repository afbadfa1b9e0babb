"""Goldens, test cases and test runs of deepeval, in snake_case or camelCase.

{"input": "Where is order 7?", "actual_output": "It was sent.", "expected_output": "Sent.", "retrieval_context": ["..."],
 "tools_called": [{"name": "find", "inputParameters": {"id": 7}, "output": "sent"}], "expected_tools": [{"name": "find"}]}
{"scenario": "...", "turns": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], "expected_outcome": "..."}
{"testCases": [{"name": "test_case_0", "input", "actualOutput", "metricsData": [{"name", "score", "reason", "evaluationModel"}]}],
 "conversationalTestCases": [...]}    of .deepeval/.latest_run_full.json
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.common import checked_text, plain_usage, tool_name
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import combined_source, label_source
from judgekit.formats.readers.base import RowReader, as_records, build_sample, first_record
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, as_object, lookup, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, ReasoningPart, ToolCall, ToolMessage
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample

_OF_CASES = {
    *("actual_output", "actualOutput", "tools_called", "toolsCalled", "expected_tools", "expectedTools"),
    *("metrics_data", "metricsData"),
}
_OF_CONVERSATIONS = {"turns", "expected_outcome", "expectedOutcome"}
_OF_ROWS = {"response", "output", "messages", "user_input"}
"""Columns of other tables that hold the agent's answer."""
_CASES = ("testCases", "conversationalTestCases", "test_results")
_JOINED = "|"
_SOURCE = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)
"""A retrieved document with its source."""
_PARAMETERS = ("inputParameters", "input_parameters")
_AS_FIELDS = (
    *("scenario", "user_description", "userDescription", "persona", "expectations"),
    *("expected_labels", "expectedLabels"),
)
"""Facts about a case that judges may need."""
_NUMBERED = re.compile(r"(conversational_)?test_case_\d+")
"""The name of a test case that nobody named."""
_JSON = (
    *("turns", "tools_called", "expected_tools", "additional_metadata", "custom_column_key_values", "expectations"),
    "persona",
)
"""Columns that tables hold as JSON."""


class DeepevalReader(RowReader):
    """A reader of goldens, test cases and test runs. Metrics become labels.

    The calls of a test case come before its answer, one by one, with their outputs as results. A golden without an
    answer has no agent message.
    """

    name = "deepeval"
    shape = 'deepeval: {"input", "actual_output", "tools_called", "expected_tools"}, {"scenario", "turns"}, or {"testCases": [...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize cases by fields that only deepeval has, and runs by their lists of cases."""
        first = first_record(value)
        return _is_case(first) or _is_run(_run(first))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the goldens or test cases, those of a run with the facts of the whole run."""
        return [case for row in as_records(document) for case in _cases(_run(row))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one golden or test case."""
        row = FieldTracker.of(record)
        row.unpack(*_JSON)
        is_conversation = "input" not in row
        messages = _conversation(row) if is_conversation else _exchange(row)
        tested = "metricsData" in row or "metrics_data" in row
        if tested and not any(isinstance(message, AIMessage) for message in messages):
            row.warn("contains no answer", "actualOutput")
        for field, held in {"trace": "spans", "imagesMapping": "images"}.items():
            if field in row:
                row.warn(f"{held} are not read, kept as is", field)
        name = row.text("name") if row.peek("name") else None
        documents, fields = _documents(row, messages)
        sent = row.count("input_token_count", "inputTokenCount")
        received = row.count("output_token_count", "outputTokenCount")
        trace: dict[str, object] = {"messages": messages, "labels": _labels(row), "usage": plain_usage(sent, received)}
        trace["cost_usd"] = row.number("token_cost", "tokenCost")
        expected = ("expected_outcome", "expectedOutcome") if is_conversation else ("expected_output", "expectedOutput")
        facts: dict[str, object] = {
            "reference": row.text(*expected),
            "reference_tool_calls": _expected_calls(row),
            "documents": documents,
            "fields": fields,
            "group": None if name is None or _NUMBERED.fullmatch(name) else name,
            "metadata": _metadata(row),
        }
        return build_sample(row, index, trace, identity=row.id("id") or name, **facts)


def _is_case(value: JsonValue) -> bool:
    if not isinstance(value, dict) or not value.keys().isdisjoint(_OF_ROWS):
        return False
    if isinstance(value.get("input"), str):
        return not value.keys().isdisjoint(_OF_CASES)
    tested = "turns" in value and not value.keys().isdisjoint(_OF_CASES)
    return tested or ("scenario" in value and not value.keys().isdisjoint(_OF_CONVERSATIONS))


def _run(document: JsonValue) -> JsonValue:
    return document.get("testRunData") if isinstance(document, dict) and "testRunData" in document else document


def _is_run(value: JsonValue) -> bool:
    return any(_is_case(case) for name in _CASES for case in as_list(lookup(value, name))[:1])


def _cases(document: JsonValue) -> list[JsonValue]:
    if not isinstance(document, dict) or not _is_run(document):
        return [document]
    about = without(document, *_CASES)
    cases = [case for name in _CASES for case in as_list(document.get(name))]
    return [{**case, "run": about} if isinstance(case, dict) else case for case in cases]


def _exchange(row: FieldTracker) -> list[Message]:
    messages: list[Message] = [HumanMessage(checked_text(row, "input")), *_calls(row)]
    if (answer := row.take("actual_output", "actualOutput")) is not None:
        messages.append(AIMessage(to_text(answer)))
    return messages


def _conversation(row: FieldTracker) -> list[Message]:
    turns = row.objects("turns")
    if not turns:
        raise TraceError("has no turns; a scenario alone is for deepeval's simulator, which writes them")
    messages: list[Message] = []
    for turn in turns:
        role = turn.one_of("role", ("user", "assistant"))
        turn.take("role")
        if role == "user":
            fields = {"content": checked_text(turn), "name": turn.text("user_id", "userId")}
            messages.append(HumanMessage.parsed(fields, turn.leftover()))
        else:
            messages += _calls(turn)
            messages.append(AIMessage.parsed({"content": checked_text(turn)}, turn.leftover()))
    return messages


def _calls(holder: FieldTracker) -> list[Message]:
    messages: list[Message] = []
    for call in [*holder.objects("tools_called", "toolsCalled"), *holder.objects("mcp_tools_called", "mcpToolsCalled")]:
        name, output = tool_name(call, "name"), call.take("output", "result")
        tool_call = ToolCall.recorded(name, call.take(*_PARAMETERS, "args"))
        reasoning = call.text("reasoning")
        thought = [ReasoningPart(reasoning)] if reasoning else ""
        messages.append(AIMessage(thought, tool_calls=[tool_call.model_copy(update={"extra": call.leftover()})]))
        if output is not None:
            failed = lookup(output, "isError")
            is_error = failed if isinstance(failed, bool) else None
            messages.append(ToolMessage(to_text(output), name=name, is_error=is_error))
    return messages


def _expected_calls(row: FieldTracker) -> list[JsonObject] | None:
    """Return the expected calls; ``None`` if the case does not say. Without parameters, only the name is expected."""
    if "expected_tools" not in row and "expectedTools" not in row:
        return None
    calls: list[JsonObject] = []
    for tool in row.objects("expected_tools", "expectedTools"):
        given = tool.take(*_PARAMETERS)
        call: JsonObject = {"name": tool_name(tool, "name"), "args": {} if given is None else given}
        calls.append({**call, "compare_args": [] if given is None else None, "extra": tool.leftover()})
    return calls


def _documents(row: FieldTracker, messages: Sequence[Message]) -> tuple[list[str] | None, JsonObject]:
    """Return the retrieved documents or else the context, and the facts that become fields, among them the other."""
    fields = {name: row.take(name) for name in _AS_FIELDS if name in row}
    columns = row.object("custom_column_key_values", "customColumnKeyValues")
    fields |= {} if columns is None else columns.leftover()
    retrieved = _texts(row, "retrieval_context") or _texts(row, "retrievalContext")
    for message in messages:
        extra = FieldTracker(message.extra, "turns", row.warnings)
        retrieved += [*_texts(extra, "retrieval_context"), *_texts(extra, "retrievalContext")]
    context = _texts(row, "context")
    if retrieved and context:
        fields["context"] = [*context]
    documents = list(dict.fromkeys(retrieved or context))
    return documents or None, fields


def _texts(row: FieldTracker, name: str) -> list[str]:
    """Take a list of documents, which JSON Lines and tables hold as one text. A list with sources stays in the row."""
    value = row.peek(name)
    if isinstance(value, str):
        if _JOINED in value:
            row.warn(f"documents joined by {_JOINED!r}, split as deepeval does; a .json file has them as a list", name)
        documents: list[JsonValue] = [*value.split(_JOINED)]
    else:
        documents = as_list(value)
    texts = [_without_source(document) for document in documents]
    if texts != [*map(to_text, documents)]:
        row.warn("read without the sources of the documents, kept as is", name)
    elif texts:
        row.take(name)
    return texts


def _without_source(document: JsonValue) -> str:
    if isinstance(document, str) and (match := _SOURCE.fullmatch(document)):
        return match[2]
    context = lookup(document, "context")
    return context if isinstance(context, str) else to_text(document)


def _metadata(row: FieldTracker) -> JsonObject:
    """Return the metadata of a case. The hyperparameters of its run tell the agent."""
    metadata = row.object("metadata", "additional_metadata", "additionalMetadata")
    run = row.object("run") or FieldTracker({})
    for name in ("metricsScores", "traceMetricsScores", "prompts"):
        if run.take(name):
            row.warn("left out, since each test case would repeat it", name)
    parameters = as_object(run.peek("hyperparameters"))
    agent: JsonObject = {name: value for name, value in parameters.items() if isinstance(value, str | int | float)}
    return {**({"agent": agent} if agent else {}), **({} if metadata is None else metadata.leftover())}


def _labels(row: FieldTracker) -> list[Label]:
    """Return the score of each metric, and whether the case passed, unless a metric failed to score."""
    labels: list[Label] = []
    failed = False
    for metric in row.optional_objects("metricsData", "metrics_data"):
        if (error := metric.peek("error")) is not None:
            failed = True
            metric.warn(f"the metric failed: {short_repr(error)}; no label", "error")
            continue
        name = metric.text("name") or "score"
        model = metric.text("evaluationModel", "evaluation_model")
        value = metric.number("score")
        value = metric.boolean("success") if value is None else value
        if value is not None:
            source = label_source(name, judged=model is not None)
            labels.append(Label(name, value, source=source, annotator=model, reason=metric.text("reason")))
    if labels and not failed and (success := row.boolean("success")) is not None:
        labels.append(Label("success", success, source=combined_source(label.source for label in labels)))
    return labels
