"""The numbers that the page of a run shows first: those stored at its end, and counts by SQL. No score is read."""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.reports.facts import run_facts, scorer_facts
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerResult
from judgekit.score import STATUSES

_NOT_COUNTED: dict[str, JsonValue] = {
    "corrected": None,
    "method": "",
    "kind": "mean",
    "requests": 0,
    "cached": 0,
    "tokens": 0,
    "cost": 0.0,
    "told": [],
    "unscored": [],
    "audited": "",
    "audited_at": None,
    "losses": {"all": 0, "shown": []},
    "turns": [],
}


def first_head(run: Run) -> dict[str, JsonValue]:
    """Return the head of the page of a run without what takes a pass over all scores; see `ReportPage.head`."""
    store, samples = run.store, run.samples
    results: Sequence[ScorerResult | None] = store.results(run.number) or [None] * len(run.scorers)
    counts: list[Counter[str]] = [Counter() for _ in run.scorers]
    histograms = [[0] * 10 for _ in run.scorers]
    sums = [0.0 for _ in run.scorers]
    for scorer, status, tenth, times, total in store.status_counts(run.number):
        if scorer < len(counts):
            counts[scorer][status] += times
            sums[scorer] += total
            if tenth is not None:
                histograms[scorer][tenth] += times
    means = [total / max(1, counted["scored"]) for total, counted in zip(sums, counts, strict=True)]
    shown: dict[str, JsonValue] = {
        **run_facts(run),
        "agents": [],
        "samples": samples.samples,
        "listed": store.counts(run.number).samples,
        "usage": "",
        "imported": "",
        "prices": "",
        "slices": [],
        "columns": [],
        "scorers": [
            {
                **scorer_facts(scorer),
                **_NOT_COUNTED,
                "histogram": list[JsonValue](histograms[at]),
                "counts": {status: counts[at][status] for status in STATUSES},
                **_number(results[at], counts[at], means[at]),
                "about": samples.qualifier,
                "total": max(samples.samples, counts[at].total()),
            }
            for at, scorer in enumerate(run.scorers)
        ],
    }
    return {
        "b": shown,
        "gates": {"headline": "", "results": []},
        "glossary": [],
        "audit": None,
        "failures": None,
        "judges": None,
        "notes": [],
        "is_first": True,
    }


def _number(result: ScorerResult | None, counts: Counter[str], mean: float) -> dict[str, JsonValue]:
    if result is None:
        return {"value": mean if counts["scored"] else None, "low": None, "high": None, "n": counts["scored"]}
    return {"value": result.mean, "low": result.low, "high": result.high, "n": result.n}
