"""What a record holds beside the conversation that was read from it: shapes that nobody foresaw must not lose it silently."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.trace import TraceWarning

_Spoken: TypeAlias = str | tuple[str, str]
"""A text, or the name and the arguments of a tool call."""

MEANT: Mapping[str, str] = {
    **dict.fromkeys(("question", "query", "prompt", "instruction", "inputs"), "input"),
    **dict.fromkeys(("answer", "completion", "generation", "generated_text", "model_output"), "response"),
    **dict.fromkeys(("actual_output", "actualOutput", "output_message", "output_text", "outputs"), "response"),
    **dict.fromkeys(("ideal", "target", "gold", "golden", "ground_truth", "groundTruth"), "reference"),
    **dict.fromkeys(("reference_output", "reference_answer", "correct_answer"), "reference"),
    **dict.fromkeys(("expected", "expectedOutput", "expected_answer", "expected_response"), "reference"),
    **dict.fromkeys(("expected_tools", "expectedTools", "expected_tool_calls"), "reference_tool_calls"),
    **dict.fromkeys(("retrieval_context", "retrievalContext", "contexts"), "documents"),
}
"""Columns of other evaluation systems, and the column that each would be here."""
_FOREIGN = re.compile(
    r"(expected|parent|span_|trace_?id$|root_span|tools_?called|inputs?\.|outputs?\.)"
    r"|(observations|scores?|messages|item|sample|turns|events|annotations|feedback|error|results)$",
    re.IGNORECASE,
)
"""Other columns with a part of a trace, a verdict or a reference in other systems."""
_SPEAKERS = ("role", "from", "author", "speaker", "sender")
_KINDS = frozenset(("human", "ai", "user", "assistant", "system", "tool", "message"))
"""The ``type`` of messages that name no speaker."""
_SAID = ("content", "text", "value", "parts", "data", "kwargs", "message", "output_text")
_CALLS = ("tool_calls", "toolCalls", "tools_called", "toolsCalled", "function_call", "functionCall", "toolUse")
_ARGUMENTS = ("arguments", "args", "input", "inputParameters", "input_parameters", "parameters")
_ASIDE = ("scores", "score", "reductions", "eval", "plan")
"""What graders said, and how a run was set up: messages there are not part of the conversation."""


def foreign_columns(columns: JsonObject) -> list[TraceWarning]:
    """Returns a warning for each column that has a meaning in another evaluation system and is not read here."""
    warnings: list[TraceWarning] = []
    for name, value in columns.items():
        if value in ("", [], {}):
            continue
        if name in MEANT:
            found = f"a column that is not read; if it is the {MEANT[name]}: --column {name}={MEANT[name]}"
            warnings.append(TraceWarning(found, where=name))
        elif _FOREIGN.match(name):
            warnings.append(TraceWarning("a column of another evaluation system, which is not read", where=name))
    return warnings


def unread_messages(rest: JsonObject, messages: Iterable[Message]) -> list[TraceWarning]:
    """Returns a warning for each field of ``rest`` that holds messages or tool calls which ``messages`` lack.

    Args:
        rest: What is left of a record when its conversation has been read.
        messages: The conversation.
    """
    nested = [(name, value) for name, value in rest.items() if isinstance(value, dict | list)]
    if not nested:
        return []
    texts, calls = _read(messages)
    warnings: list[TraceWarning] = []
    for name, value in nested:
        lost = sum(not (one in texts if isinstance(one, str) else one in calls) for one in _spoken(value, name))
        if lost:
            warnings.append(TraceWarning(f"messages or tool calls that are not read, found {lost}", where=name))
    return warnings


def _read(messages: Iterable[Message]) -> tuple[str, set[tuple[str, str]]]:
    texts: list[str] = []
    calls: set[tuple[str, str]] = set()
    for message in messages:
        parts = (message.content,) if isinstance(message.content, str) else message.content
        texts += [one if isinstance(one, str) else getattr(one, "text", "") for one in parts]
        for call in message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ():
            calls.add((call.name, _canonical(call.args if call.args_error is None else call.args_raw)))
    return "\n".join(texts), calls


def _spoken(value: JsonValue, key: str) -> Iterator[_Spoken]:
    """What is said and called in a value, at any depth."""
    pending: list[tuple[str, JsonValue]] = [(key, value)]
    while pending:
        name, node = pending.pop()
        if isinstance(node, list):
            pending += [(name, item) for item in node]
        elif isinstance(node, dict) and name not in _ASIDE:
            if name in _CALLS:
                yield from _call(node)
            elif _is_message(node):
                yield from (text for field in _SAID if field in node for text in _texts(node[field]))
            pending += node.items()


def _is_message(node: JsonObject) -> bool:
    kind = node.get("type")
    named = any(isinstance(node.get(name), str) for name in _SPEAKERS) or (isinstance(kind, str) and kind in _KINDS)
    return named and any(name in node for name in _SAID)


def _texts(said: JsonValue) -> Iterator[str]:
    """The texts of a message's content, which may be a list of parts."""
    if isinstance(said, str):
        if said.strip():
            yield said
    elif isinstance(said, list):
        for part in said:
            yield from _texts(part)
    elif isinstance(said, dict):
        yield from (text for name in _SAID if name in said for text in _texts(said[name]))


def _call(node: JsonObject) -> Iterator[tuple[str, str]]:
    function = node.get("function")
    inner = function if isinstance(function, dict) else node
    name = inner.get("name") or inner.get("tool_name") or inner.get("toolName")
    if isinstance(name, str) and name:
        arguments = next((inner[one] for one in _ARGUMENTS if inner.get(one) is not None), None)
        yield name, _canonical(arguments)


def _canonical(arguments: JsonValue) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    return json.dumps(arguments or {}, sort_keys=True)
