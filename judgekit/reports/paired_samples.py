"""The samples of compared runs as pages list them: those of two runs that pass filters, and those that differ most."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import JsonValue

from judgekit.analysis.compare import Comparison
from judgekit.analysis.sample_pairs import Numbers
from judgekit.reports.sample_list import (
    PAGE_SIZE,
    SEARCHED_AT_ONCE,
    contains,
    list_page,
    listed_sample,
    preview,
    searched_text,
    stored_samples,
)
from judgekit.runs.results import Run


def paired_list(
    comparison: Comparison, filters: Mapping[str, str], start: int = 0, number: int | None = None
) -> JsonValue:
    """Return pairs that pass the filters, as `sample_list` does samples.

    Filters hold for the sample in B. ``change`` is ``worse``, ``better``, ``changed``, ``left out`` or ``one side``, and ``sort`` also
    ``drop:SCORER`` and ``rise:SCORER``. A sample has its number in B or, if it is only in A, -1 minus its number in A.
    """
    text = searched_text(filters)
    numbers = _ordered(comparison, _chosen(comparison, filters), filters.get("sort", "")).tolist()
    if number is not None and not text:
        start = numbers.index(number) // PAGE_SIZE * PAGE_SIZE if number in numbers else 0
    counterparts = _counterparts(comparison)

    def listed(block: Sequence[int]) -> list[JsonValue]:
        in_a = {number: -1 - number if number < 0 else counterparts.get(number) for number in block}
        a = stored_samples(comparison.a, [number for number in in_a.values() if number is not None])
        b = stored_samples(comparison.b, [number for number in block if number >= 0])
        samples: list[JsonValue] = []
        for key, paired in in_a.items():
            before, after = None if paired is None else a[paired], b.get(key)
            if any(contains(text, stored) for stored in (before, after) if stored):
                shown = after or before
                samples.append(
                    {
                        "number": key,
                        "a": listed_sample(paired, before[0]) if paired is not None and before else None,
                        "b": listed_sample(key, after[0]) if after else None,
                        "preview": preview(shown[1]) if shown else [],
                    }
                )
        return samples

    limit = SEARCHED_AT_ONCE if text else PAGE_SIZE
    return list_page(numbers[start : start + limit], listed, start, len(numbers))


def sides_of(comparison: Comparison, number: int) -> tuple[int | None, int | None]:
    """Return the numbers in A and in B of a sample of `paired_list`."""
    return (-1 - number, None) if number < 0 else (_counterparts(comparison).get(number), number)


def differing(comparisons: Sequence[Comparison], limit: int) -> JsonValue:
    """Return the samples whose values differ between a baseline and other runs, up to ``limit`` of them, and their ``total``.

    Those that differ most are first. Each has its number in each run, and its values there by scorer.
    """
    size = 1 + max(int(comparison.paired.a.max()) for comparison in comparisons)
    spreads: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for comparison in comparisons for name in comparison.gains):
        gains = np.zeros((1 + len(comparisons), size))
        for row, comparison in enumerate(comparisons, 1):
            if (paired := comparison.gains.get(name)) is not None:
                gains[row, paired.a] = paired.gains
        spreads[name] = np.ptp(gains, axis=0)
    largest = np.max([*spreads.values()], axis=0)
    total = int((largest > 0).sum())
    chosen = np.argsort(-largest, kind="stable")[: min(limit, total)].tolist()
    sides: list[tuple[Run, Mapping[int, int]]] = [
        (comparisons[0].a, {number: number for number in chosen}),
        *((each.b, dict(zip(each.paired.a.tolist(), each.paired.b.tolist(), strict=True))) for each in comparisons),
    ]
    ids: dict[int, str] = {}
    values: list[dict[tuple[int | None, str], float | None]] = []
    for run, at in sides:
        rows = [*run.rows(numbers=[at[number] for number in chosen if number in at])]
        ids = ids or {row.index: row.sample_id for row in rows}
        values.append({(row.index, row.scorer): row.score.value for row in rows})
    samples: list[JsonValue] = []
    for number in chosen:
        numbers = [at.get(number) for _, at in sides]
        scores: dict[str, JsonValue] = {
            name: [own.get((at, name)) for at, own in zip(numbers, values, strict=True)]
            for name, spread in spreads.items()
            if spread[number] > 0
        }
        samples.append({"id": ids[number], "numbers": [*numbers], "scores": scores})
    return {"total": total, "samples": samples}


def _counterparts(comparison: Comparison) -> Mapping[int, int]:
    return dict(zip(comparison.paired.b.tolist(), comparison.paired.a.tolist(), strict=True))


def _chosen(comparison: Comparison, filters: Mapping[str, str]) -> Numbers:
    """Return the samples that pass the filters, those that are only in A last."""
    of_b, of_a = (
        np.array(run.store.sample_page(run.number, [scorer.name for scorer in run.scorers], filters)[0], dtype=np.int64)
        for run in (comparison.b, comparison.a)
    )
    only_a = -1 - of_a[~np.isin(of_a, comparison.paired.a)]
    change, named = filters.get("change", ""), filters.get("scorer", "")
    gains = [paired for name, paired in comparison.gains.items() if name == named or not named]
    match change:
        case "":
            return np.concatenate([of_b, only_a])
        case "one side":
            return np.concatenate([of_b[~np.isin(of_b, comparison.paired.b)], only_a])
        case "left out":
            wanted = [comparison.paired.b[~np.isin(comparison.paired.b, paired.b)] for paired in gains]
        case "worse":
            wanted = [paired.worse.b for paired in gains]
        case "better":
            wanted = [paired.better.b for paired in gains]
        case _:
            wanted = [paired.b[paired.gains != 0] for paired in gains]
    return of_b[np.isin(of_b, np.concatenate([*wanted, np.array([], dtype=np.int64)]))]


def _ordered(comparison: Comparison, numbers: Numbers, sort: str) -> Numbers:
    """Return samples in the order of their gains, if they are to be sorted by these; those without one are last."""
    order, _, scorer = sort.partition(":")
    if order not in ("drop", "rise") or scorer not in comparison.gains:
        return numbers
    paired = comparison.gains[scorer]
    gains = dict(zip(paired.b.tolist(), (paired.gains if order == "drop" else -paired.gains).tolist(), strict=True))
    return numbers[np.argsort([gains.get(number, np.inf) for number in numbers.tolist()], kind="stable")]
