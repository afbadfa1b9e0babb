"""Trajectories of Harbor."""

import re
from datetime import UTC, datetime

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.readers.atif import AtifReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition, TraceWarning

READER = AtifReader()
CALLS = [{"tool_call_id": f"c{n}", "function_name": name, "arguments": {"n": n}} for n, name in enumerate("fgh")]
USER = {"step_id": 1, "source": "user", "timestamp": "2026-01-01T00:00:00Z", "message": "do"}
FILE = {
    "schema_version": "ATIF-v1.6",
    "session_id": "S",
    "notes": "n",
    "agent": {
        "name": "terminus",
        "version": "1",
        "model_name": "m",
        "tool_definitions": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}],
    },
    "steps": [
        {"step_id": 0, "source": "user", "message": "from before", "is_copied_context": True},
        USER,
        {
            "step_id": 2,
            "source": "agent",
            "message": "Doing",
            "reasoning_content": "hm",
            "tool_calls": [{**CALLS[0], "extra": {"runtime": "r"}}, CALLS[1]],
            "observation": {"results": [{"source_call_id": "c1", "content": "B"}, {"source_call_id": "c0"}]},
            "metrics": {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "cached_tokens": 4,
                "cost_usd": 0.5,
                "logprobs": [-1.5],
            },
        },
        {"step_id": 3, "source": "system", "message": "", "observation": {"results": [{"content": "compacted"}]}},
        {"step_id": 4, "source": "agent", "message": "Done", "model_name": "other", "llm_call_count": 1},
    ],
    "final_metrics": {"total_prompt_tokens": 9, "total_completion_tokens": 2, "total_cost_usd": 0.75, "total_steps": 4},
}


def steps(*recorded: dict) -> dict:
    return {"schema_version": "ATIF-v1.6", "session_id": "S", "agent": {"name": "a"}, "steps": list(recorded)}


