"""One run with a sub-agent, as several programs record it."""

import json
import re
import warnings

import pytest

from judgekit.formats.reading import read
from judgekit.jobs.api import run
from judgekit.reports.html import html_report
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.sample import ExpectedCall
from judgekit.traces.tree import branches

TASK, ANSWER = "Find a train.", "The train at 9."


def otel():
    """Spans of the convention of OpenTelemetry for generative AI."""

    def span(number, parent, **attributes):
        named = {f"gen_ai.{name.replace('__', '.')}": value for name, value in attributes.items()}
        times = {"start_time": 1_767_225_600 + number, "end_time": 1_767_225_600 + 20 - number}
        known = {"trace_id": "t", "span_id": f"{number}", "parent_span_id": parent, "name": "x", "events": []}
        return {**known, **times, "attributes": named}

    def chat(number, parent, asked, answered):
        messages = {"input__messages": json.dumps(asked), "output__messages": json.dumps([answered])}
        return span(number, parent, operation__name="chat", **messages) | {"end_time": 1_767_225_600 + number + 0.5}

    def text(role, said):
        return {"role": role, "parts": [{"type": "text", "content": said}]}

    def call(identity, name, arguments):
        return {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": identity, "name": name, "arguments": arguments}],
        }

    def result(identity, said):
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": identity, "response": said}]}

    asks, looks = call("c1", "Task", {"prompt": TASK}), call("d1", "look", {"n": 1})
    begin, begin_child = [text("user", "Plan it.")], [text("user", TASK)]
    return [
        span(1, None, operation__name="invoke_agent", agent__name="main"),
        chat(2, "1", begin, asks),
        span(3, "1", operation__name="execute_tool", tool__name="Task", tool__call__id="c1"),
        span(4, "3", operation__name="invoke_agent", agent__name="Task"),
        chat(5, "4", begin_child, looks),
        chat(7, "4", [*begin_child, looks, result("d1", "9:00")], text("assistant", ANSWER)),
        chat(18, "1", [*begin, asks, result("c1", ANSWER)], text("assistant", "Take it.")),
    ]


def openinference():
    """Spans of OpenInference, as Phoenix exports them."""

    def span(number, parent, kind, name, end=None, **attributes):
        times = (f"2026-01-01T00:00:{number:02d}+00:00", f"2026-01-01T00:00:{end or number + 1:02d}+00:00")
        return {
            "name": name,
            "context": {"trace_id": "t", "span_id": f"s{number}"},
            "parent_id": None if parent is None else f"s{parent}",
            "start_time": times[0],
            "end_time": times[1],
            "status_code": "OK",
            "attributes": {"openinference.span.kind": kind, **attributes},
        }

    def llm(number, parent, asked, answered):
        sides = {"input": asked, "output": [answered]}
        attributes = {
            f"llm.{side}_messages.{at}.message.{name}": value
            for side, messages in sides.items()
            for at, message in enumerate(messages)
            for name, value in message.items()
        }
        return span(number, parent, "LLM", "chat", **attributes)

    def call(identity, name, arguments):
        made = {"id": identity, "function.name": name, "function.arguments": json.dumps(arguments)}
        return {"role": "assistant", **{f"tool_calls.0.tool_call.{name}": value for name, value in made.items()}}

    def result(identity, said):
        return {"role": "tool", "tool_call_id": identity, "content": said}

    asks, looks = call("c1", "Task", {"prompt": TASK}), call("d1", "look", {"n": 1})
    begin, begin_child = [{"role": "user", "content": "Plan it."}], [{"role": "user", "content": TASK}]
    return [
        span(1, None, "AGENT", "main", end=30),
        llm(2, 1, begin, asks),
        span(3, 1, "TOOL", "Task", end=12, **{"tool.name": "Task", "input.value": json.dumps({"prompt": TASK})}),
        span(4, 3, "AGENT", "Task", end=11),
        llm(5, 4, begin_child, looks),
        llm(8, 4, [*begin_child, looks, result("d1", "9:00")], {"role": "assistant", "content": ANSWER}),
        llm(16, 1, [*begin, asks, result("c1", ANSWER)], {"role": "assistant", "content": "Take it."}),
    ]


def claude_code():
    """Rows of a session log, with the sub-agent as a side chain."""

    def row(kind, number, content, **fields):
        known = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number % 10 > 1 else None, "sessionId": "s"}
        return {"type": kind, **known, "message": {"role": kind, **content}, **fields}

    def user(number, content, **fields):
        return row("user", number, {"content": content}, **fields)

    def says(number, block, **fields):
        content = {"id": f"m{number}", "type": "message", "model": "claude", "content": [block]}
        return row("assistant", number, content, **fields)

    def call(identity, name, arguments):
        return {"type": "tool_use", "id": identity, "name": name, "input": arguments}

    def result(identity, said):
        return [{"type": "tool_result", "tool_use_id": identity, "content": said}]

    side = {"isSidechain": True, "agentId": "A"}
    return [
        user(1, "Plan it."),
        says(2, call("c1", "Task", {"prompt": TASK})),
        user(11, TASK, **side),
        says(12, call("d1", "look", {"n": 1}), **side),
        user(13, result("d1", "9:00"), **side),
        says(14, {"type": "text", "text": ANSWER}, **side),
        user(3, result("c1", ANSWER), toolUseResult={"agentId": "A"}),
        says(4, {"type": "text", "text": "Take it."}),
    ]


