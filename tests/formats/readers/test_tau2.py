"""tau2-bench result files."""

import json
import re
from collections import Counter
from datetime import datetime

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.tau2 import Tau2Reader
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage, ReasoningPart, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import Label, TraceWarning
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

READER = Tau2Reader()
HI = [{"role": "user", "content": "Hi"}]
USER_ACTION = {"action_id": "u0", "name": "toggle", "arguments": {}, "requestor": "user", "info": None}
FILE = {  # as tau2 recorded it, with the models of then
    "timestamp": "2025-01-01",
    "info": {
        "environment_info": {"domain_name": "airline", "policy": "Be nice"},
        "agent_info": {"llm": "gpt-4.1"},
        "user_info": {"llm": "gpt-4.1-mini"},
    },
    "tasks": [
        {
            "id": "4",
            "ticket": "t",
            "evaluation_criteria": {
                "actions": [
                    {"action_id": "a0", "name": "f", "arguments": {"a": 1}, "requestor": "assistant", "info": "i"},
                    USER_ACTION,
                    {"action_id": "a1", "name": "g", "arguments": {"b": 2, "c": 3}, "compare_args": ["b"]},
                ],
                "reward_basis": ["DB"],
            },
        }
    ],
    "simulations": [
        {
            "id": "s",
            "task_id": "4",
            "trial": 2,
            "seed": 9,
            "termination_reason": "user_stop",
            "start_time": "2025-08-01T16:16:37",
            "end_time": "2025-08-01T16:16:38",
            "agent_cost": 0.25,
            "reward_info": {
                "reward": 0.0,
                "db_check": {"match": False},
                "action_checks": [
                    {"action": {"action_id": "a0"}, "action_match": True, "action_reward": 1.0},
                    {"action": {"action_id": "u0"}, "action_match": False, "action_reward": 0.0},
                ],
            },
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "assistant", "content": "Hi", "timestamp": "2025-08-01T16:16:37", "turn_idx": 0, "cost": 0.0},
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [{"id": "c", "name": "toggle", "arguments": {}, "requestor": "user"}],
                    "usage": {"prompt_tokens": 7},
                },
                {"role": "tool", "id": "c", "content": "on", "requestor": "user", "error": False},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": 1}, "requestor": "assistant"}],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
                    "raw_data": {"finish_reason": "tool_calls", "model": "gpt-4.1", "index": 0},
                    "reasoning": "r",
                },
                {"role": "tool", "id": "c", "content": "boom", "requestor": "assistant", "error": True},
                {"role": "tool", "id": "none", "content": "?"},
            ],
        }
    ],
}


def sample_of(document: dict) -> Sample:
    [record] = READER.records(document)
    return READER.sample(record, 0)


