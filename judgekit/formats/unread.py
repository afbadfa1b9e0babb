"""Warnings about what a record holds next to its conversation, so that unforeseen shapes are not lost silently."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.errors import closest_name, join_limited
from judgekit.formats.blocks.reply import OTHER_CHOICES
from judgekit.formats.values import objects_in, parse_if_json
from judgekit.traces.equality import repeated_keys
from judgekit.traces.fast_models import set_unvalidated
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, MediaPart, Message, OtherPart, ReasoningPart
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace

_Spoken: TypeAlias = str | tuple[str, str]
"""A text, or the name and arguments of a tool call."""

COLUMN_OPTION = "--column"
"""The option of commands that renames a column."""
RESPONSE_COLUMNS = ("response", "output")
_REFERENCES = {re.sub("_", "", name): name for name in References.__annotations__ if name.startswith("reference")}
_OWN = {**{name: name for name in ("input", *RESPONSE_COLUMNS, "label", "prediction")}, **_REFERENCES}
"""Our columns, by their names without separators."""
_MEANT: Mapping[str, str] = {
    theirs: ours
    for ours, names in {
        "input": "question query prompt instruction inputs usermessage userinput userquery userprompt",
        "response": "answer completion generation generatedtext modeloutput modelresponse modelanswer actualoutput "
        "outputmessage outputtext outputs finalanswer finalresponse assistantresponse botresponse llmresponse reply",
        "reference": "ideal idealresponse target targets gold golden goldanswer groundtruth referenceoutput "
        "referenceanswer referenceresponse correctanswer expected expectedanswer expectedresponse expectedresult "
        "solution",
        "reference_tool_calls": "expectedtools expectedtoolcalls",
        "documents": "retrievalcontext contexts",
    }.items()
    for theirs in names.split()
}
"""Columns of other evaluation systems, in lower case without separators, and our names for them."""
_ANSWERS = frozenset(("system", *RESPONSE_COLUMNS))
"""Columns whose texts are looked up in the conversation."""
_VERDICTS = r"(scores?|rating|reward|verdict|passed|(is_?)?correct|annotations|feedback)$"
_VERDICT = re.compile(_VERDICTS, re.IGNORECASE)
_FOREIGN = re.compile(
    r"(expected|parent_?(id|run|span|observation|trace)|span_|trace_?id$|root_?span|tools_?called|inputs?\.|outputs?\.)"
    r"|(observations|messages|item|sample|turns|events|error|results|(chat_?)?history|dialog(ue)?|transcript|trajectory"
    rf"|system_?prompt|instructions)$|{_VERDICTS}",
    re.IGNORECASE,
)
"""Other columns that hold part of a trace, a verdict or a reference in other systems."""
_QUESTION = re.compile(r"question|query|prompt|message|request|asked|user|utterance|task|goal|text", re.IGNORECASE)
_ANSWER = re.compile(r"answer|response|reply|completion|generat|output|result|bot|agent|text|said", re.IGNORECASE)
"""Names of texts that may be the user's or the agent's words."""
_KINDS = frozenset(("human", "ai", "user", "assistant", "system", "tool", "message"))
"""The ``type`` of messages without a speaker."""
_SPEAKERS = ("role", "from", "author", "speaker", "sender")
_SAID = {
    *("content", "text", "value", "parts", "data", "kwargs", "message", "output", "output_text", "refusal"),
    *("response", "result", "tool_output", "observation"),
}
_CALLS = {
    *("tool_calls", "toolCalls", "tools_called", "toolsCalled", "function_call", "functionCall", "toolUse"),
    *("toolInvocations", "tool_invocations"),
}
_CALL_KINDS = frozenset(("tool_use", "tool_call", "tool-call", "function_call"))
_HOLDERS = {
    *("functionResponse", "function_response", "toolResult", "tool_result", "choices", "messages"),
    *("function", "items", "blocks"),
}
"""Fields whose objects always count as messages."""
_NAMES = ("name", "tool_name", "toolName", "tool", "function")
_ARGUMENTS = (
    *("arguments", "args", "input", "inputParameters", "input_parameters", "parameters"),
    *("params", "tool_input", "kwargs"),
)
_TELLING = _CALLS.union(_HOLDERS, _SPEAKERS, _ARGUMENTS, ("type", "part_kind"))
"""Fields one of which every message and call has or is in."""
_SORTED = json.JSONEncoder(sort_keys=True)
_MOST = 100
"""The most messages and calls that are counted in a field."""
ABOUT_MESSAGES = {
    *("annotations", "reasoning_signature", "status", "phase", "timestamp", "created_at", "model", "type", "kind"),
    *("uuid", "metadata", "stop_reason", "usage", OTHER_CHOICES),
}
"""Fields that describe a message and are not part of its text."""
_NO_TEXTS = ABOUT_MESSAGES | {"id", "object", "role", "name", "finish_reason"}
_ASIDE = {"scores", "score", "reductions", "eval", "plan", "openaiGraderSample", "graderSamples", "grader_samples"}
"""Fields with graders' words and a run's setup, whose messages are not part of the conversation."""


@lru_cache(maxsize=1_000)  # every row has the same few columns
def canonical_column(column: str) -> str | None:
    """Return our name for a column of another system or for a misspelled one, ignoring case and separators."""
    name = re.sub(r"[\W_]", "", column).lower()
    if name == "expectedoutput" and column != "expected_output":
        return "reference"
    if ours := _MEANT.get(name) or _OWN.get(name):
        return ours if ours != column else None
    near = closest_name(name, _REFERENCES, 0.85) if name.startswith("ref") else ""
    return _REFERENCES[near] if near and not name.startswith(near) else None  # `reference_id` is another column


def misspelled_column(name: str) -> str:
    """Return our column that a name is most similar to, if it is not one of them, nor its plural."""
    own = {"input", "messages", *RESPONSE_COLUMNS, *References.__annotations__}
    near = closest_name(name, own, 0.8)
    return near if name not in (*own, f"{near}s") else ""


def column_option(old_name: str, new_name: str) -> str:
    """Return the command line option that renames a column, quoted for the shell."""
    return f"{COLUMN_OPTION} {shlex.quote(f'{old_name}={new_name}')}"


def unread_reference_warnings(columns: JsonObject) -> list[TraceWarning]:
    """Return a warning for each column with a reference or verdict under another system's name."""
    others = (None, "input", *RESPONSE_COLUMNS)
    named = {key: held for key, held in columns.items() if canonical_column(key) not in others or _VERDICT.match(key)}
    return foreign_column_warnings(named)


