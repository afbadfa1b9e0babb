import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.toolbench import ToolBenchReader
from judgekit.traces.message import AIMessage, HumanMessage, ReasoningPart, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.recording import Label, ToolDefinition, TraceWarning

READER = ToolBenchReader()


def calls(name, arguments):
    return {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": arguments}}


PATH = [
    {"role": "system", "content": "You can use tools."},
    {"role": "user", "content": "A quote?", "valid": False},
    calls("quote", "{'topic': broken"),
    {"role": "function", "name": "quote", "content": '{"error": "", "response": "Be."}'},
    calls("Finish", '{"return_type": "give_answer", "final_answer": "Be."}'),
]
FILE = {
    "win": True,
    "tree": {"size": 2, "tree": {"node_type": "Action", "description": "other", "children": []}},
    "compare_candidates": [],
    "answer_generation": {
        "valid_data": True,
        "query_count": 5,
        "total_tokens": 4389,
        "final_answer": "Be.",
        "finish_type": "give_answer",
        "function": [{"name": "quote", "description": "d", "parameters": {"type": "object"}}],
        "train_messages": [PATH[:3], PATH],
    },
}
UNFINISHED = {"win": False, "tree": {}, "answer_generation": {"valid_data": False, "final_answer": "", "function": []}}


def test_the_last_list_is_the_path_that_was_taken():
    assert detect(FILE).name == "toolbench"
    sample = READER.sample(READER.records(FILE)[0], 2)
    trace = sample.trace
    assert trace.messages == (
        SystemMessage("You can use tools."),
        HumanMessage("A quote?", extra={"valid": False}),
        AIMessage(tool_calls=[ToolCall("quote", "{'topic': broken")]),
        ToolMessage('{"error": "", "response": "Be."}', name="quote"),
        AIMessage("Be.", extra={"Finish": {"return_type": "give_answer"}}),
    )
    assert trace.response == "Be."
    assert [made.call.name for made in trace.tool_calls()] == ["quote"]
    assert trace.labels == (Label("win", value=True, source="benchmark"),)
    assert trace.tools == (ToolDefinition("quote", description="d", parameters={"type": "object"}),)
    assert (sample.id, trace.termination) == ("2", "give_answer")
    assert trace.warnings == (TraceWarning("other branches of the search are kept in extra"),)
    assert trace.extra["tree"] == FILE["tree"]
    assert trace.extra["answer_generation"] == {
        "valid_data": True, "query_count": 5, "total_tokens": 4389, "final_answer": "Be."
    }  # fmt: skip


def ended(arguments, content=None):
    last = {**calls("Finish", arguments), "content": content}
    answer = {**FILE["answer_generation"], "train_messages": [[*PATH[:-1], last]]}
    return READER.sample({"answer_generation": answer}, 0).trace


@pytest.mark.parametrize(
    ("arguments", "content", "answer"),
    [
        ('{"return_type": "give_answer", "final_answer": "Be."}', "I know.", "Be."),
        ({"return_type": "give_answer", "final_answer": {"quote": "Be."}}, None, '{"quote": "Be."}'),
        ({"return_type": "give_answer"}, "I know.", ""),
        ({"return_type": "give_up_and_restart"}, "I am lost.", ""),
        ({"return_type": "give_up_and_restart", "final_answer": "Be."}, None, ""),
        ({}, None, ""),
    ],
)
def test_the_answer_is_what_finish_was_called_with_unless_the_agent_gave_up(arguments, content, answer):
    trace = ended(arguments, content)
    last = trace.messages[-1]
    assert (trace.response, last.tool_calls, trace.warnings) == (answer, (), ())
    assert [part.text for part in last.content if part == ReasoningPart(content or "")] == (
        [content] if content else []
    )
    if answer == "":
        assert last.extra["Finish"] == arguments


def test_an_answer_that_cannot_be_read_is_told():
    trace = ended('{"return_type": "give_answer", "final_answer": "Be')
    assert trace.messages[-1].tool_calls[0].name == "Finish"
    assert [one.message for one in trace.warnings] == ["cannot read the answer: the arguments of Finish are invalid"]


def test_a_call_of_finish_that_was_refused_stays_a_call():
    refused = [calls("Finish", "{}"), {"role": "function", "name": "Finish", "content": "no answer"}]
    answer = {**FILE["answer_generation"], "train_messages": [[*PATH[:-1], *refused, PATH[-1]]]}
    trace = READER.sample({"answer_generation": answer}, 0).trace
    assert [made.call.name for made in trace.tool_calls()] == ["quote", "Finish"]
    assert trace.response == "Be."


def test_lists_that_are_no_beginnings_of_the_last_are_kept_with_a_warning():
    branches = [[PATH[0]], [PATH[1]], PATH]
    answer = {**FILE["answer_generation"], "train_messages": branches}
    trace = READER.sample({"answer_generation": answer}, 0).trace
    assert len(trace.messages) == 5
    assert trace.extra["answer_generation"]["train_messages"] == branches
    assert trace.labels == ()
    assert [warning.path for warning in trace.warnings] == ["answer_generation"]


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (UNFINISHED, "contains no messages (valid_data is false: the search ended without an answer)"),
        ({"answer_generation": {"train_messages": []}}, "contains no messages"),
        ({"answer_generation": {"train_messages": [[]]}}, "train_messages[0]: contains no messages"),
        (
            {"answer_generation": {"train_messages": [[], [{"role": "x"}]]}},
            "answer_generation.train_messages[1][0].role: ",
        ),
        ({"answer_generation": {"train_messages": ["x"]}}, "answer_generation.train_messages[0]: expected a list"),
    ],
)
def test_an_error_says_where_and_what_was_found(record, found):
    assert READER.recognizes(record)
    with pytest.raises(TraceError, match=re.escape(found)):
        READER.sample(record, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, FILE)
