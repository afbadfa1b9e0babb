"""Messages that were moved out of spans: the AWS Distro for OpenTelemetry writes their contents into log records.

{"traceId": "1f", "spanId": "2e", "attributes": {"event.name": "openinference.instrumentation.langchain"},
 "body": {"input": {"messages": [{"role": "user", "content": "Hi"}]}, "output": {"messages": [...]}}}
"""

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.formats.values import lookup, objects_in, parse_if_json
from judgekit.traces.message import JsonObject

READ_TOGETHER_HINT = "read spans and log records together: cat spans.jsonl logs.jsonl > both.jsonl"
"""The remedy for a span whose message contents were moved into log records."""
_SIDES = ("input", "output")
_ROLE = re.compile(r"((llm\.(?:in|out)put_messages|gen_ai\.(?:prompt|completion))\.(\d{1,9})\.(?:message\.)?)role")
_RAW = {
    "openinference.span.kind": {"user": "input.value", "assistant": "output.value"},
    "traceloop.span.kind": {"user": "traceloop.entity.input", "assistant": "traceloop.entity.output"},
    "": {"system": "gen_ai.system_instructions", "user": "gen_ai.prompt", "assistant": "gen_ai.completion"},
}
"""The attributes with the whole input and the whole output, keyed by an attribute that such spans have."""
_STANDARD = _RAW[""] | {"user": "gen_ai.input.messages", "assistant": "gen_ai.output.messages"}
_EVENTS = tuple(f"gen_ai.{name}" for name in ("system.message", "user.message", "assistant.message", "tool.message"))


_ASKED = {"llm.input_messages": "user", "gen_ai.prompt": "unknown"}
_ANSWERED = {"llm.output_messages": "assistant", "gen_ai.completion": "unknown"}
"""The names of messages in attributes, and the role that their contents get from writers that ignore roles."""


class _Hole(NamedTuple):
    """A message in the attributes of a span whose content is missing."""

    prefix: str
    name: str
    role: str
    calls: bool

    def moved(self, *, by_role: bool) -> tuple[str, str]:
        """Return the side and the role that the content has in a log record."""
        side = "input" if self.name in _ASKED else "output"
        if not by_role:
            return side, (_ASKED | _ANSWERED)[self.name]
        sides = {"system": "input", "user": "input", "assistant": "output"}
        return sides.get(self.role, side), self.role


def holds_moved_messages(body: JsonValue) -> bool:
    """Return whether the body of a log record holds messages that were moved out of a span."""
    return isinstance(body, dict) and any(_messages(body, side) for side in _SIDES)


def restore_messages(attributes: JsonObject, body: JsonObject) -> tuple[JsonObject, list[JsonValue]] | None:
    """Return a span's attributes with the contents that were moved out of it, and its events.

    Only the order and the roles of the contents tell where they belong. Returns ``None`` if that is ambiguous.
    """
    if "event.name" in attributes:  # a span that was made from the log record
        return None
    filled = dict(attributes)
    events: list[tuple[str, JsonValue]] = []
    for side in _SIDES:
        texts: list[JsonObject] = []
        for message in _messages(body, side):
            role, content = str(message.get("role")), message.get("content")
            if isinstance(content, dict):  # the attributes of an event
                name = "gen_ai.choice" if "message" in content else f"gen_ai.{role}.message"
                events.append((name, {"name": name, "attributes": content}))
            elif _are_standard(content) and (name := _STANDARD.get(role, "")) and name not in filled:
                filled[name] = content
            else:
                texts.append(message)
        if texts and not _fill(filled, attributes, side, texts):
            return None
    events.sort(key=lambda event: _EVENTS.index(event[0]) if event[0] in _EVENTS else len(_EVENTS))
    return filled, [event for _, event in events]


def _fill(filled: JsonObject, attributes: JsonObject, side: str, texts: Sequence[JsonObject]) -> bool:
    """Fill in texts: first those of whole requests and responses, then those of messages, in order."""
    kind = next(kind for kind in _RAW if kind in attributes or not kind)
    roles, contents = [str(text.get("role")) for text in texts], [text.get("content") for text in texts]
    fitting: dict[tuple[str, ...], bool] = {}
    for by_role, with_calls in product((False, True), (True, False)):  # messages with tool calls may have no text
        holes = [hole for hole in _holes(attributes) if with_calls or not hole.calls]
        holes = [hole for hole in holes if hole.moved(by_role=by_role)[0] == side]
        raw = roles[: max(len(roles) - len(holes), 0)]
        same = roles[len(raw) :] == [hole.moved(by_role=by_role)[1] for hole in holes]
        if same and len(set(raw)) == len(raw) and _RAW[kind].keys() >= set(raw):
            names = [_RAW[kind][role] for role in raw] + [f"{hole.prefix}content" for hole in holes]
            whole = str(contents[0]).lstrip()[:1] in ("{", "[")
            held = all(map(partial(_holds, str(contents[0])), contents[len(raw) :]))
            fitting[tuple(names)] = whole and held if raw else not whole
    likely = [names for names, is_likely in fitting.items() if is_likely or len(fitting) == 1]
    if len(likely) == 1:
        filled |= dict(zip(likely[0], contents, strict=True))
    return len(likely) == 1


def _holds(whole: str, content: JsonValue) -> bool:
    """Return whether the text of a request or response contains the text of one of its messages."""
    text = str(content)
    return text in whole or any(json.dumps(text, ensure_ascii=plain)[1:-1] in whole for plain in (True, False))


def _holes(attributes: JsonObject) -> list[_Hole]:
    roles = [(match, str(attributes[name])) for name in attributes if (match := _ROLE.fullmatch(name))]
    return [
        _Hole(match[1], match[2], role, any(name.startswith(f"{match[1]}tool_calls") for name in attributes))
        for match, role in sorted(roles, key=lambda pair: (pair[0][2], int(pair[0][3])))
        if not any(name.startswith(f"{match[1]}content") for name in attributes)
    ]


def _messages(body: JsonObject, side: str) -> list[JsonObject]:
    return objects_in(lookup(body, side, "messages"))


def _are_standard(content: JsonValue) -> bool:
    """Return whether a text is JSON of OpenTelemetry messages or of their parts."""
    parts = parse_if_json(content) if isinstance(content, str) and content.startswith("[{") else None
    return isinstance(parts, list) and all(
        isinstance(part, dict) and ("parts" in part or "type" in part) for part in parts
    )
