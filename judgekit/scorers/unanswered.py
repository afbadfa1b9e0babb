"""The scores of conversations without an answer, by scorers that look for one."""

from judgekit.score import Score
from judgekit.traces.ending import MissingAnswer

GAVE_UP = "the agent gave no answer"
NOT_RECORDED = "no answer recorded"


def unanswered(empty: Score, missing: MissingAnswer) -> Score:
    """Return the score of a conversation without an answer, from that of an empty answer.

    It is 0 if the agent gave up. If its reply may not have been recorded, the score is failed. A sample that is skipped
    whatever the answer stays skipped.
    """
    if empty.value is None:
        return empty
    if missing.gave_up:
        reason = f"{GAVE_UP}: {missing.reason}"
        return empty.model_copy(update={"value": 0.0, "reason": reason, "warnings": (GAVE_UP,)})
    reason = f"{NOT_RECORDED}: {missing.reason}; --no-answer zero scores this 0"
    return Score.failed(empty.scorer, reason, error="MissingAnswer")