def test_a_simulation_becomes_a_sample():
    assert READER.recognizes(FILE)
    simulation = FILE["simulations"][0]
    assert sample_of(FILE) == Sample(
        id="4#2",
        group="airline 4",
        domain="airline",
        reference_tool_calls=[
            ExpectedCall("f", {"a": 1}, id="a0", extra={"info": "i"}),
            ExpectedCall("toggle", id="u0", requestor="user"),
            ExpectedCall("g", {"b": 2, "c": 3}, id="a1", compare_args=["b"]),
        ],
        metadata={"task_id": "4", "task": {"ticket": "t"}, "criteria": {"reward_basis": ["DB"]}},
        trace=Trace(
            id="s",
            started_at=datetime.fromisoformat(simulation["start_time"]),
            ended_at=datetime.fromisoformat(simulation["end_time"]),
            cost_usd=0.25,
            termination="user_stop",
            labels=[
                Label("reward", 0.0, source="benchmark"),
                Label("action_match:a0", True, source="benchmark"),  # noqa: FBT003 - a label's value
                Label("action_match:u0", False, source="benchmark"),  # noqa: FBT003 - a label's value
            ],
            metadata={"policy": "Be nice", "agent": {"llm": "gpt-4.1"}},
            extra={
                "timestamp": "2025-01-01",
                "info": {"user_info": {"llm": "gpt-4.1-mini"}},
                "simulation": {
                    "seed": 9,
                    "reward_info": {
                        "db_check": {"match": False},
                        "action_checks": simulation["reward_info"]["action_checks"],
                    },
                },
            },
            messages=[
                SystemMessage("s"),
                AIMessage(
                    "Hi", timestamp=datetime.fromisoformat("2025-08-01T16:16:37"), extra={"turn_idx": 0, "cost": 0.0}
                ),
                HumanMessage(
                    tool_calls=[ToolCall("toggle", id="c", extra={"requestor": "user"})],
                    extra={"usage": {"prompt_tokens": 7}},
                ),
                ToolMessage("on", tool_call_id="c", requestor="user", is_error=False),
                AIMessage(
                    [ReasoningPart("r")],
                    tool_calls=[ToolCall("f", {"a": 1}, id="c", extra={"requestor": "assistant"})],
                    usage=Usage(input_tokens=5, output_tokens=2),
                    finish_reason="tool_calls",
                    model="gpt-4.1",
                    extra={"raw_data": {"index": 0}},
                ),
                ToolMessage("boom", tool_call_id="c", is_error=True),
                ToolMessage("?", tool_call_id="none"),
            ],
            warnings=[TraceWarning("a tool result that answers no earlier call", path="messages[6]")],
        ),
    )


def test_simulations_and_their_messages_alone_are_recognized(tmp_path, forgotten):
    cases = [(None, "0"), ({"task_id": "4", "trial": 2}, "4#2"), ({"task_id": "4"}, "4"), ({"id": "s"}, "s")]
    for about, identity in cases:
        for first in [0, 2]:
            messages = FILE["simulations"][0]["messages"][first:]
            document = messages if about is None else {**about, "messages": messages}
            path = tmp_path / "a.json"
            path.write_text(json.dumps(document))
            [sample] = read(path, on_error="raise")
            assert (sample.trace.source.format, sample.id, sample.group) == (
                "tau2",
                identity,
                (about or {}).get("task_id"),
            )
            assert [one.call.name for one in sample.trace.tool_calls("user")] == ["toggle"]
            assert [message.is_error for message in sample.trace.messages if message.role == "tool"] == [
                False,
                True,
                None,
            ]
            assert detect([document, document]).name == "tau2"
            assert forgotten(READER, document) == []


def test_what_the_benchmark_says_goes_before_what_stands_beside():
    sample = sample_of({**FILE, "group": "x", "domain": "y", "label": "z"})
    assert (sample.group, sample.domain, sample.label) == ("airline 4", "airline", "z")


def test_the_id_of_a_task_may_be_a_number():
    [simulation] = FILE["simulations"]
    sample = sample_of({**FILE, "simulations": [{**simulation, "task_id": 4}]})
    assert (sample.group, len(sample.reference_tool_calls)) == ("airline 4", 3)


@pytest.mark.parametrize(
    ("simulation", "expected"),
    [
        ({"task_id": "4", "messages": HI}, ("4", "4", (), 3)),
        ({"task_id": "4", "trial": 0, "id": "s", "messages": HI, "reward_info": None}, ("4#0", "s", (), 3)),
        ({"task_id": "4", "messages": HI, "reward_info": {"reward": None, "action_checks": None}}, ("4", "4", (), 3)),
        ({"task_id": "unknown", "messages": HI}, ("unknown", "unknown", (), None)),
    ],
    ids=["bare", "no reward info", "no reward", "no task"],
)
def test_what_a_simulation_lacks_is_not_invented(simulation, expected):
    sample = sample_of({**FILE, "simulations": [simulation]})
    known = sample.reference_tool_calls
    assert (sample.id, sample.trace.id, sample.trace.labels, known if known is None else len(known)) == expected


