"""Spans of OpenInference, as Phoenix, Arize and many instrumentations write them; attributes flat or nested.

{"name": "ChatCompletion", "context": {"trace_id": "1f", "span_id": "2e"}, "attributes": {"openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi", ...}}
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.blocks.openinference import objects, read_answers, read_messages, read_tools, read_usage
from judgekit.traces.found import Found
from judgekit.traces.label_sources import source_of
from judgekit.traces.merging import Step, folded, merged
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, Usage
from judgekit.traces.readers.foreign import sample_from
from judgekit.traces.readers.native import Payload, exchanged, steps_of, take_payload
from judgekit.traces.sample import Sample
from judgekit.traces.spans import Span, convention, conversations, spans_of
from judgekit.traces.trace import Label, ToolDefinition

_FEEDBACK = re.compile(r"^(trace\.|session\.)?(annotation|evaluation)s(\.|$)")
_JUDGED = {"CODE": False, "LLM": True}
_VALUES = ("input.value", "output.value")
_MASK = "__REDACTED__"
_HIDDEN = (
    "switch off what hides them (OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the like) and record again"
)


class OpenInferenceReader:
    """Spans of one or many conversations: one of each session, else one of each trace."""

    name = "openinference"
    gathers = True
    shape = (
        'openinference: [{"span_id": ..., "attributes": {"openinference.span.kind": "LLM", ...}}, ...], or OTLP/JSON'
    )

    def recognises(self, value: JsonValue) -> bool:
        """Attributes have this convention's names."""
        return convention(value) == "openinference"

    def records(self, document: JsonValue) -> list[JsonValue]:
        """The spans of each conversation."""
        return folded(conversations(document), lambda spans: steps_of(spans, _kind, _model_step, _VALUES)[0])

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation. What is left of its spans stands in the trace's ``extra``."""
        row = Found.of(record)
        spans = spans_of(row)
        steps, tools = steps_of(spans, _kind, _model_step, _VALUES)
        fields = merged(steps)
        messages = cast("Sequence[Message]", fields["messages"])
        masked = sum(message.text == _MASK for message in messages)
        if masked == len(messages):
            raise TraceError(f"spans: {'hidden' if masked else 'no'} messages in these spans; {_HIDDEN}")
        if masked:
            row.warn(f"{masked} messages are masked")
        trace = {
            **fields,
            "started_at": min((span.started for span in spans if span.started), default=None),
            "ended_at": max((span.ended for span in spans if span.ended), default=None),
            "tools": tools,
            "labels": _labels(spans),
            "usage": _total(spans),
            "metadata": {**cast("JsonObject", fields["metadata"]), **_metadata(spans)},
        }
        return sample_from(row, index, trace, identity=row.identity("id"))


def _model_step(span: Span, tools: list[ToolDefinition]) -> Step:
    attributes = span.attributes
    asked = Payload(tuple(read_messages(attributes, "llm.input_messages")))
    answered = Payload(tuple(read_answers(attributes)))
    if not asked.messages:
        asked = take_payload(attributes, "input.value", HumanMessage)
    if not answered.messages:
        answered = take_payload(attributes, "output.value", AIMessage)
    if not asked.messages and not answered.messages:
        return Step(span)
    tools += read_tools(attributes)
    model = attributes.text("llm.response.model_name", "llm.model_name", "llm.request.model_name")
    known = {"model": model, "finish_reason": attributes.text("llm.finish_reason"), "usage": read_usage(attributes)}
    messages, replies = exchanged(asked, answered, tools, **known, id=span.response_id)
    return Step(span, "model", asked=messages, answered=replies)


def _kind(span: Span) -> str | None:
    kind = span.attributes.peek("openinference.span.kind") or span.found.peek("span_kind")
    if isinstance(kind, str):
        return None if kind == "AGENT" and _is_node(span) else kind.upper()
    return "LLM" if any(name.startswith("llm.input_messages") for name in span.attributes) else None


def _is_node(span: Span) -> bool:
    """Whether this is the node of a LangGraph agent, which is called an agent if its name says so."""
    given = Found({"metadata": span.attributes.peek("metadata")})
    given.unpack("metadata")
    beside, above = given.peek("metadata"), span.parent
    if not isinstance(beside, dict) or beside.get("langgraph_node") != span.name:
        return False
    while above is not None and above.attributes.peek("openinference.span.kind") != "AGENT":
        above = above.parent
    return above is not None


def _total(spans: Sequence[Span]) -> Usage | None:
    """What was used in all, if there is one span around all."""
    roots = [span for span in spans if span.parent is None]
    return read_usage(roots[0].attributes) if len(roots) == 1 and _kind(roots[0]) != "LLM" else None


def _labels(spans: Sequence[Span]) -> list[Label]:
    """Feedback on spans, their traces and sessions. It stands in ``extra`` too, since there is more to it."""
    labels: list[Label] = []
    for span in spans:
        given = {name: span.attributes.peek(name) for name in span.attributes if _FEEDBACK.search(name)}
        found = Found(given, span.attributes.where, [])
        for scope, kind in product(("", "trace.", "session."), ("annotation", "evaluation") if given else ()):
            name = f"{scope}{kind}s"
            try:
                items = [item.object(kind) or item for item in objects(found, name)]
            except TraceError as error:
                span.attributes.warn(error.found, name)
                continue
            labels += [label for item in items if (label := _label(item)) is not None]
    return labels


def _label(found: Found) -> Label | None:
    name, score, label = found.text("name"), found.number("score"), found.text("label")
    value = label if score is None else score
    if name is None or value is None:
        return None
    kind = str(found.peek("annotator_kind"))
    return Label(
        name,
        value,
        source="human" if kind == "HUMAN" else source_of(name, judged=_JUDGED.get(kind)),
        annotator=found.identity("identifier"),
        reason=found.text("explanation"),
    )


def _metadata(spans: Sequence[Span]) -> JsonObject:
    """What is said of the whole, which spans repeat."""
    found: JsonObject = {}
    for span in spans:
        attributes = span.attributes
        for name in ("session.id", "user.id", "tag.tags"):
            value = attributes.peek(name)
            if value is not None and found.setdefault(name, value) == value:
                attributes.take(name)
        if span.parent is None:
            attributes.unpack("metadata")
            beside = attributes.peek("metadata")
            if isinstance(beside, dict) and all(found.get(name, value) == value for name, value in beside.items()):
                attributes.take("metadata")
                found |= beside
    return found