def agent(calls: list, results: list) -> dict:
    return {"step_id": 2, "source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}}


def test_a_trajectory_is_read_as_ours():
    sample = READER.sample(FILE, 0)
    assert sample.trace.messages == (
        HumanMessage("do", timestamp=datetime(2026, 1, 1, tzinfo=UTC), extra={"step_id": 1}),
        AIMessage(
            [ReasoningPart("hm"), TextPart("Doing")],
            tool_calls=[
                ToolCall("f", {"n": 0}, id="c0", extra={"extra": {"runtime": "r"}}),
                ToolCall("g", {"n": 1}, id="c1"),
            ],
            model="m",
            usage=Usage(input_tokens=9, output_tokens=2, cached_tokens=4, extra={"cost_usd": 0.5}),
            extra={"step_id": 2},
        ),
        ToolMessage("B", tool_call_id="c1"),
        ToolMessage("", tool_call_id="c0"),
        SystemMessage("", extra={"step_id": 3}),
        ToolMessage("compacted", name="observation"),
        AIMessage("Done", model="other", extra={"step_id": 4, "llm_call_count": 1}),
    )
    assert (sample.id, sample.trace.cost_usd) == ("S", 0.75)
    assert sample.trace.usage == Usage(input_tokens=9, output_tokens=2, extra={"total_steps": 4})
    assert sample.trace.tools == (ToolDefinition("f", description="d", parameters={}),)
    assert sample.trace.extra["agent"] == {"name": "terminus", "version": "1", "model_name": "m"}
    assert [warning.path for warning in sample.trace.warnings] == [
        "steps[0]",
        "steps[2].metrics.logprobs",
        "messages[5]",
    ]


@pytest.mark.parametrize(
    ("results", "paired", "warned"),
    [
        (["A", "B", "C"], {"A": "f", "B": "g", "C": "h"}, False),
        (["screen"], {"screen": "f"}, False),
        (["A", "B"], {"A": "f", "B": "g"}, True),
        (["A", "B", "C", "D"], {"A": "f", "B": "g", "C": "h"}, True),
    ],
)
def test_results_that_name_no_call_answer_by_order(results, paired, warned):
    trajectory = steps(USER, agent(CALLS, [{"content": content} for content in results]))
    trace = READER.sample(trajectory, 0).trace
    pairs = pair_results(trace.messages).calls
    assert {trace.messages[index].text: caller.call.name for index, caller in pairs.items()} == paired
    assert any("paired in order" in warning.message for warning in trace.warnings) is warned


def test_what_is_observed_in_a_step_without_calls_answers_no_call_of_an_earlier_one():
    trajectory = steps(USER, agent(CALLS, [{"content": "screen"}]), agent([], [{"content": "new screen"}]))
    trace = READER.sample(trajectory, 0).trace
    assert pair_results(trace.messages).orphans == (4,)


def test_content_of_several_kinds():
    image = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    odd = {"type": "hologram", "data": 1}
    trajectory = steps(
        {**USER, "message": [{"type": "text", "text": "see"}, image, odd]}, agent([CALLS[0]], [{"content": [image]}])
    )
    user, _, result = READER.sample(trajectory, 0).trace.messages
    shown = MediaPart(kind="image", url="a.png", mime_type="image/png")
    assert user.content == (TextPart("see"), shown, OtherPart(odd))
    assert result.content == (shown,)


def test_sub_agents_are_children_of_the_trajectory_that_refers_to_them():
    result = {
        "source_call_id": "c0",
        "content": "ok",
        "subagent_trajectory_ref": [{"trajectory_id": "T", "session_id": "S"}],
    }
    child = {**steps({**USER, "message": "sub"}), "trajectory_id": "T"}
    embedded = {**steps(USER, agent([CALLS[0]], [result])), "trajectory_id": "P", "subagent_trajectories": [child]}
    apart = {"parent": {**embedded, "subagent_trajectories": None}, "child": child}
    for document in (embedded, apart, list(apart.values())):
        assert READER.recognizes(document)
        [record] = READER.records(document)
        trace = READER.sample(record, 0).trace
        [sub_agent] = trace.children
        assert (sub_agent.id, sub_agent.metadata, sub_agent.messages[0].text) == (
            "T",
            {"call_id": "c0", "agent": "a"},
            "sub",
        )
        assert trace.warnings == ()


def test_trajectories_that_refer_to_each_other_stay_apart():
    def refers(own: str, other: str) -> dict:
        return {**steps(USER, agent([], [{"subagent_trajectory_ref": [{"session_id": other}]}])), "session_id": own}

    assert [record["session_id"] for record in READER.records([refers("a", "b"), refers("b", "a"), steps(USER)])] == [
        "a",
        "b",
        "S",
    ]
    rings = [refers("c", "d"), refers("d", "e"), refers("e", "d")]
    assert [record["session_id"] for record in READER.records(rings)] == ["c", "d"]


def test_what_stands_in_another_file_is_told():
    step = agent([], [{"subagent_trajectory_ref": [{"session_id": "s", "trajectory_path": "a.json"}]}])
    trace = READER.sample({**steps(USER, step), "continued_trajectory_ref": "b.json"}, 0).trace
    assert trace.warnings == (
        TraceWarning("sub-agents whose conversations are not in the recording, found 1: s", path="children"),
        TraceWarning("the conversation continues in another file", path="continued_trajectory_ref"),
    )


def test_trajectories_of_one_name_stay_apart():
    """Without ids of their own, the one that is referenced is unknown."""
    child = steps(USER)
    parent = {**steps(USER, agent([], [{"subagent_trajectory_ref": [{"session_id": "S"}]}])), "session_id": "P"}
    assert len(READER.records([parent, child, child])) == 3


@pytest.mark.parametrize(
    ("trajectory", "error"),
    [
        (steps(), "steps: expected steps of this trajectory, found none"),
        (steps({**USER, "is_copied_context": True}), "steps: expected steps of this trajectory, found none"),
        (steps({**USER, "source": "martian"}), "steps[0].source: expected one of user, agent, system, found 'martian'"),
        (steps({**USER, "message": {"a": 1}}), "steps[0].message: expected a string or a list of parts"),
        (steps(agent([{"tool_call_id": "c"}], [])), "steps[0].tool_calls[0].function_name: expected a tool name"),
    ],
)
def test_an_error_says_where_in_the_trajectory_and_what_was_found(trajectory, error):
    with pytest.raises(TraceError, match=f"^{re.escape(error)}"):
        READER.sample(trajectory, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, FILE)


def test_a_part_of_an_unknown_kind_is_kept_and_told():
    part = {"type": "dream", "text": "sheep"}
    trace = READER.sample({**FILE, "steps": [{**USER, "message": [part]}]}, 0).trace
    assert trace.messages[0].content == (OtherPart(part),)
    assert "unreadable part of type 'dream', kept as is" in [warning.message for warning in trace.warnings]