def atif():
    """A trajectory with that of its sub-agent in it."""

    def trajectory(name, *steps, **fields):
        return {
            "schema_version": "ATIF-v1.7",
            "trajectory_id": name,
            "agent": {"name": name, "version": "1"},
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            **fields,
        }

    def user(said):
        return {"source": "user", "message": said}

    def calls(identity, name, arguments, said, **reference):
        made = {"tool_call_id": identity, "function_name": name, "arguments": arguments}
        observed = {"results": [{"source_call_id": identity, "content": said, **reference}]}
        return {"source": "agent", "message": "", "tool_calls": [made], "observation": observed}

    def says(said):
        return {"source": "agent", "message": said}

    child = trajectory("Task", user(TASK), calls("d1", "look", {"n": 1}, "9:00"), says(ANSWER))
    reference = {"subagent_trajectory_ref": [{"trajectory_id": "Task"}]}
    asks = calls("c1", "Task", {"prompt": TASK}, ANSWER, **reference)
    return trajectory("main", user("Plan it."), asks, says("Take it."), subagent_trajectories=[child])


@pytest.mark.parametrize("recorded", [otel, openinference, claude_code, atif], ids=lambda one: one.__name__)
def test_the_calls_of_each_agent_are_the_same_whoever_recorded_them(tmp_path, recorded):
    path = tmp_path / "recording.json"
    path.write_text(json.dumps(recorded()))
    if recorded is claude_code:
        path = tmp_path / "recording.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in recorded()))
    [sample] = read(path, on_error="raise")
    trace = sample.trace
    assert [one.path for one in branches(trace)] == ["", "2.1"]
    made = [
        (one.message, one.call.name, one.call.args, one.agent if one.message != 2 else None)
        for one in trace.tool_calls()
    ]
    assert made == [(2, "Task", {"prompt": TASK}, None), ("2.1.2", "look", {"n": 1}, "Task")]
    assert [(message.role, message.text) for message in trace.messages] == [
        ("user", "Plan it."),
        ("assistant", ""),
        ("tool", ANSWER),
        ("assistant", "Take it."),
    ]
    shown = trace.render()
    assert "] tool result of Task (called in 2): as in 2.1.4\n" in shown
    expected = [ExpectedCall("Task", {"prompt": TASK}), ExpectedCall("look", {"n": 1}, agent="Task")]
    scored = sample.model_copy(update={"reference_tool_calls": tuple(expected)})
    assert ToolCallF1(scope="tree").score(scored).value == 1
    assert ToolCallF1().score(scored).value == pytest.approx(2 / 3)


def nested(levels, text="Hi"):
    """A sample of judgekit's own with so many sub-agents, each within the one before."""
    messages = [{"role": "user", "content": text}, {"role": "assistant", "tool_calls": [{"name": "f", "args": {}}]}]
    trace = {"messages": messages}
    for _ in range(levels):
        trace = {"messages": messages, "children": [trace]}
    return {"id": f"{levels} {text}", "trace": trace, "reference_tool_calls": [{"name": "f", "args": {}}]}


@pytest.mark.parametrize("text", ["Hi", "\ud800"], ids=["fast", "slow"])
@pytest.mark.parametrize("levels", [64, 85, 90, 98, 99, 120, 200, 300])
def test_deeply_nested_sub_agents_are_shown_or_refused_with_the_limit(tmp_path, levels, text):
    """In a report of the run, what is refused would damage the rest."""
    path = tmp_path / "deep.jsonl"
    path.write_text("".join(f"{json.dumps(nested(depth, text))}\n" for depth in (1, levels)))
    problems = []
    samples = list(read(path, on_error=lambda problem: problems.append(str(problem))))
    for problem in problems:
        assert re.search(r"nested more than (180|200) levels deep", problem)
    assert len(samples) + len(problems) == 2
    assert not problems or levels > 85
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run(path, [ToolCallF1()], store=tmp_path / "runs.sqlite")
    assert all(sample.id.split()[0] in "".join(html_report(done)) for sample in samples)
    assert [sample.id for _, sample in done.conversations()] == [sample.id for sample in samples]


REAL = {
    "otel/openai_agents_genai_live_spans.json": (
        [
            (3, "ask_research_specialist", "coordinator", True),
            ("3.1.3", "lookup_stock_price", "research_specialist", False),
            (5, "ask_math_specialist", "coordinator", True),
            ("5.1.3", "multiply_numbers", "math_specialist", False),
            ("5.1.5", "multiply_numbers", "math_specialist", False),
        ],
        ["3.1.5", "5.1.7"],
    ),
    "atif/subagent_trajectories.json": ([(2, "delegate_summary", None, True)], []),
    "atif/v17_embedded_subagents.json": ([(2, "delegate_research", None, True)], []),
}
"""The calls of real recordings, read by hand: message, tool, agent, and whether a sub-agent did it; results in children."""


@pytest.mark.parametrize("name", REAL)
def test_real_recordings_have_the_calls_that_reading_by_hand_gives(shared_data, name):
    calls, repeated = REAL[name]
    [sample] = read(shared_data / "traces" / name, on_error="raise")
    found = [(one.message, one.call.name, one.agent, one.delegates) for one in sample.trace.tool_calls()]
    assert found == calls
    assert re.findall(r"\): as in ([\d.]+)\n", sample.trace.render()) == repeated
