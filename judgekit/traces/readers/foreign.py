"""What all readers of foreign formats share: typed records that keep what they do not know."""

from collections.abc import Iterable
from typing import Protocol

from pydantic import BaseModel, ConfigDict, JsonValue

from judgekit.errors import TraceError, shortened
from judgekit.traces.message import JsonObject, Message
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import Sample
from judgekit.traces.trace import TraceWarning


class Reader(Protocol):
    """Reads one format."""

    @property
    def name(self) -> str:
        """The format's name, as ``format=`` takes it."""
        ...

    @property
    def shape(self) -> str:
        """What a record of this format looks like, for people whose file was not recognised."""
        ...

    def recognises(self, value: JsonValue) -> bool:
        """Whether a parsed file, or one line of a JSONL file, has this format."""
        ...

    def records(self, document: JsonValue) -> Iterable[JsonValue]:
        """The conversations in a parsed file."""
        ...

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One conversation; ``index`` is its position in the file.

        Raises:
            TraceError: It does not have the format.
        """
        ...


class Foreign(BaseModel):
    """A record of somebody else's format: known fields typed, unknown ones kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def unknown(self) -> JsonObject:
        """The fields that have no place here, verbatim."""
        return dict(self.model_extra or {})


def items(document: JsonValue) -> list[JsonValue]:
    """A document that is one record, or a list of them, as a list."""
    return document if isinstance(document, list) else [document]


def unpaired(messages: list[Message]) -> list[TraceWarning]:
    """A warning for each tool result that answers no call."""
    return [
        TraceWarning("a tool result that answers no call before it", where=f"messages[{index}]")
        for index in pair_results(messages).orphans
    ]


def must_be_object(record: JsonValue) -> JsonObject:
    """The record, if it is an object.

    Raises:
        TraceError: It is something else.
    """
    if not isinstance(record, dict):
        found = f"expected an object, found {shortened(record)}"
        raise TraceError(found)
    return record
