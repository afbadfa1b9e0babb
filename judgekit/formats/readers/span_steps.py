"""Spans of tracers as steps of a conversation: calls of models and tools, and runs of agents."""

import ast
import json
import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, cast

from pydantic import JsonValue

from judgekit.errors import short_repr
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging import SpanStep, distinct_tools
from judgekit.formats.merging.comparison import utterances
from judgekit.formats.readers.payloads import Payload, exchange_messages, take_any_payload, take_payload
from judgekit.formats.row_facts import to_text
from judgekit.formats.spans import Span
from judgekit.formats.values import as_object, lookup, str_or_none, unpacked, without
from judgekit.traces.message import AIMessage, Arguments, HumanMessage, Message, ToolCall, ToolMessage, parse_arguments
from judgekit.traces.recording import ToolDefinition, TraceWarning

_PREFIXES = ("langsmith.metadata.", "traceloop.association.properties.")
"""What tracers write before names of LangChain's metadata."""
_TOOL = re.compile(r"(?:execute_tool |running tool: )(?=.)")
_AGENT = re.compile(r"(?:agent_run \[|invoke_agent )(.+?)\]?")
_NUMBER = re.compile(r"_\d+$")
"""The number that older versions of MLflow add to spans of the same name."""
_GENERIC = frozenset(("agent", "model", "call_model", "llm", "chatbot", "assistant", "tools"))
"""Nodes of LangGraph that are a step of an agent, not an agent."""

_ASIDE = ("EVALUATOR", "GUARDRAIL", "RERANKER")
"""Kinds of spans whose model calls are not part of the conversation."""
_HANDOFF = "handoff to "

KindOf: TypeAlias = Callable[[Span], str | None]
"""A function that returns the kind of a span: ``LLM``, ``TOOL``, ``AGENT`` or another one."""
ModelReader: TypeAlias = Callable[[Span, list[ToolDefinition]], SpanStep]
"""A function that reads a model call, and adds its tools to a list."""
Details: TypeAlias = Callable[[FieldTracker, list[ToolDefinition]], Mapping[str, object]]
"""A function that reads what the attributes of a model call say about its answer, and adds its tools to a list."""
Steps: TypeAlias = tuple[list[SpanStep], list[ToolDefinition]]


def payload_reader(values: tuple[str, str], details: Details) -> ModelReader:
    """Return a reader of model calls whose requests and responses are in these attributes, in any provider's format."""

    def read(span: Span, tools: list[ToolDefinition]) -> SpanStep:
        request = take_payload(span.attributes, values[0], HumanMessage)
        response = take_payload(span.attributes, values[1], AIMessage)
        if not request.messages and not response.messages:
            return SpanStep(span)
        messages, replies = exchange_messages(request, response, tools, **details(span.attributes, tools))
        return SpanStep(span, "model", input_messages=messages, output_messages=replies)

    return read


def read_steps(spans: Sequence[Span], kind: KindOf, model: ModelReader, values: tuple[str, str]) -> Steps:
    """Return the contribution of each span to the conversation, and the defined tools.

    Without model calls that say anything, agent runs and the outermost spans provide the messages. What happens
    within an evaluation is not part of the conversation.

    Args:
        spans: The spans, ordered by start time.
        kind: Returns the kind of a span. A ``FUNCTION`` is a tool if a model called it by its name.
        model: Reads a model call.
        values: The attributes that hold input and output.
    """
    aside: set[int] = set()
    for span in sorted(spans, key=lambda span: span.depth):
        if kind(span) in _ASIDE or id(span.parent) in aside:
            aside.add(id(span))
    if judging := [span for span in spans if kind(span) == "LLM" and id(span) in aside]:
        problem = "model calls by evaluators, guardrails or rerankers, not part of the conversation"
        path = re.split(r"[.\[]", judging[0].fields.path)[0]
        judging[0].fields.warnings.append(TraceWarning(f"{problem}, found {len(judging)}", path=path))
    tools: list[ToolDefinition] = []
    agents = {id(span): agent_name(span, is_agent=kind(span) == "AGENT") for span in spans}
    models = {id(span): model(span, tools) for span in spans if kind(span) == "LLM" and id(span) not in aside}
    replies = [message for step in models.values() for message in step.output_messages]
    called = {call.name for message in replies if isinstance(message, AIMessage) for call in message.tool_calls}
    is_silent = not any(step.kind == "model" for step in models.values())
    steps: list[SpanStep] = []
    for span in spans:
        if id(span) in aside:
            steps.append(SpanStep(span))
        elif id(span) in models:
            steps.append(models[id(span)])
        elif kind(span) == "TOOL" or (kind(span) == "FUNCTION" and span.name in called):
            steps.append(SpanStep(span) if _is_handoff_of(span, called) else _tool_step(span, called, values))
        else:
            name = str_or_none(span.attributes.peek("agent.name")) or agents[id(span)] or span.name or None
            step = SpanStep(span, "agent" if kind(span) == "AGENT" else None, agent=name)
            if is_silent and (step.kind or span.parent is None):
                step.kind = "agent"
                step.input_messages, step.output_messages = _agent_messages(span.attributes, values, tools)
            steps.append(step)
    for step in steps:
        step.agent = step.agent or agents[id(step.span)]
    return steps, list(distinct_tools(tools).values())


