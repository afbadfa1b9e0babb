"""Messages in the attributes of OpenInference's spans, flat or nested.

{"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.contents.0.message_content.type": "text", ...}
{"llm": {"input_messages": [{"message": {"role": "user", "content": "Hi"}}]}}, or with names such as "message.role" within
"""

from typing import Literal

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.blocks.choices import first_choice
from judgekit.traces.blocks.reply import content_of
from judgekit.traces.found import Found
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    parse_arguments,
)
from judgekit.traces.spans import CUT_OFF, nested
from judgekit.traces.trace import ToolDefinition

_ROLES: dict[str, type[SystemMessage | HumanMessage | AIMessage | ToolMessage]] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "agent": AIMessage,
    "ai": AIMessage,
    "model": AIMessage,
    "tool-call": AIMessage,  # smolagents repeats calls as text
    "tool": ToolMessage,
    "function": ToolMessage,
    "tool-response": ToolMessage,
}
_WRITE = 'spans.to_json("spans.jsonl", orient="records", lines=True)'
_MEDIA: dict[str, Literal["image", "audio", "video", "file"]] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "document": "file",
}


def read_messages(attributes: Found, name: str, otherwise: str | None = None) -> list[Message]:
    """The messages of an attribute.

    Args:
        attributes: The span's attributes.
        name: The attribute: ``llm.input_messages`` or ``llm.output_messages``.
        otherwise: The role of messages that have none.

    Raises:
        TraceError: One has no known role, a content that is no text, or a tool call without a name.
    """
    return [_message(item, otherwise) for item in objects(attributes, name)]


def read_answers(attributes: Found) -> list[Message]:
    """The answer of a model, of several the first; raises as `read_messages` does."""
    name = "llm.output_messages"
    asked = Found({"parameters": attributes.peek("llm.invocation_parameters")})
    asked.unpack("parameters")
    parameters = asked.peek("parameters")
    several = isinstance(parameters, dict) and parameters.get("n") not in (None, 1)
    return first_choice(read_messages(attributes, name, "assistant"), attributes, name, several=several)


def read_tools(attributes: Found) -> list[ToolDefinition]:
    """The definitions of the tools that a model could call, whichever provider's they are.

    Those that are none stay where they are, and a warning says so.
    """
    name = "llm.tools"
    given = {one: attributes.peek(one) for one in attributes if one == name or one.startswith(f"{name}.")}
    try:
        tools = [_tool(item) for item in objects(Found(given, attributes.where, attributes.warnings), name)]
    except TraceError as error:
        attributes.warn(f"{error.found}; kept as it stands", name)
        return []
    nested(attributes, name)
    return tools


def read_usage(attributes: Found) -> Usage | None:
    """Token counts. Other counts and costs are kept."""
    counts = {
        "input_tokens": attributes.count("llm.token_count.prompt"),
        "output_tokens": attributes.count("llm.token_count.completion"),
        "cached_tokens": attributes.count("llm.token_count.prompt_details.cache_read"),
        "reasoning_tokens": attributes.count("llm.token_count.completion_details.reasoning"),
    }
    others = {name: attributes.take(name) for name in attributes if name.startswith(("llm.token_count.", "llm.cost."))}
    told = others or any(count is not None for count in counts.values())
    return Usage.model_validate({**counts, "extra": others}) if told else None


def objects(attributes: Found, name: str) -> list[Found]:
    """The objects of an attribute that is a list, in whichever way it is written."""
    whole = name in attributes  # then it is no list of names with indexes
    value = nested(attributes, name)
    found = Found({name: _undotted(value) if whole else value}, attributes.where, attributes.warnings)
    found.unpack(name)
    if isinstance(found.peek(name), str):
        raise found.unfit(name, f"a list ({CUT_OFF}; or of a CSV file? write {_WRITE})")
    return found.objects(name)


def _undotted(value: JsonValue) -> JsonValue:
    """Objects without dots in their names: within lists, some exporters leave the names as they were."""
    if isinstance(value, list):
        return [_undotted(item) for item in value]
    if isinstance(value, dict):
        return nested(Found({f".{name}": _undotted(inner) for name, inner in value.items()}), "") or {}
    return value


