"""tau2-bench result files: simulations of an agent, a user who may call tools too, and the tasks they were given.

{"info": {...}, "tasks": [{"id", "evaluation_criteria": {"actions": [{"name", "arguments", "compare_args", "requestor"}]}}],
 "simulations": [{"id", "task_id", "trial", "reward_info": {...}, "messages": [...]}]}
"""

from typing import get_args

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.blocks.openai_chat import read_message, read_usage
from judgekit.traces.found import Found
from judgekit.traces.message import JsonObject, Message, Requestor
from judgekit.traces.readers.foreign import first_of, items, must_be_object, sample_from
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Label


class Tau2Reader:
    """Result files of tau2-bench.

    The expected calls are the agent's and the user's. The rest of the task stands in the sample's metadata, the agent's
    policy and settings in the trace's. Rewards and the benchmark's verdict on each action are labels.
    """

    name = "tau2"
    gathers = False
    shape = 'tau2: {"simulations": [...], "tasks": [...], "info": ...}, or {"task_id": ..., "messages": [...]}'

    def recognises(self, value: JsonValue) -> bool:
        """Simulations stand beside tasks; messages of simulations are numbered, and their calls have a requestor."""
        return _is_file(value) or _is_simulation(value) or _is_simulation(first_of(value))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Each simulation with its task and what else all of the file share; simulations and messages alone as they are."""
        if not _is_file(document):
            return [document] if _is_simulation(document) else items(document)
        file = must_be_object(document)
        shared = {name: value for name, value in file.items() if name not in ("simulations", "tasks")}
        tasks, simulations = file.get("tasks"), file.get("simulations")
        by_id = {
            str(task.get("id")): task for task in (tasks if isinstance(tasks, list) else ()) if isinstance(task, dict)
        }
        return [
            {
                **shared,
                "simulation": simulation,
                "task": by_id.get(str(simulation.get("task_id"))) if isinstance(simulation, dict) else None,
            }
            for simulation in (simulations if isinstance(simulations, list) else ())
        ]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """One simulation, named by its task and trial; messages alone have no name."""
        row = Found.of({"messages": record} if isinstance(record, list) else record)
        simulation = row.object("simulation") if "simulation" in row else row
        if simulation is None:
            raise row.unfit("simulation", "an object")
        task_id, trial = simulation.identity("task_id"), simulation.count("trial")
        if task_id is None and simulation is not row:
            raise simulation.unfit("task_id", "the id of a task")
        messages = [_message(message) for message in simulation.objects("messages")]
        if not messages:
            raise TraceError("holds no messages")
        if (given := row.object("task")) is None and task_id is not None:
            row.warn(f"no task {task_id!r}, so that what was expected is unknown", "tasks")
        task = given or Found({})
        task.take("id")
        criteria = task.object("evaluation_criteria") or Found({})
        expected = None if "actions" not in criteria else [_action(action) for action in criteria.objects("actions")]
        info = row.object("info") or Found({})
        environment = info.object("environment_info") or Found({})
        about = {"policy": environment.text("policy"), "agent": info.take("agent_info")}
        reward = simulation.object("reward_info")
        identity = simulation.identity("id")
        name = identity or task_id or str(index)
        if task_id is not None and (trial is not None or simulation is not row):
            name = task_id if trial is None else f"{task_id}#{trial}"
        trace = {
            "id": identity or name,
            "messages": messages,
            "started_at": simulation.moment("start_time"),
            "ended_at": simulation.moment("end_time"),
            "cost_usd": simulation.number("agent_cost"),
            "termination": simulation.text("termination_reason"),
            "labels": [] if reward is None else _labels(reward),
            "metadata": {key: value for key, value in about.items() if value},
        }
        known: dict[str, object] = {
            "reference_tool_calls": expected,
            "group": task_id,
            "domain": environment.text("domain_name"),
        }
        known = {field: value for field, value in known.items() if value is not None}
        if simulation is not row or given is not None:
            known["metadata"] = {"task_id": task_id, "criteria": criteria.leftover(), "task": task.leftover()}
        return sample_from(row, index, trace, identity=name, **known)


def _is_file(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("simulations"), list) and "tasks" in value


def _is_simulation(value: JsonValue) -> bool:
    if isinstance(value, dict) and not {"system", "tools"}.isdisjoint(value):
        return False
    messages = value.get("messages") if isinstance(value, dict) else value
    first = messages[:50] if isinstance(messages, list) else []
    of_others = any(isinstance(one, dict) and one.get("tool_call_id") is not None for one in first)
    return not of_others and any(map(_is_telling, first))


def _is_telling(message: JsonValue) -> bool:
    if not isinstance(message, dict) or "role" not in message:
        return False
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    return "turn_idx" in message or (isinstance(first, dict) and "requestor" in first)


def _message(found: Found) -> Message:
    about: dict[str, object] = {"timestamp": found.moment("timestamp")}
    role = found.peek("role")
    if role == "tool":  # its id is the id of the call that it answers
        if "requestor" in found and found.peek("requestor") not in get_args(Requestor):
            raise found.unfit("requestor", "'assistant' or 'user'")
        requestor = found.take("requestor") or "assistant"
        about |= {"tool_call_id": found.identity("id"), "is_error": found.flag("error"), "requestor": requestor}
    elif role == "assistant":
        reply = found.object("raw_data") or Found({})
        about |= {"usage": read_usage(found.object("usage")), "finish_reason": reply.text("finish_reason")}
        about["model"] = reply.text("model")
    return read_message(found).model_copy(update=about)


def _action(found: Found) -> JsonObject:
    if not isinstance(found.peek("arguments"), dict):
        raise found.unfit("arguments", "an object")
    return {
        "name": found.take("name"),
        "args": found.take("arguments"),
        "id": found.identity("action_id"),
        "compare_args": found.take("compare_args"),
        "requestor": found.take("requestor") or "assistant",
        "extra": found.leftover(),
    }


def _labels(found: Found) -> list[Label]:
    """The verdicts; those on actions stay with the rest of what is said about the reward."""
    reward, checks = found.number("reward"), found.peek("action_checks")
    labels = [] if reward is None else [Label("reward", reward, source="benchmark")]
    for check in checks if isinstance(checks, list) else ():
        action = check.get("action") if isinstance(check, dict) else None
        matched = check.get("action_match") if isinstance(check, dict) else None
        if isinstance(action, dict) and isinstance(matched, bool):
            labels.append(Label(f"action_match:{action.get('action_id')}", matched, source="benchmark"))
    return labels
