"""Checks of what a judge cites."""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator

from judgekit.traces.rendering import encodable, message_text
from judgekit.traces.sample import Sample


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a whole number, found {str(value).lower()}")
    return value


Number: TypeAlias = Annotated[int, BeforeValidator(_no_truth_value)]
"""A number that a judge writes, such as that of a message: ``true`` is none, though it is 1 in Python."""


class Quotation(BaseModel):
    """Words of a message that show something."""

    message: Number
    quote: str


def must_exist(cited: Iterable[int], sample: Sample) -> None:
    """Checks message numbers that a judge cited.

    Raises:
        ValueError: A message of that number is not there.
    """
    last = len(sample.trace.messages)
    if absent := [number for number in cited if not 1 <= number <= last]:
        raise ValueError(f"cites the messages {absent}; the conversation has messages 1 to {last}")


def is_there(quotation: Quotation, sample: Sample) -> bool:
    """Whether the message that is cited says what is quoted, word for word; white space is all one."""
    said = _spaced(encodable(message_text(sample.trace.messages[quotation.message - 1])))
    as_shown = quotation.quote.removeprefix("| ").replace("\n| ", "\n").removeprefix("calls ")
    return any(quote and quote in said for quote in map(_spaced, (quotation.quote, as_shown)))


def _spaced(text: str) -> str:
    return " ".join(text.split())
