"""Logs of Inspect AI: one conversation for each sample and epoch.

{"version": 2, "status": "success", "eval": {...}, "plan": {...}, "results": {...}, "stats": {...}, "samples": [
    {"id": 1, "epoch": 1, "input": "1+2?", "target": "3", "messages": [...], "scores": {"match": {"value": "C"}},
     "output": {...}, "events": [...], "model_usage": {...}}]}
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import JUDGED_MARK, label_source
from judgekit.formats.readers.base import (
    RowReader,
    as_records,
    build_sample,
    first_record,
    group_name,
    unpaired_warnings,
)
from judgekit.formats.readers.inspect_messages import are_messages, read_messages, read_usage
from judgekit.formats.row_facts import FACT_COLUMNS, VERBATIM_COLUMNS, extra_fields, make_sample, read_facts, to_text
from judgekit.formats.values import as_list, as_object, first_object, is_number, lookup, objects_in, str_or_none
from judgekit.traces.message import AIMessage, JsonObject, Message
from judgekit.traces.recording import Label, LabelSource, ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_POINTERS = ("attachments", "events_data", "message_pool")
"""Fields that hold long texts and repeated messages, which are referenced elsewhere."""
_TARGETS = ("reference", "references", "expected_output")
_IN_METADATA = FACT_COLUMNS - {"metadata", "group"}
_COMPUTED = frozenset(("answer", "choice", "exact", "f1", "includes", "match", "math", "pattern"))
"""Inspect's scorers that compare texts and ask no model."""


