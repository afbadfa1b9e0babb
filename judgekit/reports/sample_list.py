"""The samples of a run that pass filters, a hundred at a time, as a page lists them."""

from collections.abc import Mapping, Sequence
from time import monotonic

from pydantic import JsonValue

from judgekit.reports.listing import first_bad_turn
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.traces.message import AIMessage, HumanMessage, Message, ToolCall
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import Sample
from judgekit.traces.tree import branches

PAGE_SIZE = 100
"""The page relies on this number."""
_SEARCHED_AT_ONCE = 5_000
_SEARCH_SECONDS = 0.25
_TEXT_SHOWN = 300


def sample_list(
    run: Run, filters: Mapping[str, str], start: int = 0, number: int | None = None
) -> dict[str, JsonValue]:
    """Return samples that pass the filters, from ``start`` on or around a sample, and where the next ones start.

    Args:
        run: The run.
        filters: See `judgekit.runs.sample_search.SampleSearch`. With a text ``q`` to search for, as many samples are read as
            a quarter of a second allows, so that there may be none before ``next``.
        start: The position of the first sample among those that pass the filters, of which the text is none.
        number: The number of a sample to start near; without a text.
    """
    store, names = run.store, [scorer.name for scorer in run.scorers]
    text = filters.get("q", "").strip().lower()
    if number is not None and not text:
        numbers = store.sample_page(run.number, names, filters)
        start = numbers.index(number) // PAGE_SIZE * PAGE_SIZE if number in numbers else 0
    wanted = store.sample_page(run.number, names, filters, start, _SEARCHED_AT_ONCE if text else PAGE_SIZE)
    listed: list[JsonValue] = []
    read, until = start, monotonic() + _SEARCH_SECONDS
    for first in range(0, len(wanted), PAGE_SIZE):
        block = wanted[first : first + PAGE_SIZE]
        listed += _listed(run, block, text)
        read += len(block)
        if len(listed) >= PAGE_SIZE or monotonic() > until:
            break
    total = store.sample_count(run.number, names, filters)
    return {"samples": listed, "start": start, "next": read if read < total else None, "total": total}


def _listed(run: Run, numbers: Sequence[int], text: str) -> list[JsonValue]:
    """Return the samples that contain a text, in the order of the numbers."""
    rows: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in run.rows(numbers=numbers):
        rows[row.index].append(row)
    store = run.store
    kept = dict(store.conversations(run.number, lambda number: store.has_conversation(run.number, number), numbers))
    shown: list[JsonValue] = []
    for number in numbers:
        of_sample, sample = rows[number], kept.get(number)
        if text and text not in _text(of_sample, sample):
            continue
        first = of_sample[0] if of_sample else None
        scores: dict[str, JsonValue] = {
            row.scorer: {
                **{name: getattr(row.score, name) for name in ("status", "value", "label")},
                "reason": row.score.reason[:_TEXT_SHOWN],
                "first_bad": first_bad_turn(row),
            }
            for row in of_sample
        }
        about: dict[str, JsonValue] = {
            "id": first.sample_id if first else "",
            "domain": first.domain if first else None,
            "labels": {**first.labels} if first else {},
        }
        shown.append({"number": number, **about, "scores": scores, "preview": _preview(sample)})
    return shown


def _preview(sample: Sample | None) -> list[JsonValue]:
    """Return the first words of the user and the last ones of the agent, each on one line; empty if there are none."""
    messages = sample.trace.messages if sample else ()
    question = next((message for message in messages if message.role == "user" and message.text.strip()), None)
    answer = next(
        (message for message in reversed(messages) if message.role == "assistant" and message.text.strip()), None
    )
    return [
        " ".join(message.text[: 2 * _TEXT_SHOWN].split())[:_TEXT_SHOWN] if message else ""
        for message in (question, answer)
    ]


def _text(rows: Sequence[Row], sample: Sample | None) -> str:
    """Return the text of a sample that searches look at, in lower case."""
    texts = [text for row in rows for text in (row.sample_id, f"{row.score.label or ''}\n{row.score.reason}")]
    for recording in filter(None, (sample.trace, sample.baseline) if sample else ()):
        for branch in branches(recording):
            texts.append(branch.agent or "")
            for message in branch.trace.messages:
                texts += _message_texts(message)
    return "\n".join(texts).lower()


def _message_texts(message: Message) -> Sequence[str]:
    if isinstance(message.content, str):
        texts = [message.content]
    else:
        texts = [getattr(part, "text", "") or compact_json(part.model_dump(mode="json")) for part in message.content]
    calls: Sequence[ToolCall] = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
    names = (getattr(message, name, None) for name in ("name", "agent"))
    return [
        *filter(None, names),
        *texts,
        *(f"{call.name}\n{call.args_raw or compact_json(call.args)}" for call in calls),
    ]