def read_function_steps(spans: Sequence[Span], whole: Span, kind: KindOf, details: Details) -> Steps:
    """Return steps as `read_steps` does, of tracers that record functions with their ``input`` and ``output``.

    Without model calls, any input and output of the whole is question and answer.
    """
    values = ("input", "output")
    steps, tools = read_steps(spans, kind, payload_reader(values, details), values)
    unanswered = [step.span for step in steps if step.kind == "model" and not step.output_messages]
    if unanswered:
        error = next((f": {short_repr(span.error)}" for span in unanswered if span.error is not None), "")
        problem = f"model calls without an answer, found {len(unanswered)}{error}"
        unanswered[0].fields.warnings.append(TraceWarning(problem))
    is_silent = not any(step.kind == "model" for step in steps)
    for step in steps:
        attributes = step.span.attributes
        if is_silent and step.span is whole and kind(whole) in (None, "AGENT", "FUNCTION"):
            step.kind = "agent"
            if "input" in attributes:
                step.input_messages = take_any_payload(attributes, "input", HumanMessage).messages
            if "output" in attributes:
                step.output_messages = take_any_payload(attributes, "output", AIMessage).messages
        if step.kind == "agent" and kind(step.span) != "AGENT":
            step.agent = None  # the name is that of a function
    return steps, tools


def _agent_messages(
    attributes: FieldTracker, values: tuple[str, str], tools: list[ToolDefinition]
) -> tuple[list[Message], list[Message]]:
    """Return the input and output of an agent. An input that the output repeats, as states of graphs do, stays as is."""
    name = values[0]
    response = take_payload(attributes, values[1], AIMessage)
    holder = FieldTracker({name: attributes.peek(name)}, attributes.path, attributes.warnings)
    request = take_payload(holder, name, HumanMessage)
    end = _repeated_from(request.messages, response.messages)
    if end < len(request.messages):
        request = Payload(request.messages[:end])
    elif name not in holder:
        attributes.take(name)
    return exchange_messages(request, response, tools)


def _repeated_from(inputs: Sequence[Message], outputs: Sequence[Message]) -> int:
    """Return the position in an input from which on the output repeats it; the input's length if it does not."""
    first = max(0, len(inputs) - len(outputs))
    return next((at for at in range(first, len(inputs)) if all(map(_is_same, inputs[at:], outputs))), len(inputs))


def _is_same(message: Message, repeat: Message) -> bool:
    if message.id is not None and repeat.id is not None:
        return message.id == repeat.id
    return utterances([message]) == utterances([repeat])


def _is_handoff_of(span: Span, called: Collection[str]) -> bool:
    """Return whether a span is a handoff that a model called under another name.

    OpenAI's Agents SDK traces a handoff in addition to that call, named ``transfer_to_billing_desk`` by default.
    """
    agent = _plain(span.name.removeprefix(_HANDOFF))
    if not span.name.startswith(_HANDOFF) or not agent or "tool.name" in span.attributes:
        return False
    return any(name.startswith("transfer") or agent in name for name in map(_plain, called))


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.casefold())