class InspectReader(RowReader):
    """A reader of logs as JSON, their samples, and lists of their messages.

    Only this is kept of the events: times, usage and finish reasons of messages, the tools, and as children
    the agents whose messages are only in events. The log's header goes into the trace's ``extra``.
    """

    name = "inspect"
    shape = 'inspect: {"version": ..., "status": ..., "eval": {...}, "samples": [...]}, or the messages of Inspect'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize logs by version, status and ``eval``, and messages by the way they name functions."""
        if are_messages(value):
            return True
        first = first_record(value)
        if not isinstance(first, dict):
            return False
        header = first.get("header")
        return (
            _is_log(first)
            or (isinstance(header, dict) and "eval" in header and "sample" in first)
            or {"epoch", "target", "messages"} <= first.keys()
            or are_messages(first.get("messages"))
        )

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the samples of a log, each with the log's header."""
        if are_messages(document):
            return [document]
        return [record for item in as_records(document) for record in (_samples(item) if _is_log(item) else [item])]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one sample, named by its id and, if there are several epochs, its epoch."""
        row = FieldTracker.of(_resolved({"messages": record} if isinstance(record, list) else record))
        sample = row.object("sample") or row
        raw = objects_in(sample.peek("messages"))
        recorded = sample.objects("messages")
        if not recorded:
            raise sample.type_error("messages", "messages")
        transcript = sample.peek("transcript")  # in older logs
        events = objects_in(lookup(transcript, "events") if isinstance(transcript, dict) else sample.peek("events"))
        messages = _with_output(sample, _with_events(read_messages(recorded), events), raw)
        if _repeats_input(sample.peek("input"), raw):
            sample.take("input")
        identity, epoch = sample.id("id"), sample.count("epoch")
        header = row.peek("header")
        epochs, task = lookup(header, "eval", "config", "epochs"), str_or_none(lookup(header, "eval", "task"))
        repeated = isinstance(epochs, int) and epochs > 1
        trial = f"#{epoch}" if epoch is not None and (epoch > 1 or repeated) else ""
        name, uuid = identity and identity + trial, sample.id("uuid")
        cost, usage = _total(sample)
        trace = {
            **({} if uuid is None else {"id": uuid}),
            "messages": messages,
            "tools": _tools(events),
            "started_at": sample.time("started_at"),
            "ended_at": sample.time("completed_at"),
            "usage": usage,
            "cost_usd": cost,
            "error": str_or_none(lookup(sample.peek("error"), "message")),
            "termination": _termination(sample),
            "labels": _labels(sample, events),
            "children": _children(events, {str(message.get("id")): message for message in raw}, sample),
        }
        _leave_out(sample, events)
        # The epochs of a sample form a group. Its name includes the task, since tasks count their samples from 1.
        return build_sample(row, index, trace, identity=name, **_facts(sample, group_name(identity, task)))


def _is_log(value: JsonValue) -> bool:
    return isinstance(value, dict) and {"version", "status", "eval"} <= value.keys()


def _samples(log: JsonValue) -> list[JsonValue]:
    header = FieldTracker.of(log)
    samples = header.take("samples")
    if not isinstance(samples, list) or not samples:
        raise TraceError("samples: the log contains none; write it together with its samples")
    about = header.leftover()
    return [{"header": about, "sample": sample} for sample in samples]


def _resolved(record: JsonValue) -> JsonValue:
    """Return the record with its attachments in place of the references to them."""
    if not isinstance(record, dict):
        return record
    if isinstance(inner := record.get("sample"), dict):
        return {**record, "sample": _resolved(inner)}
    attachments = record.get("attachments")
    if not isinstance(attachments, dict) or not attachments:
        return record
    return {name: value if name in _POINTERS[:1] else _filled(value, attachments) for name, value in record.items()}


def _filled(value: JsonValue, attachments: JsonObject) -> JsonValue:
    if isinstance(value, str):
        scheme, mark, key = value.partition("://")
        return attachments.get(key, value) if mark and scheme == "attachment" else value
    if isinstance(value, dict):
        return {key: _filled(item, attachments) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, attachments) for item in value]
    return value


def _leave_out(sample: FieldTracker, events: Iterable[JsonObject]) -> None:
    counts = Counter(to_text(event.get("event")) for event in events)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none"
    for name in ("events", "transcript"):
        if sample.peek(name):
            sample.discard(name, f"dropped, except for times, usage, tools and agents that only events have: {kinds}")
    for name in _POINTERS:
        if sample.peek(name):
            sample.discard(name, "filled in where messages refer to it; what only events refer to is dropped")


def _output(event: JsonObject) -> tuple[JsonObject, str] | None:
    choices = lookup(event, "output", "choices") if event.get("event") == "model" else None
    message = first_object(choices).get("message")
    identity = lookup(message, "id")
    return (message, identity) if isinstance(message, dict) and isinstance(identity, str) else None


def _with_events(messages: Sequence[Message], events: Iterable[JsonObject]) -> list[Message]:
    """Return the messages with what events record about them, matched by id."""
    about: dict[str, JsonObject] = {}
    for event in events:
        if (output := _output(event)) is not None:
            about[output[1]] = event
        elif event.get("event") == "tool" and isinstance(identity := event.get("message_id"), str):
            about[identity] = event
    return [_with_event_fields(message, FieldTracker(about.get(message.id or "", {}))) for message in messages]


def _with_event_fields(message: Message, event: FieldTracker) -> Message:
    update: dict[str, object] = {"timestamp": event.time("completed", "timestamp")}
    output = event.object("output")
    if isinstance(message, AIMessage) and output is not None:
        update["usage"] = read_usage(output.object("usage"))
        update["finish_reason"] = FieldTracker(first_object(output.peek("choices"))).text("stop_reason")
    return message.model_copy(update=update)


def _with_output(sample: FieldTracker, messages: list[Message], raw: Sequence[JsonObject]) -> list[Message]:
    """Return the messages with what the sample's output records about the last reply, if it is that reply."""
    reply = next((message for message in reversed(raw) if message.get("role") == "assistant"), None)
    index = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    choices = objects_in(lookup(sample.peek("output"), "choices"))
    output = sample.object("output") if choices and choices[0].get("message") == reply else None
    if output is None or index is None or not isinstance(last := messages[index], AIMessage):
        return messages
    choice = output.objects("choices")[0]
    choice.take("message")
    output.take_if("completion", last.text)
    update: dict[str, object] = {"finish_reason": choice.text("stop_reason") or last.finish_reason}
    if last.model in (None, output.peek("model")):
        update["model"] = output.text("model")
    update["usage"] = read_usage(output.object("usage")) or last.usage
    messages[index] = last.model_copy(update=update)
    return messages


