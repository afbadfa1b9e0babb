"""Paths to the values of a sample, such as ``fields.order.id``, and texts with such paths in double braces."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

_HOLE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]"'{}]+)|\[(?P<index>\d{1,9})\]|\[(?P<key>"(?:[^"\\]|\\.)*")\]|\['(?P<quoted>[^']*)'\]"""
)
_ROOT = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ValuePath:
    """A path to a value: the name of its root, and the names and positions that lead from there.

    Its text is ``fields.order.id``, ``fields["order id"]`` or ``fields.items[0]``.
    """

    root: str
    steps: tuple[str | int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "ValuePath":
        """Return the path with this text."""
        start = _ROOT.match(text)
        if start is None:
            raise ValueError(f"expected a path such as fields.name, found {text!r:.80}")
        steps: list[str | int] = []
        at = start.end()
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise ValueError(f'expected .name, [0] or ["name"] behind {text[:at]!r:.80}, found {text[at:]!r:.80}')
            if step["index"] is not None:
                steps.append(int(step["index"]))
            elif step["key"] is not None:
                steps.append(str(json.loads(step["key"])))
            else:
                steps.append(step["name"] or step["quoted"])
            at = step.end()
        return cls(start[0], tuple(steps))

    def __str__(self) -> str:
        return self.root + "".join(map(_step_text, self.steps))

    def follow(self, value: JsonValue) -> JsonValue:
        """Return the value that the steps lead to; ``None`` if there is none."""
        for step in self.steps:
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        return value


def _step_text(step: str | int) -> str:
    if isinstance(step, str) and step.isidentifier() and step.isascii():
        return f".{step}"
    return f"[{json.dumps(step)}]"


class TextTemplate:
    """A text with paths in double braces, such as ``Answer: {{ fields.answer }}``."""

    def __init__(self, text: str) -> None:
        parts = _HOLE.split(text)
        self.texts: Sequence[str] = parts[::2]
        self.paths: Sequence[ValuePath] = [ValuePath.parse(inner) for inner in parts[1::2]]

    def missing(self, value_at: Callable[[ValuePath], JsonValue]) -> Sequence[ValuePath]:
        """Return the paths that lead to no value."""
        return [path for path in self.paths if value_at(path) is None]

    def fill(self, value_at: Callable[[ValuePath], JsonValue]) -> str:
        """Return the text with the values in their places. Values that are not texts are written as JSON."""
        filled = [self.texts[0]]
        for path, text in zip(self.paths, self.texts[1:], strict=True):
            filled += [value_text(value_at(path)), text]
        return "".join(filled)


def value_text(value: JsonValue) -> str:
    """Return a text as it is, any other value as JSON, and nothing for ``None``."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _response(sample: Sample, path: ValuePath) -> JsonValue:
    response = sample.trace.response
    if response is None or not path.steps:
        return response
    return path.follow(_parsed(response))


@lru_cache(maxsize=8)  # one scorer may read several values of a response
def _parsed(text: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed


def _tool_calls(sample: Sample, path: ValuePath) -> JsonValue:
    last = next((message for message in reversed(sample.trace.messages) if isinstance(message, AIMessage)), None)
    if last is None:
        return None
    return path.follow([{"name": call.name, "args": call.args} for call in last.tool_calls])


_ROOTS: dict[str, Callable[[Sample, ValuePath], JsonValue]] = {
    "response": _response,
    "reference": lambda sample, path: path.follow(sample.reference),
    "fields": lambda sample, path: path.follow(sample.fields),
    "tool_calls": _tool_calls,
}
SAMPLE_VALUES = tuple(_ROOTS)
"""The roots of paths in a sample.

``response``: the agent's last message, or with steps a value in it if it is JSON. ``reference``: the reference.
``fields.NAME``: a field. ``tool_calls``: the calls of the agent's last message, each with its ``name`` and ``args``.
"""


def sample_value(sample: Sample, path: ValuePath) -> JsonValue:
    """Return the value in a sample that a path leads to; ``None`` if there is none."""
    return _ROOTS[path.root](sample, path)


def sample_template(text: str) -> TextTemplate:
    """Return a template of values of a sample."""
    template = TextTemplate(text)
    for path in template.paths:
        if path.root not in _ROOTS or (path.root == "fields" and not path.steps):
            raise ValueError(
                f"{path} is not a value of a sample; these are response, reference, tool_calls, fields.NAME"
            )
    return template
