"""Agents that start agents, nested at random, as each format records them: every call is seen and shown."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import ToolConstraints
from judgekit.constraints import Forbid
from judgekit.formats.reading import read
from judgekit.traces.sample import Sample

SESSION = "11111111-1111-4111-8111-111111111111"


@dataclass
class Agent:
    """An agent: its steps are messages, each with calls of tools, or of other agents."""

    steps: "list[list[Agent | None]]"
    name: str = ""
    calls: "list[list[tuple[str, str, Agent | None]]]" = field(default_factory=list)

    def numbered(self, numbers: Iterator[int]) -> "Agent":
        """Name the agent, and each of its calls by id and tool."""
        self.name = f"agent{next(numbers)}"
        for step in self.steps:
            calls = [(next(numbers), child) for child in step]
            self.calls.append([(f"call{at}", "Task" if child else f"tool{at}", child) for at, child in calls])
            for _, child in calls:
                if child is not None:
                    child.numbered(numbers)
        return self

    def walk(self) -> "Iterator[tuple[str, str, Agent | None]]":
        """Yield the calls, each followed by those of the agent that it started."""
        for call in (call for step in self.calls for call in step):
            yield call
            if call[2] is not None:
                yield from call[2].walk()

    def agents(self) -> "Iterator[Agent]":
        yield self
        for _, _, child in (call for step in self.calls for call in step):
            if child is not None:
                yield from child.agents()

    @property
    def task(self) -> str:
        return f"task of {self.name}"

    @property
    def answer(self) -> str:
        return f"answer of {self.name}"


def arguments(call: tuple[str, str, Agent | None]) -> dict:
    return {"n": 1} if call[2] is None else {"prompt": call[2].task, "message": call[2].task}


def output(call: tuple[str, str, Agent | None]) -> str:
    return f"output of {call[1]}" if call[2] is None else call[2].answer


def write(path: Path, rows: list) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def own(agent: Agent, folder: Path) -> None:
    """judgekit's own format."""

    def trace(agent: Agent, **fields: object) -> dict:
        messages: list[dict] = [{"role": "user", "content": agent.task}]
        for step in agent.calls:
            made = [{"id": call[0], "name": call[1], "args": arguments(call)} for call in step]
            messages.append({"role": "assistant", "tool_calls": made})
            messages += [{"role": "tool", "tool_call_id": call[0], "content": output(call)} for call in step]
        messages.append({"role": "assistant", "content": agent.answer})
        started = [call for step in agent.calls for call in step if call[2] is not None]
        children = [trace(call[2], metadata={"call_id": call[0]}) for call in started]
        return {"messages": messages, "children": children, **fields}

    write(folder / "own.jsonl", [{"id": "s", "trace": trace(agent)}])


def claude_rows(agent: Agent, *, is_main: bool, named: bool = True) -> list[dict]:
    """The rows of one agent in a session of Claude Code."""
    rows: list[dict] = []

    def add(kind: str, content: object, **fields: object) -> None:
        uuid, about = f"{agent.name}-{len(rows)}", {} if is_main else {"isSidechain": True, "agentId": agent.name}
        message = {"role": kind, "content": content, **({"id": f"m{uuid}"} if kind == "assistant" else {})}
        parent = rows[-1]["uuid"] if rows else None
        known = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "message": message}
        rows.append({**known, **about, **fields})

    add("user", agent.task)
    for step in agent.calls:
        add(
            "assistant",
            [{"type": "tool_use", "id": call[0], "name": call[1], "input": arguments(call)} for call in step],
        )
        for call in step:
            result = [{"type": "tool_result", "tool_use_id": call[0], "content": output(call)}]
            add("user", result, **({"toolUseResult": {"agentId": call[2].name}} if call[2] and named else {}))
    add("assistant", [{"type": "text", "text": agent.answer}])
    return rows


def claude_code_rows(agent: Agent, folder: Path) -> None:
    """A session of Claude Code with its sub-agents among its rows."""
    rows = [row for one in agent.agents() for row in claude_rows(one, is_main=one is agent)]
    write(folder / f"{SESSION}.jsonl", rows)


def claude_code_files(agent: Agent, folder: Path) -> None:
    """A session of Claude Code with a file for each sub-agent, whose calls the prompts show."""
    for one in agent.agents():
        name = f"{SESSION}.jsonl" if one is agent else f"{SESSION}/subagents/agent-{one.name}.jsonl"
        write(folder / name, claude_rows(one, is_main=one is agent, named=False))


def claude_code_progress(agent: Agent, folder: Path) -> None:
    """A session of Claude Code with sub-agents that only rows about progress hold."""
    rows = claude_rows(agent, is_main=True)
    started = {call[2].name: call[0] for call in agent.walk() if call[2] is not None}
    for one in agent.agents():
        for row in claude_rows(one, is_main=False) if one is not agent else ():
            held = {name: row[name] for name in ("type", "message", "uuid", "toolUseResult") if name in row}
            data = {"type": "agent_progress", "agentId": one.name, "message": held}
            about = {"sessionId": SESSION, "uuid": f"p{row['uuid']}", "parentUuid": rows[0]["uuid"]}
            rows.append({"type": "progress", **about, "parentToolUseID": started[one.name], "data": data})
    write(folder / f"{SESSION}.jsonl", rows)


