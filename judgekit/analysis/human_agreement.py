"""The agreement of people with each other, which is the most that can be expected of a judge."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from judgekit.analysis.findings import HumanAgreement, ValueKind
from judgekit.analysis.matching import LabeledSample
from judgekit.analysis.measures import NOT_APPLICABLE_VALUE, VerdictPairs, applicable_value
from judgekit.stats.agreement import krippendorff_alpha
from judgekit.stats.annotators import alternative_test, human_ceiling

ANNOTATOR_EPSILONS: Mapping[str, float] = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""By annotators, how much worse than a person the cheaper judge may be (Calderon, Reichart and Dror 2025)."""
_LEAST_ANNOTATORS = 3
_METRICS: Mapping[ValueKind, Literal["nominal", "ordinal", "interval"]] = {
    "binary": "nominal",
    "ordinal": "ordinal",
    "continuous": "interval",
}


def human_agreement(
    samples: Sequence[LabeledSample], kind: ValueKind, *, by_verdict: bool, epsilon: float
) -> HumanAgreement | None:
    """Return how people who labeled the same samples agree with each other; ``None`` if no sample has several labels.

    Samples that were drawn by verdict stand for all samples of their verdict; the alternative annotator test needs a
    random sample.
    """
    several = [sample for sample in samples if len(sample.opinions) > 1]
    if not several:
        return None
    annotators = {opinion.annotator for sample in several for opinion in sample.opinions}
    names = sorted(annotators, key=lambda name: name or "")
    ratings = np.full((len(names), len(several)), np.nan)
    for column, sample in enumerate(several):
        for opinion in sample.opinions:
            ratings[names.index(opinion.annotator), column] = applicable_value(opinion.value)
    judged = np.asarray([applicable_value(sample.judge_value) for sample in several])
    # "Does not apply" has no place among ordered values, so it is left out there.
    ordered, judged_ordered = (
        values if kind == "binary" else np.where(values == NOT_APPLICABLE_VALUE, np.nan, values)
        for values in (ratings, judged)
    )
    pairs = VerdictPairs(
        kind, (), several, [[opinion.value for opinion in sample.opinions] for sample in several], by_verdict
    )
    agreement = {"alpha": pairs.bootstrap(lambda drawn: krippendorff_alpha(ordered[:, drawn], metric=_METRICS[kind]))}
    if kind != "continuous":
        agreement = {
            "two people": pairs.bootstrap(lambda drawn: human_ceiling(ratings[:, drawn])),
            "judge with one person": pairs.bootstrap(lambda drawn: human_ceiling(ratings[:, drawn], judged[drawn])),
            **agreement,
        }
    test = None
    if len(names) >= _LEAST_ANNOTATORS and not by_verdict:
        test = alternative_test(
            ordered, judged_ordered, pairs.groups, metric="nominal" if kind == "binary" else "interval", epsilon=epsilon
        )
    if test is None:
        return HumanAgreement(samples=len(several), agreement=agreement)
    finding = "the judge may replace" if test.passed else "not shown that the judge may replace"
    return HumanAgreement(
        samples=len(several),
        agreement=agreement,
        alternative_test=f"{finding} one of them: this is shown for {test.winning_rate:.0%} of those tested (half are enough), and "
        f"the judge is as close to the others as they are on {test.advantage:.0%} of samples (alternative annotator test; epsilon "
        f"{epsilon:g}: being cheaper, it may be the closer one up to {epsilon * 100:g} percentage points less often)",
        passed=test.passed,
    )
