"""How a conversation becomes text for a judge."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    Message,
    OtherPart,
    ReasoningPart,
    ToolCall,
    ToolMessage,
)
from judgekit.traces.pairing import Caller, pair_results

_PLAIN_NAME = re.compile(r"[\w.:/-]{1,128}")
_one_line = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def render_messages(messages: Sequence[Message], mark: str, tool_result_limit: int) -> str:
    """The messages as numbered text.

    Every header line starts with ``mark`` in brackets and every line of content with ``| ``, so nothing that was said
    can pass for a header.
    """
    answers = pair_results(messages).calls
    lines: list[str] = []
    for index, message in enumerate(messages):
        head = f"[{mark} {index + 1}]"
        text = _content(message)
        if isinstance(message, ToolMessage):
            text = cut_middle(text, tool_result_limit)
        lines.append(f"{head} {_who(message, answers.get(index))}")
        lines.extend(prefixed(text))
        if isinstance(message, AIMessage | HumanMessage):
            lines.extend(f"{head} calls {call_text(call)}" for call in message.tool_calls)
    return "\n".join(lines)


def prefixed(text: str) -> Iterator[str]:
    """The lines of a text that is not ours, each behind a bar."""
    return (f"| {line}" for line in text.splitlines())


def fenced(title: str, text: str) -> str:
    """A text that is not ours between two lines that no line in it can pass for: they carry the hash of the text."""
    text = encodable(text)
    mark = content_mark(text)
    return "\n".join((f"[{mark} {title} begins]", *prefixed(text), f"[{mark} {title} ends]"))


def encodable(text: str) -> str:
    """The text with lone surrogates, which no request can carry, written as escapes."""
    return text.encode(errors="backslashreplace").decode()


def content_mark(text: str) -> str:
    """A mark that a text can hardly contain, since it is the hash of the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cut_middle(text: str, limit: int) -> str:
    """The text itself, or its two ends with a visible mark of how much was left out between them."""
    omitted = len(text) - limit
    if omitted <= 0:
        return text
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}\n[... {omitted:,} characters omitted ...]\n{text[len(text) - tail :]}"


def call_text(call: ToolCall) -> str:
    """A tool call on one line: its name and its arguments as compact JSON with sorted keys."""
    if call.args_error is None:
        return f"{plain_name(call.name)} {compact_json(call.args)}"
    return f"{plain_name(call.name)} with arguments that cannot be read: {compact_json(call.args_raw)}"


def compact_json(value: object) -> str:
    """One line of JSON with sorted keys."""
    return _one_line(value).translate(_LINE_BREAKS)


def plain_name(name: str) -> str:
    """The name of a tool or of somebody, as JSON where it could be taken for more than a name."""
    return name if _PLAIN_NAME.fullmatch(name) else compact_json(name)


def _who(message: Message, answered: Caller | None) -> str:
    name = (
        message.agent if isinstance(message, AIMessage) else message.name if isinstance(message, HumanMessage) else None
    )
    if name is not None:
        return f"{message.role} {plain_name(name)}"
    if not isinstance(message, ToolMessage):
        return message.role
    said = "tool result"
    if answered is not None:
        said += f" of {plain_name(answered.call.name)} (called in {answered.message + 1})"
    elif message.name is not None:
        said += f" of {plain_name(message.name)}"
    if message.requestor == "user":
        said += ", for the user"
    return f"{said}, error" if message.is_error else said


def _content(message: Message) -> str:
    """What was said; media and unknown parts by name, reasoning left out: a judge sees what the user could see."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(
        f"[{part.kind} {part.name or part.mime_type or ''}]".replace(" ]", "]")
        if isinstance(part, MediaPart)
        else f"[part: {cut_middle(compact_json(part.data), 200)}]"
        if isinstance(part, OtherPart)
        else part.text
        for part in message.content
        if not isinstance(part, ReasoningPart)
    )
