"""Messages that explain why a score is too low."""

from judgekit.diff import Diff
from judgekit.score import Score
from judgekit.terminal import printable
from judgekit.traces.rendering import cut_middle
from judgekit.traces.sample import Sample

_REASON_SHOWN = 1_000
_CALLS_SHOWN = 10


def explain_low_score(score: Score, sample: Sample, at_least: float) -> str:
    """Return the value or status, the reason and the calls of a score that is too low or has no value, escaped."""
    label = "" if score.label is None else f" ({score.label})"
    outcome = score.status if score.value is None else score.value
    lines = [
        f"{score.scorer} of sample {sample.id!r}: {outcome}{label}, expected {at_least} or more",
        f"reason: {cut_middle(score.reason, _REASON_SHOWN, separate=' ') or 'none given'}",
        *(f"warning: {warning}" for warning in score.warnings),
    ]
    if diff := score.diff():  # of many calls, only those that differ
        shown = diff if len(diff) <= _CALLS_SHOWN else Diff(line for line in diff if line.mark != "=")
        lines += ["expected and actual calls:", *(f"  {line}" for line in str(shown).splitlines()[:_CALLS_SHOWN])]
        if (more := len(shown) - _CALLS_SHOWN) > 0:
            lines.append(f"  and {more} more")
    return "\n".join(map(printable, lines))