def _tool_step(span: Span, called: Collection[str], values: tuple[str, str]) -> SpanStep:
    """Read a tool call. Its result may be a message, as LangChain's tools return it."""
    name = span.attributes.text("tool.name") or tool_name(span, called)
    identity = span.attributes.id("tool_call.id", "tool.id") or call_id(span)
    arguments, result = map(span.attributes.take, values)
    output = unpacked(result)
    if lookup(output, "type") == "tool" and isinstance(data := lookup(output, "data"), dict):
        output = data  # LangChain's form of a message
    fields: dict[str, object] = {"name": name, "tool_call_id": identity}
    if isinstance(output, dict) and isinstance(dumped := output.get("kwargs"), dict) and "lc" in output:
        output = {**dumped, "lc": cast("JsonValue", without(output, "kwargs"))}
    if isinstance(output, dict) and isinstance(output.get("content"), str) and "tool_call_id" in output:
        returned = FieldTracker(output)
        identity = identity or returned.id("tool_call_id")
        status = returned.peek("status")
        if returned.take_if("status", "success", "error"):
            fields["is_error"] = status == "error"
        fields |= {"content": returned.text("content"), "tool_call_id": identity, "extra": returned.leftover()}
    elif result is not None:
        fields["content"] = to_text(result)
    call = ToolCall(name, id=identity, **_arguments(arguments))
    message = None if result is None else ToolMessage.model_validate(fields)
    return SpanStep(span, "tool", call=call, has_arguments=arguments is not None, result=message)


def _arguments(recorded: JsonValue) -> Arguments:
    """Return the arguments of a call, which LangChain writes as Python does."""
    given = parse_arguments(recorded)
    if isinstance(recorded, str) and given.get("args_error") and recorded.startswith("{'"):
        with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            given = parse_arguments(json.dumps(ast.literal_eval(recorded)))
    return given


def tool_name(span: Span, called: Container[str]) -> str:
    """Return the name of the tool that a span ran. Names that models call are preferred."""
    name = _text(span, "gen_ai.tool.name", "ai.toolCall.name") or span.name
    if name in called:
        return name
    names = (_TOOL.sub("", name, count=1), _NUMBER.sub("", name))
    return next((plain for plain in names if plain in called), names[0])


def call_id(span: Span) -> str | None:
    """Return the id of the call that the span of a tool answers, if the framework recorded it."""
    return _text(span, "gen_ai.tool.call.id", "ai.toolCall.id", "tool_call_id")


def agent_name(span: Span, *, is_agent: bool) -> str | None:
    """Return the name of the agent that a span belongs to; ``None`` if only the spans around it may say so.

    In LangGraph, an agent that is a node of another graph has that node's name: its function, such as ``call_agent`` of
    supervisors, is the same for all agents.
    """
    if name := _text(span, "gen_ai.agent.name", "agent_name", "lc_agent_name"):
        return name
    nodes = [node.partition(":")[0] for node in (_text(span, "langgraph_checkpoint_ns") or "").split("|")]
    if len(nodes) > 1:
        return nodes[-2]
    if not is_agent:
        return None
    node = _text(span, "langgraph_node")
    if node and node not in _GENERIC:
        return node
    described = _AGENT.fullmatch(span.name)
    return described[1] if described else None


def _text(span: Span, *names: str) -> str | None:
    """Return the first of some facts that the attributes of a span or its metadata have as a text."""
    metadata = as_object(unpacked(span.attributes.peek("metadata")))
    inner = as_object(unpacked(metadata.get("attributes")))  # of the span that Langfuse received
    outer = as_object(lookup(span.attributes.peek("extra"), "metadata"))
    own = {name: fact for name in names for start in ("", *_PREFIXES) if (fact := span.attributes.peek(start + name))}
    facts = (holder.get(name) for name in names for holder in (own, metadata, inner, outer))
    return next((fact for fact in facts if isinstance(fact, str) and fact), None)
