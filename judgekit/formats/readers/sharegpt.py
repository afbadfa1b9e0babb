r"""ShareGPT conversations, with tool calls in the form of LLaMA-Factory or in the XML of Hermes.

{"conversations": [{"from": "human", "value": "Weather?"}, {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}"},
  {"from": "observation", "value": "21C"}, {"from": "gpt", "value": "21C"}], "system": "...", "tools": "[{\"name\": \"f\", ...}]"}
{"from": "gpt", "value": "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"}, {"from": "tool", "value": "<tool_response>..."}
"""

import re

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_call
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, as_records, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, head, parse_if_json
from judgekit.traces.message import AIMessage, HumanMessage, Message, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.sample import Sample

_SPEAKERS: dict[str, type[SystemMessage | HumanMessage | AIMessage | ToolMessage]] = {
    "system": SystemMessage,
    **dict.fromkeys(("human", "user"), HumanMessage),
    **dict.fromkeys(("gpt", "assistant", "bot", "chatgpt", "bard", "bing", "model", "function_call"), AIMessage),
    **dict.fromkeys(("observation", "tool", "function", "function_response", "tool_response", "ipython"), ToolMessage),
}
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_RESULT = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)
_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"']+)["']""")


class ShareGPTReader(MessagesReader):
    """A reader of turns. Each is a message, and one with several tool results is a message for each."""

    name = "sharegpt"
    shape = 'sharegpt: {"conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}]}'

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Recognize turns by ``from`` and ``value``."""
        row = document if isinstance(document, dict) else {"conversations": document}
        turns = head(row.get("conversations") or row.get("conversation"))
        return bool(turns) and all({"from", "value"} <= as_object(turn).keys() for turn in turns)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation."""
        row = FieldTracker.of({"conversations": record} if isinstance(record, list) else record)
        messages = [message for turn in row.objects("conversations", "conversation") for message in _read(turn)]
        if system := row.text("system"):
            messages.insert(0, SystemMessage(system))
        if not messages:
            raise TraceError("contains no messages")
        row.unpack("tools")
        trace = {"messages": messages, "tools": read_tools(row.optional_objects("tools"))}
        return build_sample(row, index, trace, identity=row.id("id"))


def _read(turn: FieldTracker) -> list[Message]:
    speaker, value = turn.peek("from"), turn.peek("value")
    kind = _SPEAKERS.get(speaker.lower()) if isinstance(speaker, str) else None
    if kind is None:
        raise turn.type_error("from", f"one of {', '.join(_SPEAKERS)}")
    if kind is not ToolMessage and value is not None and not isinstance(value, str):
        raise turn.type_error("value", "a string")
    turn.take("from")
    text = "" if value is None else to_text(value)
    messages: list[Message]
    if str(speaker).lower() == "function_call":
        calls = _calls(text)
        if not calls:
            raise turn.type_error("value", "a tool call with a name")
        messages = [AIMessage(tool_calls=calls)]
    elif kind is AIMessage:
        messages = [_answer(text)]
    elif kind is ToolMessage:
        messages = _results(text)
    else:
        messages = [kind(text)]
    turn.take("value")
    extra = turn.leftover()
    return [messages[0].model_copy(update={"extra": extra}), *messages[1:]] if extra else messages


def _answer(text: str) -> AIMessage:
    """Return an answer and its calls in XML. A call without a tool name stays text."""
    calls: list[ToolCall] = []

    def taken(match: re.Match[str]) -> str:
        own = _calls(match[1])
        calls.extend(own)
        return "" if own else match[0]

    rest = _CALL.sub(taken, text)
    return AIMessage(rest.strip() if calls else text, tool_calls=calls)


def _calls(text: str) -> list[ToolCall]:
    """Return the calls in a text: an object or a list. A malformed call is kept as text if it names its tool."""
    parsed = as_records(_parsed(text))
    if all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in parsed):
        return [read_call(FieldTracker.of(call), args=("arguments", "args", "parameters")) for call in parsed]
    named = _NAME.search(text)
    if named is None or parsed != [None]:
        return []
    return [ToolCall(named[1], args_raw=text.strip(), args_error="the call is not JSON")]


def _results(text: str) -> list[Message]:
    responses = _RESULT.findall(text)
    alone = bool(responses) and not _RESULT.sub("", text).strip()
    return [_result(inner) for inner in responses] if alone else [ToolMessage(text)]


def _result(text: str) -> ToolMessage:
    value = _parsed(text)
    if isinstance(value, dict) and value.keys() == {"name", "content"} and isinstance(name := value["name"], str):
        return ToolMessage(to_text(value["content"]), name=name)
    return ToolMessage(text.strip())


def _parsed(text: str) -> JsonValue:
    return None if (value := parse_if_json(text)) is text else value