def _repeats_input(given: JsonValue, raw: Sequence[JsonObject]) -> bool:
    if isinstance(given, list):
        return all(message in raw for message in given[:50]) and len(given) <= 50
    return any(message.get("role") == "user" and message.get("content") == given for message in raw)


def _facts(sample: FieldTracker, identity: str | None) -> dict[str, object]:
    """Return the facts about a sample: its target, and fields of a `Sample` in its metadata."""
    facts: JsonObject = {} if identity is None else {"group": identity}
    targets: list[JsonValue] = [to_text(goal) for goal in as_records(sample.take("target")) if goal not in (None, "")]
    if targets:
        facts["reference"] = targets[0] if len(targets) == 1 else targets
    metadata = sample.object("metadata") or FieldTracker({})
    for name in metadata:
        if name in _IN_METADATA and not (targets and name in _TARGETS):
            try:
                make_sample("", read_facts({**facts, name: metadata.peek(name)}, []))
            except TraceError as error:
                metadata.warn(f"not used, kept as is: {error.problem}")
            else:
                facts[name] = metadata.take(name)
    facts = read_facts(facts, sample.warnings)
    taken = {name: sample.take(name) for name in ("fields", *VERBATIM_COLUMNS) if name in sample}
    columns = read_facts(taken, sample.warnings)
    choices: JsonObject = {"choices": sample.take("choices")} if sample.peek("choices") else {}
    fields = {**extra_fields(columns), **extra_fields(facts), **choices}
    return {**columns, **facts, "fields": fields, "metadata": metadata.leftover()}


def _termination(sample: FieldTracker) -> str | None:
    if (error := sample.object("error")) is not None and (message := error.text("message")) is not None:
        return f"error: {message}"
    limit = sample.object("limit")
    kind = None if limit is None else limit.text("type")
    return kind and f"limit: {kind}"


def _total(sample: FieldTracker) -> tuple[float | None, object]:
    """Return cost and usage of the whole sample if it used one model. Inspect reports no sum for several."""
    by_model = sample.object("model_usage")
    names = [] if by_model is None else list(by_model)
    counts = by_model.object(names[0]) if by_model is not None and len(names) == 1 else None
    if counts is None:
        return None, None
    cost, usage = counts.number("total_cost"), read_usage(counts)
    return cost, usage and usage.model_copy(update={"extra": {**usage.extra, "model": names[0]}})


def _labels(sample: FieldTracker, events: Sequence[JsonObject]) -> list[Label]:
    labels: list[Label] = []
    source_of_score = _sources(sample, events)
    scores = sample.object("scores") or FieldTracker({})
    for name in scores:
        if (score := scores.object(name)) is not None:
            labels += _label(name, score, source_of_score(name, score))
    return labels


def _sources(sample: FieldTracker, events: Sequence[JsonObject]) -> Callable[[str, FieldTracker], LabelSource]:
    """Return a function that returns the source of a score from its scorer's name and the score."""
    spans = _spans(events)
    within = (_enclosing(event.get("span_id"), "scorer", spans) for event in events if event.get("event") == "model")
    called_model = {to_text(spans[span].get("name")) for span in within if span is not None}
    has_grader = "grader" in as_object(sample.peek("role_usage"))

    def source_of_score(scorer: str, score: FieldTracker) -> LabelSource:
        metadata = as_object(score.peek("metadata"))
        marked = metadata.get(JUDGED_MARK)
        if scorer in called_model or "grading" in metadata:
            return label_source(scorer, judged=True)
        if isinstance(marked, bool):
            return label_source(scorer, judged=marked)
        if scorer in _COMPUTED or scorer.rstrip("0123456789") in _COMPUTED:  # repeated names are numbered
            return label_source(scorer, judged=False)
        return label_source(scorer, judged=has_grader or None)

    return source_of_score


