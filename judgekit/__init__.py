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
    from judgekit.scorers.criteria import WeightedCriteria as WeightedCriteria
    from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference as AgentGoalAccuracyWithoutReference
    from judgekit.scorers.goal import AgentGoalAccuracyWithReference as AgentGoalAccuracyWithReference
    from judgekit.scorers.pairwise import Pairwise as Pairwise
    from judgekit.scorers.panel import Panel as Panel
    from judgekit.scorers.prompted import PromptScorer as PromptScorer
    from judgekit.scorers.repeat import Repeat as Repeat
    from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy as ToolCallAccuracy
    from judgekit.scorers.tool_calls.arguments import ArgMatch as ArgMatch
    from judgekit.scorers.tool_calls.constraints import Before as Before
    from judgekit.scorers.tool_calls.constraints import Count as Count
    from judgekit.scorers.tool_calls.constraints import Forbid as Forbid
    from judgekit.scorers.tool_calls.constraints import MaxSteps as MaxSteps
    from judgekit.scorers.tool_calls.constraints import NoRepeat as NoRepeat
    from judgekit.scorers.tool_calls.constraints import Require as Require
    from judgekit.scorers.tool_calls.constraints import SchemaValid as SchemaValid
    from judgekit.scorers.tool_calls.constraints import Status as Status
    from judgekit.scorers.tool_calls.constraints import ToolConstraints as ToolConstraints
    from judgekit.scorers.tool_calls.f1 import ToolCallF1 as ToolCallF1
    from judgekit.scorers.tool_calls.match import ToolCallMatch as ToolCallMatch
    from judgekit.scorers.tool_calls.matchers import anything as anything
    from judgekit.scorers.tool_calls.matchers import between as between
    from judgekit.scorers.tool_calls.matchers import contains as contains
    from judgekit.scorers.tool_calls.matchers import near as near
    from judgekit.scorers.tool_calls.matchers import of_type as of_type
    from judgekit.scorers.tool_calls.matchers import one_of as one_of
    from judgekit.scorers.tool_calls.matchers import regex as regex
    from judgekit.scorers.tool_calls.matchers import similar as similar
    from judgekit.scorers.tool_calls.modes import ToolMatch as ToolMatch
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
    "ArgMatch": "scorers.tool_calls.arguments",
    "Before": "scorers.tool_calls.constraints",
    "Count": "scorers.tool_calls.constraints",
    "ExpectedCall": "traces.sample",
    "Forbid": "scorers.tool_calls.constraints",
    "HumanMessage": "traces.message",
    "Judge": "judges.judge",
    "JudgekitError": "errors",
    "Limits": "judges.budget",
    "MaxSteps": "scorers.tool_calls.constraints",
    "NoRepeat": "scorers.tool_calls.constraints",
    "Pairwise": "scorers.pairwise",
    "Panel": "scorers.panel",
    "Price": "judges.price",
    "PromptScorer": "scorers.prompted",
    "Repeat": "scorers.repeat",
    "Require": "scorers.tool_calls.constraints",
    "Run": "runs.results",
    "Sample": "traces.sample",
    "SchemaValid": "scorers.tool_calls.constraints",
    "Score": "score",
    "Scorer": "scoring",
    "ScriptedJudge": "judges.scripted",
    "Status": "scorers.tool_calls.constraints",
    "SystemMessage": "traces.message",
    "ToolCall": "traces.message",
    "ToolCallAccuracy": "scorers.tool_calls.accuracy",
    "ToolCallF1": "scorers.tool_calls.f1",
    "ToolCallMatch": "scorers.tool_calls.match",
    "ToolConstraints": "scorers.tool_calls.constraints",
    "ToolMatch": "scorers.tool_calls.modes",
    "ToolMessage": "traces.message",
    "TopicAdherence": "scorers.topic",
    "Trace": "traces.trace",
    "WeightedCriteria": "scorers.criteria",
    "anything": "scorers.tool_calls.matchers",
    "arun": "runs.runner",
    "attempt": "scoring",
    "between": "scorers.tool_calls.matchers",
    "contains": "scorers.tool_calls.matchers",
    "load_prompt": "judges.prompt",
    "near": "scorers.tool_calls.matchers",
    "of_type": "scorers.tool_calls.matchers",
    "one_of": "scorers.tool_calls.matchers",
    "read": "traces.reading",
    "regex": "scorers.tool_calls.matchers",
    "run": "runs.runner",
    "scorer": "scoring",
    "similar": "scorers.tool_calls.matchers",
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