@pytest.mark.parametrize(
    ("action", "found"),
    [
        ({"name": "f"}, "task.evaluation_criteria.actions[0].arguments: expected an object, found nothing"),
        ({"arguments": {}}, "reference_tool_calls[0].name: Input should be a valid string, found None"),
        ({"name": "f", "arguments": {}, "requestor": "x"}, "reference_tool_calls[0].requestor: Input should be"),
        ({"name": "f", "arguments": {}, "compare_args": "a"}, "reference_tool_calls[0].compare_args: Input should be"),
    ],
)
def test_an_expected_call_that_cannot_be_read_is_an_error(action, found):
    task = {"id": "4", "evaluation_criteria": {"actions": [action]}}
    with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
        sample_of({**FILE, "tasks": [task]})


def action(name: str, **more: object) -> dict:
    return {"action_id": name, "name": name, "arguments": {}, "info": None, "compare_args": None, **more}


def checked(*actions: dict, task_id: str = "4", **more: object) -> dict:
    """Return a simulation that was checked for these actions, and that ended early without any."""
    checks = [{"action": one, "action_match": True, "action_reward": 1.0} for one in actions] or None
    return {"task_id": task_id, "messages": HI, "reward_info": {"reward": 1.0, "action_checks": checks}, **more}


def tasks(**actions: list[dict] | None) -> list[dict]:
    return [{"id": name[1:], "ticket": "t", "evaluation_criteria": {"actions": one}} for name, one in actions.items()]


SOLO = {
    "info": {
        "environment_info": {"domain_name": "telecom", "policy": "Be nice"},
        "agent_info": {"implementation": "llm_agent_solo", "llm": "gpt-4.1"},
        "user_info": {"implementation": "dummy_user"},
    },
    "tasks": tasks(_7=[action("toggle", requestor="user"), action("reboot", requestor="user"), action("refuel")]),
    "simulations": [
        checked(
            action("toggle", requestor="user"),
            task_id="7",
            messages=[
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "name": "toggle", "arguments": {}, "requestor": "assistant"}],
                    "turn_idx": 0,
                },
                {"role": "tool", "id": "c", "content": "on", "requestor": "assistant", "error": False},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "d", "name": "reboot", "arguments": {}, "requestor": "user"}],
                },
                {"role": "tool", "id": "d", "content": "off", "requestor": "user", "error": False},
                {"role": "assistant", "content": "###STOP###"},
            ],
            reward_info=None,
        )
    ],
}


@pytest.mark.parametrize(
    "info",
    [
        SOLO["info"],
        {**SOLO["info"], "user_info": None},
        {**SOLO["info"], "agent_info": {"implementation": "gym_agent"}},
        {"agent_info": {"implementation": "of one's own"}, "user_info": {"implementation": "nobody"}},
        None,
    ],
    ids=["both", "agent", "stand-in of the user", "unknown names", "nothing"],
)
def test_in_a_run_without_a_user_all_calls_are_the_agents(info, no_question, forgotten):
    document = {**SOLO, "info": info}
    sample = sample_of(document)
    made = [one.call.name for one in sample.trace.tool_calls()]
    wanted = [(one.name, one.requestor, one.extra) for one in sample.reference_tool_calls]
    assert made == ["toggle", "reboot"]
    assert wanted == [
        ("toggle", "assistant", {"requestor": "user"}),
        ("reboot", "assistant", {"requestor": "user"}),
        ("refuel", "assistant", {}),
    ]
    assert len(pair_results(sample.trace.messages).calls) == 2
    assert no_question in sample.trace.warnings
    assert forgotten(READER, document) == []


@pytest.mark.parametrize("name", ["llm_agent_solo", "dummy_user"])
@pytest.mark.parametrize(
    "messages",
    [[*HI, *SOLO["simulations"][0]["messages"]], [{"role": "assistant", "content": "Done", "turn_idx": 0}]],
    ids=["a message of the user", "no calls"],
)
def test_a_run_is_known_by_its_names_to_have_no_user(name, messages):
    info = {"agent_info" if name.startswith("llm") else "user_info": {"implementation": name}}
    document = {**SOLO, "info": info, "simulations": [{**SOLO["simulations"][0], "messages": messages}]}
    assert {one.requestor for one in sample_of(document).reference_tool_calls} == {"assistant"}


