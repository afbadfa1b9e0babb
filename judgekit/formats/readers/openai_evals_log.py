"""Logs of runs of the open-source repository openai/evals, which ``oaieval`` writes.

{"spec": {"completion_fns": ["..."], "eval_name": "test-match.s1", "run_id": "23", ...}}
{"run_id": "23", "event_id": 0, "sample_id": "test-match.s1.0", "type": "sampling", "data": {"prompt": [...], "sampled": ["4"]}, ...}
{"run_id": "23", "event_id": 1, "sample_id": "test-match.s1.0", "type": "match", "data": {"correct": true, "expected": "4"}, ...}
{"final_report": {"accuracy": 1.0}}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError, count_text
from judgekit.formats.blocks.openai_chat import read_usage
from judgekit.formats.blocks.reply import OTHER_CHOICES, choices_warning
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.merging.comparison import utterances
from judgekit.formats.readers.base import as_records, build_sample, first_record
from judgekit.formats.readers.payloads import Payload, exchange_messages, take_payload
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, is_number, lookup
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import Label, ToolDefinition, TraceWarning
from judgekit.traces.sample import Sample


class OpenAIEvalsLogReader:
    """A reader of logs, one sample for each ``sample_id`` of a run. Matches and metrics become labels.

    A model call that continues the conversation adds to it. Other calls, such as those of a model that grades, are kept
    in the trace's ``extra``, with a warning. Source: ``evals/record.py`` of https://github.com/openai/evals.
    """

    name = "openai-evals-log"
    joins_lines = True
    shape = 'openai-evals-log: {"spec": {...}}, {"sample_id", "event_id", "type": "sampling", "data": {...}} in lines'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events by their ids, and the first and last line by ``spec`` and ``final_report``."""
        row = first_record(value)
        if not isinstance(row, dict):
            return False
        is_first = "eval_name" in as_object(row.get("spec"))
        return is_first or row.keys() >= {"event_id", "sample_id", "type", "data"} or row.keys() == {"final_report"}

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the events of each sample, with what the log says about the whole run."""
        whole: JsonObject = {}
        events: dict[tuple[str, str], list[JsonValue]] = {}
        for row in as_records(document):
            if not isinstance(row, dict):
                raise TraceError(f"expected an object in each line, found {row!r:.80}")
            whole |= {name: row[name] for name in ("spec", "final_report") if name in row}
            if "sample_id" in row:
                events.setdefault((to_text(row.get("run_id")), to_text(row["sample_id"])), []).append(row)
        if not events:
            raise TraceError("the log contains no events of samples")
        return [{"sample_id": name, "events": held, **whole} for (_, name), held in events.items()]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read the events of one sample. The data of each event stays in ``extra``, without what was read."""
        row = FieldTracker.of(record)
        identity = row.id("sample_id")
        events = row.objects("events")
        metadata: JsonObject = {}
        labels: list[Label] = []
        facts: dict[str, object] = {}
        messages: list[Message] = []
        tools: list[ToolDefinition] = []
        aside = 0
        for event in events:
            event.take_if("sample_id", identity)
            if isinstance(run := event.peek("run_id"), str) and metadata.setdefault("run_id", run) == run:
                event.take("run_id")
            kind, event_data = event.peek("type"), event.maybe_object("data")
            if event_data is None:
                continue
            if kind == "sampling":
                longer = _continued(messages, event, event_data, tools)
                aside += longer is None
                messages = longer or messages
            elif kind == "match":
                correct, picked = event_data.boolean("correct"), event_data.peek("picked")
                if correct is not None:
                    reason = None if picked is None else f"picked {to_text(picked)}"
                    labels.append(Label("match", correct, source="benchmark", reason=reason))
                facts = facts or _expected(event_data)
                if not messages and "sampled" in event_data:
                    messages = list(_sampled(event_data).messages)
            elif kind == "metrics":
                labels += _metrics(event_data, judged=True if aside else None)
            elif kind == "error":
                kind, message = (to_text(event_data.peek(name)) for name in ("type", "message"))
                event.warn(f"the sample failed: {kind}: {message}", "data")
        if aside:
            row.warn(f"{count_text(aside, 'model call')} next to the conversation, such as a grader's", "events")
        if not messages:
            raise TraceError(f"the sample {identity!r} has no model call")
        if isinstance(name := lookup(row.peek("spec"), "eval_name"), str):
            metadata["eval_name"] = name
        trace = {"messages": messages, "tools": tools, "labels": labels, "metadata": metadata}
        return build_sample(row, index, trace, identity=identity, group=identity, **facts)


def _continued(
    messages: list[Message], event: FieldTracker, event_data: FieldTracker, tools: list[ToolDefinition]
) -> list[Message] | None:
    """Return the conversation with a model call; ``None`` if the call does not continue it."""
    before = utterances(messages)
    warnings: list[TraceWarning] = []
    holder = FieldTracker({"prompt": event_data.peek("prompt")}, event_data.path, warnings)
    request = take_payload(holder, "prompt", HumanMessage)
    if utterances(request.messages)[: len(before)] != before:
        return None
    event_data.warnings += warnings
    if request.messages:
        event_data.take("prompt")
    response = _sampled(event_data)
    details: dict[str, object] = {}
    if response.messages:
        details |= {"model": event_data.text("model"), "timestamp": event.time("created_at")}
        details["usage"] = read_usage(event_data.maybe_object("usage"))
    history, replies = exchange_messages(request, response, tools, **details)
    kept = len(messages) if before else 0  # with what earlier calls recorded about them
    return [*messages, *history[kept:], *replies]


def _sampled(event_data: FieldTracker) -> Payload:
    sampled = event_data.take("sampled")
    answers: list[JsonValue] = sampled if isinstance(sampled, list) else [sampled]
    first, *others = answers or [None]
    if first is None:
        event_data.warn("contains no answer", "sampled")
        return Payload()
    if others:
        event_data.warn(choices_warning(len(answers)), "sampled")
    return Payload((AIMessage(to_text(first), extra={OTHER_CHOICES: others} if others else {}),))


def _expected(event_data: FieldTracker) -> dict[str, object]:
    expected = event_data.take("expected")
    if isinstance(expected, list):
        return {"references": list(map(to_text, expected))} if expected else {}
    return {} if expected is None else {"reference": to_text(expected)}


def _metrics(event_data: FieldTracker, *, judged: bool | None) -> list[Label]:
    labels: list[Label] = []
    for name in event_data:
        value = event_data.peek(name)
        if isinstance(value, bool | str) or is_number(value):
            event_data.take(name)
            labels.append(Label(name, value, source=label_source(name, judged=judged)))
    return labels
