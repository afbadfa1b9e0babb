"""Messages that explain why a score is too low."""

from collections.abc import Iterator

from pydantic import JsonValue

from judgekit.diff import Diff
from judgekit.score import JudgeCall, Score
from judgekit.terminal import printable
from judgekit.traces.rendering import cut_middle, message_text
from judgekit.traces.sample import Sample

_REASON_SHOWN = 1_000
_MESSAGE_SHOWN = 300
_LINES_SHOWN = 10


def explain_low_score(score: Score, sample: Sample, at_least: float) -> str:
    """Return the value or status, the reason and the evidence of a score that is too low or has no value, escaped."""
    label = "" if score.label is None else f" ({score.label})"
    outcome = score.status if score.value is None else score.value
    lines = [
        f"{score.scorer} of sample {sample.id!r}: {outcome}{label}, expected {at_least} or more",
        f"reason: {cut_middle(score.reason, _REASON_SHOWN, separate=' ') or 'none given'}",
        *(f"warning: {warning}" for warning in score.warnings),
        *_section("expected and actual calls:", _calls(score.diff())),
        *_section("cited messages:", _cited(score, sample)),
        *_section("asked:", map(_call_text, score.calls)),
    ]
    return "\n".join(map(printable, lines))


def _section(head: str, lines: Iterator[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield head
    yield from (f"  {line}" for line in shown[:_LINES_SHOWN])
    if len(shown) > _LINES_SHOWN:
        yield f"  and {len(shown) - _LINES_SHOWN} more"


def _calls(diff: Diff) -> Iterator[str]:
    """Yield the calls side by side; of many, only those that differ."""
    different = [line for line in diff if line.mark != "="]
    return iter(str(diff if len(diff) <= _LINES_SHOWN else Diff(different)).splitlines())


def _cited(score: Score, sample: Sample) -> Iterator[str]:
    """Yield the messages that a judge cites."""
    messages = sample.trace.messages
    for number in sorted(set(_numbers(score.details))) if score.calls else ():
        if 1 <= number <= len(messages):
            message = messages[number - 1]
            shown = cut_middle(message_text(message), _MESSAGE_SHOWN, separate=" ")
            yield f"{number}, {message.role}: {shown}"


def _numbers(details: JsonValue, under: str = "") -> Iterator[int]:
    """Yield the numbers under ``evidence`` and ``message`` in a score's details."""
    if isinstance(details, dict):
        for name, value in details.items():
            yield from _numbers(value, name)
    elif isinstance(details, list):
        for item in details:
            yield from _numbers(item, under)
    elif isinstance(details, int) and under in ("evidence", "message"):
        yield details


def _call_text(call: JudgeCall) -> str:
    if call.cached:
        took = "cached"
    else:
        tokens, cost = call.tokens_paid, call.usd_paid
        took = f"{'unknown' if tokens is None else f'{tokens:,}'} tokens, "
        took += "cost unknown" if cost is None else f"${cost:.4f}"
    return f"{call.judge}, {call.prompt}: {took}{'' if call.error is None else f', {call.error}'}"
