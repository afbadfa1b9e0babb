"""Rendering of conversations as text for a judge."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Self

from judgekit.look_alikes import tell_apart
from judgekit.traces.images import Image, ImageSettings, hidden_image
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
)
from judgekit.traces.pairing import PairedCall, pair_results
from judgekit.traces.recording import Recording
from judgekit.traces.tree import Branch, MessageNumber

_PART_SHOWN = 200
_BAR = "\n| "
_MARK_LENGTH = 12
_HEADER_START = len("[") + _MARK_LENGTH
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,128}")
_one_line = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


class Rendering(str):
    """A conversation as text.

    Attributes:
        omitted: The number of characters that were left out.
        characters: The number of characters of the conversation.
        has_sub_agents: Whether conversations of sub-agents are part of it, whose messages are numbered by paths.
        images: The images that are shown, each with the line of the text that it stands behind.
        hidden_media: The number of media that are not shown, by their kind and the reason.
    """

    __slots__ = ("characters", "has_sub_agents", "hidden_media", "images", "omitted")
    omitted: int
    characters: int
    has_sub_agents: bool
    images: tuple[tuple[str, Image], ...]
    hidden_media: Mapping[tuple[str, str], int]

    def __new__(
        cls,
        text: str,
        omitted: int,
        *,
        characters: int,
        has_sub_agents: bool,
        images: tuple[tuple[str, Image], ...],
        hidden_media: Mapping[tuple[str, str], int],
    ) -> Self:
        """Return the text with what is known about it."""
        self = super().__new__(cls, text)
        self.omitted = omitted
        self.characters = characters
        self.has_sub_agents = has_sub_agents
        self.images = images
        self.hidden_media = hidden_media
        return self

    @property
    def size(self) -> int:
        """The size in bytes, that of images included at four bytes a token."""
        return _bytes(self) + 4 * sum(image.tokens for _, image in self.images)


@dataclass
class Passage:
    """The content under one header: the text of a message, the arguments of one of its calls, or a sub-agent's begin.

    Attributes:
        message_number: The number of the message, or the path of the sub-agent.
        words: The words of the header, after the mark and the number.
        text: The recorded text, not shortened.
        limit: The number of characters of the text to show; the middle of a longer text is replaced by a visible note.
        inline: Whether the text, which then has no line breaks, ends the header's line. Otherwise its lines follow,
            each after a bar.
        omitted_characters: The number of characters of the recording that are missing from the text.
        last_message_number: The number of the last message, if the passage stands for several.
        depth: The number of agents above the one whose conversation it is part of.
        same_as: The number of a message with the same text, which is shown there instead.
        image: The image that follows the header.
        is_users: Whether the image is part of a message of the user.
    """

    message_number: MessageNumber
    words: str
    text: str
    limit: int
    inline: bool = False
    omitted_characters: int = 0
    last_message_number: MessageNumber | None = None
    depth: int = 0
    same_as: MessageNumber | None = None
    image: Image | None = None
    is_users: bool = False

    @property
    def omitted(self) -> int:
        """The number of characters that are not shown."""
        if self.same_as is not None:
            return 0
        cut = len(self.text) - self.limit
        return self.omitted_characters + cut if cut > 0 else self.omitted_characters

    def rendered(self) -> str:
        """Return the passage behind the mark of its header, with the part of the text that is shown."""
        header = self.header
        if self.same_as is not None:
            return f"{header}: as in {self.same_as}"
        text = self.text
        if len(text) > self.limit:
            text = cut_middle(text, self.limit, separate="" if self.inline else "\n")
        return f"{header} {text}" if self.inline else _BAR.join((header, *text.splitlines()))

    @cached_property
    def size(self) -> int:
        """The size of the rendered passage in bytes, with the line break."""
        return _HEADER_START + _bytes(self.rendered()) + 1

    @cached_property
    def text_size(self) -> int:
        """The size in bytes without the header."""
        return self.size - 1 - _HEADER_START - _bytes(self.header)

    @property
    def header(self) -> str:
        """The header behind its mark."""
        if self.last_message_number is not None:
            return f" {self.message_number}-{self.last_message_number}] {self.words}"
        if self.image is not None:
            return f" {self.message_number}] {self.words}: {self.image.description}"
        return f" {self.message_number}] {self.words}"


def message_passages(branch: Branch, tool_result_limit: int, images: ImageSettings | None = None) -> list[Passage]:
    """Return the passages of a conversation, in order: each message with its images, its calls and their sub-agents.

    Sub-agents without a known call stand at the end. Without ``images``, these are only mentioned in the text.
    """
    messages, depth = branch.trace.messages, branch.depth
    started = branch.started if branch.trace.children else {}
    answers = pair_results(messages).calls
    passages: list[Passage] = []
    for index, message in enumerate(messages):  # for every judged sample, so it checks roles: isinstance takes longer
        number, answered = branch.number(index), answers.get(index)
        text, left_out = _content(message, number_images=images is not None)
        limit = tool_result_limit if message.role == "tool" else len(text)
        words = _speaker_name(branch, message, answered)
        passage = Passage(number, words, text, limit, omitted_characters=left_out, depth=depth)
        if started and answered is not None and not _media(message):
            passage.same_as = _same_as_child(started, answered, text)
        passages.append(passage)
        if images is not None:
            pictures = (part for part in _media(message) if part.kind == "image")
            for picture_number, part in enumerate(pictures, 1):
                picture = Passage(number, f"image {picture_number}", "", 0, depth=depth, image=Image.of(part, images))
                picture.is_users = message.role == "user"
                passages.append(picture)
        if message.role == "assistant" or message.role == "user":  # noqa: PLR1714 - type checkers know these
            for position, call in enumerate(message.tool_calls):
                words, arguments = _call(call)
                passages.append(Passage(number, f"calls {words}", arguments, len(arguments), inline=True, depth=depth))
                for child in started.get(index, ()):
                    if child.position == position:
                        passages += _sub_agent_passages(child, tool_result_limit, images)
    for child in started.get(-1, ()):
        passages += _sub_agent_passages(child, tool_result_limit, images)
    return passages


def _sub_agent_passages(child: Branch, tool_result_limit: int, images: ImageSettings | None) -> list[Passage]:
    name = sub_agent_name(child)
    begin, end = (Passage(child.path, f"{name} {verb}", "", 0, depth=child.depth) for verb in ("begins", "ends"))
    return [begin, *message_passages(child, tool_result_limit, images), end]


def sub_agent_name(branch: Branch) -> str:
    """Return ``sub-agent``, and the name of the sub-agent if it is known."""
    return "sub-agent" if branch.agent is None else f"sub-agent {quoted_name(branch.agent)}"


def _same_as_child(started: Mapping[int, Sequence[Branch]], answered: PairedCall, text: str) -> MessageNumber | None:
    """Return the number of the last message of a sub-agent that a result repeats; ``None`` if there is none."""
    for child in started.get(answered.message, ()):
        messages = child.trace.messages
        is_same = child.position == answered.position and text and messages and messages[-1].role == "assistant"
        if is_same and _content(messages[-1]) == (text, 0):
            return child.number(len(messages) - 1)
    return None


def find_media(trace: Recording) -> list[MediaPart]:
    """Return the media of a recording, with those of its sub-agents."""
    own = [part for message in trace.messages for part in _media(message)]
    return [*own, *(part for child in trace.children for part in find_media(child))]


def limit_images(passages: Sequence[Passage], most: int, room: int, reason: str) -> Sequence[Passage]:
    """Return the passages with at most ``most`` images of at most ``room`` tokens; the others are hidden.

    Those of the user come first, then the latest; those of sub-agents come last, the deepest at the very end.
    """
    shown = [at for at, passage in enumerate(passages) if passage.image is not None and not passage.image.hidden]
    result = [*passages]
    for at in sorted(shown, key=lambda index: (passages[index].depth, not passages[index].is_users, -index)):
        image = passages[at].image
        tokens = 0 if image is None else image.tokens
        if most and tokens <= room:
            most, room = most - 1, room - tokens
        else:
            result[at] = replace(passages[at], image=hidden_image(reason))
    return result


def count_hidden_media(
    trace: Recording, passages: Sequence[Passage], images: ImageSettings | None
) -> Mapping[tuple[str, str], int]:
    """Return the number of media of a recording that its passages do not show, by their kind and the reason."""
    if not (media := find_media(trace)):
        return {}
    placed = [passage.image for passage in passages if passage.image is not None]
    hidden = Counter[tuple[str, str]](("image", image.hidden) for image in placed if image.hidden)
    kinds = Counter(part.kind for part in media)
    for kind, number in kinds.items():
        if kind != "image":
            hidden[kind, "judges are shown images only"] = number
        elif images is None:
            hidden[kind, "the judge is not set to take images (images = true)"] = number
        elif number > len(placed):
            hidden[kind, "its message was left out"] = number - len(placed)
    return hidden


def render_passages(passages: Sequence[Passage], hidden_media: Mapping[tuple[str, str], int]) -> Rendering:
    """Return the passages between two lines with a mark that is the hash of what they enclose.

    Every header line starts with the mark in brackets and every line of content with ``| ``, so no content can pass for
    a header or end the conversation.
    """
    rendered = [passage.rendered() for passage in passages]
    mark = content_mark("\n[".join(("", *rendered))[1:])
    body = f"\n[{mark}".join(("", *rendered)) or "\n"
    text = escape_surrogates(f"[{mark} conversation begins]{body}\n[{mark} conversation ends]")
    shown = [(passage, passage.image) for passage in passages if passage.image is not None]
    return Rendering(
        text,
        sum(passage.omitted for passage in passages),
        characters=sum(len(passage.text) + passage.omitted_characters for passage in passages if not passage.same_as),
        has_sub_agents=any(passage.depth for passage in passages),
        images=tuple((f"[{mark}{passage.header}", image) for passage, image in shown if not image.hidden),
        hidden_media=hidden_media,
    )


def fence_text(title: str, text: str) -> str:
    """Return a recorded text between two lines that it cannot forge, because they carry its hash."""
    text = escape_surrogates(text)
    mark = content_mark(text)
    fenced = _BAR.join((f"[{mark} {title} begins]", *text.splitlines()))
    return f"{fenced}\n[{mark} {title} ends]"


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates, which no request can carry, written as escapes."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def content_mark(text: str) -> str:
    """Return a mark that the text cannot plausibly contain, because it is the hash of the text."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_MARK_LENGTH]


