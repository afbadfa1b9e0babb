"""Runs and dataset examples of LangSmith.

{"id": "r1", "trace_id": "r1", "dotted_order": "2026...", "run_type": "chain", "inputs": {"question": ...}, "outputs": {"answer": ...}}
{"id": "r2", "trace_id": "r1", "parent_run_id": "r1", "run_type": "llm", "inputs": {"messages": [...]}, "outputs": {"choices": [...]}}
{"inputs.question": ..., "outputs.answer": ..., "reference.answer": ..., "feedback.correct": 1, "example_id": "e1", "id": "r1"}
{"id": "e1", "dataset_id": "d", "inputs": {"question": ...}, "outputs": {"answer": ...}, "metadata": {"dataset_split": ["base"]}}
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.readers.base import as_records, build_sample, first_record
from judgekit.formats.readers.run_trees import as_span, merge_versions, read_expected, read_item, read_tree
from judgekit.formats.score_records import make_label
from judgekit.formats.spans import Span, find_roots
from judgekit.formats.values import as_object, objects_in, parse_if_json, str_or_none, unpacked, without
from judgekit.traces.message import JsonObject, Usage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample

_RUN = frozenset(("run_type", "dotted_order", "parent_run_id", "child_runs", "trace_id", "start_time"))
"""The fields that tell a run from an example."""
_SPAN = {
    "id": "span_id",
    "trace_id": "trace_id",
    "parent_run_id": "parent_id",
    "name": "name",
    "start_time": "start_time",
    "end_time": "end_time",
}
_KINDS = {"llm": "LLM", "tool": "TOOL"}
_VALUES = ("inputs", "outputs")
_MISSING = "export the runs with their inputs and outputs"
_COLUMNS = {
    "inputs": "inputs",
    "input": "inputs",
    "outputs": "outputs",
    "reference": "reference_outputs",
    "feedback": "feedback",
}
"""By the first part of a column in a table of results, the field that holds it in a run."""
_AVERAGES = (
    "averages of feedback, which are no labels; export the feedback itself (client.list_feedback), and use it with "
    "judgekit audit RUN --labels FILE"
)


class LangSmithReader:
    """A reader of runs, one conversation per trace, and of the examples of a dataset.

    Runs of one example are a group, or else those of one thread.
    """

    name = "langsmith"
    joins_lines = True
    shape = (
        'langsmith: [{"id", "trace_id", "parent_run_id", "run_type": "llm", "inputs": {...}, "outputs": {...}}, ...]'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize runs and examples by their inputs and outputs, which are objects."""
        record = _nested(first_record(value))
        if not isinstance(record, dict) or not isinstance(record.get("inputs"), dict):
            return False
        if not isinstance(record.get("outputs"), dict | None) or "messages" in record or "expectations" in record:
            return False
        return bool({"outputs", "run_type", "dataset_id", "source_run_id"} & record.keys())

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the runs of each trace as spans in their order, and examples as they are."""
        traces: dict[str, list[JsonObject]] = defaultdict(list)
        records = list(_flat(map(_nested, as_records(document))))
        runs = merge_versions(record for record in records if _is_run(record))
        for run, name in zip(runs, _trace_ids(runs), strict=True):
            traces[name].append(run)
        trees = [_tree(name, members) for name, members in traces.items()]
        return [*trees, *(record for record in records if not _is_run(record))]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trace or example. The leftover of its runs goes into the trace's ``extra``."""
        row = FieldTracker.of(record)
        if "spans" not in row:
            if not isinstance(row.peek("inputs"), dict):
                raise TraceError("expected a run or an example of LangSmith, with inputs and outputs")
            if "dataset_id" not in row:
                row.warn("has no run_type, so it counts as an example of a dataset: its outputs are the reference")
            return read_item(row, index, "inputs", "outputs")
        tree = read_tree(row, _kind, _details, _VALUES, _MISSING)
        trace = dict(tree.fields)
        facts: dict[str, object] = {}
        if tree.root is not None:
            attributes = tree.root.attributes
            if attributes.peek("feedback_stats"):
                attributes.warn(_AVERAGES, "feedback_stats")
            if _kind(tree.root) != "LLM":
                trace["usage"] = _usage(attributes)
            trace["cost_usd"] = attributes.number("total_cost")
            trace["termination"] = attributes.text("status")
            metadata = _metadata(attributes)
            trace["metadata"] = {**cast("JsonObject", trace["metadata"]), **metadata}
            threads = (str_or_none(metadata.get(name)) for name in ("session_id", "thread_id", "conversation_id"))
            group = attributes.id("reference_example_id") or next(filter(None, threads), None)
            facts = read_expected(attributes, "reference_outputs", {})
            facts |= {} if group is None else {"group": group}
            feedback = as_object(attributes.peek("feedback")).items()  # it does not say who gave it
            labels = (make_label(name, parse_if_json(value), label_source(name)) for name, value in feedback)
            trace["labels"] = [label for label in labels if label is not None]
        return build_sample(row, index, trace, identity=row.id("id"), **facts)


