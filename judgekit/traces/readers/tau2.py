"""tau2-bench result files: simulations of an agent, a user who may call tools too, and the tasks they were given.

{"info": {...}, "tasks": [{"id", "evaluation_criteria": {"actions": [{"name", "arguments", "compare_args", "requestor"}]}}],
 "simulations": [{"id", "task_id", "trial", "reward_info": {...}, "messages": [...]}]}
"""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, explain
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    Identity,
    JsonObject,
    Message,
    Requestor,
    SystemMessage,
    ToolCall,
    ToolMessage,
    parse_arguments,
)
from judgekit.traces.readers.foreign import Foreign, must_be_object, unpaired
from judgekit.traces.readers.openai_chat import read_usage
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Label, Trace


class _Call(Foreign):
    id: Identity | None = None
    name: str
    arguments: JsonValue = None


class _Message(Foreign):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    id: Identity | None = None
    tool_calls: list[_Call] | None = None
    timestamp: datetime | None = None
    usage: JsonObject | None = None
    requestor: Requestor = "assistant"
    error: bool | None = None


class _Action(Foreign):
    action_id: Identity | None = None
    name: str
    arguments: JsonObject
    requestor: Requestor = "assistant"
    compare_args: list[str] | None = None


class _Criteria(Foreign):
    actions: list[_Action] | None = None


class _Task(Foreign):
    id: Identity
    evaluation_criteria: _Criteria | None = None


class _Check(Foreign):
    action: JsonObject
    action_match: bool


class _Reward(Foreign):
    reward: float | None = None
    action_checks: list[_Check] | None = None


class _Simulation(Foreign):
    id: Identity | None = None
    task_id: Identity
    trial: int | None = None
    termination_reason: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    agent_cost: float | None = None
    reward_info: _Reward | None = None
    messages: list[_Message]


class _Environment(Foreign):
    domain_name: str | None = None
    policy: str | None = None


class _Record(Foreign):
    simulation: _Simulation
    task: _Task | None = None
    environment: _Environment = _Environment()
    agent: JsonObject | None = None


class Tau2Reader:
    """Result files of tau2-bench.

    The expected calls are the agent's and the user's. The rest of the task stands in the sample's metadata, the agent's
    policy and settings in the trace's. Rewards and the benchmark's verdict on each action are labels.
    """

    name = "tau2"
    shape = 'tau2: {"simulations": [...], "tasks": [...], "info": ...}'

    def recognises(self, value: JsonValue) -> bool:
        """Simulations stand beside tasks."""
        return isinstance(value, dict) and isinstance(value.get("simulations"), list) and "tasks" in value

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Each simulation with its task and the environment that all share."""
        file = must_be_object(document)
        info, tasks, simulations = file.get("info"), file.get("tasks"), file.get("simulations")
        about = info if isinstance(info, dict) else {}
        by_id = {str(task.get("id")): task for task in _objects(tasks)}
        return [
            {
                "simulation": simulation,
                "task": by_id.get(str(simulation.get("task_id"))) if isinstance(simulation, dict) else None,
                "environment": about.get("environment_info") or {},
                "agent": about.get("agent_info"),
            }
            for simulation in (simulations if isinstance(simulations, list) else ())
        ]

    def sample(self, record: JsonValue, index: int) -> Sample:  # noqa: ARG002 - the protocol's
        """One simulation, named by its task and trial."""
        try:
            return _sample(_Record.model_validate(record))
        except ValidationError as error:
            raise TraceError(explain(error, record)) from error


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _sample(record: _Record) -> Sample:
    simulation, task, environment = record.simulation, record.task, record.environment
    name = simulation.task_id if simulation.trial is None else f"{simulation.task_id}#{simulation.trial}"
    messages = [_message(message) for message in simulation.messages]
    reward = simulation.reward_info
    known: JsonObject = {"policy": environment.policy, "agent": record.agent}
    trace = Trace(
        id=simulation.id or name,
        messages=messages,
        started_at=simulation.start_time,
        ended_at=simulation.end_time,
        cost_usd=simulation.agent_cost,
        termination=simulation.termination_reason,
        labels=[] if reward is None else _labels(reward),
        metadata={key: value for key, value in known.items() if value},
        extra=simulation.unknown
        if reward is None
        else {**simulation.unknown, "reward_info": reward.model_dump(exclude={"reward"}, exclude_unset=True)},
        warnings=unpaired(messages),
    )
    criteria = task.evaluation_criteria if task else None
    actions = criteria.actions if criteria else None
    return Sample(
        id=name,
        trace=trace,
        reference_tool_calls=None
        if actions is None
        else [
            ExpectedCall(
                action.name,
                action.arguments,
                id=action.action_id,
                compare_args=action.compare_args,
                requestor=action.requestor,
                extra=action.unknown,
            )
            for action in actions
        ],
        group=simulation.task_id,
        domain=environment.domain_name,
        metadata={
            "task_id": simulation.task_id,
            "task": {} if task is None else task.unknown,
            "criteria": {} if criteria is None else criteria.unknown,
        },
    )


def _labels(found: _Reward) -> list[Label]:
    labels = [] if found.reward is None else [Label("reward", found.reward, source="benchmark")]
    return labels + [
        Label(f"action_match:{check.action.get('action_id')}", check.action_match, source="benchmark")
        for check in found.action_checks or ()
    ]


def _message(found: _Message) -> Message:
    fields: dict[str, object] = {"content": found.content or "", "timestamp": found.timestamp, "extra": found.unknown}
    if found.role == "tool":  # its id is the id of the call that it answers
        result = {"tool_call_id": found.id, "is_error": found.error, "requestor": found.requestor}
        return ToolMessage.model_validate({**fields, **result})
    fields["id"] = found.id
    if found.role == "system":
        return SystemMessage.model_validate(fields)
    fields["tool_calls"] = [
        ToolCall(call.name, id=call.id, extra=call.unknown, **parse_arguments(call.arguments))
        for call in found.tool_calls or ()
    ]
    if found.role == "user":
        usage = {} if found.usage is None else {"usage": found.usage}
        return HumanMessage.model_validate({**fields, "extra": {**found.unknown, **usage}})
    return AIMessage.model_validate({**fields, "usage": read_usage(found.usage)})
