import json
import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.sharegpt import ShareGPTReader
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition

READER = ShareGPTReader()

CALLED = '<tool_call>\n{"arguments": {"city": "Rome"}, "name": "weather"}\n</tool_call>'
RESULTS = '<tool_response>\n{"name": "weather", "content": {"t": 21}}\n</tool_response>\n<tool_response>\n22C\n</tool_response>'
ROW = {
    "id": "a",
    "system": "Be brief",
    "tools": '[{"name": "weather", "description": "d", "parameters": {"type": "object"}}]',
    "conversations": [
        {"from": "human", "value": "Weather in Rome?", "weight": 0.5},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Rome"}}'},
        {"from": "observation", "value": '{"t": 21}'},
        {"from": "gpt", "value": "21C"},
        {"from": "human", "value": "And Oslo?"},
        {"from": "gpt", "value": f"Let me see.\n{CALLED}\n{CALLED}"},
        {"from": "tool", "value": RESULTS},
    ],
    "images": ["a.png"],
}
WEATHER = ToolCall("weather", {"city": "Rome"})


def test_who_speaks_may_be_written_in_any_case():
    turns = [{"from": "FUNCTION_CALL", "value": '{"name": "f", "arguments": {}}'}, {"from": "GPT", "value": "x"}]
    assert READER.sample(turns, 0).trace.messages == (AIMessage(tool_calls=[ToolCall("f")]), AIMessage("x"))


def test_two_answers_beside_the_conversation_are_kept_and_told():
    row = {"conversations": [{"from": "human", "value": "well?"}], "system": "Be brief"}
    answers = {"chosen": {"from": "gpt", "value": "yes"}, "rejected": {"from": "gpt", "value": "no"}}
    trace = READER.sample(row | answers, 0).trace
    assert trace.messages == (SystemMessage("Be brief"), HumanMessage("well?"))
    assert ([warning.path for warning in trace.warnings], trace.extra) == (["chosen", "rejected"], answers)


def test_a_conversation_with_calls_of_both_kinds_is_read():
    assert detect(ROW).name == "sharegpt"
    sample = READER.sample(READER.records(ROW)[0], 0)
    trace = sample.trace
    assert trace.messages == (
        SystemMessage("Be brief"),
        HumanMessage("Weather in Rome?", extra={"weight": 0.5}),
        AIMessage(tool_calls=[WEATHER]),
        ToolMessage('{"t": 21}'),
        AIMessage("21C"),
        HumanMessage("And Oslo?"),
        AIMessage("Let me see.", tool_calls=[WEATHER, WEATHER]),
        ToolMessage('{"t": 21}', name="weather"),
        ToolMessage("22C"),
    )
    assert [
        (index, caller.message, caller.position) for index, caller in pair_results(trace.messages).calls.items()
    ] == [(3, 2, 0), (7, 6, 0), (8, 6, 1)]
    assert trace.tools == (ToolDefinition("weather", description="d", parameters={"type": "object"}),)
    assert (sample.id, trace.extra, trace.warnings) == ("a", {"images": ["a.png"]}, ())


TURNS = {
    "system": (("system", "s"), SystemMessage("s")),
    "user": (("user", "s"), HumanMessage("s")),
    "other names": (("ChatGPT", "s"), AIMessage("s")),
    "null": (("gpt", None), AIMessage()),
    "broken call": (
        ("gpt", '<tool_call>{"name": "f", "arguments": {"a": 1</tool_call>'),
        AIMessage(
            tool_calls=[
                ToolCall(name="f", args_raw='{"name": "f", "arguments": {"a": 1', args_error="the call is not JSON")
            ]
        ),
    ),
    "a call that is cut off": (
        ("gpt", "a <tool_call>{'name': 'f'"),
        AIMessage("a", tool_calls=[ToolCall(name="f", args_raw="{'name': 'f'", args_error="the call is not JSON")]),
    ),
    "no call": (("gpt", "write <tool_call>\nhere"), AIMessage("write <tool_call>\nhere")),
    "a call without a name": (("gpt", '<tool_call>{"a": 1}</tool_call>'), AIMessage('<tool_call>{"a": 1}</tool_call>')),
    "arguments in a text": (
        ("function_call", '{"name": "f", "arguments": "{\\"a\\": 1}", "id": 7, "x": 1}'),
        AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="7", extra={"x": 1})]),
    ),
    "several calls": (
        ("function_call", '[{"name": "f", "arguments": {}}, {"name": "g", "parameters": {"a": 1}}]'),
        AIMessage(tool_calls=[ToolCall("f"), ToolCall("g", {"a": 1})]),
    ),
    "a result that is no text": (("observation", {"t": 21}), ToolMessage('{"t": 21}')),
    "a result with text beside": (
        ("tool", "<tool_response>a</tool_response> b"),
        ToolMessage("<tool_response>a</tool_response> b"),
    ),
}


def test_a_turn_is_read_as_our_message():
    for turn, message in TURNS.values():
        speaker, value = turn
        for document in ([{"from": speaker, "value": value}], {"conversation": [{"from": speaker, "value": value}]}):
            assert detect(document).name == "sharegpt"
            assert READER.sample(READER.records(document)[0], 0).trace.messages == (message,)


def test_a_list_of_conversations_holds_many():
    turns = ROW["conversations"]
    for document in ([ROW, ROW], [turns, turns]):
        assert detect(document).name == "sharegpt"
        assert len(READER.records(document)) == 2


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ({"from": "martian", "value": "x"}, "conversations[0].from: expected one of system, human"),
        ({"from": "gpt", "value": 5}, "conversations[0].value: expected a string, found 5"),
        ({"from": "function_call", "value": "x"}, "conversations[0].value: expected a tool call with a name"),
        ({"from": "function_call", "value": '[{"name": "f"}, 5]'}, "conversations[0].value: expected a tool call"),
    ],
)
def test_an_error_says_where_and_what_was_found(turn, found):
    with pytest.raises(TraceError, match=re.escape(found)):
        READER.sample({"conversations": [turn]}, 0)
    with pytest.raises(TraceError, match="contains no messages"):
        READER.sample({"conversations": []}, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    """Calls and results are JSON and XML within the texts."""
    turns = [{"from": speaker, "value": value} for (speaker, value), _ in TURNS.values()]
    row = {**ROW, "conversations": [*ROW["conversations"], *turns]}
    intact(READER, row)
    hermes = json.dumps({"name": "weather", "arguments": {"city": "Rome"}, "x": 1})
    assert '"x": 1' in READER.sample([{"from": "gpt", "value": f"<tool_call>{hermes}"}], 0).model_dump_json(indent=1)
