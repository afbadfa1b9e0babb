"""Redaction: removes personal data and secrets from a sample before a judge sees it."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel

from judgekit.judges.redaction.patterns import (
    AUTH_SCHEME_PATTERN,
    PATTERNS,
    PLACEHOLDER,
    SECRET_KEY_PATTERN,
    normalized_value,
    valid_prefix,
)
from judgekit.judges.redaction.plain_text import to_plain_text
from judgekit.traces.media import media_hash
from judgekit.traces.message import MediaPart, TextPart, ToolCall, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_TEXTS = {
    *("trace", "baseline", "reference", "references", "reference_topics", "reference_tool_calls", "documents"),
    *("fields", "tools", "description", "parameters", "messages", "children", "content", "tool_calls", "text"),
    *("data", "mime_type", "name", "agent", "args", "args_raw"),
}
"""The fields that hold text of the conversation."""


@dataclass(frozen=True)
class _Patterns:
    """A function that replaces matches by their kind and a number, equal for equal values throughout a sample."""

    names: frozenset[str]
    _numbers: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    def __call__(self, text: str) -> str:
        if "url" in self.names and "%" in text:  # before %20 becomes a space, which would end a URL
            text = self._without(["url"], text, to_plain_text(text, percent=False))
        names = [name for name in PATTERNS if name in self.names]
        text = self._without(names, text, to_plain_text(text))
        spaced = _COLORS.sub(lambda match: " " * len(match[0]), _FORM.sub(_with_spaces, text))
        return text if spaced == text else self._without(names, text, to_plain_text(spaced))

    def value(self, key: object, value: object) -> object:
        """Return the value of a key, redacted if it is a secret by the name of the key."""
        is_secret = "secret" in self.names and isinstance(key, str) and SECRET_KEY_PATTERN.search(to_plain_text(key)[0])
        if not is_secret or isinstance(value, bool) or not isinstance(value, str | int | float):
            return _redacted(value, self)
        text = str(value)
        scheme = AUTH_SCHEME_PATTERN.match(text)
        start = scheme.end() if scheme else 0
        return f"{text[:start]}{self.mark('secret', text[start:])}" if text[start:] else value

    def _without(self, names: Sequence[str], text: str, unwrapped: tuple[str, Sequence[int]]) -> str:
        """Return the text with a mark in place of each match."""
        plain, places = unwrapped
        finds: list[tuple[int, int, str, str]] = []
        for name, pattern in ((kind, pattern) for kind in names for pattern in PATTERNS[kind]):
            pieces: list[str] = []
            done = start = 0
            while (match := pattern.search(plain, start)) is not None:
                first, last, end = _span(name, match, text, places)
                start = match.start() + 1
                if first < last:
                    finds.append((places[first], end, name, plain[first:last]))
                    pieces += plain[done:first], PLACEHOLDER * (last - first)
                    done = start = last
            if pieces:
                plain = "".join((*pieces, plain[done:]))
        pieces, done = [], 0
        for first, last, name, value in sorted(finds):
            quote = _missing_quote(text, first, last)
            pieces += text[done:first], quote, self.mark(name, value), quote
            done = last
        return "".join((*pieces, text[done:]))

    def mark(self, name: str, text: str) -> str:
        """Return the text that stands in place of a value."""
        numbers = self._numbers[name]
        return f"<{name} {numbers.setdefault(normalized_value(name, text), len(numbers) + 1)}>"


def _span(name: str, match: re.Match[str], text: str, places: Sequence[int]) -> tuple[int, int, int]:
    """Return the start and end of a value in the plain text, and its end in the original text."""
    first, plain = match.end(), match.string
    if match.lastgroup is None:
        first = match.start()
        last = first + len(valid_prefix(name, match[0]))
        return first, last, places[last]
    opening, ending = max(match.span("quoted"), match.span("quote"))
    if opening < ending:
        closing = _closing(text[places[opening] : places[ending]], text, places[first])
        last = bisect_right(places, closing) - 1
        if match["quoted"] or (closing < len(text) and "\n" not in plain[first:last]):
            return first, last, closing
    bare = _BARE.match(plain, first)
    last = first + len(bare[0].rstrip(",.:!?)]}")) if bare else first
    return first, last, places[last]


def _closing(quote: str, text: str, start: int) -> int:
    """Return the position of the closing quotation mark, or of the line's end. Inner ones have more backslashes."""
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    for match in re.compile(rf"(?<!\\)(\\*+){re.escape(mark)}|\n").finditer(text, start):
        if match[1] is None:
            return match.start()
        if len(match[1]) % (2 * depth + 2) == depth:
            return match.end() - len(quote)
    return len(text)