def foreign_column_warnings(columns: JsonObject) -> list[TraceWarning]:
    """Return a warning for each unread column that has a meaning in another evaluation system."""
    warnings: list[TraceWarning] = []
    for name, value in columns.items():
        if value in ("", [], {}) or value is False:
            continue
        if (ours := canonical_column(name)) is not None:
            if ours == "reference" and objects_in(value):
                ours = "reference_tool_calls"  # references are texts
            message = f"the column {name!r} is not read; to read it as {ours}: {column_option(name, ours)}"
            warnings.append(TraceWarning(message, path=name))
        elif _FOREIGN.match(name):
            message = f"the column {name!r} is not read, although other evaluation systems use it"
            warnings.append(TraceWarning(message, path=name))
    return warnings


def unread_text_warnings(columns: JsonObject, messages: Sequence[Message]) -> list[TraceWarning]:
    """Return a warning for each text that may be the question or answer that the conversation lacks."""
    lacking: list[tuple[str, re.Pattern[str]]] = []
    if not columns:
        return []
    if messages and not any(message.role == "user" for message in messages):
        lacking.append(("no user message", _QUESTION))
    if messages and messages[-1].role != "assistant":
        lacking.append(("no final answer", _ANSWER))
    return [
        TraceWarning(f"{lacks}, and the text of {name!r} is not read", path=name)
        for lacks, pattern in lacking
        for name, value in columns.items()
        if isinstance(value, str)
        and " " in value.strip()
        and pattern.search(name)
        and not (name in _ANSWERS or canonical_column(name))
    ]


