"""The names of agents, tools and calls in spans: tracers keep those of the framework in attributes and metadata."""

import re
from collections.abc import Container

from judgekit.formats.readers.payloads import parse_structured_json
from judgekit.formats.spans import Span
from judgekit.formats.values import as_object, lookup
from judgekit.traces.message import JsonObject

_TOOLS = ("gen_ai.tool.name", "ai.toolCall.name")
_CALLS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call_id")
_AGENTS = ("gen_ai.agent.name", "agent_name", "lc_agent_name")
_PREFIXES = ("langsmith.metadata.", "traceloop.association.properties.")
"""What tracers write before names of LangChain's metadata."""
_TOOL = re.compile(r"(?:execute_tool |running tool: )(?=.)")
_AGENT = re.compile(r"(?:agent_run \[|invoke_agent )(.+?)\]?")
_NUMBER = re.compile(r"_\d+$")
"""The number that older versions of MLflow add to spans of the same name."""
_GENERIC = frozenset(("agent", "model", "call_model", "llm", "chatbot", "assistant", "tools"))
"""Nodes of LangGraph that are a step of an agent, not an agent."""


def tool_name(span: Span, called: Container[str]) -> str:
    """Return the name of the tool that a span ran. Names that models call are preferred.

    Args:
        span: The span.
        called: The names that models call.
    """
    name = _text(span, *_TOOLS) or span.name
    if name in called:
        return name
    names = (_TOOL.sub("", name, count=1), _NUMBER.sub("", name))
    return next((plain for plain in names if plain in called), names[0])


def call_id(span: Span) -> str | None:
    """Return the id of the call that the span of a tool answers, if the framework recorded it."""
    return _text(span, *_CALLS)


def agent_name(span: Span, *, is_agent: bool) -> str | None:
    """Return the name of the agent that a span belongs to; ``None`` if only the spans around it may say so.

    In LangGraph, an agent that is a node of another graph has that node's name: its function, such as ``call_agent`` of
    supervisors, is the same for all agents.

    Args:
        span: The span.
        is_agent: Whether the span is the run of an agent.
    """
    if name := _text(span, *_AGENTS):
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
    metadata = as_object(parse_structured_json(span.attributes.peek("metadata")))
    inner = as_object(parse_structured_json(metadata.get("attributes")))  # of the span that Langfuse received
    outer = as_object(lookup(span.attributes.peek("extra"), "metadata"))
    of_attributes: JsonObject = {
        name: fact for name in names for prefix in ("", *_PREFIXES) if (fact := span.attributes.peek(prefix + name))
    }
    holders = (of_attributes, metadata, inner, outer)
    facts = (holder.get(name) for name in names for holder in holders)
    return next((fact for fact in facts if isinstance(fact, str) and fact), None)
