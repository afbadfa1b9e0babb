"""The result of an alignment, and what it says."""

from collections.abc import Iterator

from pydantic import Field

from judgekit.alignment.verdict import AlignmentVerdict
from judgekit.runs.alignments import AlignmentOutcome, LabelRole
from judgekit.traces.message import FrozenModel, Many

_LEAST_P = 0.001
MOST_LOOKS = 3
"""The number of looks at a test set after which new labels are needed."""


class AlignmentCandidate(FrozenModel):
    """A candidate for a better question.

    Attributes:
        kind: What is new in it.
        refusal_reason: Why it was not judged; empty if it was.
        agreement: Its agreement with the labels that chose; ``None`` if it was not judged.
        chosen: Whether it was chosen.
    """

    kind: str
    refusal_reason: str = ""
    agreement: float | None = None
    chosen: bool = False


class Alignment(FrozenModel):
    """The result of aligning a judge with people.

    Attributes:
        scorer: The scorer whose question was aligned.
        id: The id of the alignment, which the new prompt names; ``None`` if nothing was judged.
        outcome: Whether an improvement is shown.
        reason: Why the alignment was refused; empty if it was not.
        roles: The number of labeled samples in each role.
        by_hand: Whether the labeled samples were picked by hand (selection is convenience).
        unused_labels: The number of labels that could not be used, by reason.
        candidates: The candidates.
        verdict: What the test found; ``None`` if there was none.
        look: How many times labels of this test set have been looked at, this time included; ``None`` if nothing counts looks
            (for a run in memory, unless it is given a folder), or if nothing was tested.
        prompt_path: The file of the new prompt; ``None`` if there is none.
        diff: The lines that are new or gone in it.
        run: The number of the run in which old and new question judged the test samples; ``None`` if there is none.
        audit_record_path: The audit record of the new judge; ``None`` if there is none.
        requests: The number of requests that were sent.
        cached: The number of replies from the cache.
        cost_usd: The cost of the requests in US dollars; ``None`` if a price is unknown.
    """

    scorer: str
    id: str | None = None
    outcome: AlignmentOutcome
    reason: str = ""
    roles: dict[LabelRole, int] = Field(default_factory=dict[LabelRole, int])
    by_hand: bool = False
    unused_labels: dict[str, int] = Field(default_factory=dict)
    candidates: Many[AlignmentCandidate] = ()
    verdict: AlignmentVerdict | None = None
    look: int | None = None
    prompt_path: str | None = None
    diff: str = ""
    run: int | None = None
    audit_record_path: str | None = None
    requests: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the result in sentences."""
        outcome = f"alignment of {self.scorer}: {self.outcome}."
        verdict = self.verdict
        if verdict is None:
            yield f"{outcome} {self.reason[:1].upper()}{self.reason[1:]}."
            return
        yield (
            f"{outcome} On {verdict.sample_count} held-out labels the new question agrees {_agrees(verdict, verdict.after.value)}, the old "
            f"{_agrees(verdict, verdict.before.value)} ({verdict.fixed} fixed, {verdict.regressed} regressed, {_chance(verdict.p)})"
            f"{'' if self.outcome == 'shown' else f'; {_least(verdict)}'}. {self._kept()}"
        )
        yield f"gain in agreement: {verdict.gain}; {verdict.test}, one-sided, at the level {_short(verdict.alpha)}"
        for name, rates in (("sensitivity", verdict.sensitivity), ("specificity", verdict.specificity)):
            if rates is not None:
                yield f"{name}: {_short(rates[0])} before, {_short(rates[1])} after"
        if verdict.outcome == "not shown" and verdict.p < verdict.alpha:
            yield "one class pays for the gain: it loses more than 5 points, which is shown as well"
        if self.by_hand:
            yield "the labeled samples were picked by hand (selection is convenience), so the finding holds only for samples like them"
        if self.look is None:
            yield "looks at these test labels are not counted, since the run is in memory: looks=FOLDER counts them"
        elif self.look > 1:
            yield f"this is look {self.look} at these test labels, so the level is lower than at the first"
        if self.look is not None and self.look >= MOST_LOOKS:
            yield f"after {MOST_LOOKS} looks, test by new labels: judgekit label draws more"

    def _kept(self) -> str:
        if self.prompt_path is None:
            return f"Nothing was written; {self.scorer} is unchanged."
        return f"The candidate is saved as {self.prompt_path}; {self.scorer} is unchanged."


def _agrees(verdict: AlignmentVerdict, share: float | None) -> str:
    times = (share or 0.0) * verdict.sample_count
    return f"on {round(times)}" if abs(times - round(times)) < 1e-6 else _short(share or 0.0)


def _least(verdict: AlignmentVerdict) -> str:
    if verdict.least_gain is None:
        return "no gain would have been shown"
    return f"a gain below {round(100 * verdict.least_gain)} points would rarely have been detected"


def _chance(p: float) -> str:
    return f"p {_short(p)}" if p >= _LEAST_P else "p < .001"


def _short(number: float) -> str:
    text = f"{number:.2f}" if number >= 0.01 or not number else f"{number:.3f}"
    return text.replace("0.", ".", 1) if number < 1 else text
