"""Calls of W&B Weave, as its client and its REST API return them.

{"id": "c1", "op_name": "weave:///entity/project/op/answer:hash", "trace_id": "t", "parent_id": null, "started_at": "...",
  "inputs": {"question": "Hi"}, "output": "Hello", "exception": null, "attributes": {"weave": {"kind": "agent"}},
  "summary": {"usage": {...}, "weave": {"feedback": [{"feedback_type": "wandb.annotation.tone", "payload": {"value": true}}]}}}
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.merging import merge_steps
from judgekit.formats.readers.base import as_records, build_sample, detect_response_apis, first_record
from judgekit.formats.readers.payloads import variables_in, warn_of_outcome
from judgekit.formats.readers.span_steps import read_function_steps
from judgekit.formats.row_facts import FACT_COLUMNS
from judgekit.formats.spans import Span, find_roots, read_spans
from judgekit.formats.values import as_object, is_number, lookup, objects_in, str_or_none, without
from judgekit.traces.message import AIMessage, JsonObject, Message
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_KINDS = {"llm": "LLM", "tool": "TOOL", "agent": "AGENT", "scorer": "EVALUATOR", "guardrail": "GUARDRAIL"}
_EXAMPLE = "Evaluation.predict_and_score"
"""The operation that answers and scores one example of an evaluation."""
_ANNOTATION, _RUNNABLE = "wandb.annotation.", "wandb.runnable."
_REFERENCE = "weave:///"


class WeaveReader:
    """A reader of calls: one conversation a trace, or one an example of an evaluation."""

    name = "weave"
    joins_lines = True
    shape = (
        'weave: [{"id": ..., "op_name": ..., "trace_id": ..., "parent_id": ..., "inputs": {...}, "output": ...}, ...]'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize calls by their operation, trace and inputs."""
        return {"op_name", "trace_id", "inputs"} <= as_object(first_record(value)).keys()

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the calls of each conversation. Those around the examples of an evaluation come along with each."""
        return list(_grouped(as_records(document)))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. The leftover of its calls goes into the trace's ``extra``."""
        row = FieldTracker.of(record)
        spans = read_spans(row)
        whole = next((span for span in spans if span.parent is None), None)
        if whole is None:
            raise TraceError(f"an evaluation without its examples; export the calls of {_EXAMPLE} and those below too")
        steps, tools = read_function_steps(spans, whole, _kind, _details)
        fields = merge_steps(steps)
        messages = cast("Sequence[Message]", fields["messages"])
        if not messages:
            raise TraceError("contains neither a call of a model nor an input or output of the outermost call")
        answered = any(isinstance(message, AIMessage) for message in messages)
        warn_of_outcome(row, whole.error, "output", "exception", answered=answered)
        labels = list(_labels(spans, whole))
        return build_sample(row, index, {**fields, "tools": tools, "labels": labels}, identity=row.id("id"))


def _operation(call: JsonObject) -> str:
    """Return the name of an operation, which may be in a reference with its version."""
    name = str_or_none(call.get("op_name")) or ""
    return name.rpartition("/")[2].partition(":")[0] if name.startswith(_REFERENCE) else name


def _grouped(calls: Sequence[JsonValue]) -> Iterator[JsonValue]:
    """Yield the calls of each conversation, and values that are no calls."""
    named = {str(call.get("id")): call for call in calls if isinstance(call, dict)}
    parents = {name: str(call.get("parent_id")) for name, call in named.items()}
    roots = find_roots({name: None if _operation(named[name]) == _EXAMPLE else parents[name] for name in named})
    examples: dict[str, list[JsonObject]] = {}
    traces: dict[str, list[JsonObject]] = {}
    evaluations: dict[str, list[JsonValue]] = {}
    for call in calls:
        if not isinstance(call, dict):
            yield call
            continue
        root, trace_id = roots[str(call.get("id"))], str(call.get("trace_id"))
        if _operation(named[root]) == _EXAMPLE:
            examples.setdefault(root, []).append(call)
        elif _operation(call).startswith("Evaluation."):
            evaluations.setdefault(trace_id, []).append(call)
        else:
            traces.setdefault(trace_id, []).append(call)
    for those in examples.values():
        yield _record(those, evaluations.get(str(those[0].get("trace_id")), []), is_example=True)
    for those in traces.values():
        yield _record(those, [], is_example=False)
    read = {str(those[0].get("trace_id")) for those in examples.values()}
    for trace_id, around in evaluations.items():
        if trace_id not in read:
            yield {"spans": [], "evaluation": around}


