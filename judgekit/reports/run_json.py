"""A run as JSON, as commands print it with ``--json`` and write it to files whose names end in .json."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from judgekit.analysis.corrected_means import describe_correction, gate_fitness, mean_bounds, run_corrections
from judgekit.analysis.gates import GateResults
from judgekit.reports.facts import run_facts
from judgekit.runs.audit_records import Correction
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import STATUSES
from judgekit.traces.message import JsonObject

_SHOWN = {"value", "label", "reason"}
_SLICES = 12  # ways to slice the samples
_MIN_SLICE = 10  # samples of a slice with an interval


def run_json(
    run: Run, gates: GateResults, shown: Mapping[str, Sequence[Row]] = {}, unread_records: Sequence[str] = ()
) -> JsonObject:
    """Return a run with the results of its gates, the scores to show by scorer, and the records that could not be read."""
    record, summary = run.record, run.summary
    corrections, bounds = run_corrections(run), mean_bounds(run)
    scorers: list[JsonValue] = []
    for line in summary:
        name, correction = line.scorer, corrections.get(line.scorer)
        fitness = gate_fitness(correction, bounds.get(name))._asdict() if correction else None
        rows: JsonValue = [
            {"sample": row.sample_id, "number": row.index, **row.score.model_dump(mode="json", include=_SHOWN)}
            for row in shown.get(name, ())
        ]
        described = line_json(line, correction, gates.low_coverage.get(name))
        scorers.append({"name": name, **described, "gate": fitness, "shown": rows})
    failed = [f"scores of {name} failed" for name in gates.undecided]
    return {
        **run_facts(run),
        "id": record.id,
        "state": run.state,
        "took_seconds": None if record.took is None else record.took.total_seconds(),
        "samples": run.samples.samples,
        "count_precision": run.samples.count_precision,
        "scorers": scorers,
        "slices": slices_json(summary),
        "gates": [gate._asdict() for gate in gates.gates],
        "gates_met": gates.met,
        "failures": [*failed, *gates.unmeasured.values()],
        "unread_records": list(unread_records),
    }


def line_json(line: ScorerSummary, correction: Correction | None, too_few: str | None) -> JsonObject:
    """Return the line of a scorer in a summary, with its corrected mean, or why its number covers too few samples."""
    overall = line.overall
    corrected = correction.corrected if correction else None
    return {
        **_number(line),
        "corrected": None if corrected is None else corrected.model_dump(),
        "kind": overall.name if overall else "mean",
        "counts": {status: line.counts[status] for status in STATUSES},
        "requests": round(line.requests, 2),
        "cached": round(line.cached, 2),
        "tokens": line.tokens,
        "cost": line.cost_usd,
        "told": [
            *([f"too few samples: {too_few}"] if too_few else []),
            *([describe_correction(correction)] if correction else []),
            *line.notes(),
        ],
        "unscored": [[*reason] for reason in line.unscored_reasons()],
        "audited": line.audited,
    }


def _number(line: ScorerSummary) -> dict[str, JsonValue]:
    interval = dict(zip(("low", "high", "method"), line.interval or (None, None, None), strict=True))
    total: dict[str, JsonValue] = {"n": line.counts["scored"], "about": line.qualifier, "total": line.total}
    return {"value": line.value, **interval, **total}


def slices_json(summary: Summary) -> list[JsonValue]:
    """Return the numbers by domain, and by the labels that most samples have."""
    sizes = {
        name: sum(line.total for part in parts.values() for line in part) for name, parts in summary.slices.items()
    }
    names = sorted(sizes, key=lambda name: (name != "domain", -sizes[name]))[:_SLICES]
    return [
        {
            "name": name,
            "values": [
                {"value": value, "scores": {line.scorer: _slice_number(line) for line in part}}
                for value, part in summary.slices[name].items()
            ],
        }
        for name in names
    ]


def _slice_number(line: ScorerSummary) -> JsonValue:
    """Return the number of a slice, without an interval if it has few samples, which are hardly a random sample."""
    few = {"low": None, "high": None, "method": None} if line.counts["scored"] < _MIN_SLICE else {}
    return {**_number(line), "few": bool(few), **few}
