"""What labelled samples say of a judge: how far it agrees with people, what its errors go with, what its confidence is worth."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isclose
from typing import TYPE_CHECKING, Literal, Self

from judgekit.audits.correction import independence
from judgekit.audits.findings import Disagreement, Guarantee, Kind, People
from judgekit.audits.matching import Labelled, Matched
from judgekit.audits.population import independent
from judgekit.runs.receipts import Counts, Figure
from judgekit.runs.rows import Row, ScorerRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_COPIES = 50
_ROUNDING = 0.01
_EPSILON = 0.2
"""By how much a judge, being cheaper, may be worse than a person: what the authors of the alt-test take for experts."""
_LEAST_ANNOTATORS = 3
_MOST_VALUES = 7
_METRICS: Mapping[Kind, Literal["nominal", "ordinal", "interval"]] = {
    "binary": "nominal",
    "ordinal": "ordinal",
    "continuous": "interval",
}


def kind_of(record: ScorerRecord, rows: Sequence[Row], samples: Sequence[Labelled]) -> tuple[Kind, Sequence[float]]:
    """What the values of a judge and of people are, and all that they can be, in order; none if they are continuous.

    They are ordinal where all are worth a label of the scale, or, without a scale, where each score has a label and there
    are few values.
    """
    judged = {row.score.value for row in rows if row.score.value is not None}
    said = {one.value for sample in samples for one in sample.opinions}
    scale = {grade for grade in record.scale.values() if isinstance(grade, float | int)}
    if {*judged, *said, *scale} <= {0, 1}:
        return "binary", (0.0, 1.0)
    if scale:
        is_ordinal = judged | said <= scale
    else:
        is_ordinal = all(row.score.label is not None for row in rows) and len(judged | said) <= _MOST_VALUES
    return ("ordinal", sorted({*judged, *said, *scale})) if is_ordinal else ("continuous", ())


@dataclass(frozen=True)
class Pairs:
    """Samples of which people and the judge each say one thing.

    Attributes:
        kind: What that is.
        values: All that it can be.
        samples: The samples.
        human: What people say together.
    """

    kind: Kind
    values: Sequence[float]
    samples: Sequence[Labelled]
    human: Sequence[float]
    by_verdict: bool

    @classmethod
    def of(cls, matched: Matched, kind: Kind, values: Sequence[float]) -> Self:
        """Those on which people are not evenly split."""
        said = [(one, human) for one in matched.samples if (human := one.together(kind)) is not None]
        return cls(kind, values, [one for one, _ in said], [human for _, human in said], matched.drawn == "stratified")

    @cached_property
    def judged(self) -> Sequence[float]:
        """What the judge says."""
        return [one.judged for one in self.samples]

    @cached_property
    def groups(self) -> Sequence[str | None]:
        """The group of each."""
        return [one.row.group for one in self.samples]

    @cached_property
    def right(self) -> Sequence[bool]:
        """Whether the judge says what people say."""
        return [isclose(one, other, abs_tol=1e-9) for one, other in zip(self.human, self.judged, strict=True)]

    @cached_property
    def weights(self) -> Sequence[float]:
        """How many samples of the run each stands for; 1 where they were not drawn by verdict."""
        return [one.weight for one in self.samples]

    def figure(
        self, statistic: "Callable[[NDArray[np.intp]], float | None]", among: Sequence[int] | None = None
    ) -> Figure:
        """A statistic of the samples, or of some of them, by their places, with its bootstrap interval.

        Where they were drawn with different probabilities, each is there as often as its weight asks for.
        """
        import numpy as np  # noqa: PLC0415 - it takes a while, as does all that is loaded below

        from judgekit.stats.agreement import redrawn  # noqa: PLC0415

        places = np.arange(len(self.samples)) if among is None else np.asarray(among, np.intp)
        of = self._counted(statistic, places)
        groups = [self.groups[place] for place in places.tolist()]
        return Figure.of(of(np.arange(len(places))), redrawn(of, len(places), groups))

    def _counted(
        self, statistic: "Callable[[NDArray[np.intp]], float | None]", places: "NDArray[np.intp]"
    ) -> "Callable[[NDArray[np.intp]], float | None]":
        """The statistic of some of the samples at ``places``, by their number there, each counted for its weight."""
        import numpy as np  # noqa: PLC0415

        copies = _copies(np.asarray(self.weights)[places]) if self.by_verdict else None

        def of(chosen: "NDArray[np.intp]") -> float | None:
            drawn = chosen if copies is None else np.repeat(chosen, copies[chosen])
            return statistic(places[drawn])

        return of

    def share(self, among: Callable[[float], bool] = lambda _: True) -> Figure:
        """How often the judge is right where people say what is asked for."""
        import numpy as np  # noqa: PLC0415

        places = [place for place, human in enumerate(self.human) if among(human)]
        if places and self.by_verdict:
            right = np.asarray(self.right, np.float64)
            return self.figure(lambda drawn: float(right[drawn].mean()), places)
        return Figure.mean([float(self.right[place]) for place in places], [self.groups[place] for place in places])

    def share_of_run(self) -> Figure:
        """How often the judge is right, of samples drawn by verdict: also where none of a verdict is seen to be wrong."""
        from judgekit.stats.prediction_powered import Stratum, stratified_ppi_mean  # noqa: PLC0415

        parts: dict[tuple[float, float], list[int]] = {}
        for place, verdict in enumerate(zip(self.judged, self.weights, strict=True)):
            parts.setdefault(verdict, []).append(place)
        shares = {verdict: verdict[1] * len(places) / fsum(self.weights) for verdict, places in parts.items()}
        right = {verdict: [float(self.right[place]) for place in places] for verdict, places in parts.items()}
        found = stratified_ppi_mean(
            [
                Stratum(right[verdict], [0] * len(places), [], share, [self.groups[place] for place in places])
                for (verdict, places), share in zip(parts.items(), shares.values(), strict=True)
            ]
        )
        value = fsum(share * fsum(right[verdict]) / len(right[verdict]) for verdict, share in shares.items())
        return Figure.of(value, found.interval._replace(method="stratified") if found else None)

    def agreement(self) -> dict[str, Figure]:
        """How far the judge and people agree, the first figure being the one to be named alone."""
        import numpy as np  # noqa: PLC0415

        from judgekit.stats.agreement import cohen_kappa, gwet_ac1, krippendorff_alpha  # noqa: PLC0415
        from judgekit.stats.correlation import rank_correlation  # noqa: PLC0415

        if not self.samples:
            return {}
        a, b = np.asarray(self.human), np.asarray(self.judged)
        if self.kind == "continuous":
            both = np.stack([a, b])
            return {
                "alpha": self.figure(lambda drawn: krippendorff_alpha(both[:, drawn], metric="interval")),
                "rank correlation": self.figure(lambda drawn: rank_correlation(a[drawn], b[drawn])),
            }
        values, ordinal = self.values, self.kind == "ordinal"

        def kappa(drawn: "NDArray[np.intp]") -> float | None:
            return cohen_kappa(a[drawn], b[drawn], weights="quadratic" if ordinal else "none", values=values)

        found = {
            "weighted kappa" if ordinal else "kappa": self.figure(kappa),
            "agreement": self.share_of_run() if self.by_verdict else self.share(),
            "AC1": self.figure(lambda drawn: gwet_ac1(a[drawn], b[drawn], values=values)),
        }
        if self.kind == "binary":
            found |= {
                "sensitivity": self.share(lambda human: human == 1),
                "specificity": self.share(lambda human: not human),
            }
        return found

    def confusion(self, record: ScorerRecord) -> dict[str, dict[str, int]]:
        """How often people say what names a row, and the judge what names a column."""
        labels = [(one.judged, one.row.score.label) for one in self.samples]
        labels += [(grade, label) for label, grade in record.scale.items() if not isinstance(grade, str)]
        found = {
            value: " or ".join(dict.fromkeys(label for grade, label in labels if label and grade == value))
            for value in self.values
        }
        used = Counter(found.values())  # a label may stand for several values, such as a share of what was asked for
        names = {
            value: f"{value:g}" if not name else name if used[name] == 1 else f"{name} ({value:g})"
            for value, name in found.items()
        }
        times = Counter(zip(self.human, self.judged, strict=True))
        return {names[row]: {names[column]: times[row, column] for column in self.values} for row in self.values}

    def counts(self) -> Counts | None:
        """The same where both say 0 or 1."""
        from judgekit.stats.agreement import Confusion  # noqa: PLC0415

        if self.kind != "binary" or not self.samples:
            return None
        return Counts(**Confusion.of(self.human, self.judged)._asdict())

    def independent_counts(self) -> Counts | None:
        """As many as independent samples, drawn at random, would tell as much of sensitivity and specificity.

        They are fewer where samples share their group, or were drawn by the judge's verdict, which also shifts the shares.
        """
        if self.kind != "binary" or not self.samples:
            return None
        (tp, fn), (fp, tn) = (self._independent(human) for human in (1.0, 0.0))
        return Counts(tp=tp, fp=fp, fn=fn, tn=tn)

    def _independent(self, human: float) -> tuple[int, int]:
        """Of samples of which people say the same, to how many the judge says 1, and to how many 0."""
        places = [place for place, one in enumerate(self.human) if one == human]
        if not places:
            return 0, 0
        judged = [self.judged[place] for place in places]
        weights = [self.weights[place] for place in places]
        worth = self._worth(places) * independence(judged, [self.groups[place] for place in places])
        share = sum(weight * one for weight, one in zip(weights, judged, strict=True)) / sum(weights)
        yes = round(worth * share)
        return yes, max(0, round(worth) - yes)

    def _worth(self, places: Sequence[int]) -> float:
        """How many samples drawn at random would tell as much of how often the judge says 1 of those at ``places``.

        By the delta method on the odds of 1, whose two sides are sums over the verdicts that samples were drawn by. To each
        verdict half a sample of either kind is added (Haldane 1956, https://doi.org/10.1111/j.1469-1809.1956.tb01285.x): of
        a frequent verdict that is never seen to be wrong, a few wrong ones that were not drawn would be most of the errors.
        """
        if not self.by_verdict or len({*self.judged}) < 2:
            return len(places)
        verdicts = list(zip(self.judged, self.weights, strict=True))
        such = Counter(verdicts[place] for place in places)
        every, these, variance = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        for (judged, weight), n in Counter(verdicts).items():
            side, share = int(judged), (such[judged, weight] + 0.5) / (n + 1)
            every[side] += weight * n
            these[side] += weight * n * share
            variance[side] += weight**2 * n * share * (1 - share)
        share = these[1] / sum(these)
        of_odds = sum(variance[side] / these[side] ** 2 + 1 / every[side] for side in (0, 1))
        return 1 / (share * (1 - share) * of_odds)

    def disagreements(self) -> Sequence[Disagreement]:
        """Those on which the judge and people differ, the furthest apart and the surest first."""
        found = [
            (one, human) for one, human, right in zip(self.samples, self.human, self.right, strict=True) if not right
        ]
        found.sort(key=lambda pair: (-abs(pair[0].judged - pair[1]), -(pair[0].row.score.confidence or 0)))
        return [
            Disagreement(
                index=one.row.index,
                sample_id=one.row.sample_id,
                judged=one.judged,
                label=one.row.score.label,
                reason=one.row.score.reason,
                human=human,
                opinions=one.opinions,
            )
            for one, human in found
        ]

    def length_bias(self, lengths: Mapping[int, float]) -> Figure | None:
        """The rank correlation of the judge's error with the length of what it read: above 0, it favours what is long."""
        import numpy as np  # noqa: PLC0415

        from judgekit.stats.correlation import rank_correlation  # noqa: PLC0415

        if not self.samples or any(one.row.index not in lengths for one in self.samples):
            return None
        error = np.asarray(self.judged) - np.asarray(self.human)
        length = np.asarray([lengths[one.row.index] for one in self.samples])
        found = self.figure(lambda drawn: rank_correlation(error[drawn], length[drawn]))
        return None if found.value is None else found

    @cached_property
    def sure(self) -> Sequence[int]:
        """The places of the samples whose verdict has a confidence and is right or wrong."""
        if self.kind == "continuous":
            return []
        return [place for place, one in enumerate(self.samples) if one.row.score.confidence is not None]

    def calibration(self) -> Figure | None:
        """The expected calibration error of the judge's confidence; ``None`` without one.

        It has no interval: in samples drawn again it is higher by chance once more, so that the percentiles of these would
        never hold the 0 of a judge that is perfectly calibrated.
        """
        import numpy as np  # noqa: PLC0415

        from judgekit.stats.calibration import expected_calibration_error  # noqa: PLC0415

        if not self.sure:
            return None
        confidence = np.asarray([one.row.score.confidence or 0 for one in self.samples])
        right = np.asarray(self.right, np.float64)
        of = self._counted(
            lambda drawn: expected_calibration_error(confidence[drawn], right[drawn]), np.asarray(self.sure, np.intp)
        )
        return Figure(value=of(np.arange(len(self.sure))))

    def guarantee(self, rows: Sequence[Row], alpha: float, delta: float, refused: str) -> Guarantee:
        """The confidence below which the judge must abstain; ``refused`` says why the labels cannot tell.

        Of each group one sample counts, since the promise is for independent ones.
        """
        from judgekit.stats.selection import least_confidence  # noqa: PLC0415

        if not refused and self.kind == "continuous":
            refused = "values that are no labels are not right or wrong, and no judge can be held to them"
        if not refused and self.by_verdict:
            refused = "the samples were drawn by the judge's verdict; it takes labels of samples drawn at random"
        if not refused and not self.sure:
            refused = "no labelled verdict says how sure the judge is: ask several times (draws=5), or a judge that gives logprobs"
        if refused:
            return Guarantee(alpha=alpha, delta=delta, refused=refused)
        alone = {row.index for row in independent([self.samples[place].row for place in self.sure])}
        places = [place for place in self.sure if self.samples[place].row.index in alone]
        confidence = [self.samples[place].row.score.confidence or 0 for place in places]
        wrong = [not self.right[place] for place in places]
        found = least_confidence(confidence, wrong, alpha=alpha, delta=delta)
        threshold = found.value
        if threshold is None:
            return Guarantee(alpha=alpha, delta=delta, refused=found.refused)
        kept = [float((row.score.confidence or 0) >= threshold) for row in rows]
        missed = [float(no) for no, sure in zip(wrong, confidence, strict=True) if sure >= threshold]
        return Guarantee(
            alpha=alpha,
            delta=delta,
            threshold=threshold,
            kept=Figure.mean(kept, [row.group for row in rows]),
            risk=Figure.mean(missed),
        )


def _copies(weights: "NDArray[np.float64]") -> "NDArray[np.intp]":
    """How often each sample must be there to count for its weight, to 1 %: the fewer, the faster."""
    import numpy as np  # noqa: PLC0415

    shares = weights / weights.min()
    for least in range(1, _MOST_COPIES):
        if np.abs(np.rint(shares * least) / (shares * least) - 1).max() <= _ROUNDING:
            break
    else:
        least = _MOST_COPIES
    return np.asarray(np.rint(shares * least), np.intp)


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
    ratings = np.full((len(names), len(several)), np.nan)
    for place, one in enumerate(several):
        for opinion in one.opinions:
            ratings[names.index(opinion.annotator), place] = opinion.value
    judged = np.asarray([one.judged for one in several])
    pairs = Pairs(kind, (), several, [one.mean for one in several], by_verdict)
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


def position_bias(rows: Sequence[Row]) -> dict[str, Figure]:
    """Of pairwise verdicts: how often the judge prefers the same place in both orders, and then, how often the first."""
    if not rows or "flipped" not in rows[0].score.details:
        return {}
    asked = [row for row in rows if row.score.details.get("verdicts")]
    if not asked:
        return {}
    flips = [float(bool(row.score.details.get("flipped"))) for row in asked]
    first: list[float] = []
    groups: list[str | None] = []
    for row, flipped in zip(asked, flips, strict=True):
        match row.score.details.get("verdicts"):
            case [{"shown_first": shown, "preferred": preferred}, *_] if flipped:
                first.append(float(shown == preferred))
                groups.append(row.group)
            case _:
                pass
    found = {"position": Figure.mean(flips, [row.group for row in asked])}
    if first:
        found["first place, where it flips"] = Figure.mean(first, groups)
    return found