def _record(calls: Sequence[JsonObject], around: list[JsonValue], *, is_example: bool) -> JsonValue:
    ids = {str(call.get("id")) for call in calls}
    ordered = sorted(calls, key=lambda call: (str(call.get("started_at")), str(call.get("id"))))
    root = next((call for call in ordered if str(call.get("parent_id")) not in ids), ordered[0])
    record: JsonObject = {name: root[name] for name in FACT_COLUMNS if root.get(name) is not None}
    record["id"] = root.get("id") if is_example else root.get("trace_id")
    given = as_object(root.get("inputs"))
    example = given.get("example") if is_example else None
    group = root.get("thread_id")
    if example is not None:  # trials of one example are not independent
        group = hashlib.sha256(json.dumps(example, sort_keys=True).encode()).hexdigest()[:12]
    if group is not None:
        record.setdefault("group", group)
    if variables := variables_in(without(given, "self") if example is None else example):
        record.setdefault("fields", variables)
    if around:
        record["evaluation"] = around
    scorers = as_object(lookup(root, "output", "scores")).keys() if is_example else ()
    spans: list[JsonValue] = []
    for call in ordered:
        if call is root:
            spans.append(_span(without(call, *record.keys() - {"id"}), is_example=is_example))
        else:
            is_scorer = _operation(call).partition(".")[0] in scorers
            spans.append(_span(call, kind="EVALUATOR" if is_scorer else None))
    return {**record, "spans": spans}


def _span(call: JsonObject, *, kind: str | None = None, is_example: bool = False) -> JsonObject:
    """Return a call as a span. Of an example, its columns are the input, and the model's answer is the output."""
    rest = dict(call)
    attributes: JsonObject = {"kind": kind or _KINDS.get(str(lookup(call, "attributes", "weave", "kind")))}
    inputs, output = rest.pop("inputs", None), rest.pop("output", None)
    if isinstance(inputs, dict) and "self" in inputs:
        attributes["self"] = inputs["self"]
        inputs = without(inputs, "self")
    if is_example and isinstance(inputs, dict) and isinstance(output, dict):
        attributes |= {"inputs": without(inputs, "example"), "scored": without(output, "output", "scores")}
        attributes["scores"] = output.get("scores")
        inputs, output = inputs.get("example"), output.get("output")
        if isinstance(inputs, str) and inputs.startswith(_REFERENCE):
            attributes["example"], inputs = inputs, None
    if isinstance(summary := rest.get("summary"), dict) and "usage" in summary:
        attributes["usage"], rest["summary"] = summary["usage"], without(summary, "usage")
    attributes |= {"input": inputs or None, "output": output, "call": rest.pop("attributes", None)}
    span: JsonObject = {"span_id": rest.pop("id", None), "name": _operation(call), "attributes": attributes}
    span |= {"start_time": rest.pop("started_at", None), "end_time": rest.pop("ended_at", None)}
    if (error := rest.pop("exception", None)) not in (None, ""):
        span["status"] = {"code": "ERROR", "message": error}
    return {**rest, **span}


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("kind")
    if isinstance(kind, str):
        return kind
    inputs = as_object(span.attributes.peek("input"))
    is_request = not {"messages", "contents", "model"}.isdisjoint(inputs)
    return "LLM" if is_request and detect_response_apis(span.attributes.peek("output")) else "FUNCTION"


def _details(attributes: FieldTracker, _: list[ToolDefinition]) -> dict[str, object]:
    used = attributes.object("usage")
    if used is not None and len(models := list(used)) == 1 and (counts := used.maybe_object(models[0])) is not None:
        return {"model": models[0], "usage": read_usage(counts)}
    return {}


def _labels(spans: Sequence[Span], whole: Span) -> Iterator[Label]:
    """Yield the scores of an example, and feedback on the outermost call. They stay in ``extra`` too."""
    judging: dict[int, str] = {}
    for span in spans:
        above = span.parent if _kind(span) == "LLM" else None
        while above is not None and id(above) not in judging:
            judging[id(above)] = above.name.partition(".")[0]
            above = above.parent
    for name, result in as_object(whole.attributes.peek("scores")).items():
        yield from _verdicts(name, result, judged=True if name in judging.values() else None)
    for feedback in objects_in(lookup(whole.fields.peek("summary"), "weave", "feedback")):
        kind = str(feedback.get("feedback_type"))
        creator = str_or_none(feedback.get("creator")) or str_or_none(feedback.get("wb_user_id"))
        if kind.startswith(_ANNOTATION):
            for label in _verdicts(kind.removeprefix(_ANNOTATION), lookup(feedback, "payload", "value"), judged=None):
                yield label.model_copy(update={"source": "human", "annotator": creator})
        elif kind.startswith(_RUNNABLE):
            yield from _verdicts(kind.removeprefix(_RUNNABLE), lookup(feedback, "payload", "output"), judged=None)


def _verdicts(name: str, result: JsonValue, *, judged: bool | None) -> Iterator[Label]:
    named = {f"{name}.{key}": value for key, value in result.items()} if isinstance(result, dict) else {name: result}
    for key, value in named.items():
        if isinstance(value, bool | str) or is_number(value):
            yield Label(key, value, source=label_source(name, judged=judged))