def claude_stream(agent: Agent, folder: Path) -> None:
    """The stream of Claude's SDK."""
    started = {call[2].name: call[0] for call in agent.walk() if call[2] is not None}
    rows = [
        {
            "type": row["type"],
            "session_id": SESSION,
            "parent_tool_use_id": started.get(one.name),
            "message": row["message"],
        }
        for one in agent.agents()
        for row in claude_rows(one, is_main=True)
    ]
    write(folder / "stream.jsonl", rows)


def codex(agent: Agent, folder: Path) -> None:
    """Logs of Codex, one for each agent."""
    parents = {call[2].name: one.name for one in agent.agents() for step in one.calls for call in step if call[2]}
    for number, one in enumerate(agent.agents()):
        items: list[dict] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": one.task}]}]
        for step in one.calls:
            for call in step:
                name = "spawn_agent" if call[2] else call[1]
                made = {
                    "type": "function_call",
                    "call_id": call[0],
                    "name": name,
                    "arguments": json.dumps(arguments(call)),
                }
                items.append(made)
            for call in step:
                said = json.dumps({"agent_id": call[2].name}) if call[2] else output(call)
                items.append({"type": "function_call_output", "call_id": call[0], "output": said})
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": one.answer}]})
        source: object = "cli"
        if one.name in parents:
            source = {"subagent": {"thread_spawn": {"parent_thread_id": parents[one.name]}}}
        rows = [{"type": "session_meta", "payload": {"id": one.name, "source": source}}]
        rows += [{"type": "response_item", "payload": item} for item in items]
        write(folder / f"rollout-2026-01-01T00-00-{number:03}-{one.name}.jsonl", rows)