def _message(item: Found, otherwise: str | None) -> Message:
    found = item.object("message") or item
    role = found.peek("role") or otherwise
    kind = _ROLES.get(role.lower()) if isinstance(role, str) else None
    if kind is None:
        raise found.unfit("role", f"one of {', '.join(_ROLES)}")
    if kind is HumanMessage and "tool_call_id" in found:  # of providers whose results are the user's
        kind = ToolMessage
    calls = [] if kind in (SystemMessage, ToolMessage) else _calls(found)
    fields: dict[str, object] = {"content": content_of(_content(found, calls))}
    if kind is ToolMessage:
        fields |= {"tool_call_id": found.identity("tool_call_id"), "name": found.text("name", "function_call_name")}
    elif kind is not SystemMessage:
        fields |= {"name" if kind is HumanMessage else "agent": found.text("name"), "tool_calls": calls}
    elif role == "developer":
        fields["role"] = role
    if role in ("system", "developer", "user", "assistant", "tool"):
        found.take("role")
    return kind.model_validate({**fields, "extra": item.leftover()})


def _content(found: Found, calls: list[ToolCall]) -> list[Part]:
    """The parts; calls among them that do not stand beside them too are added to the calls."""
    beside = list(calls)
    parts = [part for item in found.objects("contents") if (part := _part(item, calls, beside)) is not None]
    content = found.peek("content")
    if content is None:
        return parts
    if not isinstance(content, str):
        raise found.unfit("content", "a text")
    found.take("content")
    said = [part.text for part in parts if isinstance(part, TextPart)]
    return parts if content in ("", "".join(said), "\n".join(said)) else [TextPart(content), *parts]


def _part(item: Found, calls: list[ToolCall], beside: list[ToolCall]) -> Part | None:
    found = item.object("message_content") or item
    kind = found.peek("type")
    if kind == "tool_use" and isinstance(found.peek("tool_use") or item.peek("tool_call"), dict):
        found.take("type")
        return _called(_call(item, found.object("tool_use") or item.object("tool_call") or item), calls, beside)
    if kind in ("text", "reasoning") and isinstance(found.peek("text"), str | None):
        found.take("type")
        part = TextPart if kind == "text" else ReasoningPart
        return part(found.text("text") or "", extra=item.leftover())
    if isinstance(kind, str) and kind in _MEDIA and isinstance(found.peek(kind), dict):
        found.take("type")
        return _media(item, found, kind)
    return OtherPart(item.leftover())


def _media(item: Found, found: Found, kind: str) -> MediaPart:
    outer = found.object(kind) or found
    inner = outer.object(kind) or outer
    return MediaPart(
        kind=_MEDIA[kind],
        url=inner.text("url"),
        mime_type=inner.text("mime_type"),
        name=inner.text("name"),
        extra=item.leftover(),
    )


def _called(call: ToolCall, calls: list[ToolCall], beside: list[ToolCall]) -> Part | None:
    """Adds a call that stands among the parts, unless it is one of those beside them."""
    same = next((one for one in beside if one.id == call.id and (one.id or one.name == call.name)), None)
    if same is None:
        calls.append(call)
        return None
    beside.remove(same)
    plain = same.model_copy(update={"extra": call.extra})
    return None if call == plain and not call.extra else OtherPart(call.model_dump(mode="json", exclude_defaults=True))


def _calls(found: Found) -> list[ToolCall]:
    calls = [_call(item, item.object("tool_call") or item) for item in found.objects("tool_calls")]
    if "function_call_name" in found:  # from before there were several
        given = parse_arguments(found.take("function_call_arguments_json"))
        calls.append(ToolCall.model_validate({"name": found.text("function_call_name"), **given}))
    return calls


def _call(item: Found, found: Found) -> ToolCall:
    function = found.object("function") or found
    identity, name = found.identity("id"), function.peek("name")
    if not isinstance(name, str):
        raise function.unfit("name", "the name of a tool")
    function.take("name")
    given = parse_arguments(function.take("arguments", "input"))
    return ToolCall.model_validate({"name": name, "id": identity, **given, "extra": item.leftover()})


def _tool(item: Found) -> ToolDefinition:
    tool = item.object("tool") or item
    tool.unpack("json_schema")
    schema = tool.object("json_schema") or tool
    if schema.peek("type") == "function":
        schema.take("type")
    function = schema.object("function", "toolSpec") or schema
    return ToolDefinition(
        function.text("name") or tool.text("name") or "",
        description=function.text("description") or tool.text("description"),
        parameters=function.take("parameters", "input_schema", "inputSchema"),
        extra=item.leftover(),
    )
