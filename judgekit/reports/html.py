"""A run, or two runs side by side, as one HTML file that needs no server and no network."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from judgekit.analysis.corrected_means import (
    MeanBound,
    corrected_means,
    gate_fitness,
    mean_bounds,
    run_corrections,
)
from judgekit.analysis.findings import Audit, ScorerAudit, left_out_lines
from judgekit.analysis.gates import GateResults
from judgekit.analysis.losses import Loss, run_losses
from judgekit.analysis.turns import turn_counts
from judgekit.reports.document import PAGE_SCRIPTS, render_page, script_json
from judgekit.reports.facts import run_facts, scorer_facts
from judgekit.reports.glossary import TERMS
from judgekit.reports.listing import MAX_LISTED, Listing
from judgekit.reports.packs import ReportSide
from judgekit.reports.run_json import line_json, slices_json
from judgekit.runs.audit_records import Correction
from judgekit.runs.results import Run
from judgekit.runs.scorer_counts import UNSCORED_STATUSES
from judgekit.runs.summary_table import column_rows, summary_columns
from judgekit.runs.summary_text import ScorerSummary

if TYPE_CHECKING:  # they load numpy, which the page of a run may not need
    from judgekit.analysis.compare import Comparison
    from judgekit.analysis.difference import Difference
    from judgekit.failures.report import FailureReport

SCRIPTS = ("dom", "embedded", *PAGE_SCRIPTS)
FAILURE_ANALYSIS = "failure_analysis"
_LOSSES = 50
_LOSS_SAMPLES = 3
_DRAWN = {
    *("scorer", "mean", "score", "95 % interval", "n", "audit", "requests", "cached", "tokens", "cost"),
    *UNSCORED_STATUSES,
}
"""Columns that the page shows in its own way, with links and plots."""


class ReportPage(NamedTuple):
    """The page of a run, or of two that are compared: what it shows at once, and the runs whose samples it lists."""

    head: Mapping[str, JsonValue]
    sides: Sequence[ReportSide]

    @classmethod
    def of(
        cls,
        reported: "Run | Comparison",
        audit: Audit | None = None,
        gates: GateResults | None = None,
        *,
        is_paged: bool = False,
    ) -> "ReportPage":
        """Return the page of a run or a comparison; see `html_report`. One that ``is_paged`` reads its list from a server."""
        gates = gates or GateResults() if isinstance(reported, Run) else reported.gates
        head: dict[str, JsonValue] = {
            "gates": _gates(gates),
            "glossary": [term._asdict() for term in TERMS],
            "audit": None
            if audit is None
            else _audit(audit, mean_bounds(reported if isinstance(reported, Run) else reported.b)),
            "failures": None,
        }
        if not isinstance(reported, Run):
            sides, pairs = _paged(reported) if is_paged else _compared(reported)
            head |= {"comparison": _comparison(reported), "pairs": pairs}
        else:
            wanted = {number for scorer_audit in (audit.scorers if audit else ()) for number in scorer_audit.opinions}
            wanted |= {gate.sample for gate in gates.gates if gate.sample is not None}
            if (failures := _failures(reported)) is not None:
                wanted |= {failure.row.index for issue in failures.issues for failure in issue.failures}
                head["failures"] = {**failures.as_json(), "headline": failures.headline()}
            listing = Listing.paged(reported) if is_paged else Listing.of(reported, included=wanted)
            sides = [ReportSide("b", reported, listing, _corrections(reported, audit))]
        head |= {side.name: _run(side, gates.low_coverage if side.name == "b" else {}) for side in sides}
        head["notes"] = [
            note for side in sides for note in _notes(side, f"Run {side.run.number}" if len(sides) > 1 else "The run")
        ]
        return cls(head, sides)

    def html(self) -> Iterator[str]:
        """Yield the page piece by piece, as one file with all samples that it lists."""
        run = self.sides[0].run
        columns = summary_columns(run.summary, corrected_means(self.sides[0].corrections))
        return render_page(
            "page.html.j2",
            ["report"],
            SCRIPTS,
            served="",
            title=f"Run {' compared with run '.join(str(side.run.number) for side in self.sides)}",
            version=run.record.version,
            columns=columns,
            rows=column_rows(columns),
            has_audit=self.head["audit"] is not None,
            has_failures=self.head["failures"] is not None,
            gates=self.head["gates"],
            head=script_json(dict(self.head)),
            lists=((f"list-{side.name}", _packed(side.list_json())) for side in self.sides),
            samples=(
                (f"samples-{side.name}-{number}", _packed(pack))
                for side in self.sides
                for number, pack in enumerate(side.packs())
            ),
        )


def html_report(
    reported: "Run | Comparison",
    audit: Audit | None = None,
    gates: GateResults | None = None,
) -> Iterator[str]:
    """Yield the report of a run, or of two that are compared, piece by piece, as one self-contained static page.

    An ``audit`` of the reported run adds a view of its findings, and shows human labels next to the scores. The
    ``gates`` of a run or a comparison are at the top, those that are not met first.

    Numbers cover all samples; of more than 10,000 samples, the page contains those that most deserve a look. Recorded
    content enters the page only as text, and a policy in the page forbids all requests, and all scripts but its own.
    """
    return ReportPage.of(reported, audit, gates).html()


def _packed(content: bytes) -> str:
    """Return bytes in letters that have no meaning in HTML."""
    return base64.b64encode(content).decode()


def _failures(run: Run) -> "FailureReport | None":
    """Return the failures of a run as they were sorted last, if it has an analysis of them."""
    if not any(scorer.name == FAILURE_ANALYSIS for scorer in run.scorers):
        return None
    from judgekit.failures.finding import find_failures  # noqa: PLC0415 - loads judges

    return find_failures(run, keep=False)


def _gates(gate_results: GateResults) -> JsonValue:
    results = gate_results.gates
    unmet = sum(not gate.met for gate in results)
    many = f"{unmet} of {len(results)} gates not met" if unmet else f"All {len(results)} gates are met"
    headline = many if len(results) > 1 else f"The gate is {'not ' if unmet else ''}met"
    return {
        "headline": "; ".join((headline, *gate_results.notes)),
        "results": [
            {"text": gate.text, "met": gate.met, "explanation": gate.explanation, "sample": gate.sample}
            for gate in sorted(results, key=lambda gate: gate.met)
        ],
    }


def _paged(comparison: "Comparison") -> tuple[list[ReportSide], JsonValue]:
    """Return both runs without their samples, and the number of all samples."""
    sides = [
        ReportSide(name, run, Listing.paged(run), run_corrections(run))
        for name, run in (("b", comparison.b), ("a", comparison.a))
    ]
    return sides, sum(side.listing.samples for side in sides) - comparison.pairs


def _compared(comparison: "Comparison") -> tuple[list[ReportSide], JsonValue]:
    """Return both runs, and for each listed sample of B the place of its counterpart in the list of A."""
    after = Listing.of(comparison.b, included=comparison.changed(MAX_LISTED))
    listed = {entry.number for entry in after.entries}
    pairs = dict(zip(comparison.paired.b.tolist(), comparison.paired.a.tolist(), strict=True))
    shown = {a for b, a in pairs.items() if b in listed}
    before = Listing.of(comparison.a, included=shown, left_out=set(pairs.values()) - shown)
    places = {entry.number: position for position, entry in enumerate(before.entries)}
    sides = [
        ReportSide("b", comparison.b, after, run_corrections(comparison.b)),
        ReportSide("a", comparison.a, before, run_corrections(comparison.a)),
    ]
    return sides, [places.get(pairs.get(entry.number, -1)) for entry in after.entries]


def _corrections(run: Run, audit: Audit | None) -> Mapping[str, Correction]:
    """Return the corrected means by the audit records of a run or, where these have none, by an audit of it."""
    corrections = dict(run_corrections(run))
    for scorer_audit in audit.scorers if audit else ():
        if scorer_audit.scorer not in corrected_means(corrections) and scorer_audit.correction.corrected is not None:
            corrections[scorer_audit.scorer] = scorer_audit.correction
    return corrections


def _run(side: ReportSide, low_coverage: Mapping[str, str]) -> JsonValue:
    run, listing, losses = side.run, side.listing, run_losses(side.run)
    lines = {line.scorer: line for line in run.summary}
    records = {name: status.record for name, status in run.audits.items() if status.record is not None}
    return {
        **run_facts(run),
        "agents": [[agent, count] for agent, count in run.usage.agents.most_common() if agent],
        "samples": listing.samples,
        "listed": listing.listed,
        "usage": str(run.usage),
        "imported": run.summary.imported,
        "prices": run.summary.prices.removeprefix("prices: "),
        "slices": slices_json(run.summary),
        "columns": [
            {"name": column.name, "cells": dict(zip(lines, column.cells, strict=True))}
            for column in summary_columns(run.summary)
            if column.name not in _DRAWN
        ],
        "scorers": [
            {
                **scorer_facts(scorer),
                "histogram": list(run.histograms[scorer.name]),
                "audited_at": records[scorer.name].audited_at.isoformat() if scorer.name in records else None,
                **line_json(
                    lines.get(scorer.name, ScorerSummary(scorer.name)),
                    side.corrections.get(scorer.name),
                    low_coverage.get(scorer.name),
                ),
                "losses": _losses(losses.get(scorer.name, ())),
                "turns": [[*counts] for counts in turn_counts(run.rows(scorer=scorer.name))] if scorer.per_turn else [],
            }
            for scorer in run.scorers
        ],
    }


def _notes(side: ReportSide, called: str) -> Iterator[JsonValue]:
    run, listing = side.run, side.listing
    if run.stop_reason:
        yield f"{called} was stopped early ({run.stop_reason}): only what was scored until then is counted."
    elif run.ended_at is None:
        yield f"{called} has not ended: it is running or was interrupted. Only what is scored so far is counted."
    if listing.listed < listing.samples:
        yield (
            f"{called} has {listing.samples:,} samples, of which {listing.listed:,} are in this file: those that "
            "changed, were labeled, failed or abstained, then those with the lowest values. The numbers of each scorer cover all samples."
        )


def _comparison(comparison: "Comparison") -> JsonValue:
    return {
        "head": comparison.heading,
        "contradictions": list(comparison.contradictions),
        "warnings": list(comparison.warnings),
        "told": [line for line in comparison.notes() if line.removeprefix("warning: ") not in comparison.warnings],
        "scorers": [
            {
                **_difference(difference),
                "new": _losses(comparison.new_losses(difference.scorer)),
                "gone": _losses(comparison.gone_losses(difference.scorer)),
            }
            for difference in comparison
        ],
    }


def _losses(losses: Sequence[Loss]) -> JsonValue:
    """Return the number of losses, and the most frequent ones, each with its share and some samples."""
    shown: list[JsonValue] = [
        {
            "text": loss.text,
            "count": len(loss.samples),
            "total": loss.total,
            "share": loss.share.model_dump(),
            "samples": [[sample.number, sample.id] for sample in loss.samples[:_LOSS_SAMPLES]],
        }
        for loss in losses[:_LOSSES]
    ]
    return {"all": len(losses), "shown": shown}


def _difference(difference: "Difference") -> dict[str, JsonValue]:
    low, high, method = difference.interval or (None, None, None)
    shown = {"low": low, "high": high, "method": method, "excluded": sum(difference.excluded.values())}
    return {**difference.as_json(), **shown, "interval": None, "overall": None}  # the page has no use for the last two


def _audit(audit: Audit, bounds: Mapping[str, MeanBound]) -> JsonValue:
    return {
        "sources": list(audit.sources),
        "left_out": list(left_out_lines(audit.unmatched)),
        "scorers": [_audited(findings, bounds.get(findings.scorer)) for findings in audit.scorers],
    }


def _audited(findings: ScorerAudit, bound: MeanBound | None) -> JsonValue:
    return {
        "name": findings.scorer,
        "head": findings.headline,
        "agreed": f"audited: {findings.agreement_text}" if findings.sample_count else "",
        "use": gate_fitness(findings.correction, bound).text,
        "parts": [
            {
                "name": part.name,
                "figures": [{"name": name, **figure.model_dump()} for name, figure in part.estimates.items()],
                "told": list(part.notes),
                "refused": part.unavailable_reason,
            }
            for part in findings.sections
        ],
        **findings.model_dump(mode="json", include={"confusion", "disagreements", "opinions"}),
    }
