"""What labelled samples say of a judge: how far it agrees with people, and what its confidence is worth."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isclose
from typing import TYPE_CHECKING, Self

from judgekit.audits.correction import independence
from judgekit.audits.findings import Disagreement, Guarantee, Kind
from judgekit.audits.matching import Labelled, Matched
from judgekit.audits.population import independent
from judgekit.runs.receipts import Counts, Figure
from judgekit.runs.rows import Row, ScorerRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_COPIES = 50
_ROUNDING = 0.01
_MOST_VALUES = 7


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
        by_verdict: Whether they were drawn by what the judge says.
        split: Labels of samples on which people are evenly split, by why they are left out.
    """

    kind: Kind
    values: Sequence[float]
    samples: Sequence[Labelled]
    human: Sequence[float]
    by_verdict: bool
    split: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def of(cls, matched: Matched, kind: Kind, values: Sequence[float]) -> Self:
        """Those on which people are not evenly split."""
        said = [(one, human) for one in matched.samples if (human := one.together(kind)) is not None]
        split = Counter[str]()
        for one in matched.samples:
            if one.together(kind) is None:
                split["people are evenly split (left out of all but the mean)"] += len(one.opinions)
        by_verdict = matched.drawn == "stratified"
        return cls(kind, values, [one for one, _ in said], [human for _, human in said], by_verdict, split)

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

    def figure(self, statistic: "Callable[[NDArray[np.intp]], float | None]") -> Figure:
        """A statistic of the samples by their places, with its bootstrap interval.

        Where they were drawn with different probabilities, each is there as often as its weight asks for.
        """
        import numpy as np  # noqa: PLC0415 - it takes a while, as does all that is loaded below

        from judgekit.stats.agreement import redrawn  # noqa: PLC0415

        places = np.arange(len(self.samples))
        of = self._counted(statistic, places)
        return Figure.of(of(places), redrawn(of, len(places), self.groups))

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

    def share(self, among: Sequence[int] | None = None) -> Figure:
        """How often the judge is right, of all samples or of some of them, by their places."""
        places = range(len(self.samples)) if among is None else among
        return Figure.mean([float(self.right[place]) for place in places], [self.groups[place] for place in places])

    def agreement(self) -> dict[str, Figure]:
        """How far the judge and people agree, the first figure being the one to be named alone."""
        import numpy as np  # noqa: PLC0415

        from judgekit.stats import agreement  # noqa: PLC0415
        from judgekit.stats.correlation import rank_correlation  # noqa: PLC0415

        if not self.samples:
            return {}
        a, b = np.asarray(self.human), np.asarray(self.judged)
        if self.kind == "continuous":
            both = np.stack([a, b])
            return {
                "alpha": self.figure(lambda drawn: agreement.krippendorff_alpha(both[:, drawn], metric="interval")),
                "rank correlation": self.figure(lambda drawn: rank_correlation(a[drawn], b[drawn])),
            }
        weights = self.weights if self.by_verdict else None
        tables = agreement.Tables.of(a, b, values=self.values, groups=self.groups, weights=weights)
        weighted: agreement.Weights = "quadratic" if self.kind == "ordinal" else "none"

        def kappa(table: "NDArray[np.float64]") -> "NDArray[np.float64]":
            return agreement.kappa_of(table, weighted)

        found = {
            "weighted kappa" if self.kind == "ordinal" else "kappa": Figure.of(*tables.figure(kappa)),
            "agreement": Figure.of(*tables.figure(agreement.share_of)) if self.by_verdict else self.share(),
            "AC1": Figure.of(*tables.figure(agreement.ac1_of)),
        }
        if self.kind == "binary":
            for name, human in (("sensitivity", 1), ("specificity", 0)):
                of = tables.figure(partial(agreement.share_of, row=human))
                places = [place for place, said in enumerate(self.human) if said == human]
                found[name] = Figure.of(*of) if self.by_verdict else self.share(places)
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
        every = [row.score.confidence for row in rows if row.score.confidence is not None]
        found = least_confidence(confidence, wrong, every, alpha=alpha, delta=delta)
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
