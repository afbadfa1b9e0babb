"""Checks of a judge's citations."""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator

from judgekit.traces.rendering import escape_surrogates, message_text
from judgekit.traces.sample import Sample


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a whole number, found {str(value).lower()}")
    return value


StrictNumber: TypeAlias = Annotated[int, BeforeValidator(_reject_bool)]
"""An integer written by a judge, such as a message number. ``true`` is rejected, although it equals 1 in Python."""


class Quotation(BaseModel):
    """Words of a message that show something."""

    message: StrictNumber
    quote: str


def check_message_numbers(cited: Iterable[int], sample: Sample) -> None:
    """Check message numbers cited by a judge.

    Raises:
        ValueError: There is no message with one of the numbers.
    """
    last = len(sample.trace.messages)
    if absent := [number for number in cited if not 1 <= number <= last]:
        raise ValueError(f"cites the messages {absent}; the conversation has messages 1 to {last}")


def quotation_found(quotation: Quotation, sample: Sample) -> bool:
    """Return whether the cited message contains the quotation verbatim, ignoring differences in whitespace."""
    said = _spaced(escape_surrogates(message_text(sample.trace.messages[quotation.message - 1])))
    as_shown = quotation.quote.removeprefix("| ").replace("\n| ", "\n").removeprefix("calls ")
    return any(quote and quote in said for quote in map(_spaced, (quotation.quote, as_shown)))


def _spaced(text: str) -> str:
    return " ".join(text.split())
