"""tau-bench result files."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.readers.tau_bench import TauBenchReader
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import Label, TraceWarning
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

READER = TauBenchReader()


def called(name: str, arguments: str) -> dict:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], "function_call": None}


TRIAL = {
    "task_id": 0,
    "reward": 0.0,
    "info": {
        "task": {
            "user_id": "ann_1",
            "instruction": "You want to cancel.",
            "actions": [{"name": "f", "kwargs": {"a": 1}}, {"name": "g", "kwargs": {}}],
            "outputs": ["42"],
        },
        "source": "user",
        "user_cost": 0.5,
        "reward_info": {"reward": 0.0, "info": {"r_actions": 0.0, "gt_data_hash": "x"}, "actions": []},
    },
    "traj": [
        {"role": "system", "content": "Be nice"},
        {"role": "user", "content": "Hi"},
        called("f", '{"a": 1}'),
        {"role": "tool", "tool_call_id": "c", "name": "f", "content": "1"},
        called("g", "{}"),
        {"role": "tool", "tool_call_id": "c", "name": "g", "content": "2"},
    ],
    "trial": 1,
}


def test_a_trial_becomes_a_sample():
    assert READER.recognizes(TRIAL)
    assert READER.recognizes([TRIAL])
    [record] = READER.records([TRIAL])
    task = TRIAL["info"]["task"]
    assert READER.sample(record, 0) == Sample(
        id="0#1",
        group="c5365bf9 0",
        reference_tool_calls=[ExpectedCall("f", {"a": 1}), ExpectedCall("g")],
        metadata={"task_id": "0", "task": {name: task[name] for name in ("user_id", "instruction", "outputs")}},
        trace=Trace(
            id="0#1",
            labels=[Label("reward", 0.0, source="benchmark")],
            extra={"info": {name: TRIAL["info"][name] for name in ("source", "user_cost", "reward_info")}},
            messages=[
                SystemMessage("Be nice"),
                HumanMessage("Hi"),
                AIMessage(tool_calls=[ToolCall("f", {"a": 1}, id="c")]),
                ToolMessage("1", tool_call_id="c", name="f"),
                AIMessage(tool_calls=[ToolCall("g", id="c")]),
                ToolMessage("2", tool_call_id="c", name="g"),
            ],
        ),
    )


def test_a_call_id_that_is_used_twice_answers_each_call_in_its_turn():
    pairs = pair_results(READER.sample(TRIAL, 0).trace.messages).calls
    assert {index: (caller.message, caller.call.name) for index, caller in pairs.items()} == {3: (2, "f"), 5: (4, "g")}


def test_trials_of_one_task_are_a_group_and_tasks_of_two_domains_with_one_id_are_two():
    info = TRIAL["info"]
    other = {**TRIAL, "info": {**info, "task": {**info["task"], "instruction": "You want to exchange."}}}
    rows = [TRIAL, {**TRIAL, "trial": 2, "info": {**info, "user_cost": 1}}, other]
    first, again, third = [READER.sample(row, index).group for index, row in enumerate(rows)]
    assert first == again != third


def test_what_a_trial_lacks_is_not_invented():
    sample = READER.sample({"task_id": 7, "traj": TRIAL["traj"], "reward": None}, 0)
    assert (sample.id, sample.reference_tool_calls, sample.trace.labels) == ("7", None, ())
    assert sample.group == "7"
    assert sample.trace.warnings == (
        TraceWarning("no domain given: task '7' of another domain would get the same group", path="info"),
    )


def test_nothing_is_forgotten(forgotten):
    assert forgotten(READER, [TRIAL, {**TRIAL, "trial": 2}]) == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"traj": []}, "contains no messages"),
        ({"traj": [{"role": "x"}]}, "traj[0].role: expected one of system, "),
        ({"task_id": None}, "task_id: expected a task id, found nothing"),
        ({"info": {"task": {"actions": [{"name": "f"}]}}}, "info.task.actions[0].kwargs: expected an object, found"),
        ({"info": {"task": {"actions": 5}}}, "info.task.actions: expected a list, found 5"),
    ],
)
def test_an_error_says_where_in_the_record_and_what_was_found(changed, found):
    with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
        READER.sample({**TRIAL, **changed}, 0)
