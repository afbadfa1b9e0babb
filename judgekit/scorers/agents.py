"""Rows on each agent of a recording, for the details of scores."""

from collections.abc import Iterable

from judgekit.traces.behavior import Agent, agents, count_repeats
from judgekit.traces.message import JsonObject, ToolCall
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import conversation_path


def calling_agent(call: ActualCall) -> Agent:
    """Return the agent that made a call."""
    return Agent(conversation_path(call.message), call.agent)


def agent_rows(trace: Trace, outcomes: Iterable[tuple[ActualCall, bool | None]]) -> dict[Agent, JsonObject]:
    """Return a row for each agent with its path and name, and the number of its calls, errors and repeats.

    Args:
        trace: The recording.
        outcomes: The calls that count, each with whether it failed.
    """
    calls_by_agent: dict[Agent, list[tuple[ToolCall, bool | None]]] = {agent: [] for agent in agents(trace)}
    for actual, failed in outcomes:
        calls_by_agent[calling_agent(actual)].append((actual.call, failed))
    return {
        agent: {
            "path": agent.path,
            "agent": agent.name,
            "calls": len(calls),
            "errors": sum(failed is True for _, failed in calls),
            "repeats": count_repeats([call for call, _ in calls]),
        }
        for agent, calls in calls_by_agent.items()
    }
