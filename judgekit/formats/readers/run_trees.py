"""Trees of runs, as platforms export them: spans with a kind, an input and an output each; and items of their datasets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging import merge_steps
from judgekit.formats.readers.base import build_sample
from judgekit.formats.readers.payloads import messages_in, take_payload
from judgekit.formats.readers.span_steps import Details, KindOf, payload_reader, read_steps
from judgekit.formats.row_facts import STRUCTURE_WARNING, single_text, to_text
from judgekit.formats.spans import Span, read_spans, time_range
from judgekit.formats.values import as_object, lookup, unpacked, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.sample import Sample

_TEXTS = {
    HumanMessage: ("question", "query", "input", "prompt", "task", "message"),
    AIMessage: ("answer", "output", "response", "result", "content", "message"),
}
"""The names of the text that a run was given, or returned, if it stands next to other values."""
_NOTHING: Sequence[JsonValue] = (None, {}, [], "")


class RunTree(NamedTuple):
    """A tree of runs, ordered by start time. The root is the first outermost run; ``None`` if it is not there."""

    fields: dict[str, object]
    spans: Sequence[Span]
    root: Span | None


def as_span(run: JsonObject, names: Mapping[str, str], error: JsonValue = None) -> JsonObject:
    """Return a run as a span: its fields under the names of a span's, all others as attributes, and any error."""
    span: JsonObject = {ours: run[theirs] for theirs, ours in names.items() if run.get(theirs) is not None}
    if error:
        span["status"] = {"code": "ERROR", "message": error}
    return {**span, "attributes": without(run, *names)}


def merge_versions(runs: Iterable[JsonObject]) -> list[JsonObject]:
    """Return runs without those that stand twice in an export, as where pages overlap; of two versions, the later one.

    Values that only the earlier version has are added to it.
    """
    versions: dict[str, JsonObject] = {}
    for number, run in enumerate(runs):
        merged: JsonObject = {name: value for name, value in run.items() if value is not None}
        identity = run.get("id")
        name = identity if isinstance(identity, str) and identity else f"#{number}"
        if (before := versions.get(name)) is not None:
            other = {key: value for key, value in before.items() if merged.get(key, value) != value}
            merged = {**before, **merged, **({"other_version": other} if other else {})}
        versions[name] = merged
    return list(versions.values())


def read_tree(row: FieldTracker, kind: KindOf, details: Details, values: tuple[str, str], missing: str) -> RunTree:
    """Return what the runs of a record say, and warn about those that say nothing.

    The calls of models make the conversation. If the outermost run answers something else, its answer is the last
    message, since that is what the user saw. Without calls of models, the outermost run is the conversation. The other
    parameters are those of `read_steps` and `payload_reader`; ``missing`` is what to do about missing inputs and outputs.
    """
    spans = read_spans(row)
    calls = [span for span in spans if kind(span) == "LLM"]
    _warn_of_gaps(row, spans, calls, values, missing)
    steps, tools = read_steps(spans, kind, payload_reader(values, details), values)
    fields = merge_steps(steps)
    messages = [*cast("Sequence[Message]", fields["messages"])]
    roots = [span for span in spans if span.parent is None and span.parent_id is None]
    root = roots[0] if roots else None
    if root is not None and len(roots) == 1 and kind(root) != "LLM":
        if any(step.kind == "model" for step in steps):
            messages = _with_outer_answer(messages, _outermost_with(values[1], root, spans, kind), values)
        else:
            messages = _with_structures(messages, root.attributes, values)
        if root.error is not None:
            root.fields.warn(f"the outermost run failed: {root.error:.200}")
    if not messages:
        held = next((held for span in spans for name in values if (held := span.attributes.peek(name))), None)
        hint = missing if held is None else f"found {short_repr(held)}"
        raise TraceError(f"no run has an input or output that can be read; {hint}")
    return RunTree({**fields, **time_range(spans), "messages": messages, "tools": tools}, spans, root)


def _warn_of_gaps(
    row: FieldTracker, spans: Sequence[Span], calls: Sequence[Span], values: tuple[str, str], missing: str
) -> None:
    orphans = sum(span.parent is None and span.parent_id is not None for span in spans)
    if orphans:
        row.warn(f"runs whose parent is not in this file, found {orphans} of {len(spans)}; export whole traces")
    failed = sum(span.error is not None for span in calls)
    if failed:
        row.warn(f"model calls that failed, found {failed} of {len(calls)}")
    for name in values:
        silent = sum(span.attributes.peek(name) is None and span.error is None for span in calls)
        if silent:
            row.warn(f"model calls without {name}, found {silent} of {len(calls)}; {missing}")


def _outermost_with(name: str, root: Span, spans: Sequence[Span], kind: KindOf) -> Span:
    """Return the root, or the only run within it if the root has no such value, and so on."""
    children: dict[Span | None, list[Span]] = defaultdict(list)
    for span in spans:
        children[span.parent].append(span)
    while root.attributes.peek(name) is None:
        inner = children[root]
        if len(inner) != 1 or kind(inner[0]) == "LLM":
            break
        root = inner[0]
    return root


