"""Events of Braintrust: spans of logs and experiments, rows of datasets, and the table that its pages export as CSV.

{"id": "e1", "root_span_id": "r", "span_id": "r", "span_parents": [], "is_root": true, "span_attributes": {"type": "eval"},
  "input": "2+2?", "output": "4", "expected": "4", "scores": {"ExactMatch": 1}, "metadata": {}, "metrics": {"start": 1.0}}
{"id": "e2", "root_span_id": "r", "span_id": "s", "span_parents": ["r"], "span_attributes": {"type": "llm"},
  "input": [{"role": "user", ...}], "output": [{"index": 0, "message": {"role": "assistant", ...}}], ...}
id,input,output,expected,error,scores,metadata,tags
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.merging import SpanStep, merge_steps
from judgekit.formats.readers.base import as_records, build_sample, first_record
from judgekit.formats.readers.payloads import variables_in, warn_of_outcome
from judgekit.formats.readers.span_steps import read_function_steps
from judgekit.formats.row_facts import FACT_COLUMNS, read_expected, single_text, to_text
from judgekit.formats.spans import Span, find_roots, read_spans
from judgekit.formats.values import as_list, as_object, is_number, lookup, str_or_none, unpacked, without
from judgekit.traces.message import AIMessage, JsonObject, Message, SystemMessage, Usage
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_JSON = (
    *("expected", "error", "scores", "metadata", "metrics", "tags", "context", "origin", "comments"),
    *("span_attributes", "span_parents"),
)
"""Fields that tables hold as JSON text."""
_ATTRIBUTES = ("input", "output", "expected", "scores", "metadata", "metrics")
_OF_THE_WHOLE = ("project_id", "experiment_id", "dataset_id", "tags")
_OF_MODEL_CALLS = ("model", "tools", "instructions")
_ASIDE = ("score", "classifier", "facet", "preprocessor", "review", "automation")
"""The types of spans that look at a conversation without being part of it."""
_KINDS = {"llm": "LLM", "tool": "TOOL", "function": "FUNCTION"}
_TOKENS = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cached": "prompt_cached_tokens",
    "reasoning": "completion_reasoning_tokens",
}
_AUTOEVALS = {
    **dict.fromkeys(
        ("Battle", "ClosedQA", "Factuality", "Humor", "Possible", "Security", "Sql", "Summary", "Translation"), True
    ),
    **dict.fromkeys(("ExactMatch", "JSONDiff", "Levenshtein", "NumericDiff", "ValidJSON"), False),
}
"""Whether a model gives the scores of Braintrust's own scorers."""
_REVIEW = "Review by "


class BraintrustReader:
    """A reader of events: one conversation for each root span, made of the spans of models and tools below it.

    Without spans of models, the input and output of the root span are the question and the answer.
    """

    name = "braintrust"
    joins_lines = True
    shape = 'braintrust: [{"span_id": ..., "root_span_id": ..., "span_attributes": {...}, "input": ..., "output": ..., "scores": {...}}, ...], or {"input", "output", "expected", "scores": {...}}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events by the ids of their spans, and rows of tables by scores, input and output."""
        record = first_record(value)
        if not isinstance(record, dict):
            return False
        if isinstance(record.get("root_span_id"), str) and "span_id" in record:
            return not {"span_attributes", "span_parents", "is_root"}.isdisjoint(record)
        is_row = {"input", "output"} <= record.keys() and not {"expected", "metadata"}.isdisjoint(record)
        return is_row and isinstance(unpacked(record.get("scores")), dict)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the spans of each root span, in the order of the root spans. Rows of tables are root spans."""
        return _grouped(_latest(as_records(document)))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. The leftover of its spans goes into the trace's ``extra``."""
        row = FieldTracker.of(record)
        spans = read_spans(row)
        if not spans:
            raise row.type_error("spans", "the events of a trace")
        roots = (span for span in spans if "parent_id" not in span.fields and not span.fields.peek("span_parents"))
        root = next(roots, None)
        if root is None:
            row.warn("the root span is not in this file, so its input, output and scores are unknown")
        whole = root or next(span for span in spans if span.parent is None)
        steps, tools = read_function_steps(spans, whole, _kind, _details)
        for step in steps:
            if step.kind == "model":
                _put_instructions_first(step)
        fields = merge_steps(steps)
        messages = cast("Sequence[Message]", fields["messages"])
        if not messages:
            raise TraceError("contains neither messages of a model nor an input or output of the root span")
        _warn(row, whole, messages)
        trace = {
            **fields,
            "tools": tools,
            "labels": _labels(spans, whole),
            "usage": None if _type(whole) == "llm" else _usage(whole.attributes),
            "metadata": {**cast("JsonObject", fields["metadata"]), **_metadata(whole, row)},
        }
        facts = read_expected(whole.attributes.take("expected"), "expected", row.warnings)
        return build_sample(row, index, trace, identity=row.id("id"), **facts)