def unread_message_warnings(leftover: JsonObject, messages: Sequence[Message]) -> list[TraceWarning]:
    """Return a warning for each field of ``leftover`` with messages or tool calls that ``messages`` lacks.

    Anything named like a response or like instructions counts as a message, and JSON text as its parsed value. Below a
    name that ends in ``.extra``, the leftover of a message, anything with arguments counts as a call.
    """
    spoken_fields = [(name, spoken) for name, value in leftover.items() if value and (spoken := _spoken(value, name))]
    if not spoken_fields:
        return []
    texts, calls = _read(messages)
    whole: str | None = None
    warnings: list[TraceWarning] = []
    for name, spoken in spoken_fields:
        lost = 0
        for text_or_call in spoken:
            if text_or_call in (texts if isinstance(text_or_call, str) else calls):
                continue
            if isinstance(text_or_call, str) and len(text_or_call) > 40:  # another text may quote it
                whole = "\n".join(texts) if whole is None else whole
                lost += text_or_call not in whole
            else:
                lost += 1
            if lost == _MOST:
                break
        if lost:
            count = f"{lost} or more" if lost == _MOST else str(lost)
            warnings.append(TraceWarning(f"messages or tool calls not read, found {count}", path=name))
    return warnings


def silence(sample: Sample, format: str) -> str | None:
    """Return why a conversation cannot be used in which neither the user nor the agent says or calls anything.

    An answer that is empty in the recording too says nothing, and is kept if nobody asked. So is what has sub-agents, or
    judgekit's own format, which holds what was given.
    """
    messages = sample.trace.messages
    if format == "judgekit" or sample.trace.children:
        return None
    if any(_says(message) for message in messages if isinstance(message, HumanMessage | AIMessage)):
        return None
    turns = [(at, message) for at, message in enumerate(messages) if isinstance(message, HumanMessage | AIMessage)]
    for at, message in turns:
        hidden = {"content": [part.data for part in message.content if isinstance(part, OtherPart)], **message.extra}
        unread = [name for name, held in hidden.items() if _holds_text({name: held})]
        if unread:
            return f"all messages are empty: the text of messages[{at}] is in {join_limited(map(repr, unread))}, which is not read"
    return "all messages are empty" if any(isinstance(message, HumanMessage) for _, message in turns) else None


def _says(message: HumanMessage | AIMessage) -> bool:
    parts = () if isinstance(message.content, str) else message.content
    return bool(message.text.strip() or message.tool_calls) or any(
        isinstance(part, MediaPart) or (isinstance(part, ReasoningPart) and bool(part.text.strip())) for part in parts
    )


def _holds_text(leftover: JsonValue) -> bool:
    if isinstance(leftover, dict):
        return any(name not in _NO_TEXTS and _holds_text(held) for name, held in leftover.items())
    if isinstance(leftover, list):
        return any(map(_holds_text, leftover))
    return isinstance(leftover, str) and bool(leftover.strip())


def _spoken(value: JsonValue, name: str) -> set[_Spoken]:
    """Return the different texts and calls in a field, at any depth."""
    spoken: set[_Spoken] = set()
    of_message = name.endswith(".extra")
    pending: list[tuple[str, JsonValue]] = [(name, _message_structure(value, name))]
    for field, node in pending:
        if isinstance(node, list):
            pending += zip(repeat(field), node)
        elif isinstance(node, dict) and (field not in _ASIDE or field == name):
            pending += node.items()
            if field in _TELLING or not _TELLING.isdisjoint(node):
                is_call = field in _CALLS or _is_call(node, of_message=of_message)
                if is_call and (call := _call(node)) is not None:
                    spoken.add(call)
                if field in _HOLDERS or _is_message(node):
                    _add_said(node, spoken)
    return spoken