def cut_middle(text: str, limit: int, separate: str = "\n") -> str:
    """Return the text, or its two ends with a note between them that says how much is missing."""
    omitted = len(text) - limit
    if omitted <= 0:
        return text
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}{separate}{omission_note(omitted)}{separate}{text[len(text) - tail :]}"


def omission_note(characters: int) -> str:
    """Return the note that replaces characters that are not shown."""
    return f"[... {characters:,} characters omitted ...]"


def message_text(message: Message) -> str:
    """Return a message's text and calls as a rendering shows them, without headers and bars."""
    calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
    return "\n".join((_content(message)[0], *map(call_text, calls)))


def call_text(call: ToolCall) -> str:
    """Return a tool call on one line: its name, and its arguments as compact JSON with sorted keys."""
    return " ".join(_call(call))


def compact_json(value: object) -> str:
    """Return a value as one line of JSON with sorted keys."""
    line = _one_line(value)
    return line if line.isascii() else line.translate(_LINE_BREAKS)


def quoted_name(name: str) -> str:
    """Return the name of a tool or person, as JSON if it could be mistaken for more than a name."""
    return name if _PLAIN_NAME.fullmatch(name) else compact_json(name)


def quoted_names(names: Iterable[str]) -> Mapping[str, str]:
    """Return `quoted_name` of names that are shown next to each other, with escapes where some look alike and differ."""
    distinct = [*dict.fromkeys(names)]
    apart = zip(distinct, tell_apart(distinct), strict=True)
    return {name: quoted_name(name) if shown == name else f'"{shown}"' for name, shown in apart}


