"""Checks of a judge's citations."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from judgekit.judges.schema import MESSAGE_NUMBER
from judgekit.traces.rendering import escape_surrogates, message_text
from judgekit.traces.sample import Sample
from judgekit.traces.tree import MessageNumber, find_message

_PATH = re.compile(r"[0-9]+(\.[0-9]+){2,}")
_SPACELESS = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_SPACELESS}|(?:(?!{_SPACELESS})\w)+")
"""A word; in scripts that put no spaces between words, such as Chinese, a character."""
_SAYS = re.compile(r"[^\W_]|[\u2600-\u27bf\U0001f000-\U0001faff]")
"""A letter, a digit or an emoji."""
_LEAST_WORDS = 3


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a whole number, found {str(value).lower()}")
    return value


StrictNumber: TypeAlias = Annotated[int, BeforeValidator(_reject_bool)]
"""An integer written by a judge. ``true`` is rejected, although it equals 1 in Python."""


def _path_or_number(value: object, as_number: ValidatorFunctionWrapHandler) -> MessageNumber:
    if type(value) is int:  # as nearly all are
        return value
    return value if isinstance(value, str) and _PATH.fullmatch(value) else as_number(value)


if TYPE_CHECKING:
    CitedMessage: TypeAlias = MessageNumber
else:
    CitedMessage = Annotated[
        StrictNumber,
        WrapValidator(_path_or_number),
        PlainSerializer(lambda number: number),
        WithJsonSchema({"type": "integer", "format": MESSAGE_NUMBER}),
    ]
    """The number of a message that a judge cites; in a sub-agent, a path such as ``4.2.1``."""


class Quotation(BaseModel):
    """Words of a message that show something."""

    message: CitedMessage
    quote: str


def check_message_numbers(cited: Iterable[MessageNumber], sample: Sample) -> None:
    """Check that the message numbers cited by a judge exist."""
    trace = sample.trace
    if absent := [number for number in cited if find_message(trace, number) is None]:
        last = f"messages 1 to {len(trace.messages)}"
        others = ", and those of sub-agents, cited by their whole paths" if trace.children else ""
        raise ValueError(f"cites the messages {absent}; the conversation has {last}{others}")


def quotation_found(quotation: Quotation, sample: Sample) -> bool:
    """Return whether the cited message contains the quotation verbatim, ignoring differences in whitespace."""
    message = find_message(sample.trace, quotation.message)
    return message is not None and has_quote(message_text(message), quotation.quote)


def has_quote(text: str, quote: str) -> bool:
    """Return whether a text contains a quote verbatim, ignoring differences in whitespace."""
    text = " ".join(escape_surrogates(text).split())
    return any(words and words in text for words in _as_written(quote))


def quotation_suffices(quotation: Quotation, sample: Sample) -> bool:
    """Return whether a quotation has at least three words of the cited message, or is a whole line of it.

    A word counts once. A line of signs alone, such as a rule, has to be the whole message.
    """
    lines = _message_lines(quotation, sample)
    words = {*_WORD.findall(quotation.quote)} & {*_WORD.findall("\n".join(lines))}
    whole = [quote for quote in _as_written(quotation.quote) if quote in lines]
    return len(words) >= _LEAST_WORDS or any([quote] == lines or _SAYS.search(quote) for quote in whole)


def _message_lines(quotation: Quotation, sample: Sample) -> list[str]:
    message = find_message(sample.trace, quotation.message)
    lines = [] if message is None else escape_surrogates(message_text(message)).split("\n")
    return [words for line in lines if (words := " ".join(line.split()))]


def _as_written(quote: str) -> list[str]:
    """Return a quote without and with what only stands in the rendering removed."""
    bare = quote.removeprefix("| ").replace("\n| ", "\n").removeprefix("calls ")
    return [" ".join(words.split()) for words in (quote, bare)]
