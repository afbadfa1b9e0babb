"""Result files of tau2-bench: simulations of an agent and a user, who may also call tools, with their tasks.

{"info": {...}, "tasks": [{"id", "evaluation_criteria": {"actions": [{"name", "arguments", "compare_args", "requestor"}]}}],
 "simulations": [{"id", "task_id", "trial", "reward_info": {...}, "messages": [
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "name": "f", "arguments": {}, "requestor": "assistant"}],
     "turn_idx": 2, "timestamp": "...", "cost": 0.002, "usage": {...}, "raw_data": {"finish_reason": "tool_calls", ...}},
    {"role": "tool", "id": "c", "content": "ok", "requestor": "assistant", "error": false, "turn_idx": 3}]}]}
"""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, as_records, build_sample, first_record, group_name, require_object
from judgekit.formats.values import as_list, as_object, head, lookup, messages_field, objects_in, str_or_none, without
from judgekit.traces.equality import canonical_json, json_bytes
from judgekit.traces.message import JsonObject, Message, Requestor
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample

_REQUESTORS = get_args(Requestor)


class Tau2Reader(RowReader):
    """Result files of tau2-bench.

    The expected calls are the agent's and the user's or, in a run without a user, only the agent's. The rest of the
    task goes into the sample's metadata, the agent's policy and settings into the trace's. Rewards and the benchmark's
    verdict on each action become labels.

    The benchmark checks a simulation for all actions of its task, or for none. If the checks name other actions, the
    file holds another version of the task: the expected calls are those of the checks, and the task stays in ``extra``.
    In such a file, a simulation that was not checked has references only if checked trials of its task agree with it
    and none disagrees.
    """

    name = "tau2"
    shape = 'tau2: {"simulations": [...], "tasks": [...], "info": ...}, or {"task_id": ..., "messages": [...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize simulations next to tasks, by numbered messages, or by calls with a requestor."""
        first = isinstance(value, list) and _is_simulation(first_record(value))
        return first or _is_file(value) or _is_simulation(value)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return each simulation with its task and the fields that the whole file shares, or a single one as it is.

        A task is doubtful if the simulation was checked for other actions. It is also doubtful if the simulation was
        not checked, no other confirms the task, and another simulation of the file contradicts its own task.
        """
        if not _is_file(document):
            return [document] if _is_simulation(document) else as_records(document)
        file = require_object(document)
        shared = without(file, "simulations", "tasks")
        by_id = {str(task.get("id")): task for task in objects_in(file.get("tasks"))}
        named = [(trial, str(as_object(trial).get("task_id"))) for trial in as_list(file.get("simulations"))]
        trials = [(trial, name, _agrees(trial, by_id.get(name))) for trial, name in named]
        confirmed, refuted = ({name for _, name, agrees in trials if agrees is verdict} for verdict in (True, False))
        doubted = by_id.keys() - (confirmed - refuted) if refuted else set[str]()
        return [
            {**shared, "simulation": trial, "task": by_id.get(name), "task_doubted": not agrees and name in doubted}
            for trial, name, agrees in trials
        ]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one simulation, named by its task and trial. Bare messages have no name."""
        row = FieldTracker.of({"messages": record} if isinstance(record, list) else record)
        raw = row.peek("simulation") or record
        checked, stated = _checked(raw), row.take("task_doubted")
        doubted = stated if isinstance(stated, bool) else _agrees(raw, row.peek("task")) is False
        simulation = row.object("simulation") if "simulation" in row else row
        if simulation is None:
            raise row.type_error("simulation", "an object")
        task_id, trial = simulation.id("task_id"), simulation.count("trial")
        if task_id is None and simulation is not row:
            raise simulation.type_error("task_id", "a task id")
        info = row.object("info") or FieldTracker({})
        solo = _is_solo(info, objects_in(simulation.peek("messages")))
        messages = [_message(message, solo=solo) for message in simulation.objects("messages")]
        if not messages:
            raise TraceError("contains no messages")
        given = row.object("task")
        instead = "the checked actions are the expected calls" if checked else "the expected calls are unknown"
        if doubted:
            of_file = "the file holds tasks of another version"
            whose = "the checked actions differ from the task's" if checked else of_file
            row.warn(f"{whose}; the task is kept in extra, and {instead}", "task")
        elif given is None and task_id is not None:
            row.warn(f"the file has no task {task_id!r}; {instead}", "tasks")
        task = FieldTracker({}) if doubted or given is None else given
        task.take("id")
        criteria = task.object("evaluation_criteria") or FieldTracker({})
        has_actions = "actions" in criteria
        checks = (FieldTracker(action, "reward_info.action_checks", row.warnings) for action in checked)
        actions = criteria.objects("actions") if has_actions else list(checks)
        expected = [_action(action, solo=solo) for action in actions] if has_actions or checked else None
        environment = info.object("environment_info") or FieldTracker({})
        about = {"policy": environment.text("policy"), "agent": info.take("agent_info")}
        reward = simulation.object("reward_info")
        identity = simulation.id("id")
        name = identity or task_id or str(index)
        if task_id is not None and (trial is not None or simulation is not row):
            name = task_id if trial is None else f"{task_id}#{trial}"
        trace = {
            "id": identity or name,
            "messages": messages,
            "started_at": simulation.time("start_time"),
            "ended_at": simulation.time("end_time"),
            "cost_usd": simulation.number("agent_cost"),
            "termination": simulation.text("termination_reason"),
            "labels": [] if reward is None else _labels(reward),
            "metadata": {key: value for key, value in about.items() if value},
        }
        domain = environment.text("domain_name")
        within = domain or str_or_none(row.peek("domain"))
        if task_id is not None and not within:
            row.warn(f"no domain given: task {task_id!r} of another domain would get the same group", "info")
        group = group_name(task_id, within)
        if group and doubted:
            group += " (another version)"
        fields: dict[str, object] = {"reference_tool_calls": expected, "group": group, "domain": domain}
        facts = {field: value for field, value in fields.items() if value is not None}
        if simulation is not row or given is not None:
            facts["metadata"] = {"task_id": task_id, "criteria": criteria.leftover(), "task": task.leftover()}
        return build_sample(row, index, trace, identity=name, **facts)


