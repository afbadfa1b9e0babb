"""The summary of one scorer in words."""

from collections import Counter
from collections.abc import Iterator
from math import ceil

from judgekit.errors import count_text, join_limited, truncated
from judgekit.runs.model_families import model_families
from judgekit.runs.scorer_counts import UNSCORED_STATUSES, ScorerCounts
from judgekit.score import NOT_FAILED
from judgekit.traces.rendering import quoted_name

_LABELS_SHOWN = 8
_WARNINGS_SHOWN = 3
_REASONS_SHOWN = 3
_SAMPLES_SHOWN = 5
_NAME_SHOWN = 80
REASON_SHOWN = 400  # the cause of an error may follow a URL and a server's message
_NAMED = 3
_PLANNED = "PlannedError"  # of scores in a plan, which asks no judge


def format_count(count: float) -> str:
    """Return a number of requests, which may have shares of requests with several questions."""
    return f"{count:,.1f}".removesuffix(".0")


class ScorerSummary(ScorerCounts):
    """The summary of one scorer, which prints as its number and the samples behind it."""

    def coverage(self) -> str:
        """Return how many samples the number covers, and the statuses of the others."""
        planned = self.errors[_PLANNED]
        errors = self.errors - Counter({_PLANNED: planned})
        counts = Counter({**self.counts, "failed": self.counts["failed"] - planned})
        classes = {"failed": f" ({format_counts(errors)})" if errors else ""}
        others = [
            f"{counts[status]} {status}{classes.get(status, '')}" for status in UNSCORED_STATUSES if counts[status]
        ]
        others += [f"{planned} to ask a judge about"] if planned else []
        others += [f"{self.qualifier}{self.missing} missing"] if self.missing else []
        return f"n={self.counts['scored']} of {self.qualifier}{self.total}{'; ' if others else ''}{', '.join(others)}"

    def cost(self) -> str:
        """Return how many judge replies were needed and what they cost."""
        tokens = "tokens unknown" if self.tokens is None else f"{self.tokens:,} tokens"
        cost = "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        prices = f" at the prices of {' and '.join(sorted(self.price_lists))}" if self.price_lists else ""
        return f"{format_count(self.requests)} judge requests, {format_count(self.cached)} from cache, {tokens}, {cost}{prices}"

    def parts(self) -> Iterator[str]:
        """Yield the number with its coverage, the cost of its judges, and their audit status."""
        yield str(self)
        if self.requests + self.cached:
            yield self.cost()
        if self.audited:
            yield self.audited if self.audited.isprintable() else ascii(self.audited)

    def notes(self) -> Iterator[str]:
        """Yield notes: what the number is if not a mean, counts of labels, models that changed, warnings."""
        overall = self.overall
        if overall is not None and overall.name != "mean":
            figures = ", ".join(f"{one_line(name)} {_figure(value)}" for name, value in overall.metrics.items())
            yield "; ".join(filter(None, (overall.name, figures, overall.note)))
        if NOT_FAILED in self.reasons.get("skipped", ()):
            failed = sum(value < 1 for value in self.values)
            yield f"{failed:,} of {self.qualifier}{self.total:,} samples failed visibly ({failed / self.total:.1%})"
        if self.is_graded:
            yield self.label_shares()
        if repeats := self.repeats:
            yield (
                f"repeats: {repeats['made'] / repeats['samples']:.1f} of at most {repeats['most'] / repeats['samples']:.0f} "
                f"per sample; {repeats['saved']:,} requests saved"
            )
        if escalated := self.escalated["asked"]:
            yield f"{escalated:,} of {count_text(self.escalated['samples'], 'sample')} went on to a second judge{self._cascade_savings()}"
        if self.damaged_samples:
            rows = count_text(len(self.damaged_samples), "damaged row")
            samples = join_limited(self.damaged_samples, _SAMPLES_SHOWN, ", ")
            yield f"{rows} left out: {samples}; judgekit resume repeats these scores"
        if self.lost_calls:
            yield "the cost of repeated scores is damaged, so tokens and cost are unknown"
        if self.unscored_requests:
            yield f"{count_text(ceil(self.unscored_requests), 'request')} led to no stored score: stopped or repeated"
        if full := self.tiers["full"]:
            yield f"{full:,} of {count_text(self.tiers.total(), 'request')} for the flex tier had to pay the full price"
        if self.answers:
            yield from self.answers.notes()
            judges = model_families(name for judge, model, _ in self.answers for name in (judge, model or ""))
            agents = model_families(self.agents)
            if shared := [family for family in judges if family in agents]:
                families = join_limited(shared, _NAMED, " and ")
                yield (
                    f"judge and agent are both {families} models: judges tend to favor their own family "
                    "(self-preference), which only human labels can show"
                )
        for warning, times in self.warnings.most_common(_WARNINGS_SHOWN):
            yield f"{times} with a warning: {warning}"

    def _cascade_savings(self) -> str:
        """Return what a cascade saved, had its second judge been asked alone about all samples."""
        if not self.escalated_usd or self.cost_usd is None:
            return ""
        whole = self.escalated_usd / self.escalated["asked"] * self.escalated["samples"]
        saved = whole - self.cost_usd
        return (
            f", which saved about ${saved:.4f} of ${whole:.4f}"
            if saved > 0
            else f", which saved nothing of ${whole:.4f}"
        )

    def unscored_reasons(self) -> Iterator[tuple[str, str]]:
        """Yield how many samples were not scored and why, such as ``("306 skipped", "not_applicable")``.

        For each status, these are the three most common reasons, and the number of samples with another one.
        """
        for status in UNSCORED_STATUSES:
            reasons = self.reasons.get(status, Counter[str]())
            planned = {reason: times for reason, times in reasons.items() if reason.startswith(f"{_PLANNED}: ")}
            common = (reasons - Counter(planned)).most_common(_REASONS_SHOWN)
            for reason, times in common:
                yield f"{times:,} {status}", reason
            if more := self.counts[status] - sum(planned.values()) - sum(times for _, times in common):
                yield f"{more:,} {status}", "other reasons"

    def label_shares(self) -> str:
        """Return how often each label was given, most frequent first; empty if the mean says as much."""
        if not self.is_graded:
            return ""
        of = self.labels.total()
        given = (f"{quoted_name(label)} {times} ({times / of:.0%})" for label, times in self.labels.most_common())
        return f"of {of}, {join_limited(given, _LABELS_SHOWN, ', ')}"

    def __str__(self) -> str:
        value = "none" if (number := self.value) is None else f"{number:.2f}"
        return f"{value} ({self.coverage()})"


def one_line(name: str, limit: int = _NAME_SHOWN) -> str:
    """Return a name or a reason on one line, since both may come from recordings."""
    return truncated(name if name.isprintable() else ascii(name), limit)


def _figure(value: float | None) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.1 or not value else f"{value:#.3g}"


def format_counts(counts: Counter[str]) -> str:
    """Return how many there are of each, most frequent first."""
    return ", ".join(f"{times} {name}" for name, times in counts.most_common())
