"""Items of OpenAI's Responses API."""

import pytest

from judgekit import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_responses import read_items, tools_in_items
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.openai_responses import OpenAIResponsesReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition

PROVIDED = {"executor": "provider"}
TEXT = {"type": "output_text", "text": "x", "annotations": []}
SAID = {"type": "message", "role": "assistant", "content": [TEXT]}


def read(*items: dict) -> list:
    return read_items(FieldTracker({"input": list(items)}).objects("input"))


def called(name: str, args: dict, **extra: object) -> AIMessage:
    return AIMessage(tool_calls=[ToolCall(name, args, id="1", extra={"type": f"{name}_call", **extra})])


def answered(content: object, name: str, **fields: object) -> ToolMessage:
    extra = {"type": f"{name}_call_output", **fields.pop("extra", {})}
    return ToolMessage(content, tool_call_id="1", name=name, extra=extra, **fields)


def provided(name: str, args: dict, **extra: object) -> AIMessage:
    return AIMessage(tool_calls=[ToolCall(name, args, id="1", metadata=PROVIDED, extra=extra)])


ITEMS = {
    "a message of parts": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": "http://a", "detail": "low"},
                    {"type": "input_image", "file_id": "f"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
                    {"type": "input_file", "file_url": "http://b"},
                    {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                    {"type": "unheard", "of": 1},
                ],
            }
        ],
        [
            HumanMessage(
                [
                    TextPart("a"),
                    MediaPart(kind="image", url="http://a", extra={"detail": "low"}),
                    MediaPart(kind="image", extra={"file_id": "f"}),
                    MediaPart(kind="file", url="data:application/pdf;base64,AA", name="a.pdf"),
                    MediaPart(kind="file", url="http://b"),
                    MediaPart(kind="audio", data="AA", extra={"input_audio": {"format": "wav"}}),
                    OtherPart({"type": "unheard", "of": 1}),
                ]
            )
        ],
    ),
    "items of the assistant are one message": (
        [
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "a"}], "content": []},
            {**SAID, "id": "m1", "phase": "commentary"},
            {"type": "function_call", "id": "fc", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "reasoning", "summary": [], "encrypted_content": "zz"},
            {**SAID, "id": "m2", "content": [{"type": "refusal", "refusal": "no"}]},
        ],
        [
            AIMessage(
                [
                    ReasoningPart("a", extra={"id": "rs"}),
                    TextPart("x"),
                    ReasoningPart("", extra={"encrypted_content": "zz"}),
                    RefusalPart("no"),
                ],
                id="m1",
                tool_calls=[ToolCall("f", {"a": 1}, id="1", extra={"id": "fc"})],
                extra={"phase": "commentary", "messages": [{"id": "m2"}]},
            )
        ],
    ),
    "a result ends the assistant's message": (
        [
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""},
            {"type": "function_call", "call_id": "2", "name": "f", "arguments": '{"a":'},
            {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "b"}]},
            {"type": "function_call_output", "call_id": "1", "output": None},
            SAID,
        ],
        [
            AIMessage(tool_calls=[ToolCall("f", id="1"), ToolCall("f", '{"a":', id="2")]),
            ToolMessage("b", tool_call_id="2"),
            ToolMessage("", tool_call_id="1"),
            AIMessage("x"),
        ],
    ),
    "reasoning in the open beside its summary": (
        [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "s"}],
                "content": [{"type": "reasoning_text", "text": "a"}, {"type": "reasoning_text", "text": "b"}],
            }
        ],
        [AIMessage([ReasoningPart("a\n\nb", extra={"summary": [{"type": "summary_text", "text": "s"}]})])],
    ),
    "a custom tool": (
        [
            {"type": "custom_tool_call", "call_id": "1", "name": "sql", "input": "select 1"},
            {"type": "custom_tool_call_output", "call_id": "1", "output": "1"},
        ],
        [
            AIMessage(tool_calls=[ToolCall("sql", {"input": "select 1"}, id="1", extra={"type": "custom_tool_call"})]),
            ToolMessage("1", tool_call_id="1", extra={"type": "custom_tool_call_output"}),
        ],
    ),
    "sources of a web search": (
        [
            {
                "type": "web_search_call",
                "id": "1",
                "status": "completed",
                "action": {"type": "search", "sources": [{"type": "url", "url": "u"}]},
            },
            SAID,
        ],
        [
            provided("web_search", {"type": "search"}, type="web_search_call", status="completed"),
            ToolMessage('[{"type": "url", "url": "u"}]', tool_call_id="1", name="web_search", is_error=False),
            AIMessage("x"),
        ],
    ),
    "a file search": (
        [{"type": "file_search_call", "id": "1", "queries": ["q"], "status": "completed", "results": [{"text": "t"}]}],
        [
            provided("file_search", {"queries": ["q"]}, type="file_search_call", status="completed"),
            ToolMessage('[{"text": "t"}]', tool_call_id="1", name="file_search", is_error=False),
        ],
    ),
    "a code interpreter": (
        [
            {
                "type": "code_interpreter_call",
                "id": "1",
                "code": "1+1",
                "container_id": "c",
                "outputs": [{"type": "logs", "logs": "2"}, {"type": "image", "url": "u"}],
            }
        ],
        [
            provided("code_interpreter", {"code": "1+1"}, type="code_interpreter_call", container_id="c"),
            ToolMessage(
                [TextPart("2"), MediaPart(kind="image", url="u", extra={"type": "image"})],
                tool_call_id="1",
                name="code_interpreter",
            ),
        ],
    ),
    "a generated image": (
        [{"type": "image_generation_call", "id": "1", "revised_prompt": "cat", "output_format": "png", "result": "AA"}],
        [
            provided("image_generation", {"revised_prompt": "cat"}, type="image_generation_call", output_format="png"),
            ToolMessage(
                [MediaPart(kind="image", data="AA", mime_type="image/png")], tool_call_id="1", name="image_generation"
            ),
        ],
    ),
    "a call to an MCP server": (
        [{"type": "mcp_call", "id": "1", "name": "f", "arguments": '{"a": 1}', "server_label": "s", "output": "ok"}],
        [provided("f", {"a": 1}, type="mcp_call", server_label="s"), ToolMessage("ok", tool_call_id="1", name="f")],
    ),
    "a failed call to an MCP server": (
        [
            {
                "type": "mcp_call",
                "id": "1",
                "name": "f",
                "arguments": "{}",
                "error": {"type": "http_error", "code": 500, "message": "down"},
            }
        ],
        [
            provided("f", {}, type="mcp_call"),
            ToolMessage(
                "down", tool_call_id="1", name="f", is_error=True, extra={"error": {"type": "http_error", "code": 500}}
            ),
        ],
    ),
    "a call to an MCP server that failed in texts": (
        [
            {
                "type": "mcp_call",
                "id": "1",
                "name": "f",
                "arguments": "{}",
                "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "down"}]},
            }
        ],
        [
            provided("f", {}, type="mcp_call"),
            ToolMessage(
                "down", tool_call_id="1", name="f", is_error=True, extra={"error": {"type": "mcp_tool_execution_error"}}
            ),
        ],
    ),
    "a call to an MCP server that gave something before it failed": (
        [{"type": "mcp_call", "id": "1", "name": "f", "arguments": "{}", "output": "half", "error": "down"}],
        [
            provided("f", {}, type="mcp_call"),
            ToolMessage("half", tool_call_id="1", name="f", is_error=True, extra={"error": "down"}),
        ],
    ),
    "a hosted call that failed without a word": (
        [{"type": "web_search_call", "id": "1", "status": "failed"}],
        [
            provided("web_search", {}, type="web_search_call", status="failed"),
            ToolMessage("", tool_call_id="1", name="web_search", is_error=True),
        ],
    ),
    "a computer": (
        [
            {"type": "computer_call", "id": "cu", "call_id": "1", "action": {"type": "click", "x": 1}},
            {
                "type": "computer_call_output",
                "call_id": "1",
                "output": {"type": "computer_screenshot", "image_url": "u"},
            },
        ],
        [
            called("computer", {"type": "click", "x": 1}, id="cu"),
            answered([MediaPart(kind="image", url="u", extra={"type": "computer_screenshot"})], "computer"),
        ],
    ),
    "a shell": (
        [
            {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}},
            {
                "type": "shell_call_output",
                "call_id": "1",
                "output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}],
            },
        ],
        [
            called("shell", {"commands": ["ls"]}),
            answered(
                '[{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}]', "shell", is_error=True
            ),
        ],
    ),
    "a local shell, whose output names the call by its own id": (
        [
            {"type": "local_shell_call", "call_id": "1", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "1", "output": "a"},
        ],
        [
            called("local_shell", {"type": "exec", "command": ["ls"]}),
            answered("a", "local_shell"),
        ],
    ),
    "a patch": (
        [
            {"type": "apply_patch_call", "call_id": "1", "operation": {"type": "delete_file", "path": "p"}},
            {"type": "apply_patch_call_output", "call_id": "1", "status": "failed", "output": "no"},
        ],
        [
            called("apply_patch", {"type": "delete_file", "path": "p"}),
            answered("no", "apply_patch", is_error=True, extra={"status": "failed"}),
        ],
    ),
    "a program that calls a tool": (
        [
            {"type": "program", "call_id": "p", "code": "f()"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", "caller": {"caller_id": "p"}},
            {"type": "function_call_output", "call_id": "1", "output": "1"},
            {"type": "program_output", "call_id": "p", "result": "2"},
        ],
        [
            AIMessage(
                tool_calls=[
                    ToolCall("program", {"code": "f()"}, id="p", metadata=PROVIDED, extra={"type": "program"}),
                    ToolCall("f", id="1", extra={"caller": {"caller_id": "p"}}),
                ]
            ),
            ToolMessage("1", tool_call_id="1"),
            ToolMessage("2", tool_call_id="p", name="program", extra={"type": "program_output"}),
        ],
    ),
    "a search for tools by the provider, without ids": (
        [
            {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"q": 1}},
            {"type": "tool_search_output", "execution": "server", "tools": [{"type": "function", "name": "f"}]},
        ],
        [
            AIMessage(
                tool_calls=[
                    ToolCall(
                        "tool_search",
                        {"q": 1},
                        metadata=PROVIDED,
                        extra={"type": "tool_search_call", "execution": "server"},
                    )
                ]
            ),
            ToolMessage(
                '[{"type": "function", "name": "f"}]',
                name="tool_search",
                extra={"type": "tool_search_output", "execution": "server"},
            ),
        ],
    ),
    "approvals": (
        [
            {"type": "mcp_approval_request", "id": "1", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "1", "approve": True},
        ],
        [
            AIMessage([OtherPart({"type": "mcp_approval_request", "id": "1", "name": "f", "arguments": "{}"})]),
            HumanMessage([OtherPart({"type": "mcp_approval_response", "approval_request_id": "1", "approve": True})]),
        ],
    ),
    "spelled as in JavaScript": (
        [
            {"type": "hosted_tool_call", "id": "1", "name": "web_search_call", "status": "completed", "output": "o"},
            {"type": "function_call", "callId": "2", "name": "f", "arguments": "{}"},
            {"type": "function_call_result", "callId": "2", "name": "f", "output": {"type": "text", "text": "t"}},
            {"type": "program", "callId": "3", "code": "g()"},
            {"type": "program_output", "callId": "3", "output": "p"},
            {"type": "reasoning", "content": [{"type": "input_text", "text": "r"}], "rawContent": []},
        ],
        [
            provided("web_search_call", {}, type="hosted_tool_call", status="completed"),
            ToolMessage("o", tool_call_id="1", name="web_search_call", is_error=False),
            AIMessage(tool_calls=[ToolCall("f", id="2")]),
            ToolMessage("t", tool_call_id="2", name="f", extra={"type": "function_call_result"}),
            AIMessage(
                tool_calls=[ToolCall("program", {"code": "g()"}, id="3", metadata=PROVIDED, extra={"type": "program"})]
            ),
            ToolMessage("p", tool_call_id="3", name="program", extra={"type": "program_output"}),
            AIMessage([ReasoningPart("r")]),
        ],
    ),
}


