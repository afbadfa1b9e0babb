"""The samples of a run, or of two that are compared, that pass filters, a hundred at a time, as a page lists them."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeAlias

from pydantic import JsonValue

from judgekit.reports.listing import first_bad_turn
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.traces.rendering import message_text
from judgekit.traces.sample import Sample
from judgekit.traces.tree import branches

PAGE_SIZE = 100
"""The page relies on this number."""
SEARCHED_AT_ONCE = 5_000
"""The samples that one call searches for a text, at most."""
_SEARCH_SECONDS = 0.25
_TEXT_SHOWN = 300
_SCORE = {"scorer", "status", "value", "label", "reason"}
_SHOWN: Any = {**dict.fromkeys(("sample_id", "domain", "labels"), True), "score": _SCORE}

Stored: TypeAlias = tuple[Sequence[Row], Sample | None]
"""The scores of a sample, and its conversation if that is stored."""


def sample_list(run: Run, filters: Mapping[str, str], start: int = 0, number: int | None = None) -> JsonValue:
    """Return samples that pass the filters, from the place ``start`` on or around a sample, and where the ``next`` ones start.

    A text ``q`` is searched for a quarter of a second, so that there may be none before ``next``; see `SampleSearch`.
    """
    names, text = [scorer.name for scorer in run.scorers], searched_text(filters)
    if number is not None and not text:
        numbers, _ = run.store.sample_page(run.number, names, filters)
        start = numbers.index(number) // PAGE_SIZE * PAGE_SIZE if number in numbers else 0
    limit = SEARCHED_AT_ONCE if text else PAGE_SIZE
    numbers, total = run.store.sample_page(run.number, names, filters, start, limit)

    def listed(block: Sequence[int]) -> list[JsonValue]:
        stored = stored_samples(run, block)
        return [
            {**listed_sample(number, stored[number][0]), "preview": preview(stored[number][1])}
            for number in block
            if contains(text, stored[number])
        ]

    return list_page(numbers, listed, start, total)


def list_page(
    numbers: Sequence[int], listed: Callable[[Sequence[int]], list[JsonValue]], start: int, total: int
) -> JsonValue:
    """Return the first hundred samples of ``numbers`` that are ``listed``, of blocks that are read for a quarter of a second.

    Args:
        numbers: The numbers of samples that pass all filters but the text.
        listed: Reads a block of samples, and returns those that contain the text.
        start: The place of the first of them among all samples that pass.
        total: The number of all that pass.
    """
    samples: list[JsonValue] = []
    read, until = start, monotonic() + _SEARCH_SECONDS
    for first in range(0, len(numbers), PAGE_SIZE):
        block = numbers[first : first + PAGE_SIZE]
        samples += listed(block)
        read += len(block)
        if len(samples) >= PAGE_SIZE or monotonic() > until:
            break
    return {"samples": samples, "start": start, "next": read if read < total else None, "total": total}


def searched_text(filters: Mapping[str, str]) -> str:
    """Return the text that is searched for."""
    return filters.get("q", "").strip().lower()


def listed_row(row: Row) -> dict[str, Any]:
    """Return what a list shows of a score."""
    return {**row.model_dump(mode="json", include=_SHOWN), "first_bad": first_bad_turn(row)}


def listed_sample(number: int, rows: Sequence[Row]) -> dict[str, JsonValue]:
    """Return a sample's number, and what a list shows of its scores."""
    return {"number": number, "rows": [*map(listed_row, rows)]}


def stored_samples(run: Run, numbers: Sequence[int]) -> Mapping[int, Stored]:
    """Return samples of a run, by their numbers."""
    rows: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in run.rows(numbers=numbers):
        rows[row.index].append(row)
    kept = dict(run.store.conversations(run.number, numbers=numbers))
    return {number: (rows[number], kept.get(number)) for number in numbers}


def preview(sample: Sample | None) -> list[JsonValue]:
    """Return the first words of the user and the last ones of the agent, each on one line; empty if there are none."""
    texts = (
        [(message.role, message.text) for message in sample.trace.messages if message.text.strip()] if sample else []
    )
    question = next((text for role, text in texts if role == "user"), "")
    answer = next((text for role, text in reversed(texts) if role == "assistant"), "")
    return [" ".join(text[:_TEXT_SHOWN].split()) for text in (question, answer)]


def contains(text: str, stored: Stored) -> bool:
    """Return whether a sample contains a text in lower case, in its id, the scores or the recordings."""
    if not text:
        return True
    rows, sample = stored
    texts = [text for row in rows for text in (row.sample_id, f"{row.score.label or ''}\n{row.score.reason}")]
    for recording in filter(None, (sample.trace, sample.baseline) if sample else ()):
        for branch in branches(recording):
            texts += [branch.agent or "", *map(message_text, branch.trace.messages)]
    return text in "\n".join(texts).lower()
