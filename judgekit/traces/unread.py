"""What a record holds beside the conversation that was read from it: shapes that nobody foresaw must not lose it silently."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
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
RESPONSES = ("response", "output")
_ANSWERS = frozenset(("system", *RESPONSES, *(theirs for theirs, ours in MEANT.items() if ours == "response")))
_FOREIGN = re.compile(
    r"(expected|parent|span_|trace_?id$|root_span|tools_?called|inputs?\.|outputs?\.)"
    r"|(observations|scores?|messages|item|sample|turns|events|annotations|feedback|error|results)$",
    re.IGNORECASE,
)
"""Other columns with a part of a trace, a verdict or a reference in other systems."""
_SPEAKERS = ("role", "from", "author", "speaker", "sender")
_KINDS = frozenset(("human", "ai", "user", "assistant", "system", "tool", "message"))
"""The ``type`` of messages that name no speaker."""
_SAID = (
    *("content", "text", "value", "parts", "data", "kwargs", "message", "output", "output_text", "refusal"),
    *("response", "result"),
)
_CALLS = (
    "tool_calls",
    "toolCalls",
    "tools_called",
    "toolsCalled",
    "function_call",
    "functionCall",
    "toolUse",
    "toolInvocations",
)
_CALL_KINDS = frozenset(("tool_use", "tool_call", "tool-call", "function_call"))
_HOLDERS = ("functionResponse", "function_response", "toolResult", "tool_result", "choices", "messages")
"""Fields with an object, or several, that are messages whatever they look like."""
_ARGUMENTS = ("arguments", "args", "input", "inputParameters", "input_parameters", "parameters")
_NAMES = ("name", "tool_name", "toolName", "function")
_LONG = 40
"""Characters of a text from which on it is looked for within others, which may quote it."""
_ASIDE = ("scores", "score", "reductions", "eval", "plan")
"""What graders said and how a run was set up, within other fields: messages there are not part of the conversation."""


def unread_references(columns: JsonObject) -> list[TraceWarning]:
    """Returns a warning for each column with a reference or a verdict under the name that another system gives it."""
    meant = {name: value for name, value in columns.items() if MEANT.get(name, "input") not in ("input", "response")}
    meant |= {name: value for name, value in columns.items() if name in ("scores", "annotations", "feedback")}
    return foreign_columns(meant)


def foreign_columns(columns: JsonObject) -> list[TraceWarning]:
    """Returns a warning for each column that has a meaning in another evaluation system and is not read here."""
    warnings: list[TraceWarning] = []
    for name, value in columns.items():
        if value in ("", [], {}):
            continue
        if name in MEANT:
            found = f"the column {name!r} is not read; if it means {MEANT[name]}: --column {name}={MEANT[name]}"
            warnings.append(TraceWarning(found, where=name))
        elif _FOREIGN.match(name):
            found = f"the column {name!r}, which has a meaning in other evaluation systems, is not read"
            warnings.append(TraceWarning(found, where=name))
    return warnings


def unread_messages(rest: JsonObject, messages: Sequence[Message]) -> list[TraceWarning]:
    """Returns a warning for each field of ``rest`` that holds messages or tool calls which ``messages`` lack.

    Args:
        rest: What is left of a record when its conversation has been read. What stands under the name of a response or
            of instructions counts as a message.
        messages: The conversation.
    """
    held = [
        (name, value) for name, value in rest.items() if value and (isinstance(value, dict | list) or name in _ANSWERS)
    ]
    if not held:
        return []
    texts, calls = _read(messages)
    whole = "\n".join(texts)
    warnings: list[TraceWarning] = []
    for name, value in held:
        spoken = list(_spoken({"role": name, "content": value} if name in _ANSWERS else value, name))
        lost = sum(one not in calls for one in spoken if not isinstance(one, str))
        lost += sum(
            one not in texts and not (len(one) > _LONG and one in whole) for one in spoken if isinstance(one, str)
        )
        if lost:
            warnings.append(TraceWarning(f"messages or tool calls that are not read, found {lost}", where=name))
    return warnings


def _read(messages: Sequence[Message]) -> tuple[set[str], set[tuple[str, str]]]:
    """The texts and the calls of a conversation; what the agent said in several messages counts as one text too."""
    texts: set[str] = set()
    calls: set[tuple[str, str]] = set()
    answer = ""
    for message in messages:
        parts = () if isinstance(message.content, str) else message.content
        said = [message.text] if not parts else [getattr(part, "text", "") for part in parts]
        texts.update(text.strip() for text in (message.text, *said))
        answer += "".join(said) if isinstance(message, AIMessage) else ""
        for call in message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ():
            calls.add((call.name, _canonical(call.args if call.args_error is None else call.args_raw)))
    return {*texts, answer.strip()}, calls


def _spoken(value: JsonValue, key: str) -> Iterator[_Spoken]:
    """What is said and called in a value, at any depth."""
    pending: list[tuple[str, JsonValue]] = [(key, value)]
    while pending:
        name, node = pending.pop()
        if isinstance(node, list):
            pending += [(name, item) for item in node]
        elif isinstance(node, dict) and (name not in _ASIDE or name == key):
            if name in _CALLS or str(node.get("type") or node.get("part_kind")) in _CALL_KINDS:
                yield from _call(node)
            if name in _HOLDERS or _is_message(node):
                yield from (text for field in _SAID if field in node for text in _texts(node[field]))
            pending += node.items()


def _is_message(node: JsonObject) -> bool:
    kind = node.get("type")
    named = any(isinstance(node.get(name), str) for name in _SPEAKERS) or (isinstance(kind, str) and kind in _KINDS)
    return named and any(name in node for name in _SAID)


def _texts(said: JsonValue) -> Iterator[str]:
    """The texts of a message's content, which may be a list of parts."""
    if isinstance(said, str):
        if said := said.strip():
            yield said
    elif isinstance(said, list):
        for part in said:
            yield from _texts(part)
    elif isinstance(said, dict):
        yield from (text for name in _SAID if name in said for text in _texts(said[name]))


def _call(node: JsonObject) -> Iterator[tuple[str, str]]:
    function = node.get("function")
    inner = function if isinstance(function, dict) else node
    name = next((inner[one] for one in _NAMES if inner.get(one)), None)
    if isinstance(name, str):
        arguments = next((inner[one] for one in _ARGUMENTS if inner.get(one) is not None), None)
        yield name, _canonical(arguments)


def _canonical(arguments: JsonValue) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    return json.dumps(arguments or {}, sort_keys=True)
