"""A run next to several others: only what differs, each of them compared with the first."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from judgekit.analysis.compare import Comparison, compare
from judgekit.errors import ConfigError
from judgekit.runs.results import Run

_MOST_RUNS = 8
_MOST_SAMPLES = 200


def compare_runs(runs: Sequence[Run]) -> dict[str, JsonValue]:
    """Return runs next to each other as JSON.

    Raises:
        ConfigError: They are fewer than two or more than eight, or one has no scorer or no sample in common with the first.
    """
    if not 1 < len({run.number for run in runs}) == len(runs) <= _MOST_RUNS:
        raise ConfigError(f"expected 2 to {_MOST_RUNS} different runs to compare, got {len(runs)}")
    first, *others = runs
    comparisons = [compare(first, other, allow_changed_references=True) for other in others]
    names = [scorer.name for scorer in first.scorers]
    return {
        "runs": [{"number": run.number, **run.description._asdict()} for run in runs],
        "differs": _facts_that_differ(runs),
        "scorers": [
            {
                "name": name,
                "results": [_number(run, name) for run in runs],
                "differences": [
                    {one.scorer: one.as_json() for one in comparison}.get(name) for comparison in comparisons
                ],
            }
            for name in names
        ],
        **_samples_that_differ(comparisons, names),
        "notes": list(dict.fromkeys(note for comparison in comparisons for note in _notes(comparison))),
    }


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield the warnings of a comparison, with the numbers of the runs in place of A and B."""
    a, b = f"run {comparison.a.number}: ", f"run {comparison.b.number}: "
    for line in comparison.warnings:
        yield a + line.removeprefix("A: ") if line.startswith("A: ") else b + line.removeprefix("B: ")


def _number(run: Run, scorer: str) -> JsonValue:
    if scorer not in run.summary.scorers:
        return None
    line = run.summary[scorer]
    low, high = line.interval[:2] if line.interval else (None, None)
    return {"value": line.value, "low": low, "high": high, "n": line.counts["scored"]}


def _facts_that_differ(runs: Sequence[Run]) -> list[JsonValue]:
    """Return the facts of the runs in which they differ, each with a text for each run."""
    facts: dict[str, list[str]] = {
        "agent": [", ".join(sorted(filter(None, run.usage.agents))) for run in runs],
        "files": [", ".join(file.path for file in run.inputs) for run in runs],
        "content of the files": [(run.recordings or "").removeprefix("sha256:") for run in runs],
        "judgekit": [run.record.version for run in runs],
    }
    for name in dict.fromkeys(scorer.name for run in runs for scorer in run.scorers):
        lines = [run.summary[name] if name in run.summary.scorers else None for run in runs]
        facts[f"judge of {name}"] = [", ".join(line.judges) if line else "" for line in lines]
        facts[f"signature of {name}"] = [(line.signature or "none")[:12] if line else "" for line in lines]
    return [{"name": name, "cells": [*texts]} for name, texts in facts.items() if len(set(texts)) > 1]


def _samples_that_differ(comparisons: Sequence[Comparison], names: Sequence[str]) -> dict[str, JsonValue]:
    """Return the samples whose value differs from that in the first run, those with the largest differences first."""
    pairs = [dict(zip(one.paired.a.tolist(), one.paired.b.tolist(), strict=True)) for one in comparisons]
    changed: set[int] = set()
    for one, other_numbers in zip(comparisons, pairs, strict=True):
        of_other = one.changed(_MOST_SAMPLES)
        changed |= {a for a, b in other_numbers.items() if b in of_other}
    values = [_values(comparisons[0].a, changed)]
    for one, numbers in zip(comparisons, pairs, strict=True):
        kept = _values(one.b, {numbers[number] for number in changed if number in numbers})
        values.append({number: kept[numbers[number]] for number in changed if numbers.get(number) in kept})
    listed: list[tuple[float, int, dict[str, JsonValue]]] = []
    for number in sorted(changed):
        cells = {name: [of_run.get(number, {}).get(name) for of_run in values] for name in names}
        spreads = {name: _spread(scores) for name, scores in cells.items()}
        shown: dict[str, JsonValue] = {name: [*cells[name]] for name, spread in spreads.items() if spread > 0}
        if shown:
            listed.append(
                (
                    -max(spreads.values()),
                    number,
                    {"numbers": [number, *(of.get(number) for of in pairs)], "scores": shown},
                )
            )
    worst = sorted(listed, key=lambda sample: sample[:2])[:_MOST_SAMPLES]
    ids = {row.index: row.sample_id for row in comparisons[0].a.rows(numbers=[number for _, number, _ in worst])}
    return {"samples": [{**sample, "id": ids.get(number, "")} for _, number, sample in worst], "changed": len(listed)}


def _spread(scores: Sequence[float | None]) -> float:
    """Return how far values are apart."""
    values = [score for score in scores if score is not None]
    return max(values) - min(values) if values else 0.0


def _values(run: Run, numbers: set[int]) -> Mapping[int, Mapping[str, float | None]]:
    """Return the values of samples by number and scorer."""
    values: dict[int, dict[str, float | None]] = {}
    for row in run.rows(numbers=numbers):
        values.setdefault(row.index, {})[row.scorer] = row.score.value
    return values
