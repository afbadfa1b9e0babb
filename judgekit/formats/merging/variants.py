"""Repetitions that hold a value of their own."""

import json
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from judgekit.formats.merging.step import SpanStep
from judgekit.traces.message import JsonObject, Message, ToolCall


class Variants:
    """The repetitions that are left out of a conversation but hold a value that nothing else has."""

    def __init__(self) -> None:
        self.items: list[JsonValue] = []
        self._values: set[tuple[str, str]] = set()
        self._seen: set[str] = set()

    def add_message(self, message: Message) -> None:
        """Register a message that is part of the conversation."""
        self._values |= _values(_dumped(message))

    def keep_repetitions(self, messages: Iterable[Message]) -> None:
        """Keep messages that are left out."""
        for message in messages:
            self._add(_dumped(message))

    def keep_tool_span(self, tool: SpanStep) -> None:
        """Keep what a tool span records."""
        values = {"call": tool.call, "result": tool.result}
        self._add({name: _dumped(value) for name, value in values.items() if value is not None})

    def _add(self, variant: JsonObject) -> None:
        text = json.dumps(variant, sort_keys=True)
        if text not in self._seen:
            self._seen.add(text)
            if not (values := _values(variant)) <= self._values:
                self._values |= values
                self.items.append(variant)


def _dumped(value: Message | ToolCall) -> JsonObject:
    return cast("JsonObject", value.model_dump(mode="json", exclude_defaults=True))


def _values(value: JsonValue) -> set[tuple[str, str]]:
    """Return every scalar with the name of its field."""
    leaves: set[tuple[str, str]] = set()
    pending = [("", value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name, item) for item in value]
        elif value is not None:
            leaves.add((name, repr(value)))
    return leaves