def test_a_user_who_is_there_makes_calls_and_so_does_one_who_never_came_to_speak():
    greeting = {"role": "assistant", "content": "How can I help?", "turn_idx": 0}
    for messages in ([greeting], [greeting, *HI, *SOLO["simulations"][0]["messages"]]):
        info = {**SOLO["info"], "agent_info": {"implementation": "llm_agent"}, "user_info": {"implementation": "mine"}}
        document = {**SOLO, "info": info, "simulations": [{**SOLO["simulations"][0], "messages": messages}]}
        assert [one.requestor for one in sample_of(document).reference_tool_calls] == ["user", "user", "assistant"]


@pytest.mark.parametrize(
    "actions",
    [
        [action("g"), action("f", arguments={"a": 1, "b": None})],
        [action("f", action_id="9", info="i", arguments={"b": None, "a": 1.0}), action("g", requestor="assistant")],
        [{"name": "f", "arguments": {"a": 1, "b": None}}, {"name": "g", "arguments": {}, "requestor": None}],
    ],
    ids=["another order", "other ids and notes", "defaults left out"],
)
def test_checks_that_differ_in_order_or_ids_are_of_the_same_task(actions):
    document = {
        **FILE,
        "tasks": tasks(_4=actions),
        "simulations": [checked(action("f", arguments={"a": 1, "b": None}), action("g"))],
    }
    sample = sample_of(document)
    assert [one.name for one in sample.reference_tool_calls] == [one["name"] for one in actions]
    assert (sample.group, sample.trace.warnings, sample.metadata["task"]) == ("airline 4", (), {"ticket": "t"})


def test_where_a_simulation_was_checked_for_other_actions_the_checks_win_and_the_task_is_set_aside(forgotten):
    cases = [
        [action("g")],
        [action("f", arguments={"a": True})],
        [action("f", arguments={"a": 1}, requestor="user")],
        [action("f", arguments={"a": 1}, compare_args=["a"])],
        [action("f", arguments={"a": 1})] * 2,
        [],
        None,
    ]
    for actions in cases:
        made = action("f", arguments={"a": 1}, action_id="a0", info="i")
        document = {**FILE, "tasks": tasks(_4=actions), "simulations": [checked(made, trial=1)]}
        sample = sample_of(document)
        assert sample.reference_tool_calls == (ExpectedCall("f", {"a": 1}, id="a0", extra={"info": "i"}),)
        assert (sample.id, sample.group) == ("4#1", "airline 4 (another version)")
        assert sample.metadata == {"task_id": "4", "task": {}, "criteria": {}}
        assert sample.trace.extra["task"]["ticket"] == "t"
        assert sample.trace.warnings == (
            TraceWarning(
                "the checked actions differ from the task's; the task is kept in extra, and the checked actions are the "
                "expected calls",
                path="task",
            ),
        )
        assert forgotten(READER, document) == []


def test_what_was_not_checked_keeps_its_task_only_if_a_trial_confirms_it_where_others_contradict():
    f, g = action("f"), action("g")
    document = {
        **FILE,
        "tasks": tasks(_1=[f], _2=[f], _3=[f], _4=[f], _5=[]),
        "simulations": [
            checked(f, task_id="1"),
            checked(task_id="1"),
            checked(g, task_id="2"),
            checked(task_id="2"),
            checked(f, task_id="3"),
            checked(g, task_id="3"),
            checked(task_id="3"),
            checked(task_id="4"),
            checked(task_id="5"),
            checked(task_id="6"),
        ],
    }
    samples = [READER.sample(record, index) for index, record in enumerate(READER.records(document))]
    expected = [one.reference_tool_calls and [call.name for call in one.reference_tool_calls] for one in samples]
    assert expected == [["f"], ["f"], ["g"], None, ["f"], ["g"], None, None, None, None]
    assert [one.group.removeprefix("airline ") for one in samples] == [
        *("1", "1", "2 (another version)", "2 (another version)", "3", "3 (another version)", "3 (another version)"),
        *("4 (another version)", "5 (another version)", "6"),
    ]
    told = [[one.message.partition(";")[0] for one in sample.trace.warnings] for sample in samples]
    assert told[3] == ["the file holds tasks of another version"]
    assert told[9] == ["the file has no task '6'"]


