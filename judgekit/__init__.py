"""judgekit scores recorded agent conversations, with deterministic scorers and LLM judges, and explains every score."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judgekit.audits.audit import audit as audit
    from judgekit.audits.labels import HumanLabel as HumanLabel
    from judgekit.audits.labels import read_labels as read_labels
    from judgekit.errors import JudgekitError as JudgekitError
    from judgekit.formats.reading import read as read
    from judgekit.formats.writing import write as write
    from judgekit.jobs.api import aadd_scorers as aadd_scorers
    from judgekit.jobs.api import add_scorers as add_scorers
    from judgekit.jobs.api import aplan as aplan
    from judgekit.jobs.api import aresume as aresume
    from judgekit.jobs.api import arun as arun
    from judgekit.jobs.api import plan as plan
    from judgekit.jobs.api import resume as resume
    from judgekit.jobs.api import run as run
    from judgekit.jobs.plan import RunPlan as RunPlan
    from judgekit.judges.judge import Judge as Judge
    from judgekit.judges.price import Price as Price
    from judgekit.judges.prompt import load_prompt as load_prompt
    from judgekit.judges.scripted import ScriptedJudge as ScriptedJudge
    from judgekit.judges.spending import Limits as Limits
    from judgekit.reports.compare import Comparison as Comparison
    from judgekit.reports.compare import compare as compare
    from judgekit.reports.export import report as report
    from judgekit.reports.gates import check_gates as check_gates
    from judgekit.runs.results import Run as Run
    from judgekit.runs.rows import Row as Row
    from judgekit.score import Score as Score
    from judgekit.scorers.classification.answers import AnswerMatch as AnswerMatch
    from judgekit.scorers.classification.labels import Classification as Classification
    from judgekit.scorers.conduct import MaxCost as MaxCost
    from judgekit.scorers.conduct import MaxMessages as MaxMessages
    from judgekit.scorers.conduct import MaxRepeatedCalls as MaxRepeatedCalls
    from judgekit.scorers.conduct import MaxSeconds as MaxSeconds
    from judgekit.scorers.conduct import MaxTokens as MaxTokens
    from judgekit.scorers.conduct import MaxToolCalls as MaxToolCalls
    from judgekit.scorers.conduct import MaxToolErrorRate as MaxToolErrorRate
    from judgekit.scorers.criteria import WeightedCriteria as WeightedCriteria
    from judgekit.scorers.generalization import Adaptability as Adaptability
    from judgekit.scorers.generalization import CollaborationEfficiency as CollaborationEfficiency
    from judgekit.scorers.generalization import Portability as Portability
    from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference as AgentGoalAccuracyWithoutReference
    from judgekit.scorers.goal import AgentGoalAccuracyWithReference as AgentGoalAccuracyWithReference
    from judgekit.scorers.judged import JudgedScorer as JudgedScorer
    from judgekit.scorers.pairwise import Pairwise as Pairwise
    from judgekit.scorers.panel import Panel as Panel
    from judgekit.scorers.prompted import PromptScorer as PromptScorer
    from judgekit.scorers.ranking.binary import AUC as AUC
    from judgekit.scorers.ranking.binary import AveragePrecision as AveragePrecision
    from judgekit.scorers.ranking.binary import HitRate as HitRate
    from judgekit.scorers.ranking.binary import PrecisionAtK as PrecisionAtK
    from judgekit.scorers.ranking.binary import RecallAtK as RecallAtK
    from judgekit.scorers.ranking.binary import ReciprocalRank as ReciprocalRank
    from judgekit.scorers.ranking.graded import ERR as ERR
    from judgekit.scorers.ranking.graded import NDCG as NDCG
    from judgekit.scorers.repeat import Repeat as Repeat
    from judgekit.scorers.selective import Selective as Selective
    from judgekit.scorers.text.matches import ExactMatch as ExactMatch
    from judgekit.scorers.text.matches import Regex as Regex
    from judgekit.scorers.text.matches import Similarity as Similarity
    from judgekit.scorers.text.matches import StringPresence as StringPresence
    from judgekit.scorers.text.ngrams import NgramPrecision as NgramPrecision
    from judgekit.scorers.text.rouge import ROUGE as ROUGE
    from judgekit.scorers.text.structure import JSONDiff as JSONDiff
    from judgekit.scorers.text.structure import JSONMatch as JSONMatch
    from judgekit.scorers.text.translation import BLEU as BLEU
    from judgekit.scorers.text.translation import CHRF as CHRF
    from judgekit.scorers.text.translation import TER as TER
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
    from judgekit.traces.message import Usage as Usage
    from judgekit.traces.sample import ExpectedCall as ExpectedCall
    from judgekit.traces.sample import Ranking as Ranking
    from judgekit.traces.sample import Sample as Sample
    from judgekit.traces.trace import Trace as Trace

__version__ = "0.1.0"

_HOMES = {
    "AIMessage": "traces.message",
    "AUC": "scorers.ranking.binary",
    "Adaptability": "scorers.generalization",
    "AgentGoalAccuracyWithReference": "scorers.goal",
    "AgentGoalAccuracyWithoutReference": "scorers.goal",
    "AnswerMatch": "scorers.classification.answers",
    "ArgMatch": "scorers.tool_calls.arguments",
    "AveragePrecision": "scorers.ranking.binary",
    "BLEU": "scorers.text.translation",
    "Before": "scorers.tool_calls.constraints",
    "CHRF": "scorers.text.translation",
    "Classification": "scorers.classification.labels",
    "CollaborationEfficiency": "scorers.generalization",
    "Comparison": "reports.compare",
    "Count": "scorers.tool_calls.constraints",
    "ERR": "scorers.ranking.graded",
    "ExactMatch": "scorers.text.matches",
    "ExpectedCall": "traces.sample",
    "Forbid": "scorers.tool_calls.constraints",
    "HitRate": "scorers.ranking.binary",
    "HumanLabel": "audits.labels",
    "HumanMessage": "traces.message",
    "JSONDiff": "scorers.text.structure",
    "JSONMatch": "scorers.text.structure",
    "Judge": "judges.judge",
    "JudgedScorer": "scorers.judged",
    "JudgekitError": "errors",
    "Limits": "judges.spending",
    "MaxCost": "scorers.conduct",
    "MaxMessages": "scorers.conduct",
    "MaxRepeatedCalls": "scorers.conduct",
    "MaxSeconds": "scorers.conduct",
    "MaxSteps": "scorers.tool_calls.constraints",
    "MaxTokens": "scorers.conduct",
    "MaxToolCalls": "scorers.conduct",
    "MaxToolErrorRate": "scorers.conduct",
    "NDCG": "scorers.ranking.graded",
    "NgramPrecision": "scorers.text.ngrams",
    "NoRepeat": "scorers.tool_calls.constraints",
    "Pairwise": "scorers.pairwise",
    "Panel": "scorers.panel",
    "Portability": "scorers.generalization",
    "PrecisionAtK": "scorers.ranking.binary",
    "Price": "judges.price",
    "PromptScorer": "scorers.prompted",
    "ROUGE": "scorers.text.rouge",
    "Ranking": "traces.sample",
    "RecallAtK": "scorers.ranking.binary",
    "ReciprocalRank": "scorers.ranking.binary",
    "Regex": "scorers.text.matches",
    "Repeat": "scorers.repeat",
    "Require": "scorers.tool_calls.constraints",
    "Row": "runs.rows",
    "Run": "runs.results",
    "RunPlan": "jobs.plan",
    "Sample": "traces.sample",
    "SchemaValid": "scorers.tool_calls.constraints",
    "Score": "score",
    "Scorer": "scoring",
    "ScriptedJudge": "judges.scripted",
    "Selective": "scorers.selective",
    "Similarity": "scorers.text.matches",
    "Status": "scorers.tool_calls.constraints",
    "StringPresence": "scorers.text.matches",
    "SystemMessage": "traces.message",
    "TER": "scorers.text.translation",
    "ToolCall": "traces.message",
    "ToolCallAccuracy": "scorers.tool_calls.accuracy",
    "ToolCallF1": "scorers.tool_calls.f1",
    "ToolCallMatch": "scorers.tool_calls.match",
    "ToolConstraints": "scorers.tool_calls.constraints",
    "ToolMatch": "scorers.tool_calls.modes",
    "ToolMessage": "traces.message",
    "TopicAdherence": "scorers.topic",
    "Trace": "traces.trace",
    "Usage": "traces.message",
    "WeightedCriteria": "scorers.criteria",
    "aadd_scorers": "jobs.api",
    "add_scorers": "jobs.api",
    "anything": "scorers.tool_calls.matchers",
    "aplan": "jobs.api",
    "aresume": "jobs.api",
    "arun": "jobs.api",
    "attempt": "scoring",
    "audit": "audits.audit",
    "between": "scorers.tool_calls.matchers",
    "check_gates": "reports.gates",
    "compare": "reports.compare",
    "contains": "scorers.tool_calls.matchers",
    "load_prompt": "judges.prompt",
    "near": "scorers.tool_calls.matchers",
    "of_type": "scorers.tool_calls.matchers",
    "one_of": "scorers.tool_calls.matchers",
    "plan": "jobs.api",
    "read": "formats.reading",
    "read_labels": "audits.labels",
    "regex": "scorers.tool_calls.matchers",
    "report": "reports.export",
    "resume": "jobs.api",
    "run": "jobs.api",
    "scorer": "scoring",
    "similar": "scorers.tool_calls.matchers",
    "write": "formats.writing",
}

if not TYPE_CHECKING:  # checkers take the names from the imports above
    __all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Loads a public name when it is first asked for (PEP 562), so that importing judgekit costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
