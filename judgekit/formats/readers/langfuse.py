r"""Traces, observations and dataset items of Langfuse, from its API, its interface, or its exports to blob storage.

{"id": "t1", "timestamp": ..., "input": ..., "output": ..., "observations": [{"id": "o1", "type": "GENERATION", ...}], "scores": [...]}
{"id": "o1", "traceId": "t1", "parentObservationId": null, "type": "GENERATION", "input": [...], "output": {...}}     API v2
{"id": "o1", "trace_id": "t1", "parent_observation_id": null, "type": "TOOL", "input": "{\"id\": 7}", "output": ...}  blob exports
{"id": "o1", "traceId": "t1", "experimentId": "e1", "experimentItemId": "i1", "input": ..., "output": ..., "expectedOutput": ...}  results
{"id": "i1", "input": {"question": ...}, "expectedOutput": {"answer": ...}, "datasetName": "math"}                   dataset items
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from judgekit.errors import TraceError, count_text
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample, first_record
from judgekit.formats.readers.run_trees import as_span, merge_versions, read_expected, read_item, read_tree
from judgekit.formats.score_records import AUDIT_HINT, read_score, score_system
from judgekit.formats.spans import Span
from judgekit.formats.values import as_list, as_object, first_value, objects_in, parse_if_complete, str_or_none, without
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_TYPES = {"GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL", "EMBEDDING"}
_KINDS = {"GENERATION": "LLM", "SPAN": "FUNCTION"}
_SPAN = {
    "id": "span_id",
    **dict.fromkeys(("traceId", "trace_id"), "trace_id"),
    **dict.fromkeys(("parentObservationId", "parent_observation_id"), "parent_id"),
    "name": "name",
    **dict.fromkeys(("startTime", "start_time", "timestamp"), "start_time"),
    **dict.fromkeys(("endTime", "end_time"), "end_time"),
}
_TRACE = {
    *("observations", "sessionId", "session_id", "userId", "user_id", "htmlPath", "release", "environment"),
    *("public", "bookmarked", "scores", "tags", "traceId"),
}
"""Fields of which a trace has at least one, apart from its timestamp."""
_ITEM = {"datasetId", "dataset_id", "datasetName", "dataset_name", "sourceTraceId", "source_trace_id"}
_EXPECTED = ("expectedOutput", "expected_output")
_JSON = (
    *("input", "output", "metadata", "usageDetails", "usage_details", "costDetails", "cost_details", "tags", "scores"),
    *("modelParameters", "model_parameters", *_EXPECTED),
)
"""Fields that exports write as JSON text."""
_VALUES = ("input", "output")
_ABOUT = (
    *("userId", "user_id", "sessionId", "session_id", "environment", "release", "version", "tags", "traceName"),
    *("trace_name",),
)
"""Facts about a trace that each observation repeats."""
_TASKS = ("experimentItemId", "experiment_item_id")
_OBSERVED = {*_SPAN, *_VALUES, "level", "type", "metadata"}
"""The fields of an experiment's result that are those of its outermost observation."""
_MISSING = "export the observations with their inputs and outputs (fields=core,basic,io,usage)"


