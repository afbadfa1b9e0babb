"""Results of OpenAI's hosted evals as the dashboard exports them for ``promptfoo import``, one item and run per line.

{"run_id": "evalrun_1", "data_source_idx": 0, "item": {"input": "2+2?", "expected": "4"}, "grades": {"judge": 0.5},
 "sample": {"outputs": [{"role": "assistant", "content": "4"}], "finish_reason": "stop", "token_usage": {"prompt_tokens": 10, ...}},
 "passes": {"judge": false}, "grader_samples": {"judge": {"model": "gpt-5", "outputs": [...]}}}
"""

from pydantic import JsonValue

from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.readers.base import RowReader, build_sample, first_record, recorded_error
from judgekit.formats.readers.openai_evals import EVAL_COUNTS
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in, warn_of_outcome
from judgekit.formats.readers.rows import take_value
from judgekit.formats.row_facts import to_text
from judgekit.formats.unread import canonical_column
from judgekit.formats.values import as_object, lookup, objects_in, str_or_none
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_ASKED = ("input", "inputs", "messages")


class OpenAIEvalsExportReader(RowReader):
    """A reader of exported results. Grades become labels, and the columns of an item become fields.

    The results of an item in several runs are a group.
    """

    name = "openai-evals-export"
    shape = 'openai-evals-export: {"run_id", "data_source_idx", "item", "sample": {"outputs"}, "grades", "passes", "grader_samples"}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize results by their item's number and their grades."""
        first = as_object(first_record(value))
        return isinstance(first.get("item"), dict) and {"run_id", "data_source_idx", "grades"} <= first.keys()

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one result."""
        row = FieldTracker.of(record)
        item = as_object(row.take("item")) if isinstance(row.peek("item"), dict) else {}
        sample = row.object("sample") or FieldTracker({}, "sample", row.warnings)
        run, number = row.id("run_id"), row.id("data_source_idx")
        tools: list[ToolDefinition] = []
        details = {"model": sample.text("model"), "finish_reason": sample.text("finish_reason")}
        messages, replies = exchange_messages(_asked(sample, item, row), _answered(sample), tools, **details)
        error, graded = sample.peek("error"), row.take("grader_samples")
        warn_of_outcome(row, error, "sample", "sample", answered=bool(replies))
        trace = {
            "messages": [*messages, *replies],
            "tools": tools,
            "labels": _labels(row, as_object(graded)),
            "usage": read_counts(sample.object("token_usage"), **EVAL_COUNTS),
            "metadata": {} if graded is None else {"grader_samples": graded},
            "error": recorded_error(error, None),
            "termination": None if error is None else f"error: {to_text(lookup(error, 'message') or error)}",
        }
        named = [name for name in item if (canonical_column(name) or name) in ("reference", "expected_output")]
        facts = {
            "group": None if number is None else f"item {number}",
            "reference": to_text(item[named[0]]) if len(named) == 1 and item[named[0]] is not None else None,
            "fields": item,
            "metadata": {} if run is None else {"agent": run},
        }
        return build_sample(row, index, trace, identity=None if run is number is None else f"{run} {number}", **facts)


def _asked(sample: FieldTracker, item: JsonObject, row: FieldTracker) -> Payload:
    """Return the request, or else the question among the columns of the item."""
    for name in _ASKED:
        payload = messages_in(sample.peek(name), sample, name, HumanMessage)
        if payload is not None and payload.messages:
            sample.take(name)
            return payload
    question = next((column for column in item if column == "input" or canonical_column(column) == "input"), None)
    columns = FieldTracker(item, "item", row.warnings)
    return Payload() if question is None else take_value(columns, question, HumanMessage)


def _answered(sample: FieldTracker) -> Payload:
    outputs: list[JsonValue] = [{"role": "assistant", **output} for output in objects_in(sample.peek("outputs"))]
    if not outputs or (payload := messages_in(outputs, sample, "outputs", AIMessage)) is None:
        return Payload()
    sample.take("outputs")
    return payload


def _labels(row: FieldTracker, samples: JsonObject) -> list[Label]:
    """Return the grade of each grader, or whether the answer passed. Graders with samples of their own are models."""
    grades = row.object("grades") or FieldTracker({}, "grades", row.warnings)
    passes = row.object("passes") or FieldTracker({}, "passes", row.warnings)
    labels: list[Label] = []
    for name in [*grades, *(grader for grader in passes if grader not in grades)]:
        value = grades.number(name) if name in grades else passes.boolean(name)
        if value is None:
            continue
        source = label_source(name, judged=True if name in samples else None)
        replies = objects_in(lookup(samples, name, "outputs"))
        reason = str_or_none(replies[-1].get("content")) if replies else None
        model = str_or_none(lookup(samples, name, "model"))
        labels.append(Label(name, value, source=source, annotator=model, reason=reason))
    return labels