def _missing_quote(text: str, first: int, last: int) -> str:
    """Return the quotation mark that a mark needs in place of a number in JSON, escaped like those around it."""
    if not _NUMBER.fullmatch(text, first, last) or not _VALUE_BEHIND.match(text, last):
        return ""
    outside, quote, between = text[max(0, first - _LOOKED_BACK) : first].rpartition('"')
    signs = _BETWEEN_SIGNS.sub("", between)
    if not quote or signs.strip("[]{}:,") or signs[-1:] not in (":", ",", "["):
        return ""
    run = len(outside) - len(outside.rstrip("\\"))
    depth = (run ^ (run + 1)) >> 1  # 0, 1, 3, 7, ... if a key that ends in backslashes has its own before them
    begins = signs[0] in "[{"  # so the quotation mark opens a text that holds JSON
    return "\\" * (2 * depth + 1 if begins else depth) + '"'


def redact_sample(sample: Sample, redact: Callable[[str], str] | Sequence[str]) -> Sample:
    """Return a sample with all text redacted that a judge may see. Names of tools, roles and ids stay.

    Args:
        sample: The sample, which is not changed.
        redact: Names of `REDACTABLE`, or a function from text to text.
    """
    if not redact:
        return sample
    return cast("Sample", _redacted(sample, redact if callable(redact) else _Patterns(frozenset(redact))))


def _redacted(value: object, hide: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        hidden = hide(str(value))
        return value if hidden == str(value) else hidden
    if isinstance(value, list | tuple):
        items = [_redacted(item, hide) for item in cast("Sequence[object]", value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {
            _redacted(key, hide): hide.value(key, item) if isinstance(hide, _Patterns) else _redacted(item, hide)
            for key, item in cast("dict[object, object]", value).items()
        }
    if isinstance(value, MediaPart) and value.kind == "image" and isinstance(hide, _Patterns) and "image" in hide.names:
        return TextPart(hide.mark("image", media_hash(value.data) if value.data else value.url or value.sha256 or ""))
    if isinstance(value, BaseModel):
        update = {name: _redacted(getattr(value, name), hide) for name in _texts(value)}
        if isinstance(value, Trace) and "agent" in value.metadata:  # the name of a sub-agent
            update["metadata"] = {**value.metadata, "agent": _redacted(value.metadata["agent"], hide)}
        return value.model_copy(update=update)
    return value


def _texts(record: BaseModel) -> Iterator[str]:
    """Return the fields that hold text, in a fixed order, so that matches have the same numbers in every process."""
    stays = "name" if isinstance(record, ToolCall | ToolMessage | ToolDefinition) else ""
    if isinstance(record, MediaPart):
        return iter(("url", "mime_type", "name"))
    return (name for name in type(record).model_fields if name in _TEXTS and name != stays)


_COLORS = re.compile(r"\x1b\[[\d;]*m")
_FORM = re.compile(r"=[^\s\"'<>]+")
"""The values of a form, such as ``=ann%40x.org&phone=%2B49+30+1234567``."""


def _with_spaces(form: re.Match[str]) -> str:
    """Return the values of a form with spaces as spaces, if it is one."""
    return form[0].replace("+", " ") if "%" in form[0] or "&" in form[0] else form[0]


_BARE = re.compile(rf"[^\s\"'`<>&;{PLACEHOLDER}]+")
_LOOKED_BACK = 1000
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_BETWEEN_SIGNS = re.compile(r"\\+[nrt]|\s|null|true|false|[\d.eE+-]")
_VALUE_BEHIND = re.compile(r"(?:\s|\\+[nrt])*[,\]}]")
