"""A run as JSON, as commands print it with ``--json`` and write it to files whose names end in .json."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from judgekit.analysis.corrected_means import corrected_means, gate_fitness, mean_bounds, run_corrections
from judgekit.analysis.gates import GateResults
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.summary_text import ScorerSummary
from judgekit.traces.message import JsonObject


def run_json(
    run: Run, gates: GateResults, shown: Mapping[str, Sequence[Row]] = {}, unread_records: Sequence[str] = ()
) -> JsonObject:
    """Return a run with the results of its gates, the scores to show by scorer, and the records that could not be read."""
    record, summary = run.record, run.summary
    corrections, bounds = run_corrections(run), mean_bounds(run)
    corrected = corrected_means(corrections)
    scorers: list[JsonValue] = []
    for line in summary:
        name, correction = line.scorer, corrections.get(line.scorer)
        fitness = gate_fitness(correction, bounds.get(name))._asdict() if correction else None
        rows: JsonValue = [score_json(row) for row in shown.get(name, ())]
        more: JsonObject = {"gate": fitness, "low_coverage": gates.low_coverage.get(name, ""), "shown": rows}
        scorers.append({**_scorer(line, corrected.get(name), correction), **more})
    failed = [f"some scores failed: {name}" for name in gates.undecided]
    return {
        "run": run.number,
        **record.model_dump(mode="json", include={"id", "started_at", "ended_at", "stop_reason", "version"}),
        **run.description._asdict(),
        "state": run.state,
        "took_seconds": None if record.took is None else record.took.total_seconds(),
        "inputs": [file.path for file in record.inputs],
        "samples": run.samples.samples,
        "count_precision": run.samples.count_precision,
        "scorers": scorers,
        "slices": {
            name: {part: {line.scorer: _number(line) for line in lines} for part, lines in parts.items()}
            for name, parts in summary.slices.items()
        },
        "gates": [gate._asdict() for gate in gates.gates],
        "gates_met": gates.met,
        "failures": [*failed, *gates.unmeasured.values()],
        "unread_records": list(unread_records),
        "notes": list(run.notes),
    }


def score_json(row: Row) -> JsonObject:
    """Return a score of a sample."""
    return {
        "sample": row.sample_id,
        "number": row.index,
        **row.score.model_dump(mode="json", include={"scorer", "status", "value", "label", "reason", "error"}),
    }


def _number(line: ScorerSummary) -> JsonObject:
    return {"value": line.value, "n": line.counts["scored"], "samples": line.total}


def _scorer(line: ScorerSummary, corrected: Estimate | None, correction: Correction | None) -> JsonObject:
    own = Estimate.of(line.value, line.interval)
    return {
        "scorer": line.scorer,
        "aggregate": line.overall.name if line.overall else "mean",
        **(corrected or own).model_dump(),
        "raw": own.model_dump() if corrected else None,
        "correction": correction.model_dump(include={"method", "unavailable_reason", "assumptions"})
        if correction
        else None,
        "audit": line.audited,
        "n": line.counts["scored"],
        "samples": line.total,
        "statuses": dict(line.counts),
        "reasons": {status: dict(reasons) for status, reasons in line.reasons.items()},
        "errors": dict(line.errors),
        "requests": line.requests,
        "cached": line.cached,
        "tokens": line.tokens,
        "cost_usd": line.cost_usd,
        "notes": [*line.notes()],
    }