class LangfuseReader:
    """A reader of traces, one conversation each, and of dataset items. Traces of a session are a group."""

    name = "langfuse"
    joins_lines = True
    shape = 'langfuse: [{"id", "traceId", "parentObservationId", "type": "GENERATION", "input", "output"}, ...], or {"id", "timestamp", "observations": [...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize traces, observations and dataset items by their fields."""
        record = _unwrapped(first_record(value))
        tests = (_is_observation, _is_trace, _is_result, _is_item)
        return isinstance(record, dict) and any(test(record) for test in tests)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return traces with their observations as spans and their scores, and dataset items as they are."""
        trees: dict[str, _Tree] = defaultdict(lambda: _Tree([], [], []))
        others: list[JsonValue] = []
        scores: list[JsonObject] = []
        for record in map(_unwrapped, as_records(document)):
            if not isinstance(record, dict):
                others.append(record)
            elif score_system(record) == "Langfuse":
                scores.append(record)
            elif _is_observation(record):
                trees[_trace_id(record)].observations.append(_decoded(record))
            elif _is_trace(record):
                tree = trees[str(record.get("id") or "trace")]
                inner = as_list(record.get("observations"))
                tree.observations.extend(map(_decoded, objects_in(inner)))
                ids: list[JsonValue] = [identity for identity in inner if not isinstance(identity, dict)]
                rest = without(record, "observations")
                tree.traces.append(_decoded({**rest, "observations": ids} if ids else rest))
            elif _is_result(record):
                tree = trees[_trace_id(record)]
                tree.observations.append(_decoded({name: record[name] for name in record if name in _OBSERVED}))
                tree.traces.append(_decoded(without(record, *_OBSERVED)))
            else:
                others.append(_decoded(record) if _is_item(record) else record)
        strangers: list[JsonValue] = []
        for score in scores:
            trace = read_score(score, "Langfuse").trace
            (trees[trace].scores if trace in trees else strangers).append(score)
        if strangers:
            others.append({"scores": strangers})
        return [*(_record(name, tree) for name, tree in trees.items()), *others]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trace or dataset item. The leftover of its observations goes into the trace's ``extra``."""
        row = FieldTracker.of(record)
        if "spans" not in row:
            return _item(row, index)
        tree = read_tree(row, _kind, _details, _VALUES, _MISSING)
        about = row.object("trace") or FieldTracker({})
        metadata = _metadata([about, *(span.attributes for span in tree.spans)])
        name = row.id("id")
        labels, facts = _read_scores(about, tree.spans, name)
        facts |= read_expected(about, about.first(*_EXPECTED) or "", {})
        task = about.id(*_TASKS) or str_or_none(first_value(metadata, "sessionId", "session_id"))
        facts |= {"group": task} if task else {}
        trace = {
            **tree.fields,
            "labels": labels,
            "cost_usd": about.number("totalCost", "total_cost"),
            "metadata": {**cast("JsonObject", tree.fields["metadata"]), **metadata},
        }
        return build_sample(row, index, trace, identity=name, **facts)


class _Tree(NamedTuple):
    """The parts of one trace, which may be spread over a file."""

    traces: list[JsonObject]
    observations: list[JsonObject]
    scores: list[JsonValue]


def _unwrapped(record: JsonValue) -> JsonValue:
    """Return a trace from the interface, which has the observations next to it, as the API returns it."""
    trace = record.get("trace") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(trace, dict) or "observations" not in {*record, *trace}:
        return record
    rest = without(record, "trace")
    joined: JsonObject = {
        name: [*as_list(trace.get(name)), *as_list(rest.pop(name, None))]
        for name in ("observations", "scores")
        if isinstance(rest.get(name), list)
    }
    conflicts = {name: rest.pop(name) for name in [*rest] if trace.get(name, rest[name]) != rest[name]}
    return {**rest, **trace, **joined, **({"beside": conflicts} if conflicts else {})}


def _trace_id(record: JsonObject) -> str:
    return str(first_value(record, "traceId", "trace_id") or "trace")


def _is_observation(record: JsonObject) -> bool:
    return str_or_none(record.get("type")) in _TYPES and isinstance(first_value(record, "traceId", "trace_id"), str)


def _is_trace(record: JsonObject) -> bool:
    if not {"timestamp", "id"} <= record.keys() or "type" in record or "role" in record:
        return False
    return isinstance(record.get("observations"), list) or (
        bool({"input", "output"} & record.keys()) and not _TRACE.isdisjoint(record)
    )


def _is_item(record: JsonObject) -> bool:
    return any(name in record for name in _EXPECTED) and "input" in record and not _ITEM.isdisjoint(record)


def _is_result(record: JsonObject) -> bool:
    """Return whether this is the result of an experiment on one item of a dataset."""
    return any(name in record for name in _TASKS) and isinstance(first_value(record, "traceId", "trace_id"), str)


def _decoded(record: JsonObject) -> JsonObject:
    """Return a record without the JSON in its texts, which Langfuse itself decodes where it shows them."""
    opened: JsonObject = {**record, **{name: _parsed(record[name]) for name in _JSON if name in record}}
    if opened.get("output") == "":  # an empty cell of a table
        del opened["output"]
    if isinstance(scores := opened.get("scores"), dict):
        opened["scores"] = [{"name": name, "value": value} for name, value in scores.items()]
    return opened


def _parsed(value: JsonValue) -> JsonValue:
    is_json = isinstance(value, str) and value.lstrip().startswith(("{", "[", '"'))
    return parse_if_complete(value) if is_json else value


