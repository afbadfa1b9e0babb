"""The source of an imported score, from its name and the mark next to it."""

import re
from collections.abc import Iterable

from judgekit.traces.recording import LabelSource

JUDGED_MARK = "judgekit.judged"
"""The name of the mark that judgekit's integrations write next to a score: whether a judge was asked."""
JUDGED_SCORERS = {
    *("agent_goal_accuracy_with_reference", "agent_goal_accuracy_without_reference", "agent_goal_with_reference"),
    *("agent_goal_without_reference", "answer_correctness", "conversation_completeness", "failure_analysis"),
    *("faithfulness", "groundedness", "handoff_quality", "handoffs", "knowledge_retention", "pairwise", "panel"),
    *("plan_adherence", "prompt", "refusal_appropriateness", "role_adherence", "step_efficiency", "task_completion"),
    *("tone", "tool_argument_grounding", "tool_result_use", "tool_selection", "topic_adherence", "user_frustration"),
    "weighted_criteria",
}
"""The names of judgekit's scorers that ask a judge, and of the prompts that it ships."""
_MODEL_GRADED = re.compile(r"model_graded|(?<![a-z])(llm|judge|grader)(?![a-z])|LLM|Judge|Grader")


def label_source(name: str, *, judged: bool | None = None) -> LabelSource:
    """Return the source of a score that no person gave, or whose source is not recorded.

    A name that only judges use overrides a record that code computed the score, since code may ask a judge. If nothing
    is recorded, ``judged`` is ``None``.
    """
    known_as = name.partition(" (")[0]  # compare-judges appends the judge's name: "tone (large)"
    is_ours = not JUDGED_SCORERS.isdisjoint({known_as, known_as.rstrip("0123456789")})  # Inspect numbers repeated names
    if judged or is_ours or _MODEL_GRADED.search(name):
        return "judge"
    return "unknown" if judged is None else "benchmark"


def combined_source(sources: Iterable[LabelSource]) -> LabelSource:
    """Return the source of a verdict that combines several: a person overrides all, and a judge decides with code."""
    kinds = set(sources)
    for source in ("human", "judge"):
        if source in kinds:
            return source
    return "benchmark" if kinds == {"benchmark"} else "unknown"
