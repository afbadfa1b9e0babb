"""Spans of OpenInference, as written by Phoenix, Arize and many instrumentations. Attributes are flat or nested.

{"name": "ChatCompletion", "context": {"trace_id": "1f", "span_id": "2e"}, "attributes": {"openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi", ...}}
{"llm": {"input_messages": [{"message": {"role": "user", "content": "Hi"}}]}}, or with names such as "message.role" within
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import MEDIA, checked_text, tool_name
from judgekit.formats.blocks.reply import first_choice, to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.merging import SpanStep, join_calls, merge_steps
from judgekit.formats.readers.base import build_sample
from judgekit.formats.readers.payloads import Payload, exchange_messages, take_payload
from judgekit.formats.readers.span_steps import read_steps
from judgekit.formats.span_exports import detect_convention
from judgekit.formats.spans import CUT_OFF, Span, group_spans, read_spans, refuse_unread, take_nested, time_range
from judgekit.formats.values import as_object, lookup, objects_in, unpacked
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import Sample

_FEEDBACK = re.compile(r"^(trace\.|session\.)?(annotation|evaluation)s(\.|$)")
_JUDGED = {"CODE": False, "LLM": True}
_VALUES = ("input.value", "output.value")
_HIDDEN = "unset what hides them, such as OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS, and record again"
_ROLES: dict[str, type[SystemMessage | HumanMessage | AIMessage | ToolMessage]] = {
    **dict.fromkeys(("system", "developer"), SystemMessage),
    **dict.fromkeys(("user", "human"), HumanMessage),
    **dict.fromkeys(("assistant", "agent", "ai", "model", "tool-call"), AIMessage),  # smolagents repeats calls as text
    **dict.fromkeys(("tool", "function", "tool-response"), ToolMessage),
}
_WRITE = 'spans.to_json("spans.jsonl", orient="records", lines=True)'


class OpenInferenceReader:
    """A reader of spans of one or many conversations: one per session, or else one per trace."""

    name = "openinference"
    joins_lines = True
    shape = (
        'openinference: [{"span_id": ..., "attributes": {"openinference.span.kind": "LLM", ...}}, ...], or OTLP/JSON'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize attributes by this convention's names."""
        return detect_convention(value) == "openinference"

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the spans of each conversation."""
        conversations = group_spans(document)
        return join_calls(conversations, lambda spans: read_steps(spans, _kind, _model_step, _VALUES)[0])

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. The leftover of its spans goes into the trace's ``extra``."""
        row = FieldTracker.of(record)
        spans = read_spans(row)
        steps, tools = read_steps(spans, _kind, _model_step, _VALUES)
        fields = merge_steps(steps)
        messages = cast("Sequence[Message]", fields["messages"])
        masked = sum(message.text == "__REDACTED__" for message in messages)
        if not messages:
            refuse_unread(spans)
        if masked == len(messages):
            raise TraceError(f"spans: {'hidden' if masked else 'no'} messages in these spans; {_HIDDEN}")
        if masked:
            row.warn(f"{masked} messages are masked")
        roots = [span for span in spans if span.parent is None]
        trace = {
            **fields,
            **time_range(spans),
            "tools": tools,
            "labels": _labels(spans),
            "usage": _usage(roots[0].attributes) if len(roots) == 1 and _kind(roots[0]) != "LLM" else None,
            "metadata": {**cast("JsonObject", fields["metadata"]), **_metadata(spans)},
        }
        return build_sample(row, index, trace, identity=row.id("id"))


def _model_step(span: Span, tools: list[ToolDefinition]) -> SpanStep:
    attributes = span.attributes
    request = Payload(_messages(attributes, "llm.input_messages"))
    name = "llm.output_messages"
    several = lookup(unpacked(attributes.peek("llm.invocation_parameters")), "n") not in (None, 1)
    answers = first_choice(_messages(attributes, name, "assistant"), attributes, name, several=several)
    response = Payload(tuple(answers))
    if not request.messages:
        request = take_payload(attributes, "input.value", HumanMessage)
    if not response.messages:
        response = take_payload(attributes, "output.value", AIMessage)
    if not request.messages and not response.messages:
        return SpanStep(span)
    tools += _tools(attributes)
    model = attributes.text("llm.response.model_name", "llm.model_name", "llm.request.model_name")
    details = {"model": model, "finish_reason": attributes.text("llm.finish_reason"), "usage": _usage(attributes)}
    messages, replies = exchange_messages(request, response, tools, **details, id=span.response_id)
    return SpanStep(span, "model", input_messages=messages, output_messages=replies)


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("openinference.span.kind") or span.fields.peek("span_kind")
    if isinstance(kind, str):
        return None if kind == "AGENT" and _is_node(span) else kind.upper()
    return "LLM" if any(name.startswith("llm.input_messages") for name in span.attributes) else None


