"""The samples of a run that pass filters, a hundred at a time, as a page lists them."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from pydantic import JsonValue

from judgekit.reports.listing import first_bad_turn
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.traces.rendering import message_text
from judgekit.traces.sample import Sample
from judgekit.traces.tree import branches

PAGE_SIZE = 100
"""The page relies on this number."""
_SEARCHED_AT_ONCE = 5_000
_SEARCH_SECONDS = 0.25
_TEXT_SHOWN = 300
_SCORE = {"scorer", "status", "value", "label", "reason"}
_SHOWN: Any = {**dict.fromkeys(("sample_id", "domain", "labels"), True), "score": _SCORE}


def sample_list(run: Run, filters: Mapping[str, str], start: int = 0, number: int | None = None) -> JsonValue:
    """Return samples that pass the filters, from the place ``start`` on or around a sample, and where the ``next`` ones start.

    A text ``q`` is searched for a quarter of a second, so that there may be none before ``next``; see `SampleSearch`.
    """
    store, names = run.store, [scorer.name for scorer in run.scorers]
    text = filters.get("q", "").strip().lower()
    if number is not None and not text:
        numbers, _ = store.sample_page(run.number, names, filters)
        start = numbers.index(number) // PAGE_SIZE * PAGE_SIZE if number in numbers else 0
    limit = _SEARCHED_AT_ONCE if text else PAGE_SIZE
    wanted, total = store.sample_page(run.number, names, filters, start, limit)
    listed: list[JsonValue] = []
    read, until = start, monotonic() + _SEARCH_SECONDS
    for first in range(0, len(wanted), PAGE_SIZE):
        block = wanted[first : first + PAGE_SIZE]
        listed += _listed(run, block, text)
        read += len(block)
        if len(listed) >= PAGE_SIZE or monotonic() > until:
            break
    return {"samples": listed, "start": start, "next": read if read < total else None, "total": total}


def listed_row(row: Row) -> dict[str, Any]:
    """Return what a list shows of a score."""
    return {**row.model_dump(mode="json", include=_SHOWN), "first_bad": first_bad_turn(row)}


def _listed(run: Run, numbers: Sequence[int], text: str) -> list[JsonValue]:
    """Return the samples that contain a text, in the order of the numbers."""
    rows: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in run.rows(numbers=numbers):
        rows[row.index].append(row)
    store = run.store
    kept = dict(store.conversations(run.number, lambda number: store.has_conversation(run.number, number), numbers))
    return [
        {"number": number, "rows": [*map(listed_row, rows[number])], "preview": _preview(kept.get(number))}
        for number in numbers
        if not text or text in _text(rows[number], kept.get(number))
    ]


def _preview(sample: Sample | None) -> list[JsonValue]:
    """Return the first words of the user and the last ones of the agent, each on one line; empty if there are none."""
    texts = (
        [(message.role, message.text) for message in sample.trace.messages if message.text.strip()] if sample else []
    )
    question = next((text for role, text in texts if role == "user"), "")
    answer = next((text for role, text in reversed(texts) if role == "assistant"), "")
    return [" ".join(text[:_TEXT_SHOWN].split()) for text in (question, answer)]


def _text(rows: Sequence[Row], sample: Sample | None) -> str:
    """Return the text of a sample that searches look at, in lower case."""
    texts = [text for row in rows for text in (row.sample_id, f"{row.score.label or ''}\n{row.score.reason}")]
    for recording in filter(None, (sample.trace, sample.baseline) if sample else ()):
        for branch in branches(recording):
            texts += [branch.agent or "", *map(message_text, branch.trace.messages)]
    return "\n".join(texts).lower()