def atif(agent: Agent, folder: Path) -> None:
    """A trajectory with those of its sub-agents."""

    def trajectory(agent: Agent) -> dict:
        steps: list[dict] = [{"source": "user", "message": agent.task}]
        for step in agent.calls:
            calls = [{"tool_call_id": call[0], "function_name": call[1], "arguments": arguments(call)} for call in step]
            results: list[dict] = [
                {
                    "source_call_id": call[0],
                    "content": output(call),
                    **({"subagent_trajectory_ref": [{"trajectory_id": call[2].name}]} if call[2] else {}),
                }
                for call in step
            ]
            steps.append({"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}})
        steps.append({"source": "agent", "message": agent.answer})
        return {
            "schema_version": "ATIF-v1.7",
            "trajectory_id": agent.name,
            "agent": {"name": agent.name, "version": "1"},
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            "subagent_trajectories": [trajectory(call[2]) for step in agent.calls for call in step if call[2]],
        }

    (folder / "trajectory.json").write_text(json.dumps(trajectory(agent)))


def atif_list(agent: Agent, folder: Path) -> None:
    """A list of trajectories, those of sub-agents beside that of the agent."""
    atif(agent, folder)
    found: list[dict] = []

    def flatten(trajectory: dict) -> None:
        inner = trajectory.pop("subagent_trajectories")
        found.append(trajectory)
        for child in inner:
            flatten(child)

    flatten(json.loads((folder / "trajectory.json").read_text()))
    (folder / "trajectory.json").write_text(json.dumps(found))


def spans(agent: Agent, encode: Callable[..., dict]) -> list[dict]:
    """Spans of agents, their requests to a model, and their calls; ``encode`` writes one."""
    clock, found = count(), list[dict]()

    def add(kind: str, parent: int | None, **about: object) -> int:
        found.append({"kind": kind, "id": len(found) + 1, "parent": parent, "start": next(clock), **about})
        return len(found)

    def end(number: int) -> None:
        found[number - 1]["end"] = next(clock)

    def run(agent: Agent, parent: int | None) -> None:
        whole = add("agent", parent, name=agent.name)
        history: list[tuple] = [("user", agent.task)]
        for step in agent.calls:
            said = ("calls", step)
            end(add("model", whole, asked=[*history], answered=said))
            for call in step:
                tool = add("tool", whole, name=call[1], call=call)
                if call[2] is not None:
                    run(call[2], tool)
                end(tool)
            history += [said, *(("result", call) for call in step)]
        end(add("model", whole, asked=history, answered=("assistant", agent.answer)))
        end(whole)

    run(agent, None)
    return [encode(**span) for span in found]


def otel(agent: Agent, folder: Path) -> None:
    """Spans of OpenTelemetry."""

    def message(kind: str, held) -> dict:
        if kind == "calls":
            parts = [
                {"type": "tool_call", "id": call[0], "name": call[1], "arguments": arguments(call)} for call in held
            ]
            return {"role": "assistant", "parts": parts}
        if kind == "result":
            return {"role": "tool", "parts": [{"type": "tool_call_response", "id": held[0], "response": output(held)}]}
        return {"role": kind, "parts": [{"type": "text", "content": held}]}

    def encode(kind, id, parent, start, end, name="", call=None, asked=(), answered=None) -> dict:
        named: dict[str, object] = {
            "agent": {"operation.name": "invoke_agent", "agent.name": name},
            "tool": {"operation.name": "execute_tool", "tool.name": name, "tool.call.id": call and call[0]},
            "model": {
                "operation.name": "chat",
                "input.messages": json.dumps([message(*one) for one in asked]),
                "output.messages": json.dumps([message(*answered)] if answered else []),
            },
        }[kind]
        times = {"start_time": 1_767_225_600 + start, "end_time": 1_767_225_600 + end}
        known = {
            "trace_id": "t",
            "span_id": f"{id}",
            "parent_span_id": parent and f"{parent}",
            "name": "x",
            "events": [],
        }
        return {**known, **times, "attributes": {f"gen_ai.{key}": value for key, value in named.items()}}

    (folder / "spans.json").write_text(json.dumps(spans(agent, encode)))


def openinference(agent: Agent, folder: Path) -> None:
    """Spans of OpenInference."""

    def message(kind: str, held) -> dict:
        if kind == "calls":
            made = {
                f"tool_calls.{at}.tool_call.{key}": value
                for at, call in enumerate(held)
                for key, value in (
                    ("id", call[0]),
                    ("function.name", call[1]),
                    ("function.arguments", json.dumps(arguments(call))),
                )
            }
            return {"role": "assistant", **made}
        if kind == "result":
            return {"role": "tool", "tool_call_id": held[0], "content": output(held)}
        return {"role": kind, "content": held}

    def encode(kind, id, parent, start, end, name="", call=None, asked=(), answered=None) -> dict:
        sides = {"input": [message(*one) for one in asked], "output": [message(*answered)] if answered else []}
        attributes: dict[str, object] = {
            f"llm.{side}_messages.{at}.message.{key}": value
            for side, messages in sides.items()
            for at, one in enumerate(messages)
            for key, value in one.items()
        }
        if call is not None:
            attributes = {
                "tool.name": name,
                "input.value": json.dumps(arguments(call)),
                "output.value": output(call),
            }
        times = [f"2026-01-01T00:{at // 60:02}:{at % 60:02}+00:00" for at in (start, end)]
        return {
            "name": name or "chat",
            "context": {"trace_id": "t", "span_id": f"s{id}"},
            "parent_id": parent and f"s{parent}",
            "start_time": times[0],
            "end_time": times[1],
            "status_code": "OK",
            "attributes": {"openinference.span.kind": {"model": "LLM"}.get(kind, kind.upper()), **attributes},
        }

    (folder / "spans.json").write_text(json.dumps(spans(agent, encode)))


FORMATS = [
    own,
    claude_code_rows,
    claude_code_files,
    claude_code_progress,
    claude_stream,
    codex,
    atif,
    atif_list,
    otel,
    openinference,
]


def nested(children: st.SearchStrategy) -> st.SearchStrategy:
    step = st.lists(st.one_of(st.none(), children), min_size=1, max_size=2)
    return st.lists(step, min_size=1, max_size=2).map(Agent)


AGENTS = st.recursive(nested(st.none()), nested, max_leaves=6)


@pytest.mark.parametrize("record", FORMATS, ids=lambda record: record.__name__)
@given(agent=AGENTS)
def test_every_call_of_nested_sub_agents_is_seen_and_shown(tmp_path_factory, record, agent):
    agent = Agent(agent.steps).numbered(count())
    folder = tmp_path_factory.mktemp("nested")
    record(agent, folder)
    samples: list[Sample] = list(read(folder, on_error="raise"))
    assert len(samples) == 1
    [sample] = samples
    spawn = {"Task": "spawn_agent"} if record is codex else {}
    expected = [spawn.get(tool, tool) for _, tool, _ in agent.walk()]
    assert [call.call.name for call in sample.trace.tool_calls()] == expected
    depths = [str(call.message).count(".") // 2 for call in sample.trace.tool_calls()]
    assert depths == list(_depths(agent))
    shown = str(sample.trace.render())
    for _, tool, _ in agent.walk():
        assert f"calls {spawn.get(tool, tool)} " in shown
    for one in agent.agents():
        assert one.answer in shown
    for tool in {tool for tool in expected if tool.startswith("tool")}:
        assert ToolConstraints([Forbid(tool)]).score(sample).value == 0
    assert not [warning for warning in sample.trace.warnings if "sub-agent" in warning.message]


def _depths(agent: Agent, depth: int = 0) -> Iterator[int]:
    for _, _, child in (call for step in agent.calls for call in step):
        yield depth
        if child is not None:
            yield from _depths(child, depth + 1)