def _message(message: FieldTracker, *, solo: bool) -> Message:
    about: dict[str, object] = {"timestamp": message.time("timestamp")}
    role = message.peek("role")
    if role == "tool":  # its id is the id of the call that it answers
        if "requestor" in message and message.peek("requestor") not in _REQUESTORS:
            raise message.type_error("requestor", "'assistant' or 'user'")
        requestor = "assistant" if solo else message.take("requestor") or "assistant"
        about |= {"tool_call_id": message.id("id"), "is_error": message.boolean("error"), "requestor": requestor}
    elif role == "assistant":
        reply = message.object("raw_data") or FieldTracker({})
        about |= {"usage": read_usage(message.object("usage")), "finish_reason": reply.text("finish_reason")}
        about["model"] = reply.text("model")
    return read_message(message, **about)


def _is_file(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("simulations"), list) and "tasks" in value


def _is_simulation(value: JsonValue) -> bool:
    if isinstance(value, dict) and not {"system", "tools"}.isdisjoint(value):
        return False
    first = head(messages_field(value))
    of_others = any(lookup(message, "tool_call_id") is not None for message in first)
    messages = [message for message in objects_in(first) if "role" in message]
    called = any("requestor" in as_object(call) for message in messages for call in head(message.get("tool_calls"))[:1])
    return not of_others and (called or any("turn_idx" in message for message in messages))


def _is_solo(info: FieldTracker, messages: Sequence[JsonObject]) -> bool:
    """Return whether the agent works without a user, and so makes the user's calls too.

    The file names the agent or the user's stand-in; if not, no user speaks although the agent calls tools.
    """
    named = {str(side.get("implementation")) for side in objects_in([*map(info.peek, ("agent_info", "user_info"))])}
    if not named.isdisjoint(("llm_agent_solo", "dummy_user")):
        return True
    silent = all(message.get("role") != "user" for message in messages)
    return silent and any(message.get("tool_calls") for message in messages)


def _checked(simulation: JsonValue) -> list[JsonObject]:
    """Return the actions that a simulation was checked for, if all of them are complete."""
    checked = [lookup(check, "action") for check in as_records(lookup(simulation, "reward_info", "action_checks"))]
    actions = objects_in(checked)
    in_full = all(isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict) for call in actions)
    return actions if in_full and len(actions) == len(checked) else []


def _agrees(simulation: JsonValue, task: JsonValue) -> bool | None:
    """Return whether a simulation was checked for its task's actions; ``None`` if there is nothing to compare.

    Ids, order and notes of actions may differ.
    """
    checked = _checked(simulation)
    if not checked or not isinstance(task, dict):
        return None
    left = [_content(action) for action in checked]
    right = [_content(action) for action in as_list(lookup(task, "evaluation_criteria", "actions"))]
    if json_bytes(left) == json_bytes(right):
        return True
    return Counter(map(canonical_json, left)) == Counter(map(canonical_json, right))


def _content(action: JsonValue) -> JsonValue:
    if not isinstance(action, dict):
        return None
    fields = [action.get(name) for name in ("name", "arguments", "compare_args")]
    return [*fields, action.get("requestor") or "assistant"]


def _action(action: FieldTracker, *, solo: bool) -> JsonObject:
    if not isinstance(action.peek("arguments"), dict):
        raise action.type_error("arguments", "an object")
    return {
        "name": action.take("name"),
        "args": action.take("arguments"),
        "id": action.id("action_id"),
        "compare_args": action.take("compare_args"),
        "requestor": "assistant" if solo else action.take("requestor") or "assistant",
        "extra": action.leftover(),
    }


def _labels(reward_info: FieldTracker) -> list[Label]:
    """Return the verdicts. Those on actions also stay in the reward's other fields."""
    reward = reward_info.number("reward")
    is_judged = "NL_ASSERTION" in as_list(reward_info.peek("reward_basis"))  # a model decides these
    labels = [] if reward is None else [Label("reward", reward, source="judge" if is_judged else "benchmark")]
    for check in objects_in(reward_info.peek("action_checks")):
        action, matched = check.get("action"), check.get("action_match")
        if isinstance(action, dict) and isinstance(matched, bool):
            labels.append(Label(f"action_match:{action.get('action_id')}", matched, source="benchmark"))
    return labels
