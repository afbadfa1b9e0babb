"""The agreement of people with each other, which is the most that can be expected of a judge."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from judgekit.analysis.findings import HumanAgreement, ValueKind
from judgekit.analysis.matching import LabeledSample
from judgekit.analysis.measures import NOT_APPLICABLE_VALUE, VerdictPairs, applicable_value
from judgekit.stats.agreement import krippendorff_alpha
from judgekit.stats.annotators import human_ceiling

_METRICS: Mapping[ValueKind, Literal["nominal", "ordinal", "interval"]] = {
    "binary": "nominal",
    "ordinal": "ordinal",
    "continuous": "interval",
}


def human_agreement(samples: Sequence[LabeledSample], kind: ValueKind, *, by_verdict: bool) -> HumanAgreement | None:
    """Return how people who labeled the same samples agree with each other; ``None`` if no sample has several labels.

    Samples that were drawn by verdict stand for all samples of their verdict.
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
    ordered = ratings if kind == "binary" else np.where(ratings == NOT_APPLICABLE_VALUE, np.nan, ratings)
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
    return HumanAgreement(samples=len(several), agreement=agreement)