def test_items_are_read_as_messages():
    for items, messages in ITEMS.values():
        made = read(*items)
        assert made == messages
        assert pair_results(made).orphans == ()


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"type": "item_reference", "id": "1"}, "part of the history is not in the file, only this item ref"),
        ({"type": "compaction", "encrypted_content": "x"}, "part of the history is not in the file, only this c"),
        ({"type": "new_kind", "x": 1}, "unknown item type 'new_kind', kept as is"),
    ],
)
def test_what_an_item_does_not_say_is_told(item, told):
    found = FieldTracker({"input": [item]})
    assert read_items(found.objects("input")) == [AIMessage([OtherPart(item)])]
    [warning] = found.warnings
    assert (warning.message[: len(told)], warning.path) == (told, "input[0]")


def test_what_makes_the_provider_compact_is_known():
    found = FieldTracker({"input": [{"type": "compaction_trigger"}]})
    assert read_items(found.objects("input")) == [AIMessage([OtherPart({"type": "compaction_trigger"})])]
    assert found.warnings == []


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ({"role": "tool", "content": "x"}, "input[0].role: expected one of system, developer, user, assistant"),
        ({"content": "x"}, "input[0].role: expected one of"),
        ({"type": 5}, "input[0].type: expected an item type, found 5"),
        ({"role": "user", "content": 5}, "input[0].content: expected a string or a list of parts, found 5"),
        ({"type": "function_call", "call_id": "1"}, "input[0].name: expected a tool name, found nothing"),
    ],
)
def test_what_scores_depend_on_must_be_there(item, found):
    with pytest.raises(TraceError) as error:
        read(item)
    assert str(error.value).startswith(found)


def test_tools_that_are_defined_on_the_way_are_found():
    listed = {"type": "mcp_list_tools", "tools": [{"name": "a", "input_schema": {"type": "object"}}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "b"}]}
    assert tools_in_items([listed, added, SAID, 5]) == [
        ToolDefinition("a", parameters={"type": "object"}),
        ToolDefinition("b"),
    ]


@pytest.mark.parametrize(
    ("outcomes", "is_error"),
    [
        ([{"type": "exit", "exit_code": 0}, {"type": "timeout"}], True),
        ([{"type": "exit", "exit_code": 0}, {"type": "exit", "exit_code": 0}], False),
        ([], None),
    ],
)
def test_a_shell_failed_if_one_of_its_commands_did_or_took_too_long(outcomes, is_error):
    output = [{"stdout": "", "stderr": "", "outcome": outcome} for outcome in outcomes]
    [result] = read({"type": "shell_call_output", "call_id": "1", "output": output})
    assert result.is_error is is_error


def test_damaged_items_are_read_or_refused(crashes):
    assert crashes(OpenAIResponsesReader(), [item for items, _ in ITEMS.values() for item in items], 200) == []
