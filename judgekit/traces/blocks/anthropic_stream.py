"""Responses of Anthropic's API that were recorded as the events in which they were streamed.

{"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], ...}}
{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
"""

from collections.abc import Iterable

from pydantic import JsonValue

from judgekit.traces.message import JsonObject

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def is_event(value: JsonValue) -> bool:
    """Whether this is an event of a streamed response."""
    kind = value.get("type") if isinstance(value, dict) else None
    return (
        isinstance(value, dict)
        and (kind in ("message_start", "message_delta", "content_block_start", "content_block_delta"))
        and ("message" in value or "delta" in value or "content_block" in value)
    )


def assembled(events: Iterable[JsonValue]) -> list[JsonObject]:
    """The responses that were streamed as these events, one after another. Events of no known kind are kept."""
    responses: list[_Streamed] = []
    for event in events:
        fields = event if isinstance(event, dict) else {}
        message = fields.get("message")
        if fields.get("type") == "message_start" and isinstance(message, dict):
            responses.append(_Streamed(message))
        else:
            if not responses:
                responses.append(_Streamed({"type": "message", "role": "assistant"}))
            responses[-1].add(event)
    return [response.whole() for response in responses]


class _Streamed:
    """A response that arrives piece by piece."""

    def __init__(self, message: JsonObject) -> None:
        content = message.get("content")
        self._message = dict(message)
        self._blocks: dict[int, JsonObject] = {}
        if isinstance(content, list):
            self._blocks = {index: dict(block) for index, block in enumerate(content) if isinstance(block, dict)}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._citations: dict[int, list[JsonValue]] = {}
        self._unknown: list[JsonValue] = []

    def add(self, event: JsonValue) -> None:
        fields = event if isinstance(event, dict) else {}
        kind, index, delta = fields.get("type"), fields.get("index"), fields.get("delta")
        block = fields.get("content_block")
        if kind in ("ping", "message_stop", "content_block_stop"):
            return
        if kind == "content_block_start" and isinstance(index, int) and isinstance(block, dict):
            self._blocks[index] = dict(block)
        elif kind == "message_delta" and isinstance(delta, dict):
            self._message |= {name: value for name, value in delta.items() if value is not None}
            self._message |= {name: fields[name] for name in fields if name not in ("type", "delta", "usage")}
            self._add_usage(fields.get("usage"))
        elif kind != "content_block_delta" or not (
            isinstance(index, int) and isinstance(delta, dict) and self._add_delta(index, delta)
        ):
            self._unknown.append(event)

    def whole(self) -> JsonObject:
        """The response, as it would have come in one piece."""
        for (index, name), pieces in self._pieces.items():
            block = self._blocks.setdefault(index, {"type": name})
            first = block.get(name)
            # A call starts with empty arguments, which the streamed text replaces.
            block[name] = "".join([first, *pieces] if isinstance(first, str) else pieces)
        for index, citations in self._citations.items():
            known = self._blocks[index].get("citations")
            self._blocks[index]["citations"] = [*(known if isinstance(known, list) else []), *citations]
        left: JsonObject = {"events": self._unknown} if self._unknown else {}
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)], **left}

    def _add_delta(self, index: int, delta: JsonObject) -> bool:
        """Whether the kind of delta is known."""
        kind = str(delta.get("type"))
        name = "input" if kind == "input_json_delta" else _DELTAS.get(kind)
        piece = delta.get("partial_json" if name == "input" else name) if name else None
        if name is not None and isinstance(piece, str):
            if piece:
                self._pieces.setdefault((index, name), []).append(piece)
            return True
        if kind == "citations_delta" and index in self._blocks:
            self._citations.setdefault(index, []).append(delta.get("citation"))
            return True
        if kind == "compaction_delta" and index in self._blocks:
            self._blocks[index].update({name: value for name, value in delta.items() if name != "type"})
            return True
        return False

    def _add_usage(self, usage: JsonValue) -> None:
        """Counts are cumulative; the last ones hold."""
        if isinstance(usage, dict):
            known = self._message.get("usage")
            known = known if isinstance(known, dict) else {}
            self._message["usage"] = {**known, **{name: value for name, value in usage.items() if value is not None}}
