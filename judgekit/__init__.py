"""judgekit scores recorded agent conversations, with deterministic scorers and LLM judges, and explains every score."""

from importlib import import_module
from typing import TYPE_CHECKING

from judgekit.scorers import SCORERS

if TYPE_CHECKING:
    from judgekit.alignment.align import aalign as aalign
    from judgekit.alignment.align import align as align
    from judgekit.alignment.result import Alignment as Alignment
    from judgekit.analysis.audit import audit as audit
    from judgekit.analysis.compare import Comparison as Comparison
    from judgekit.analysis.compare import compare as compare
    from judgekit.analysis.comparison_plan import ComparisonPlan as ComparisonPlan
    from judgekit.analysis.comparison_plan import plan_comparison as plan_comparison
    from judgekit.analysis.gates import check_gates as check_gates
    from judgekit.analysis.labels import HumanLabel as HumanLabel
    from judgekit.analysis.labels import read_labels as read_labels
    from judgekit.analysis.stored_labels import add_labels as add_labels
    from judgekit.analysis.stored_labels import stored_labels as stored_labels
    from judgekit.errors import JudgekitError as JudgekitError
    from judgekit.formats.reading import read as read
    from judgekit.formats.writing import write as write
    from judgekit.integrations.export import aexport as aexport
    from judgekit.integrations.export import export as export
    from judgekit.jobs.api import aadd_scorers as aadd_scorers
    from judgekit.jobs.api import add_scorers as add_scorers
    from judgekit.jobs.api import aplan as aplan
    from judgekit.jobs.api import aresume as aresume
    from judgekit.jobs.api import arun as arun
    from judgekit.jobs.api import merge_runs as merge_runs
    from judgekit.jobs.api import plan as plan
    from judgekit.jobs.api import resume as resume
    from judgekit.jobs.api import run as run
    from judgekit.jobs.plan import RunPlan as RunPlan
    from judgekit.judges.judge import Judge as Judge
    from judgekit.judges.limits.budget import Budget as Budget
    from judgekit.judges.prompt_file import load_prompt as load_prompt
    from judgekit.judges.providers.price import Price as Price
    from judgekit.judges.scripted import ScriptedJudge as ScriptedJudge
    from judgekit.reports.export import report as report
    from judgekit.runs.results import Run as Run
    from judgekit.runs.rows import Row as Row
    from judgekit.score import Score as Score
    from judgekit.scorers.classification.answers import AnswerMatch as AnswerMatch
    from judgekit.scorers.classification.labels import Classification as Classification
    from judgekit.scorers.criteria import WeightedCriteria as WeightedCriteria
    from judgekit.scorers.failure_analysis import FailureAnalysis as FailureAnalysis
    from judgekit.scorers.generalization import Adaptability as Adaptability
    from judgekit.scorers.generalization import CollaborationEfficiency as CollaborationEfficiency
    from judgekit.scorers.generalization import Portability as Portability
    from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference as AgentGoalAccuracyWithoutReference
    from judgekit.scorers.goal import AgentGoalAccuracyWithReference as AgentGoalAccuracyWithReference
    from judgekit.scorers.groundedness import Groundedness as Groundedness
    from judgekit.scorers.handoffs import HandoffQuality as HandoffQuality
    from judgekit.scorers.imported import Imported as Imported
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
    from judgekit.scorers.tool_calls.constraints import ToolConstraints as ToolConstraints
    from judgekit.scorers.tool_calls.f1 import ToolCallF1 as ToolCallF1
    from judgekit.scorers.tool_calls.match import ToolCallMatch as ToolCallMatch
    from judgekit.scorers.tool_calls.modes import ToolMatch as ToolMatch
    from judgekit.scorers.topic import TopicAdherence as TopicAdherence
    from judgekit.scoring import Scorer as Scorer
    from judgekit.scoring import attempt as attempt
    from judgekit.scoring import scorer as scorer
    from judgekit.traces.images import ImageSettings as ImageSettings
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

__version__ = "0.2.0"

_NAMES = {
    "alignment.align": "aalign align",
    "alignment.result": "Alignment",
    "analysis.audit": "audit",
    "analysis.compare": "compare Comparison",
    "analysis.comparison_plan": "plan_comparison ComparisonPlan",
    "analysis.gates": "check_gates",
    "analysis.labels": "HumanLabel read_labels",
    "analysis.stored_labels": "add_labels stored_labels",
    "errors": "JudgekitError",
    "formats.reading": "read",
    "formats.writing": "write",
    "integrations.export": "aexport export",
    "jobs.api": "aadd_scorers add_scorers aplan aresume arun merge_runs plan resume run",
    "jobs.plan": "RunPlan",
    "judges.judge": "Judge",
    "judges.limits.budget": "Budget",
    "judges.prompt_file": "load_prompt",
    "judges.providers.price": "Price",
    "judges.scripted": "ScriptedJudge",
    "reports.export": "report",
    "runs.results": "Run",
    "runs.rows": "Row",
    "score": "Score",
    "scorers.judged": "JudgedScorer",
    "scorers.repeat": "Repeat",
    "scorers.selective": "Selective",
    "scorers.tool_calls.arguments": "ArgMatch",
    "scorers.tool_calls.modes": "ToolMatch",
    "scoring": "attempt Scorer scorer",
    "traces.images": "ImageSettings",
    "traces.message": "AIMessage HumanMessage SystemMessage ToolCall ToolMessage Usage",
    "traces.sample": "ExpectedCall Ranking Sample",
    "traces.trace": "Trace",
}
"""The public names of each module, apart from `SCORERS`."""
_ELSEWHERE = {"judgekit.scorers.behavior", "judgekit.scorers.flaws"}  # public as judgekit.behavior
_HOMES = {
    **{name: f"judgekit.{module}" for module, names in _NAMES.items() for name in names.split()},
    **{name: module for module, name in (path.split(":") for path in SCORERS.values()) if module not in _ELSEWHERE},
}

if not TYPE_CHECKING:  # checkers take the names from the imports above
    __all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Loads a public name when it is first asked for (PEP 562), so that importing judgekit costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
