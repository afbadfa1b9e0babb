"""What people say among themselves: the most that a judge can be asked for."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Literal

from judgekit.audits.findings import Kind, People
from judgekit.audits.matching import Labelled
from judgekit.audits.measures import NOT_APPLICABLE, Pairs

_EPSILON = 0.2
"""By how much a judge, being cheaper, may be worse than a person: what the authors of the alt-test take for experts."""
_LEAST_ANNOTATORS = 3
_METRICS: Mapping[Kind, Literal["nominal", "ordinal", "interval"]] = {
    "binary": "nominal",
    "ordinal": "ordinal",
    "continuous": "interval",
}


def people(samples: Sequence[Labelled], kind: Kind, *, by_verdict: bool) -> People | None:
    """What people who labelled the same samples say among themselves; ``None`` where nobody did.

    Samples that were drawn by verdict count for all of theirs; the alternative annotator test takes a random sample.
    """
    import numpy as np  # noqa: PLC0415

    from judgekit.stats.agreement import krippendorff_alpha  # noqa: PLC0415
    from judgekit.stats.annotators import alternative_test, human_ceiling  # noqa: PLC0415

    several = [one for one in samples if len(one.opinions) > 1]
    if not several:
        return None
    names = sorted({opinion.annotator for one in several for opinion in one.opinions}, key=lambda name: name or "")
    # Among values with an order, "does not apply" has no place: it is left out.
    unordered = NOT_APPLICABLE if kind == "binary" else nan
    ratings = np.full((len(names), len(several)), np.nan)
    for place, one in enumerate(several):
        for opinion in one.opinions:
            ratings[names.index(opinion.annotator), place] = unordered if opinion.value is None else opinion.value
    judged = np.asarray([unordered if one.judged is None else one.judged for one in several])
    pairs = Pairs(kind, (), several, [[opinion.value for opinion in one.opinions] for one in several], by_verdict)
    agreement = {"alpha": pairs.figure(lambda drawn: krippendorff_alpha(ratings[:, drawn], metric=_METRICS[kind]))}
    if kind != "continuous":
        agreement = {
            "two people": pairs.figure(lambda drawn: human_ceiling(ratings[:, drawn])),
            "judge with one person": pairs.figure(lambda drawn: human_ceiling(ratings[:, drawn], judged[drawn])),
            **agreement,
        }
    test = None
    if len(names) >= _LEAST_ANNOTATORS and not by_verdict:
        test = alternative_test(
            ratings, judged, pairs.groups, metric="nominal" if kind == "binary" else "interval", epsilon=_EPSILON
        )
    if test is None:
        return People(samples=len(several), agreement=agreement)
    may = "may" if test.passed else "may not"
    return People(
        samples=len(several),
        agreement=agreement,
        alternative=f"the judge {may} stand in for one of them: it does for {test.winning_rate:.0%} of those tested, and is as "
        f"near to the others as they are on {test.advantage:.0%} of samples (alternative annotator test, epsilon {_EPSILON:g})",
        passed=test.passed,
    )
