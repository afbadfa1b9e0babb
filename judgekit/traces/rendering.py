"""How a conversation becomes text for a judge."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    Message,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolMessage,
)
from judgekit.traces.pairing import Caller, pair_results

_PART_SHOWN = 200
_ANY_MARK = "0" * 12
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,128}")
_one_line = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


class Rendering(str):
    """A conversation as text. ``omitted`` is how many of its characters were left out."""

    __slots__ = ("omitted",)
    omitted: int

    def __new__(cls, text: str, omitted: int) -> Self:
        """The text, with what is missing from it."""
        self = super().__new__(cls, text)
        self.omitted = omitted
        return self


@dataclass(frozen=True)
class Passage:
    """What stands under one header: what a message says, or the arguments of a call that it makes.

    Attributes:
        number: The message's, from 1.
        words: The header's, behind the mark and the number.
        text: Not ours, and never cut here.
        limit: How many characters of the text are shown; the middle of a longer one is left out, visibly.
        inline: Whether the text, which has no line breaks then, ends the line of the header. Otherwise its lines follow,
            each behind a bar.
        left_out: Characters of the recording that are missing from the text.
        until: The last message's number, where the passage stands for many.
    """

    number: int
    words: str
    text: str
    limit: int
    inline: bool = False
    left_out: int = 0
    until: int | None = None

    @property
    def omitted(self) -> int:
        """How many characters are not shown."""
        return self.left_out + max(0, len(self.text) - self.limit)

    def rendered(self, mark: str) -> str:
        """The header, with the mark in it, and as much of the text as is shown."""
        return f"{self._header(mark)}{self._body}"

    @cached_property
    def size(self) -> int:
        """Bytes in a rendering, with the line break."""
        return _bytes(self._header(_ANY_MARK)) + self.text_size + 1

    @cached_property
    def text_size(self) -> int:
        """Bytes without the header."""
        return _bytes(self._body)

    def _header(self, mark: str) -> str:
        numbers = f"{self.number}" if self.until is None else f"{self.number}-{self.until}"
        return f"[{mark} {numbers}] {self.words}"

    @property
    def _body(self) -> str:
        if self.inline:
            return f" {cut_middle(self.text, self.limit, apart='')}"
        return "".join(f"\n{line}" for line in prefixed(cut_middle(self.text, self.limit)))


def passages(messages: Sequence[Message], tool_result_limit: int) -> list[Passage]:
    """The messages as they are shown, in order, each with its calls behind it."""
    answers = pair_results(messages).calls
    found: list[Passage] = []
    for index, message in enumerate(messages):
        number, (text, left_out) = index + 1, _content(message)
        limit = tool_result_limit if isinstance(message, ToolMessage) else len(text)
        found.append(Passage(number, _who(message, answers.get(index)), text, limit, left_out=left_out))
        if isinstance(message, AIMessage | HumanMessage):
            for call in message.tool_calls:
                words, arguments = _call(call)
                found.append(Passage(number, f"calls {words}", arguments, len(arguments), inline=True))
    return found


def conversation(passages: Sequence[Passage]) -> Rendering:
    """The passages between two lines with a mark that is the hash of what is between them.

    Every header line starts with the mark in brackets and every line of content with ``| ``, so nothing that was said
    can pass for a header or end the conversation.
    """
    unmarked = encodable("\n".join(passage.rendered("") for passage in passages))
    mark = content_mark(unmarked)
    body = f"\n{unmarked}".replace("\n[ ", f"\n[{mark} ")  # only headers start so: content starts with a bar
    text = f"[{mark} conversation begins]{body}\n[{mark} conversation ends]"
    return Rendering(text, sum(passage.omitted for passage in passages))


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


def cut_middle(text: str, limit: int, apart: str = "\n") -> str:
    """The text itself, or its two ends with a visible mark of how much was left out between them, set apart."""
    omitted = len(text) - limit
    if omitted <= 0:
        return text
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}{apart}{omission(omitted)}{apart}{text[len(text) - tail :]}"


def omission(characters: int) -> str:
    """What stands in the place of characters that are not shown."""
    return f"[... {characters:,} characters omitted ...]"


def message_text(message: Message) -> str:
    """All that a message says, its calls included, as a rendering shows it, without headers and bars."""
    calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
    return "\n".join((_content(message)[0], *map(call_text, calls)))


def call_text(call: ToolCall) -> str:
    """A tool call on one line: its name and its arguments as compact JSON with sorted keys."""
    return " ".join(_call(call))


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


def _call(call: ToolCall) -> tuple[str, str]:
    """The tool's name, and the arguments on one line."""
    if call.args_error is None:
        return plain_name(call.name), compact_json(call.args)
    return f"{plain_name(call.name)} with arguments that cannot be read:", compact_json(call.args_raw)


def _content(message: Message) -> tuple[str, int]:
    """What was said, and how many characters of it were left out.

    Media stand there by name, unknown parts by their beginning and end; reasoning does not: a judge sees what the user
    could see.
    """
    if isinstance(message.content, str):
        return message.content, 0
    parts = [_part(part) for part in message.content if not isinstance(part, ReasoningPart)]
    return "\n".join(text for text, _ in parts), sum(left_out for _, left_out in parts)


def _part(part: TextPart | RefusalPart | MediaPart | OtherPart) -> tuple[str, int]:
    if isinstance(part, MediaPart):
        return f"[{part.kind} {part.name or part.mime_type or ''}]".replace(" ]", "]"), 0
    if isinstance(part, OtherPart):
        data = compact_json(part.data)
        return f"[part: {cut_middle(data, _PART_SHOWN)}]", max(0, len(data) - _PART_SHOWN)
    return part.text, 0


def _bytes(text: str) -> int:
    return len(encodable(text).encode())
