"""Rows on each agent of a recording, for the details of scores."""

from collections.abc import Iterable

from judgekit.traces.behavior import Agent, calls_by_agent, count_repeats
from judgekit.traces.message import JsonObject
from judgekit.traces.trace import ActualCall, Trace


def agent_rows(trace: Trace, outcomes: Iterable[tuple[ActualCall, bool | None]]) -> dict[Agent, JsonObject]:
    """Return a row for each agent with its path and name, and the number of its calls, errors and repeats.

    Args:
        trace: The recording.
        outcomes: The calls that count, each with whether it failed.
    """
    return {
        agent: {
            "path": agent.path,
            "agent": agent.name,
            "calls": len(calls),
            "errors": sum(failed is True for _, failed in calls),
            "repeats": count_repeats([call for call, _ in calls]),
        }
        for agent, calls in calls_by_agent(trace, outcomes).items()
    }