def _nested(record: JsonValue) -> JsonValue:
    """Return a row of a table of results as a run, or as an example if there was no run; any other value as it is."""
    if not isinstance(record, dict) or not any(name.startswith(("outputs.", "reference.")) for name in record):
        return record
    columns = {name: name.partition(".") for name in record}
    nested = [name for name, (column, dot, _) in columns.items() if dot and column in _COLUMNS]
    row = without(record, *nested)
    for name in nested:
        column, _, key = columns[name]
        holder = row.setdefault(_COLUMNS[column], {})
        if isinstance(holder, dict):
            holder[key] = unpacked(record[name])
        else:
            row[name] = record[name]
    if "feedback" not in row and "reference_outputs" not in row and "example_id" not in row:
        return row
    example = row.pop("example_id", None)
    return {"run_type": "chain", "reference_example_id": example, **row}


def _flat(records: Iterable[JsonValue]) -> Iterator[JsonValue]:
    pending = list(records)[::-1]
    while pending:
        record = pending.pop()
        if isinstance(record, dict) and (children := objects_in(record.get("child_runs"))):
            pending += reversed(children)
            record = without(record, "child_runs")
        yield record


def _is_run(record: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(record, dict) and not _RUN.isdisjoint(record)


def _trace_ids(runs: Sequence[JsonObject]) -> list[str]:
    """Return the id of each run's trace, which older runs leave out: it is the id of their outermost run.

    A run without any id is a trace of its own, whose name begins with ``#``.
    """
    names = [str(run.get("id") or f"#{number}") for number, run in enumerate(runs)]
    traces = {name: trace for name, run in zip(names, runs, strict=True) if (trace := run.get("trace_id"))}
    parents: dict[str, str | None] = {}
    for name, run in zip(names, runs, strict=True):
        parents[name] = None if name in traces else str_or_none(run.get("parent_run_id")) or None
        parents.setdefault(parents[name] or name, None)  # a parent that is not in the file has an id too
    roots = find_roots(parents)
    return [str(traces.get(roots[name], roots[name])) for name in names]


def _tree(name: str, runs: Sequence[JsonObject]) -> JsonObject:
    runs = sorted(runs, key=lambda run: [str(run.get(field)) for field in ("dotted_order", "start_time", "id")])
    spans: JsonValue = [as_span({"trace_id": name, **_unwrapped(run)}, _SPAN, run.get("error")) for run in runs]
    return {"spans": spans} if name.startswith("#") else {"id": name, "spans": spans}


def _unwrapped(run: JsonObject) -> JsonObject:
    """Return a run of a tool with the value that it returned, and the JSON of its arguments, without their wrappers."""
    if run.get("run_type") != "tool":
        return run
    inputs, outputs = as_object(run.get("inputs")), as_object(run.get("outputs"))
    given = inputs.get("input")
    if len(inputs) == 1 and isinstance(given, str) and given.startswith("{"):
        run = {**run, "inputs": given}
    return {**run, "outputs": outputs["output"]} if outputs.keys() == {"output"} else run


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("run_type")
    return _KINDS.get(kind, kind.upper()) if isinstance(kind, str) else None


def _details(attributes: FieldTracker, tools: list[ToolDefinition]) -> dict[str, object]:
    extra = attributes.object("extra") or FieldTracker({})
    model = (extra.object("metadata") or FieldTracker({})).text("ls_model_name")
    if (parameters := extra.object("invocation_params")) is not None:
        tools += read_tools(parameters.optional_objects("tools"))
    return {"model": model, "usage": _usage(attributes)}


def _usage(attributes: FieldTracker) -> Usage | None:
    """Read the token counts of a run. The prices next to them are kept."""
    counts = {
        "input_tokens": attributes.count("prompt_tokens"),
        "output_tokens": attributes.count("completion_tokens"),
        "cached_tokens": (attributes.object("prompt_token_details") or FieldTracker({})).count("cache_read"),
        "reasoning_tokens": (attributes.object("completion_token_details") or FieldTracker({})).count("reasoning"),
    }
    return Usage.model_validate(counts) if any(count is not None for count in counts.values()) else None


def _metadata(attributes: FieldTracker) -> JsonObject:
    extra = attributes.object("extra") or FieldTracker({})
    metadata = as_object(extra.peek("metadata"))
    if metadata:
        extra.take("metadata")
    tags = attributes.take("tags")
    return {**metadata, "tags": tags} if tags else metadata
