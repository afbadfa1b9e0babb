"""Experiments and datasets of Phoenix, as its REST API returns them. Its spans are those of OpenInference.

[{"example_id": "e", "repetition_number": 1, "input": {"question": "2+2?"}, "reference_output": {"answer": "4"}, "output": "4",
  "annotations": [{"name": "correct", "annotator_kind": "LLM", "label": "yes", "score": 1.0, "explanation": "..."}],
  "error": null, "trace_id": "t", ...}, ...]    GET /v1/experiments/ID/json
{"data": {"dataset_id": "d", "version_id": "v", "examples": [{"id", "node_id", "input", "output", "metadata", ...}, ...]}}
"""

from itertools import chain

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, as_records, build_sample, first_record
from judgekit.formats.readers.openinference import read_annotation
from judgekit.formats.readers.payloads import exchange_messages, take_any_payload, variables_in, warn_of_outcome
from judgekit.formats.row_facts import read_expected
from judgekit.formats.values import as_object, objects_in, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample

_RUN = frozenset(("example_id", "repetition_number"))
_RUN_ALONE = frozenset(("dataset_example_id", "repetition_number"))
_COUNTS = {"input": "prompt_token_count", "output": "completion_token_count"}


class PhoenixReader(RowReader):
    """A reader of experiments, one sample a run, and of the examples of datasets, which no agent has answered.

    Runs of one example are a group. Annotations become labels.
    """

    name = "phoenix"
    shape = 'phoenix: [{"example_id": ..., "repetition_number": ..., "input": ..., "reference_output": ..., "output": ..., "annotations": [...]}, ...]'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize runs by their example and repetition, and examples by their dataset or the id of their node."""
        record = as_object(first_record(value))
        is_example = {"node_id", "input", "output"} <= record.keys()
        return record.keys() >= _RUN or record.keys() >= _RUN_ALONE or is_example or _dataset(record) is not None

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the runs, or the examples of a dataset."""
        return [record for row in as_records(document) for record in _examples(row)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one run or example."""
        row = FieldTracker.of(record)
        if "dataset_example_id" in row and "input" not in row:
            missing = "a run of an experiment without its example"
            raise TraceError(f"{missing}; export both: curl PHOENIX/v1/experiments/ID/json")
        is_run = "example_id" in row
        tools: list[ToolDefinition] = []
        fields = variables_in(row.peek("input"))
        request = take_any_payload(row, "input", HumanMessage)
        if is_run:
            response = take_any_payload(row, "output", AIMessage)
            messages = list(chain(*exchange_messages(request, response, tools)))
            expected = read_expected(row.take("reference_output"), "reference_output", row.warnings)
            warn_of_outcome(row, row.peek("error"), "output", "error", answered=bool(response.messages))
        else:
            messages = list(request.messages)
            expected = read_expected(row.take("output"), "output", row.warnings)
            row.warn("an example of a dataset, with an expected answer but none of an agent")
        if not messages:
            raise TraceError("contains neither an input nor an output")
        example, repetition = row.id("example_id"), row.peek("repetition_number")
        metadata: JsonObject = about.leftover() if (about := row.object("metadata")) else {}
        if annotations := row.take("annotations"):
            metadata["annotations"] = annotations  # these hold more than labels
        counts = FieldTracker({name: row.take(name) for name in _COUNTS.values()})
        trace = {
            "messages": messages,
            "tools": tools,
            "labels": list(filter(None, map(read_annotation, objects_in(annotations)))),
            "started_at": row.time("start_time"),
            "ended_at": row.time("end_time"),
            "usage": read_counts(counts, **_COUNTS) if list(counts) else None,
            "metadata": metadata,
        }
        name = row.id("trace_id") or (f"{example}#{repetition}" if is_run else row.id("id"))
        facts = {**expected, **({"fields": fields} if fields else {}), **({"group": example} if is_run else {})}
        return build_sample(row, index, trace, identity=name, **facts)


def _dataset(record: JsonValue) -> JsonObject | None:
    whole = as_object(record)
    dataset = as_object(whole.get("data", whole))
    return dataset if "dataset_id" in dataset and isinstance(dataset.get("examples"), list) else None


def _examples(record: JsonValue) -> list[JsonValue]:
    if (dataset := _dataset(record)) is None:
        return [record]
    about: JsonObject = without(dataset, "examples")
    examples = as_records(dataset["examples"])
    return [{**example, "dataset": about} if isinstance(example, dict) else example for example in examples]