def _with_outer_answer(messages: list[Message], outer: Span, values: tuple[str, str]) -> list[Message]:
    """Return the messages with the answer of the outermost run, unless they end with it."""
    attributes = outer.attributes
    question = _stated_text(attributes.peek(values[0]), HumanMessage)
    others = [_plain(message.text) for message in messages if not isinstance(message, AIMessage)]
    if question and not any(_plain(question) in text for text in others):
        attributes.warn("the input of the outermost run is not part of the conversation with the model", values[0])
    answer = _stated_text(attributes.peek(values[1]), AIMessage)
    last = next((message.text for message in reversed(messages) if isinstance(message, AIMessage)), "")
    if not answer or _plain(answer) == _plain(last):
        return messages
    attributes.warn("differs from the last answer of a model, and is read as the final answer", values[1])
    return [*messages, AIMessage(answer, timestamp=outer.ended_at)]


def _with_structures(messages: list[Message], attributes: FieldTracker, values: tuple[str, str]) -> list[Message]:
    """Return the messages with the outermost input and output as JSON text if these are neither text nor messages."""
    name, answer = values
    if attributes.peek(name) not in _NOTHING and not any(isinstance(message, HumanMessage) for message in messages):
        attributes.warn(STRUCTURE_WARNING, name)
        messages = [HumanMessage(to_text(attributes.take(name))), *messages]
    if attributes.peek(answer) not in _NOTHING:
        attributes.warn(STRUCTURE_WARNING, answer)
        messages = [*messages, AIMessage(to_text(attributes.take(answer)))]
    return messages


def _stated_text(value: JsonValue, kind: type[HumanMessage | AIMessage]) -> str | None:
    """Return what an input or output plainly says: its text, its last message of a kind, or a field named like it."""
    value = unpacked(value)
    if isinstance(value, str):
        return value
    with suppress(TraceError):
        if (payload := messages_in(value, FieldTracker({}), "", kind)) is not None:
            return next((message.text for message in reversed(payload.messages) if isinstance(message, kind)), None)
    texts = (lookup(value, name) for name in _TEXTS[kind])
    return single_text(value) or next((text for text in texts if isinstance(text, str)), None)


def _plain(text: str) -> str:
    return " ".join(text.split())


def read_item(row: FieldTracker, index: int, input_name: str, output_name: str) -> Sample:
    """Return the sample of a dataset's item.

    The values next to the question are fields of the sample. The expected output is the reference: its text, the texts
    of a list, or the last message and the calls of messages.
    """
    row.warn("an item of a dataset, without a run of an agent; its expected output is the reference")
    fields: JsonObject = {}
    messages = _texts_in(row, input_name, HumanMessage, fields)
    if not isinstance(row.peek("metadata"), dict | None):
        fields["metadata"] = row.take("metadata")
    facts = read_expected(row, output_name, fields)
    return build_sample(row, index, {"messages": messages}, identity=row.id("id"), **facts)


def read_expected(row: FieldTracker, name: str, fields: JsonObject) -> dict[str, object]:
    """Take an expected output as references and fields of the sample, which are these and what it holds next to its text.

    Messages stay where they are too, since they say more than references can.
    """
    facts: dict[str, object] = {"fields": fields}
    expected = unpacked(row.peek(name))
    if isinstance(expected, list) and expected and all(isinstance(text, str) for text in expected):
        row.take(name)
        return {**facts, "references": expected}
    holder = FieldTracker({name: expected}, row.path, row.warnings)
    outputs = [message for message in _texts_in(holder, name, AIMessage, fields) if isinstance(message, AIMessage)]
    calls = [call for message in outputs for call in message.tool_calls]
    text = next((message.text for message in reversed(outputs) if message.text), None)
    is_text = text == to_text(expected) or ("role" not in as_object(expected) and text in as_object(expected).values())
    if outputs and not is_text:
        row.warn("messages, of which the last answer and the calls are the reference", name)
    else:
        row.take(name)
    facts |= {} if text is None else {"reference": text}
    return {**facts, "reference_tool_calls": calls} if calls else facts


def _texts_in(row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage], fields: JsonObject) -> list[Message]:
    """Take a field with messages, a text or any other value, whose JSON is the text. The rest goes into ``fields``."""
    if row.peek(name) in (None, {}, ""):
        return []
    payload = take_payload(row, name, kind)
    fields |= {key: held for key, held in payload.extra.items() if key not in fields}
    if kept := {key: held for key, held in payload.extra.items() if fields[key] != held}:
        fields[name] = kept
    if payload.messages:
        return [*payload.messages]
    row.warn(STRUCTURE_WARNING, name)
    return [kind(to_text(unpacked(row.take(name))))]