def test_simulations_that_were_not_checked_contradict_nothing():
    broken = [None, [], [{"action": {"action_id": "a0"}, "action_match": True}], [7], "x", [{"action": action("f")}, 7]]
    for checks in broken:
        simulation = {**checked(), "reward_info": {"reward": 0.0, "action_checks": checks}}
        sample = sample_of({**FILE, "tasks": tasks(_4=[action("g")]), "simulations": [simulation]})
        assert [one.name for one in sample.reference_tool_calls] == ["g"]
        assert (sample.group, sample.trace.warnings) == ("airline 4", ())


def test_checks_say_what_was_expected_of_a_simulation_whose_task_is_not_in_the_file(forgotten):
    simulation = {**checked(action("f")), "messages": FILE["simulations"][0]["messages"]}
    for document in ({**FILE, "tasks": [], "simulations": [simulation]}, simulation):
        sample = sample_of(document)
        assert [one.name for one in sample.reference_tool_calls] == ["f"]
        assert "the file has no task '4'; the checked actions are the expected calls" in [
            one.message for one in sample.trace.warnings
        ]
        assert forgotten(READER, document) == []


def test_a_task_beside_a_single_simulation_is_compared_with_its_checks_too():
    [task] = tasks(_4=[action("g")])
    sample = sample_of(
        {**checked(action("f")), "turn_idx": 0, "messages": FILE["simulations"][0]["messages"], "task": task}
    )
    assert [one.name for one in sample.reference_tool_calls] == ["f"]
    assert sample.group == "4 (another version)"


def test_tasks_of_two_domains_are_two_groups_and_a_simulation_without_a_domain_is_told():
    groups = [sample_of({**FILE, "info": {"environment_info": {"domain_name": one}}}).group for one in ("a", "b")]
    assert groups == ["a 4", "b 4"]
    simulation = FILE["simulations"][0]
    told = "no domain given: task '4' of another domain would get the same group"
    assert told in [one.message for one in sample_of(simulation).trace.warnings]
    sample = sample_of({**simulation, "domain": "a"})
    assert (sample.group, sample.domain) == ("a 4", "a")
    assert told not in [one.message for one in sample.trace.warnings]


@pytest.mark.parametrize("criteria", [None, {}, {"actions": None}])
def test_a_task_without_actions_expects_nothing_known(criteria):
    task = {"id": "4", "evaluation_criteria": criteria}
    assert sample_of({**FILE, "tasks": [task]}).reference_tool_calls is None
    assert sample_of({**FILE, "tasks": [{**task, "evaluation_criteria": {"actions": []}}]}).reference_tool_calls == ()


def test_an_error_says_where_in_the_record_and_what_was_found():
    cases = [
        (7, "simulation: expected an object, found 7"),
        ({"messages": HI}, "simulation.task_id: expected a task id, found nothing"),
        ({"task_id": "4", "messages": []}, "contains no messages"),
        ({"task_id": "4", "ticks": [{}]}, "contains no messages"),  # of a voice
        ({"task_id": "4", "messages": [{"role": "x"}]}, "simulation.messages[0].role: expected one of system,"),
        (
            {"task_id": "4", "messages": [{"role": "tool", "requestor": "x"}]},
            "simulation.messages[0].requestor: expected 'assistant' or 'user', found 'x'",
        ),
        (
            {"task_id": "4", "messages": [{"role": "user", "tool_calls": [{"id": "1"}]}]},
            "simulation.messages[0].tool_calls[0].name: expected a tool name, found nothing",
        ),
    ]
    for simulation, found in cases:
        with pytest.raises(TraceError, match=f"^{re.escape(found)}"):
            sample_of({**FILE, "simulations": [simulation]})


def test_a_document_that_is_no_object_is_an_error():
    with pytest.raises(TraceError, match=r"^the record: expected an object, found 1$"):
        READER.sample(READER.records([1])[0], 0)