def _record(name: str, tree: _Tree) -> JsonObject:
    """Return a trace as a record with its observations as spans, and everything about the whole in ``trace``."""
    about: JsonObject
    [about] = merge_versions([{"id": name}, *({**trace, "id": name} for trace in tree.traces)])
    runs = merge_versions(map(_with_arguments, tree.observations))
    runs.sort(key=lambda run: str(first_value(run, "startTime", "start_time")))  # the API begins with the latest
    if tree.scores:
        about["scores"] = [*as_list(about.get("scores")), *tree.scores]
    values = _with_arguments({field: about.pop(field) for field in _VALUES if field in about})
    ids = {str(run.get("id")) for run in runs}
    roots = [run for run in runs if _parent(run) not in ids]
    if len(roots) == 1 and all(roots[0].get(field, values[field]) == values[field] for field in values):
        roots[0].update(values)
    elif values:
        root: JsonObject = {"id": name, **{field: about[field] for field in ("name", "timestamp") if field in about}}
        runs = [run if _parent(run) else {**run, "parent_observation_id": name} for run in runs]
        runs.insert(0, root | values)
    runs = [run if "traceId" in run else {"trace_id": name, **run} for run in runs]
    return {"id": name, "trace": about, "spans": [as_span(run, _SPAN, _error(run)) for run in runs]}


def _with_arguments(record: JsonObject) -> JsonObject:
    """Return a record whose input is the only argument, or the named arguments, of a function that was traced."""
    given = as_object(record.get("input"))
    args, kwargs = given.get("args"), given.get("kwargs")
    if len(given) != 2 or not isinstance(args, list) or not isinstance(kwargs, dict):
        return record
    if args and (kwargs or len(args) > 1):
        return record
    return {**record, "input": args[0] if args else kwargs}


def _parent(observation: JsonObject) -> str | None:
    return str_or_none(first_value(observation, "parentObservationId", "parent_observation_id")) or None


def _error(observation: JsonObject) -> JsonValue:
    if observation.get("level") != "ERROR":
        return None
    return str_or_none(first_value(observation, "statusMessage", "status_message")) or "error"


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("type")
    return _KINDS.get(kind, kind) if isinstance(kind, str) else None


def _details(attributes: FieldTracker, _: list[ToolDefinition]) -> dict[str, object]:
    model = attributes.text("model", "providedModelName", "provided_model_name")
    usage = read_counts(attributes.object("usageDetails", "usage_details"), input="input", output="output")
    return {"model": model, "usage": usage}


def _metadata(holders: Iterable[FieldTracker]) -> JsonObject:
    """Take the metadata of the whole: what its observations repeat, and what the first of them adds."""
    metadata: JsonObject = {}
    for holder in holders:
        holder.take_into(metadata, [name for name in _ABOUT if holder.peek(name) not in ([], "")])
        own = holder.peek("metadata")
        if isinstance(own, dict) and all(metadata.get(name, value) == value for name, value in own.items()):
            holder.take("metadata")
            metadata |= own
    return metadata


def _read_scores(about: FieldTracker, spans: Sequence[Span], name: str | None) -> tuple[list[Label], dict[str, object]]:
    """Return the labels of the trace, and a correction as reference. Scores stay in ``extra`` too, since they hold more."""
    outermost = {span.id for span in spans if span.parent_id in (None, name)}
    labels: list[Label] = []
    facts: dict[str, object] = {}
    inner = 0
    for score in objects_in(about.peek("scores")):
        record = read_score(score, "Langfuse")
        if record.span is not None and record.span not in outermost:
            inner += 1
        elif record.correction is not None:
            facts["reference"] = record.correction
        elif record.label is not None:
            labels.append(record.label)
    if inner:
        about.warn(f"scores of single observations, which are no labels of the trace, found {inner}", "scores")
    return labels, facts


def _item(row: FieldTracker, index: int) -> Sample:
    if "scores" in row:
        count = len(as_list(row.peek("scores")))
        raise TraceError(f"contains {count_text(count, 'score')} of traces that are not in this file; {AUDIT_HINT}")
    expected = row.first(*_EXPECTED) or _EXPECTED[0]
    if "input" not in row:
        raise TraceError("expected a trace, an observation or a dataset item of Langfuse")
    if row.peek("status") == "ARCHIVED":
        row.warn("is archived", "status")
    return read_item(row, index, "input", expected)