def _label(name: str, score: FieldTracker, source: LabelSource) -> list[Label]:
    value = score.peek("value")
    if value is None:
        return []
    parts: JsonObject = {name: value}
    if isinstance(value, list):
        parts = {f"{name}[{index}]": part for index, part in enumerate(value)}
    elif isinstance(value, dict):
        parts = {f"{name}.{key}": part for key, part in value.items()}
    kept = {key: scalar for key, scalar in parts.items() if isinstance(scalar, str | bool) or is_number(scalar)}
    if len(kept) < len(parts):
        score.warn("neither a number nor a string, so not a label; kept as is", "value")
    else:
        score.take("value")
    reason = score.text("explanation") if kept else None
    return [Label(key, value, source=source, reason=reason) for key, value in kept.items()]


def _tools(events: Iterable[JsonObject]) -> list[ToolDefinition]:
    tools: dict[str, JsonObject] = {}
    for event in events:
        for tool in objects_in(event.get("tools")) if event.get("event") == "model" else ():
            if isinstance(name := tool.get("name"), str):
                tools.setdefault(name, tool)
    return read_tools(FieldTracker(tool) for tool in tools.values())


def _children(events: Sequence[JsonObject], own: Mapping[str, JsonObject], sample: FieldTracker) -> list[Trace]:
    """Return agents none of whose replies is among the sample's messages: each one's last request and its reply.

    Includes agents that a tool started and whose replies appear there without calls: a handoff turns them into text.
    """
    data = sample.peek("events_data")
    pool = objects_in(data.get("messages") if isinstance(data, dict) else sample.peek("message_pool"))
    spans = _spans(events)
    callers = {str(event.get("agent_span_id")): event.get("id") for event in events if event.get("event") == "tool"}
    requests: dict[str, list[JsonObject]] = {}
    for event in events:
        if _output(event) is not None and (agent := _enclosing(event.get("span_id"), "agent", spans)) is not None:
            requests.setdefault(agent, []).append(event)
    children: list[Trace] = []
    for agent, calls in requests.items():
        replies = [output for event in calls if (output := _output(event)) is not None]
        stand = [(own[identity], reply) for reply, identity in replies if identity in own]
        whole = all(_calls(reply) <= _calls(message) for message, reply in stand)
        if stand and (whole or _enclosing(agent, "tool", spans) is None):
            continue
        refs = [ref for ref in as_list(calls[-1].get("input_refs")) if isinstance(ref, list) and len(ref) == 2]
        ranges = [slice(a, b) for a, b in refs if isinstance(a, int) and isinstance(b, int) and 0 <= a <= b]
        referenced = (message for messages_between in ranges for message in pool[messages_between])
        recorded = [*(objects_in(calls[-1].get("input")) or referenced), replies[-1][0]]
        try:
            messages = read_messages(FieldTracker(message, warnings=sample.warnings) for message in recorded)
            messages = _with_events(messages, calls)
        except TraceError as error:
            sample.warn(f"cannot read the messages of agent {agent!r} in events: {error}", "events")
            continue
        about: JsonObject = {"agent": spans[agent].get("name"), "call_id": callers.get(agent)}
        metadata: JsonObject = {name: value for name, value in about.items() if value is not None}
        children.append(Trace(id=agent, messages=messages, metadata=metadata, warnings=unpaired_warnings(messages)))
    return children


def _calls(message: JsonObject) -> set[str]:
    return {to_text(call.get("id")) for call in objects_in(message.get("tool_calls"))}


def _spans(events: Iterable[JsonObject]) -> dict[str, JsonObject]:
    return {str(event.get("id")): event for event in events if event.get("event") == "span_begin"}


def _enclosing(name: JsonValue, kind: str, spans: Mapping[str, JsonObject]) -> str | None:
    """Return the innermost span of a kind that contains a span."""
    for _ in range(100):  # spans in a cycle end too
        span = spans.get(str(name))
        if span is None or span.get("type") == kind:
            return None if span is None else str(name)
        name = span.get("parent_id")
    return None