def _is_node(span: Span) -> bool:
    """Return whether this is a node of a LangGraph agent, which counts as an agent because of its name."""
    above = span.parent
    metadata = unpacked(span.attributes.peek("metadata"))
    if not isinstance(metadata, dict) or metadata.get("langgraph_node") != span.name:
        return False
    while above is not None and above.attributes.peek("openinference.span.kind") != "AGENT":
        above = above.parent
    return above is not None


def _labels(spans: Sequence[Span]) -> list[Label]:
    """Return feedback on spans, traces and sessions. It stays in ``extra`` too, since it holds more."""
    labels: list[Label] = []
    for span in spans:
        given = {name: span.attributes.peek(name) for name in span.attributes if _FEEDBACK.search(name)}
        feedback = FieldTracker(given, span.attributes.path, [])
        for scope, kind in product(("", "trace.", "session."), ("annotation", "evaluation") if given else ()):
            name = f"{scope}{kind}s"
            try:
                annotations = [(item.object(kind) or item).leftover() for item in _objects(feedback, name)]
            except TraceError as error:
                span.attributes.warn(error.problem, name)
            else:
                labels += filter(None, map(read_annotation, annotations))
        labels += filter(None, map(read_annotation, objects_in(span.fields.peek("annotations"))))
    return labels


def read_annotation(annotation: JsonObject) -> Label | None:
    """Return an annotation of Phoenix or Arize as a label; ``None`` if it has no name, or neither score nor label."""
    fields = FieldTracker({**annotation, **as_object(annotation.get("result"))})
    name, score, label = fields.text("name"), fields.number("score"), fields.text("label")
    value = label if score is None else score
    if name is None or value is None:
        return None
    kind = str(fields.peek("annotator_kind"))
    return Label(
        name,
        value,
        source="human" if kind == "HUMAN" else label_source(name, judged=_JUDGED.get(kind)),
        annotator=fields.id("identifier") or fields.id("user_id"),
        reason=fields.text("explanation"),
    )


def _metadata(spans: Sequence[Span]) -> JsonObject:
    metadata: JsonObject = {}
    for span in spans:
        attributes = span.attributes
        attributes.take_into(metadata, ("session.id", "user.id", "tag.tags"))
        if span.parent is None:
            attributes.unpack("metadata")
            own = attributes.peek("metadata")
            if isinstance(own, dict) and all(metadata.get(name, value) == value for name, value in own.items()):
                attributes.take("metadata")
                metadata |= own
    return metadata


def _messages(attributes: FieldTracker, name: str, otherwise: str | None = None) -> tuple[Message, ...]:
    return tuple(_message(item, otherwise) for item in _objects(attributes, name))


def _tools(attributes: FieldTracker) -> list[ToolDefinition]:
    """Return the tools that a model could call, in any provider's form. Other values are not taken, with a warning."""
    name = "llm.tools"
    given = {key: attributes.peek(key) for key in attributes if key == name or key.startswith(f"{name}.")}
    try:
        tools = [_tool(item) for item in _objects(FieldTracker(given, attributes.path, attributes.warnings), name)]
    except TraceError as error:
        attributes.warn(f"{error.problem}; kept as is", name)
        return []
    take_nested(attributes, name)
    return tools


def _usage(attributes: FieldTracker) -> Usage | None:
    """Return token counts. Other counts and costs are kept."""
    counts = {
        "input_tokens": attributes.count("llm.token_count.prompt"),
        "output_tokens": attributes.count("llm.token_count.completion"),
        "cached_tokens": attributes.count("llm.token_count.prompt_details.cache_read"),
        "reasoning_tokens": attributes.count("llm.token_count.completion_details.reasoning"),
    }
    others = {name: attributes.take(name) for name in attributes if name.startswith(("llm.token_count.", "llm.cost."))}
    is_reported = others or any(count is not None for count in counts.values())
    return Usage.model_validate({**counts, "extra": others}) if is_reported else None


def _objects(attributes: FieldTracker, name: str) -> list[FieldTracker]:
    """Take the objects of an attribute that is a list in any form."""
    whole = name in attributes  # then its name has no indexes
    value = take_nested(attributes, name)
    holder = FieldTracker({name: _undotted(value) if whole else value}, attributes.path, attributes.warnings)
    holder.unpack(name)
    if isinstance(holder.peek(name), str):
        raise holder.type_error(name, f"a list ({CUT_OFF}; from a CSV file? write {_WRITE})")
    return holder.objects(name)