def _message_structure(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, str) and len(value) < 1 << 20 and value.lstrip().startswith(("{", "[{")):
        value = parse_if_json(value)
    if name in _ANSWERS or canonical_column(name) == "response":
        return {"role": name, "content": value}
    return value if isinstance(value, dict | list) else None


def _read(messages: Sequence[Message]) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the texts and calls of a conversation. All texts of the agent together count as one text too."""
    texts: set[str] = set()
    calls: set[tuple[str, str]] = set()
    answer = ""
    for message in messages:
        parts = [text := message.text]
        texts.add(text.strip())
        if message.content and not isinstance(message.content, str):
            parts = [getattr(part, "text", "") for part in message.content]
            texts.update(map(str.strip, parts))
        answer += "".join(parts) if isinstance(message, AIMessage) else ""
        for call in message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ():
            calls.add((call.name, _canonical(call.args if call.args_error is None else call.args_raw)))
    return {*texts, answer.strip()}, calls


def _is_call(node: JsonObject, *, of_message: bool) -> bool:
    kind = node.get("type") or node.get("part_kind")
    if isinstance(kind, str) and kind in _CALL_KINDS:
        return True
    if node.keys().isdisjoint(_ARGUMENTS):
        return False
    named = isinstance(node.get("toolCallId"), str) and isinstance(node.get("toolName"), str)
    named = named or of_message or isinstance(node.get("tool"), str)
    return named and any(isinstance(node.get(name), (dict, str)) for name in _ARGUMENTS)


def _is_message(node: JsonObject) -> bool:
    for name in _SPEAKERS:
        if isinstance(node.get(name), str):
            return True
    return isinstance(kind := node.get("type"), str) and kind in _KINDS


def _add_texts(content: JsonValue, spoken: set[_Spoken]) -> None:
    """Add the texts of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        if content := content.strip():
            spoken.add(content)
    elif isinstance(content, list):
        for part in content:
            _add_texts(part, spoken)
    elif isinstance(content, dict) and not _is_message(content):  # messages within are handled separately
        _add_said(content, spoken)


def _add_said(node: JsonObject, spoken: set[_Spoken]) -> None:
    for name in _SAID & node.keys():
        _add_texts(node[name], spoken)


def _call(node: JsonObject) -> tuple[str, str] | None:
    function = node.get("function")
    inner = function if isinstance(function, dict) else node
    name = next((inner[field] for field in _NAMES if inner.get(field)), None)
    if not isinstance(name, str):
        return None
    return name, _canonical(next((inner[field] for field in _ARGUMENTS if inner.get(field) is not None), None))


def _canonical(arguments: JsonValue) -> str:
    parsed = parse_if_json(arguments)
    return arguments if isinstance(arguments, str) and parsed is arguments else _SORTED.encode(parsed or {})


def warn_of_repeated_keys(sample: Sample) -> None:
    """Add a warning to a new sample for each call whose arguments repeat a key, unless it has the warning already."""
    expected = [
        (f"reference_tool_calls[{index}]", call.args_raw)
        for index, call in enumerate(sample.reference_tool_calls or ())
        if call.args_raw is not None and call.args_error is None
    ]
    warnings = [
        TraceWarning(
            f"the arguments repeat a key, whose last value is read: {join_limited(map(repr, keys), 5, ', ')}", path=path
        )
        for path, text in chain(_recorded_arguments(sample.trace), expected)
        if (keys := dict.fromkeys(repeated_keys(text)))
    ]
    if new := [warning for warning in warnings if warning not in sample.trace.warnings]:
        set_unvalidated(sample.trace, warnings=(*sample.trace.warnings, *new))


def _recorded_arguments(trace: Trace, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place and text of arguments that were recorded as a text which holds more than they do."""
    for index, message in enumerate(trace.messages):
        calls = message.tool_calls if isinstance(message, (AIMessage, HumanMessage)) else ()
        for position, call in enumerate(calls):
            if call.args_raw is not None and call.args_error is None:
                yield f"{path}messages[{index}].tool_calls[{position}]", call.args_raw
    for index, child in enumerate(trace.children):
        yield from _recorded_arguments(child, f"{path}children[{index}].")