def _speaker_name(branch: Branch, message: Message, answered: PairedCall | None) -> str:
    if message.role != "tool":
        name = message.agent if message.role == "assistant" else message.name if message.role == "user" else None
        return message.role if name is None else f"{message.role} {quoted_name(name)}"
    words = "tool result"
    if answered is not None:
        words += f" of {quoted_name(answered.call.name)} (called in {branch.number(answered.message)})"
    elif message.name is not None:
        words += f" of {quoted_name(message.name)}"
    if message.requestor == "user":
        words += ", for the user"
    return f"{words}, error" if message.is_error else words


def _call(call: ToolCall) -> tuple[str, str]:
    if call.args_error is None:
        return quoted_name(call.name), compact_json(call.args)
    return f"{quoted_name(call.name)} with arguments that cannot be read:", compact_json(call.args_raw)


def _content(message: Message, *, number_images: bool = False) -> tuple[str, int]:
    """Return the message's content as text, and how many characters of it are missing.

    Media appear as a name and unknown parts as their beginning and end. Reasoning is left out: a judge sees what the
    user could see.
    """
    if isinstance(message.content, str):
        return message.content, 0
    numbers = count(1) if number_images else None
    parts = [_part(part, numbers) for part in message.content if not isinstance(part, ReasoningPart)]
    return "\n".join(text for text, _ in parts), sum(left_out for _, left_out in parts)


def _part(part: TextPart | RefusalPart | MediaPart | OtherPart, numbers: Iterator[int] | None) -> tuple[str, int]:
    if isinstance(part, MediaPart):
        number = str(next(numbers)) if numbers is not None and part.kind == "image" else ""
        return f"[{' '.join(filter(None, (part.kind, number, part.name or part.mime_type)))}]", 0
    if isinstance(part, OtherPart):
        data = compact_json(part.data)
        return f"[part: {cut_middle(data, _PART_SHOWN)}]", max(0, len(data) - _PART_SHOWN)
    return part.text, 0


def _media(message: Message) -> Sequence[MediaPart]:
    return () if isinstance(message.content, str) else [part for part in message.content if isinstance(part, MediaPart)]


def _bytes(text: str) -> int:
    return len(escape_surrogates(text).encode())
