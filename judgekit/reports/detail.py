"""A sample with its scores, in the form that the page of a report shows."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from pydantic import JsonValue

from judgekit.errors import truncated
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall, JudgeExchange, Score
from judgekit.traces.behavior import agent_usage
from judgekit.traces.message import MediaPart, Message, OtherPart, Part, ToolCall
from judgekit.traces.pairing import PairedCall, pair_results
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch

_EXACT = 2**53  # integers up to here are exact in JavaScript
_NOT_OF_THE_SAMPLE = {"schema_version", "id", "trace", "baseline", "domain"}  # these are shown elsewhere
_OF_THE_SCORE = ("status", "value", "label", "reason", "error", "warnings")
_OF_THE_CALL = {"judge", "prompt", "model", "cached", "seconds", "error"}
_NOT_OF_THE_TRACE = {"schema_version", "messages", "tools", "children", "extra", "error"}
_ERROR_SHOWN = 2_000


def sample_detail(
    scorers: Sequence[str],
    rows: Iterable[Row],
    sample: Sample | None,
    exchanges: Mapping[tuple[str, int], JudgeExchange],
) -> dict[str, JsonValue]:
    """Return everything to show of a sample; ``messages`` is ``None`` if the conversation is missing or damaged.

    Args:
        scorers: The names of the scorers, in the order of the scores.
        rows: The scores of the sample.
        sample: The sample, if it was stored.
        exchanges: Requests to judges with their replies, by scorer and position of the call.
    """
    scores = {row.scorer: row.score for row in rows}
    of_scorers: list[JsonValue] = [None] * len(scorers)
    for at, name in enumerate(scorers):
        if calls := {
            str(number): _exchange(exchange) for (scorer, number), exchange in exchanges.items() if scorer == name
        }:
            of_scorers[at] = calls
    trace = sample.trace if sample else None
    baseline = sample.baseline if sample else None
    return {
        "scores": [_score(scores[name]) if name in scores else None for name in scorers],
        "exchanges": of_scorers,
        "messages": _messages(Branch(trace)) if trace else None,
        "error": truncated(trace.error, _ERROR_SHOWN) if trace and trace.error else None,
        "baseline": _messages(Branch(baseline)) if baseline else None,
        "agents": _agents(trace) if trace else [],
        "unlinked": _unlinked(Branch(trace)) if trace else [],
        "about": _about(sample) if sample else {},
    }


def _agents(trace: Trace) -> list[JsonValue]:
    if not trace.children and len({message.agent for message in trace.messages if message.role == "assistant"}) < 2:
        return []
    usages = agent_usage(trace)
    return [[*usage] for usage in usages] if len(usages) > 1 else []


def _about(sample: Sample) -> JsonValue:
    fields = sample.model_dump(mode="json", exclude=_NOT_OF_THE_SAMPLE, exclude_defaults=True)
    recorded = sample.trace.model_dump(mode="json", exclude=_NOT_OF_THE_TRACE, exclude_defaults=True)
    return _showable({**fields, **({"trace": recorded} if recorded else {})})


def _score(score: Score) -> JsonValue:
    return {
        **{name: getattr(score, name) for name in _OF_THE_SCORE},
        "details": _showable(score.details),
        "diff": [list(line) for line in score.diff()],
        "calls": [_call(call) for call in score.calls],
    }


def _call(call: JudgeCall) -> JsonValue:
    usage = call.usage
    counted = usage is not None and usage.input_tokens is not None and usage.output_tokens is not None
    return {
        **call.model_dump(include=_OF_THE_CALL),
        "fingerprint": call.system_fingerprint,
        "request": call.is_request,
        "questions": len(call.together),
        "cost": call.usd_paid,
        "tokens": [usage.input_tokens, usage.output_tokens] if usage and counted else None,
    }


def _exchange(exchange: JudgeExchange) -> JsonValue:
    return {"messages": [list(message) for message in exchange.messages], "reply": exchange.reply}


def _messages(branch: Branch) -> list[JsonValue]:
    """Return the messages of a conversation, each with the sub-agents that it started."""
    messages, started = branch.trace.messages, branch.started
    answers = pair_results(messages).calls
    return [_message(message, answers.get(at), started.get(at, ())) for at, message in enumerate(messages)]


def _unlinked(branch: Branch) -> list[JsonValue]:
    """Return the sub-agents of which the recording does not say which message started them."""
    return [_sub_agent(child) for child in branch.started.get(-1, ())]


def _sub_agent(branch: Branch) -> JsonValue:
    shown = {"path": branch.path, "agent": branch.agent, "messages": _messages(branch), "unlinked": _unlinked(branch)}
    return {name: value for name, value in shown.items() if value or name == "messages"}


def _message(message: Message, answered: PairedCall | None, started: Sequence[Branch]) -> JsonValue:
    fields: dict[str, JsonValue] = {"role": message.role, "parts": _parts(message.content)}
    if message.role == "tool":
        if who := answered.call.name if answered else message.name:
            fields["who"] = who
        if message.is_error:
            fields["error"] = True
        if answered:
            fields["called"] = answered.message + 1
        if message.requestor == "user":
            fields["requestor"] = "user"
    elif message.role == "assistant" or message.role == "user":  # noqa: PLR1714 - type checkers narrow by it
        if who := message.agent if message.role == "assistant" else message.name:
            fields["who"] = who
        if message.tool_calls:
            fields["calls"] = [_tool_call(call) for call in message.tool_calls]
        if started:
            fields["sub_agents"] = [_sub_agent(child) for child in started]
    return fields


def _parts(content: str | Sequence[Part]) -> list[JsonValue]:
    """Return the kind and text of each part, and a description of media instead of their data."""
    if isinstance(content, str):
        return [["text", content]] if content else []
    return [_part(part) for part in content]


def _part(part: Part) -> JsonValue:
    if isinstance(part, MediaPart):
        stored = f"sha256 {part.sha256}" if part.sha256 is not None else None  # in place of the data
        url = part.url or ""
        url = url if len(url) <= 2_000 else f"{url[:100]}... ({len(url):,} characters)"
        return ["media", part.kind, *(text for text in (part.name, part.mime_type, url, stored) if text)]
    if isinstance(part, OtherPart):
        return ["other", _json(part.data)]
    return [part.type, part.text]


def _tool_call(call: ToolCall) -> JsonValue:
    if call.args_error is None:
        return {"name": call.name, "args": _json(call.args)}
    return {"name": call.name, "args": call.args_raw or "", "error": call.args_error}


def _json(value: JsonValue) -> str:
    """Return the value as JSON text, which keeps numbers exact."""
    try:
        return compact_json(value)
    except ValueError as error:
        return f"cannot be written: {error}"


def _showable(value: JsonValue) -> JsonValue:
    """Return the value with text in place of numbers that JavaScript cannot represent."""
    if isinstance(value, dict):
        return {name: _showable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_showable(inner) for inner in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return _json(value)
    return value