def _undotted(value: JsonValue) -> JsonValue:
    """Return objects without dotted names, which some exporters leave within lists."""
    if isinstance(value, list):
        return [_undotted(item) for item in value]
    if isinstance(value, dict):
        return take_nested(FieldTracker({f".{name}": _undotted(inner) for name, inner in value.items()}), "") or {}
    return value


def _message(item: FieldTracker, otherwise: str | None) -> Message:
    message = item.object("message") or item
    role = message.peek("role") or otherwise
    kind = _ROLES.get(role.lower()) if isinstance(role, str) else None
    if kind is None:
        raise message.type_error("role", f"one of {', '.join(_ROLES)}")
    if kind is HumanMessage and "tool_call_id" in message:  # some providers return results as the user
        kind = ToolMessage
    calls = [] if kind in (SystemMessage, ToolMessage) else _calls(message)
    fields: dict[str, object] = {"content": to_content(_content(message, calls))}
    if kind is ToolMessage:
        fields |= {"tool_call_id": message.id("tool_call_id"), "name": message.text("name", "function_call_name")}
    elif kind is not SystemMessage:
        fields |= {"name" if kind is HumanMessage else "agent": message.text("name"), "tool_calls": calls}
    elif role == "developer":
        fields["role"] = role
    if role in ("system", "developer", "user", "assistant", "tool"):
        message.take("role")
    return kind.model_validate({**fields, "extra": item.leftover()})


def _content(message: FieldTracker, calls: list[ToolCall]) -> list[Part]:
    """Read the parts. Calls among them are added to the calls, unless they are there already."""
    unmatched = list(calls)
    parts = [part for item in message.objects("contents") if (part := _part(item, calls, unmatched)) is not None]
    content = checked_text(message)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return parts if content in ("", "".join(texts), "\n".join(texts)) else [TextPart(content), *parts]


def _part(item: FieldTracker, calls: list[ToolCall], unmatched: list[ToolCall]) -> Part | None:
    part = item.object("message_content") or item
    kind = part.peek("type")
    if kind == "tool_use" and isinstance(part.peek("tool_use") or item.peek("tool_call"), dict):
        part.take("type")
        return _called(_call(item, part.object("tool_use") or item.object("tool_call") or item), calls, unmatched)
    if kind in ("text", "reasoning") and isinstance(part.peek("text"), str | None):
        part.take("type")
        return (TextPart if kind == "text" else ReasoningPart)(part.text("text") or "", extra=item.leftover())
    if isinstance(kind, str) and kind in MEDIA and (outer := part.maybe_object(kind)) is not None:
        part.take("type")
        inner = outer.object(kind) or outer
        url, mime_type, name = map(inner.text, ("url", "mime_type", "name"))
        return MediaPart(kind=MEDIA[kind], url=url, mime_type=mime_type, name=name, extra=item.leftover())
    return OtherPart(item.leftover())


def _called(call: ToolCall, calls: list[ToolCall], unmatched: list[ToolCall]) -> Part | None:
    """Add a call among the parts, unless it repeats one next to them."""
    same = next((other for other in unmatched if other.id == call.id and (other.id or other.name == call.name)), None)
    if same is None:
        calls.append(call)
        return None
    unmatched.remove(same)
    plain = same.model_copy(update={"extra": call.extra})
    return None if call == plain and not call.extra else OtherPart(call.model_dump(mode="json", exclude_defaults=True))


def _calls(message: FieldTracker) -> list[ToolCall]:
    calls = [_call(item, item.object("tool_call") or item) for item in message.objects("tool_calls")]
    if "function_call_name" in message:  # the older field, for a single call
        given = message.take("function_call_arguments_json")
        calls.append(ToolCall.recorded(tool_name(message, "function_call_name"), given))
    return calls


def _call(item: FieldTracker, call: FieldTracker) -> ToolCall:
    function = call.object("function") or call
    identity, name = call.id("id"), tool_name(function, "name")
    given = function.take("arguments", "input")
    return ToolCall.recorded(name, given, id=identity, extra=item.leftover())


def _tool(item: FieldTracker) -> ToolDefinition:
    tool = item.object("tool") or item
    tool.unpack("json_schema")
    schema = tool.object("json_schema") or tool
    schema.take_if("type", "function")
    function = schema.object("function", "toolSpec") or schema
    return ToolDefinition(
        function.text("name") or tool.text("name") or "",
        description=function.text("description") or tool.text("description"),
        parameters=function.take("parameters", "input_schema", "inputSchema"),
        extra=item.leftover(),
    )
