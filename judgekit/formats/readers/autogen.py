r"""Messages of AutoGen: those of a team, those of an agent's model context, and the logs of Magentic-One.

[{"type": "TextMessage", "source": "user", "content": "Weather?", "models_usage": null, ...},
 {"type": "ToolCallRequestEvent", "source": "agent", "content": [{"id": "c1", "name": "weather", "arguments": "{}"}], ...},
 {"type": "ToolCallExecutionEvent", "source": "agent", "content": [{"call_id": "c1", "content": "rain", "is_error": false}], ...}]
[{"role": "human", "content": "Weather?"}, {"role": "Orchestrator (-> WebSurfer)", "content": "Look it up."}]
"""

import re
from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.framework import FrameworkReader, read_restated
from judgekit.formats.readers.who_when import read_turn
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, objects_in, str_or_none, without
from judgekit.traces.message import JsonObject, Message

_CALLS = ("ToolCallRequestEvent", "AssistantMessage")
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_PLAIN = ("TextMessage", "MultiModalMessage", "UserMessage", "SystemMessage", *_CALLS, *_RESULTS)
"""Types that the message shows without being named."""
_TYPES = {*_PLAIN, "StopMessage", "HandoffMessage", "ToolCallSummaryMessage", "ThoughtEvent", "MemoryQueryEvent"}
_ASIDE = (
    *("UserInputRequestedEvent", "MemoryQueryEvent", "SelectSpeakerEvent", "SelectorEvent"),
    "ModelClientStreamingChunkEvent",
)
"""Types of events that are no messages."""


class AutoGenReader(FrameworkReader):
    """A reader of messages of AutoGen. Every source is an agent except the user and proxies of users."""

    name = "autogen"
    shape = 'autogen: [{"type": "TextMessage", "source": "user", "content": ...}, ...], or {"messages": [...], "stop_reason": ...}'

    def is_message(self, message: JsonObject, /) -> bool:
        """Recognize messages by their types, and those of Magentic-One by the role of the human."""
        if "type" not in message:
            return message.get("role") == "human" and isinstance(message.get("content"), str)
        kind = str_or_none(message["type"])
        return kind in _TYPES and (
            "source" in message or kind in ("FunctionExecutionResultMessage", "AssistantMessage")
        )

    def messages(self, row: FieldTracker) -> list[Message]:
        """Take the messages of a row. Events that are no messages are kept, with a warning."""
        recorded = row.objects("messages")
        kinds = [str_or_none(message.peek("type")) or "" for message in recorded]
        asking = [message.peek("source") for message, kind in zip(recorded, kinds, strict=True) if kind == _ASIDE[0]]
        messages: list[Message] = []
        aside: Counter[str] = Counter()
        for message, kind in zip(recorded, kinds, strict=True):
            if "source" not in message and isinstance(message.peek("role"), str):
                messages.append(read_turn(message))
            elif kind in _ASIDE:
                aside[kind] += kind != _ASIDE[0]
            else:
                fields = message.leftover()
                if fields.get("source") in asking:
                    fields["role"] = "user"
                messages += read_restated(self.restated(fields), message.path, row.warnings)
        if kept := ", ".join(f"{count} {kind}" for kind, count in aside.items() if count):
            row.warn(f"events that are not messages, kept in extra: {kept}", "messages")
        return messages

    def restated(self, message: JsonObject, /) -> Sequence[JsonObject]:
        """Return one message, or the results in it."""
        kind, content, source = message.get("type"), message.get("content"), message.get("source")
        names = {"models_usage": "usage", "created_at": "timestamp"}
        fields = {names.get(name, name): field for name, field in message.items() if field not in ({}, [])}
        if kind in _PLAIN:
            del fields["type"]
        if kind in _RESULTS:
            return [
                {
                    **(without(fields, "usage") if number == 0 else {}),
                    "role": "tool",
                    "tool_call_id": outcome.get("call_id"),
                    **without(outcome, "call_id"),
                }
                for number, outcome in enumerate(objects_in(content))
            ]
        if kind == "SystemMessage":
            return [{**fields, "role": "system"}]
        by_user = isinstance(source, str) and re.sub(r"\W|_", "", source).lower() in ("user", "human", "userproxy")
        role = message.get("role") or ("user" if by_user and kind not in _CALLS else "assistant")
        fields |= {"role": role, "name": fields.pop("source", None)}
        if kind in _CALLS and isinstance(content, list):
            fields |= {"content": None, "tool_calls": content}
        elif kind == "ThoughtEvent":
            fields |= {"content": None, "reasoning_content": content}
        elif isinstance(content, list):
            fields["content"] = list(map(_part, content))
        elif isinstance(ran := message.get("result"), dict) and content is None:  # code that was run
            fields |= {"content": ran.get("output"), "result": without(ran, "output")}
        elif isinstance(content, dict):
            fields["content"] = to_text(content)
        if "thought" in fields:
            fields["reasoning_content"] = fields.pop("thought")
        if "tool_calls" in message:  # of a summary, which repeats them
            fields |= {"tool_calls": None, "summary_of": message["tool_calls"]}
        return [fields]


def _part(part: JsonValue) -> JsonValue:
    encoded = as_object(part).get("data")
    if not isinstance(part, dict) or not isinstance(encoded, str):
        return part
    url = encoded if ":" in encoded else f"data:image/png;base64,{encoded}"
    return {"type": "image_url", "image_url": {"url": url}, **without(part, "data")}
