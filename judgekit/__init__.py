"""judgekit scores recorded agent conversations, with deterministic scorers and LLM judges, and explains every score."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judgekit.errors import JudgekitError as JudgekitError
    from judgekit.judges.budget import Limits as Limits
    from judgekit.judges.judge import Judge as Judge
    from judgekit.judges.price import Price as Price
    from judgekit.judges.prompt import load_prompt as load_prompt
    from judgekit.judges.scripted import ScriptedJudge as ScriptedJudge
    from judgekit.runs.results import Run as Run
    from judgekit.runs.runner import arun as arun
    from judgekit.runs.runner import run as run
    from judgekit.score import Score as Score
    from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference as AgentGoalAccuracyWithoutReference
    from judgekit.scorers.goal import AgentGoalAccuracyWithReference as AgentGoalAccuracyWithReference
    from judgekit.scorers.repeat import Repeat as Repeat
    from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy as ToolCallAccuracy
    from judgekit.scorers.tool_calls.f1 import ToolCallF1 as ToolCallF1
    from judgekit.scorers.topic import TopicAdherence as TopicAdherence
    from judgekit.scoring import Scorer as Scorer
    from judgekit.scoring import attempt as attempt
    from judgekit.scoring import scorer as scorer
    from judgekit.traces.message import AIMessage as AIMessage
    from judgekit.traces.message import HumanMessage as HumanMessage
    from judgekit.traces.message import SystemMessage as SystemMessage
    from judgekit.traces.message import ToolCall as ToolCall
    from judgekit.traces.message import ToolMessage as ToolMessage
    from judgekit.traces.reading import read as read
    from judgekit.traces.sample import ExpectedCall as ExpectedCall
    from judgekit.traces.sample import Sample as Sample
    from judgekit.traces.trace import Trace as Trace

__version__ = "0.1.0"

_HOMES = {
    "AIMessage": "traces.message",
    "AgentGoalAccuracyWithReference": "scorers.goal",
    "AgentGoalAccuracyWithoutReference": "scorers.goal",
    "ExpectedCall": "traces.sample",
    "HumanMessage": "traces.message",
    "Judge": "judges.judge",
    "JudgekitError": "errors",
    "Limits": "judges.budget",
    "Price": "judges.price",
    "Repeat": "scorers.repeat",
    "Run": "runs.results",
    "Sample": "traces.sample",
    "Score": "score",
    "Scorer": "scoring",
    "ScriptedJudge": "judges.scripted",
    "SystemMessage": "traces.message",
    "ToolCall": "traces.message",
    "ToolCallAccuracy": "scorers.tool_calls.accuracy",
    "ToolCallF1": "scorers.tool_calls.f1",
    "ToolMessage": "traces.message",
    "TopicAdherence": "scorers.topic",
    "Trace": "traces.trace",
    "arun": "runs.runner",
    "attempt": "scoring",
    "load_prompt": "judges.prompt",
    "read": "traces.reading",
    "run": "runs.runner",
    "scorer": "scoring",
}


def __getattr__(name: str) -> object:
    """Loads a public name when it is first asked for (PEP 562), so that importing judgekit costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