def holds(action: dict, calls: list[ToolCall]) -> bool:
    """Return whether the benchmark's own rule holds, as in section 3.14 of the notes on formats."""

    def compared(args: dict) -> dict:
        wanted = action["compare_args"]
        return args if wanted is None else {name: args.get(name) for name in wanted}

    return any(call.name == action["name"] and compared(call.args) == compared(action["arguments"]) for call in calls)


@pytest.fixture(scope="module", params=[("airline", 20), ("retail", 40), ("telecom", 40)], ids=lambda domain: domain[0])
def recorded(request, shared_data) -> tuple[dict, list[Sample]]:
    """Return a result file of the benchmark, and its samples."""
    domain, count = request.param
    path = shared_data / "traces" / "tau2" / f"gpt-4.1_{domain}_default_1trials.json"
    samples = list(read(path, on_error="raise"))
    assert len(samples) == count
    assert {sample.domain for sample in samples} == {domain}
    return json.loads(path.read_text()), samples


def test_the_benchmarks_verdict_on_every_expected_call_is_reproduced(recorded):
    document, samples = recorded
    judged = Counter()
    for simulation, sample in zip(document["simulations"], samples, strict=True):
        calls = {side: [one.call for one in sample.trace.tool_calls(side)] for side in ("assistant", "user")}
        labels = [(label.name, label.value) for label in sample.trace.labels if label.name != "reward"]
        checks = simulation["reward_info"]["action_checks"] or []
        assert labels == [(f"action_match:{check['action']['action_id']}", check["action_match"]) for check in checks]
        for check in checks:
            assert holds(check["action"], calls[check["action"]["requestor"]]) is check["action_match"]
            judged[check["action_match"]] += 1
    assert judged[True] > 0
    assert judged[False] > 0


def test_nothing_of_a_recording_is_lost_and_every_result_is_paired(recorded, lost):
    document, samples = recorded
    tasks = {task["id"]: task for task in document["tasks"]}
    for simulation, sample in zip(document["simulations"], samples, strict=True):
        assert lost({"simulation": simulation, "task": tasks[simulation["task_id"]]}, sample) == set()
        messages = sample.trace.messages
        assert [message.role for message in messages] == [message["role"] for message in simulation["messages"]]
        assert [message.text for message in messages] == [
            message["content"] or "" for message in simulation["messages"]
        ]
        assert sample.trace.warnings == ()
        results = [index for index, message in enumerate(messages) if message.role == "tool"]
        pairs = pair_results(messages).calls
        assert sorted(pairs) == results
        assert all(messages[pairs[index].message].role == messages[index].requestor for index in results)
        errors = [message["error"] for message in simulation["messages"] if message["role"] == "tool"]
        assert [messages[index].is_error for index in results] == errors
        assert Sample.model_validate_json(sample.model_dump_json()) == sample


def test_chats_with_numbered_turns_are_not_of_tau2():
    said = {"role": "user", "content": "Hi", "turn_idx": 0}
    result = {"role": "tool", "tool_call_id": "c", "content": "1", "turn_idx": 1}
    assert READER.recognizes([said, said])
    for row in ([said, result], {"task_id": "t", "messages": [said], "system": "S"}):
        assert not READER.recognizes(row)


@pytest.mark.parametrize(("basis", "source"), [(["DB", "NL_ASSERTION"], "judge"), (["DB"], "benchmark")])
def test_a_reward_by_what_a_model_asserts_is_that_of_a_judge(basis, source):
    (simulation,) = FILE["simulations"]
    info = {**simulation["reward_info"], "reward_basis": basis}
    labels = sample_of({**FILE, "simulations": [{**simulation, "reward_info": info}]}).trace.labels
    assert labels[0] == Label("reward", 0.0, source=source)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    contradicted = {**FILE, "simulations": [checked(action("f"), trial=1), *FILE["simulations"]]}
    intact(READER, FILE, SOLO, contradicted, FILE["simulations"][0])
