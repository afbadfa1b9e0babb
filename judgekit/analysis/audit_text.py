"""The findings of an audit as words and figures."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import NamedTuple

from judgekit.analysis.findings import Audit, Guarantee, HumanAgreement, Repeatability, ScorerAudit
from judgekit.errors import count_text
from judgekit.notebook import fragment, html_number_table, html_text_table, text_block
from judgekit.runs.audit_records import Estimate, LabelSelection

_DRAWN: Mapping[LabelSelection, str] = {
    "all": "all samples that the judge scored are labelled",
    "random": "drawn at random from the run",
    "stratified": "drawn at random within each verdict of the judge, with known probabilities",
    "convenience": "picked by hand",
    "unknown": "how they were chosen is unknown",
    "elsewhere": "from another run",
}
_BIAS = {
    "length": "length: the rank correlation of the judge's error with the length of what it read; above 0, it favours longer conversations",
    "position": "position: the share of pairs whose verdict changes with the order in which the two are shown",
}
_STEP = Decimal("0.000001")  # of a confidence
_CLASSES = 12  # most classes in a confusion matrix in a notebook


class AuditSection(NamedTuple):
    """A part of the findings on a scorer: figures by name, notes on them, and why other figures are refused."""

    name: str
    estimates: Mapping[str, Estimate] = {}
    notes: tuple[str, ...] = ()
    unavailable_reason: str = ""


def audit_headline(found: ScorerAudit) -> str:
    """Return the corrected mean and the agreement of people with the judge in a line.

    For example ``corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 from 2 people``.
    """
    corrected = found.correction.corrected
    return f"{'no corrected mean' if corrected is None else f'corrected mean {corrected}'}, {agreement_text(found)}"


def agreement_text(found: ScorerAudit) -> str:
    """Return the agreement of people with the judge, such as ``kappa .71 [.58, .82], n=120 from 2 people``."""
    if not found.sample_count:
        return "no sample has both a verdict of the judge and a label"
    name, figure = next(iter(found.agreement.items()), ("agreement", "undefined"))
    people = "1 person" if found.annotators == 1 else f"{found.annotators:,} people"
    return f"{name} {figure}, n={found.sample_count:,} from {people}"


def audit_sections(found: ScorerAudit) -> list[AuditSection]:
    """Return all findings on a scorer except the confusion matrix and the disagreements; empty parts are left out."""
    made = [
        AuditSection("labels", notes=tuple(_labels(found))),
        _mean(found),
        AuditSection("agreement", found.agreement),
        *(_people(people) for people in [found.human_agreement] if people),
        AuditSection("bias", found.bias, tuple(_BIAS[name] for name in found.bias if name in _BIAS)),
        *(AuditSection("calibration", {"expected calibration error": one}) for one in [found.calibration] if one),
        *(_noise(noise) for noise in [found.noise] if noise),
        *(_guarantee(guarantee) for guarantee in [found.guarantee] if guarantee),
        AuditSection("notes", notes=tuple(found.notes)),
    ]
    return [part for part in made if part.estimates or part.notes or part.unavailable_reason]


def _labels(found: ScorerAudit) -> Iterator[str]:
    if found.sample_count:
        both = f"{count_text(found.sample_count, 'sample')} that people and the judge both decided"
        yield f"{count_text(found.labels, 'label')} on {both}; {_DRAWN[found.selection]}"
    yield from left_out_lines(found.unused_labels)


def left_out_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each reason why labels could not be used."""
    for why, times in counts.items():
        yield f"{count_text(times, 'label')} left out: {why}"


def _mean(found: ScorerAudit) -> AuditSection:
    correction = found.correction
    figures = {"raw, by the judge": found.judge_mean}
    told: list[str] = []
    if correction.corrected is not None:
        figures[f"corrected, {correction.method}"] = correction.corrected
        if correction.effective_labels is not None:
            told.append(f"worth as much as {correction.effective_labels:,.0f} labels without the judge")
        if correction.assumptions:
            told.append(f"assumes: {correction.assumptions}")
    return AuditSection(
        "mean",
        figures,
        tuple(told),
        f"not corrected: {correction.unavailable_reason}" if correction.unavailable_reason else "",
    )


def _people(people: HumanAgreement) -> AuditSection:
    among = f"{count_text(people.samples, 'sample')} labelled by two or more people"
    return AuditSection("among people", people.agreement, tuple(filter(None, (among, people.alternative_test))))


def _noise(noise: Repeatability) -> AuditSection:
    most = f" of at most {noise.max_repeats:,}" if noise.max_repeats > noise.repeats else ""
    told = [f"{count_text(noise.samples, 'sample')} with several repeats, {noise.repeats:,} repeats{most} in all"]
    if total := sum(noise.components.values()):
        shares = ", ".join(f"{name} {part / total:.0%}" for name, part in noise.components.items())
        told.append(f"variance of a single verdict {total:.3f}: {shares}")
    return AuditSection(
        "noise", {"flip rate": noise.flip_rate, "near the threshold": noise.near}, (*told, *noise.advice)
    )


def _guarantee(guarantee: Guarantee) -> AuditSection:
    figures = {"share of verdicts kept": guarantee.coverage, "of these, people disagree": guarantee.risk}
    promise = (
        f"people disagree with at most {guarantee.alpha * 100:g}% of the verdicts, "
        f"with a probability of {(1 - guarantee.delta) * 100:g}%"
    )
    shown = {name: one for name, one in figures.items() if one is not None}
    if guarantee.threshold is None:
        return AuditSection(
            "guarantee", shown, unavailable_reason=f"no guarantee that {promise}: {guarantee.unavailable_reason}"
        )
    # Rounded up, it would leave out its own verdicts.
    least = Decimal(str(guarantee.threshold)).quantize(_STEP, ROUND_FLOOR)
    return AuditSection("guarantee", shown, (f"where the confidence is at least {float(least):g}, {promise}",))


def audit_html(audit: Audit) -> str:
    """Return the findings of an audit as HTML for notebooks."""
    by = f" with {', '.join(audit.sources)}" if audit.sources else ""
    heads = [text_block(f"audit of run {audit.run}{by}"), *map(text_block, left_out_lines(audit.unmatched))]
    return fragment(*heads, *map(_scorer_html, audit.scorers))


def _scorer_html(found: ScorerAudit) -> str:
    made = audit_sections(found)
    figures = [(part.name, name, str(one), one.method) for part in made for name, one in part.estimates.items()]
    told = [f"{part.name}: {one}" for part in made for one in filter(None, (part.unavailable_reason, *part.notes))]
    return "".join(
        (
            text_block(audit_headline(found), found.scorer),
            html_text_table(figures),
            _confusion_html(found),
            *map(text_block, told),
        )
    )


def _confusion_html(found: ScorerAudit) -> str:
    """Return the confusion matrix as HTML, with people's labels down and the judge's across."""
    names = list(dict.fromkeys([*found.confusion, *(name for row in found.confusion.values() for name in row)]))
    if not 0 < len(names) <= _CLASSES:
        return ""
    rows = [[name, *(f"{found.confusion.get(name, {}).get(other, 0):,g}" for other in names)] for name in names]
    return html_number_table(rows, ["people (rows), judge (columns)", *names])