def _latest(items: Sequence[JsonValue]) -> list[JsonValue]:
    """Return events without their older versions, which later pages may hold again."""
    events = [event for event in items if isinstance(event, dict) and "span_id" in event]
    latest = {(str(event.get("id")), *_key(event)): id(event) for event in sorted(events, key=_version)}
    older = set(map(id, events)) - set(latest.values())
    return [event for event in items if id(event) not in older]


def _version(event: JsonObject) -> int:
    version = str(event.get("_xact_id"))
    return int(version) if version.isdecimal() and len(version) < 100 else -1


def _grouped(events: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the spans of each root span as a record. A span whose parents are missing belongs to its trace's root."""
    named = {_key(event): event for event in events if isinstance(event, dict) and "span_id" in event}
    roots = find_roots({key: _parent_key(event) for key, event in named.items()})
    whole = {key[0]: key for key in sorted(named, reverse=True) if _parent_key(named[key]) is None}
    groups: dict[tuple[str, str], list[JsonObject]] = {}
    others: list[JsonValue] = []
    for index, event in enumerate(events):
        if not isinstance(event, dict):
            others.append(event)
        elif "span_id" not in event:
            groups["", str(index)] = [event]
        else:
            key = roots[_key(event)]
            key = key if _parent_key(named[key]) is None else whole.get(key[0], (key[0], ""))
            groups.setdefault(key, []).append(event)
    times = Counter(trace_id for trace_id, _ in groups)
    records = [_record(key[times[key[0]] > 1], key, spans) for key, spans in groups.items()]
    return [*records, *others]


def _key(event: JsonObject) -> tuple[str, str]:
    return str(event.get("root_span_id")), str(event.get("span_id"))


def _parents(event: JsonObject) -> list[JsonValue]:
    return as_list(unpacked(event.get("span_parents")))


def _parent_key(event: JsonObject) -> tuple[str, str] | None:
    parents = _parents(event)
    return (_key(event)[0], str(parents[0])) if parents else None


def _record(identity: str, key: tuple[str, str], events: Sequence[JsonObject]) -> JsonValue:
    root = next((event for event in events if "span_id" not in event or _key(event) == key), dict[str, JsonValue]())
    facts = {name: root[name] for name in sorted(FACT_COLUMNS - {"metadata"}) if root.get(name) is not None}
    if key[0]:
        facts["id"] = identity
    elif root.get("id") is not None:
        facts["id"] = root["id"]
    if (group := _group(root)) is not None:
        facts.setdefault("group", group)
    if variables := variables_in(root.get("input")):
        facts.setdefault("fields", variables)
    ordered = sorted(events, key=_order)
    moved = facts.keys() - {"id"}
    return {**facts, "spans": [_span(without(event, *moved) if event is root else event) for event in ordered]}


def _group(root: JsonObject) -> str | None:
    """Return the row of the dataset, or else a hash of the input, by which Braintrust recognizes a test case."""
    origin = unpacked(root.get("origin"))
    if lookup(origin, "object_type") == "dataset" and (item := str_or_none(lookup(origin, "id"))):
        return item
    if root.get("experiment_id") is None or root.get("input") is None:
        return None
    return hashlib.sha256(json.dumps(root["input"], sort_keys=True).encode()).hexdigest()[:12]


def _order(event: JsonObject) -> tuple[float, float, str, int, str]:
    started = lookup(unpacked(event.get("metrics")), "start")
    counter = lookup(unpacked(event.get("span_attributes")), "exec_counter")
    start, count = (float(number) if is_number(number) else 0.0 for number in (started, counter))
    return start, count, str(event.get("created")), len(json.dumps(event.get("input"))), str(event.get("span_id"))


def _span(event: JsonObject) -> JsonValue:
    event = {name: unpacked(value) if name in _JSON else value for name, value in event.items()}
    parents, about, metrics = _parents(event), event.get("span_attributes"), event.get("metrics")
    attributes = {name: event.pop(name) for name in _ATTRIBUTES if event.get(name) is not None}
    span: JsonObject = {}
    if isinstance(trace_id := event.pop("root_span_id", None), str):
        span["trace_id"] = trace_id
    if len(parents) == 1:
        span["parent_id"] = parents[0]
        del event["span_parents"]
    if isinstance(about, dict):
        span["name"] = about.get("name")
        attributes |= {name: value for name, value in about.items() if name != "name"}
        del event["span_attributes"]
    if isinstance(metrics, dict):
        span |= {"start_time": metrics.get("start"), "end_time": metrics.get("end")}
        attributes["metrics"] = without(metrics, "start", "end")
    if (error := event.pop("error", None)) not in (None, ""):
        span["status"] = {"code": "ERROR", "message": to_text(error)}
        if attributes.get("output") == "":  # tables hold nothing as an empty text
            del attributes["output"]
    metadata = attributes.get("metadata")
    if attributes.get("type") == "llm" and isinstance(metadata, dict):
        attributes |= {name: metadata[name] for name in _OF_MODEL_CALLS if name in metadata}
        attributes["metadata"] = without(metadata, *_OF_MODEL_CALLS)
    return {**event, **span, "attributes": attributes}


def _type(span: Span) -> JsonValue:
    return span.attributes.peek("type")


def _scores(span: Span | None) -> bool:
    return span is not None and span.attributes.peek("purpose") == "scorer"


def _kind(span: Span) -> str | None:
    if _type(span) in _ASIDE or (_scores(span) and not _scores(span.parent)):
        return "EVALUATOR"
    if "tool_type" in as_object(span.attributes.peek("metadata")):
        return None  # a call that is in the output of its model too
    return _KINDS.get(str(_type(span)))


def _details(attributes: FieldTracker, tools: list[ToolDefinition]) -> dict[str, object]:
    tools += read_tools(attributes.optional_objects("tools"))
    return {"model": attributes.text("model"), "usage": _usage(attributes)}


def _put_instructions_first(step: SpanStep) -> None:
    messages = list(step.input_messages)
    if (instructions := step.span.attributes.text("instructions")) is not None:  # of OpenAI's Responses
        messages.insert(0, SystemMessage(instructions))
    elif messages and isinstance(messages[-1], SystemMessage):  # the SDK appends those of Anthropic
        messages.insert(0, messages.pop())
    step.input_messages = messages


def _usage(attributes: FieldTracker) -> Usage | None:
    metrics = attributes.peek("metrics")
    if not isinstance(metrics, dict) or metrics.keys().isdisjoint(_TOKENS.values()):
        return None
    return read_counts(attributes.object("metrics"), **_TOKENS)


def _warn(row: FieldTracker, whole: Span, messages: Sequence[Message]) -> None:
    """Warn about errors, and about an output of the whole that no message has."""
    answers = [message.text for message in messages if isinstance(message, AIMessage)]
    warn_of_outcome(row, whole.error, "output", "error", answered=bool(answers))
    if whole.error is None and answers == [""] and len(messages) < 3:
        row.warn("the output is empty", "output")
    output = unpacked(whole.attributes.peek("output"))
    text = single_text(output) or (output if isinstance(output, str) else None)
    if text and not any(text.strip() in answer for answer in answers):
        row.warn("the output of the root span is not among the messages of the model; kept as is", "output")


def _metadata(whole: Span, row: FieldTracker) -> JsonObject:
    metadata = (whole.attributes.maybe_object("metadata") or FieldTracker({})).leftover()
    whole.fields.take_into(metadata, _OF_THE_WHOLE)
    if (event := whole.fields.peek("id")) not in (None, row.peek("id")):
        metadata.setdefault("event_id", event)  # by which feedback refers to it
    return metadata


def _labels(spans: Sequence[Span], whole: Span) -> list[Label]:
    """Return the scores of the whole. They stay in ``extra`` too, with those that have no value."""
    judging: set[int] = set()
    for span in spans:
        above = span if _type(span) == "llm" else None
        while above is not None and id(above) not in judging:
            judging.add(id(above))
            above = above.parent
    own: list[Label] = []
    given: list[Label] = []
    for span in spans:
        is_review, is_whole = _type(span) == "review", span is whole
        about_whole = is_whole or (_type(span) in _ASIDE and span.parent in (None, whole))
        scores = span.attributes.peek("scores")
        if not scores:
            continue
        if not about_whole:
            span.attributes.warn("scores of a part of the trace; kept as is, not as labels", "scores")
            continue
        if not isinstance(scores, dict):
            span.attributes.warn(f"expected an object, found {short_repr(scores)}; kept as is", "scores")
            continue
        metadata = as_object(span.attributes.peek("metadata"))
        # The person who gave a review, or the review's id, so that reviews of several people stay apart.
        reviewer = span.name.removeprefix(_REVIEW) if span.name.startswith(_REVIEW) else span.id
        judged = None if is_whole else (id(span) in judging or "rationale" in metadata or None)
        for name, value in scores.items():
            if not (isinstance(value, bool) or is_number(value)):
                if value is not None:
                    span.attributes.warn(f"expected a number, found {short_repr(value)}; kept as is", f"scores.{name}")
                continue
            source = label_source(name, judged=judged or _AUTOEVALS.get(name))
            label = Label(
                name,
                value,
                source="human" if is_review else source,
                annotator=reviewer if is_review else None,
                reason=str_or_none(metadata.get("rationale")),
            )
            (own if is_whole else given).append(label)
    named = {label.name for label in given}
    return [*(label for label in own if label.name not in named), *given]
