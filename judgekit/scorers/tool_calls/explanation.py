"""Explanations of tool-call matches: a one-line summary, and everything as JSON."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import join_limited, truncated
from judgekit.score import Explanation
from judgekit.scorers.tool_calls.arguments import EQUAL_ARGS, ArgComparison, difference_texts
from judgekit.scorers.tool_calls.matching import Match
from judgekit.traces.behavior import Agent, calling_agent
from judgekit.traces.equality import copy_json
from judgekit.traces.message import JsonObject, ToolCall
from judgekit.traces.rendering import quoted_names
from judgekit.traces.trace import ActualCall
from judgekit.traces.tree import MessageNumber

_MOST = 10
"""The maximum number of items of a kind in the reason; the details contain all."""
_OUTCOMES = ("matched", "differing", "out_of_order", "missing", "extra")
_LONGEST = 120
"""The maximum number of characters of a name, path or value in the reason."""


class _Aligned(NamedTuple):
    expected: int
    actual: int
    comparison: ArgComparison


def explain_match(match: Match) -> Explanation:
    """Return the explanation of a score. No arguments in it are those of the sample, which can be changed in place.

    The details contain ``tp``, ``fp``, ``fn``, ``precision`` and ``recall`` as used in the value; ``pairs``, each with
    the score of its arguments, their differences by path and, if something compares texts, its results by path as
    ``similarities``; ``out_of_order``, pairs that violate the order; and the calls that are ``missing`` or ``extra``.
    If there are several agents, also ``by_agent``: of each, the number of its ``calls``, ``errors`` and ``repeats``, and
    how many of the calls ``matched``, are ``differing`` in their arguments, ``out_of_order``, ``missing`` or ``extra``.
    A missing call counts for the agent that it was expected from; otherwise, it has a row without a path. Expected and actual calls are numbered from 0, messages from 1.
    """
    pairs, displaced = _align(match)
    aligned = [*pairs, *displaced]
    missing = _unpaired(len(match.calls.expected), [pair[0] for pair in aligned])
    extra = _unpaired(len(match.calls.actual), [pair[1] for pair in aligned])
    counts = {"tp": match.tp, "fp": match.fp, "fn": match.fn}
    are_whole = match.rules.args_credit == "all"
    details: JsonObject = {
        **{name: int(count) if are_whole else count for name, count in counts.items()},
        "precision": match.precision,
        "recall": match.recall,
        "pairs": [_pair_as_json(match, pair) for pair in pairs],
        "missing": [{"expected": at, **_as_json(match.calls.expected[at])} for at in missing],
        "extra": [
            {"actual": at, **_location(match.calls.actual[at]), **_as_json(match.calls.actual[at].call)} for at in extra
        ],
        "out_of_order": [_pair_as_json(match, pair) for pair in displaced],
    }
    if agents := match.calls.agents():
        details["by_agent"] = _by_agent(match, agents, pairs, displaced, missing, extra)
    return Explanation(_reason(match, pairs, displaced, missing, extra), details)


def _unpaired(calls: int, paired: Sequence[int]) -> Sequence[int]:
    return () if len(paired) == calls else sorted({*range(calls)}.difference(paired))


def _align(match: Match) -> tuple[list[_Aligned], list[_Aligned]]:
    """Return the pairs, and those that violate the order.

    Unpaired calls are paired by the tools' names to show how their arguments differ; these pairs are worth nothing.
    """
    if match.calls.are_equal and not match.rules.calls_functions:
        return [_Aligned(expected, actual, EQUAL_ARGS) for expected, actual, _ in match.pairs], []
    numbered = match.rules.compares_texts
    pairs = [
        _Aligned(
            expected, actual, EQUAL_ARGS if credit == 1 and not numbered else match.calls.compare(expected, actual)
        )
        for expected, actual, credit in match.pairs
    ]
    wanted = _unpaired(len(match.calls.expected), [pair.expected for pair in pairs])
    received = _unpaired(len(match.calls.actual), [pair.actual for pair in pairs])
    if not (wanted and received):
        return pairs, []
    by_turn = match.rules.within == "turn"
    ordered = defaultdict[int | None, list[tuple[int, int]]](list)  # calls in different turns have no order
    for expected, actual, _ in match.pairs:
        ordered[match.calls.expected[expected].turn if by_turn else None].append((expected, match.block(actual)))
    displaced: list[_Aligned] = []
    for expected, actual in sorted(match.unordered_pairs(wanted, received, is_graded=True)):
        turn = match.calls.expected[expected].turn
        positions = ordered[turn if by_turn else None]
        at, block = bisect(positions, (expected, 0)), match.block(actual)
        in_order = match.rules.order == "any" or (
            all(before <= block for _, before in positions[at - 1 : at])
            and all(block <= behind for _, behind in positions[at : at + 1])
        )
        pair = _Aligned(expected, actual, match.calls.compare(expected, actual))
        same_turn = not by_turn or turn == match.calls.actual[actual].turn
        if in_order and same_turn and not match.credit(expected, actual):
            positions.insert(at, (expected, block))
            pairs.append(pair)
        else:
            displaced.append(pair)
    return sorted(pairs), displaced


def _by_agent(
    match: Match,
    agents: Mapping[Agent, JsonObject],
    pairs: Sequence[_Aligned],
    displaced: Sequence[_Aligned],
    missing: Sequence[int],
    extra: Sequence[int],
) -> list[JsonValue]:
    outcomes: dict[tuple[str | None, str | None], Counter[str]] = {agent: Counter() for agent in agents}
    for pair in pairs:
        what = "matched" if pair.comparison.score == 1 else "differing"
        outcomes[calling_agent(match.calls.actual[pair.actual])][what] += 1
    for pair in displaced:
        outcomes[calling_agent(match.calls.actual[pair.actual])]["out_of_order"] += 1
    for at in extra:
        outcomes[calling_agent(match.calls.actual[at])]["extra"] += 1
    for at in missing:
        name = match.calls.expected[at].agent
        namesakes = [agent for agent in agents if name is not None and agent.name == name]
        outcomes.setdefault(namesakes[0] if len(namesakes) == 1 else (None, name), Counter())["missing"] += 1
    rows: dict[tuple[str | None, str | None], JsonObject] = dict(agents.items())
    return [
        {
            **rows.get(agent, {"path": None, "agent": agent[1], "calls": 0, "errors": 0, "repeats": 0}),
            **{what: counts[what] for what in _OUTCOMES},
        }
        for agent, counts in outcomes.items()
    ]


def _pair_as_json(match: Match, pair: _Aligned) -> JsonObject:
    actual = match.calls.actual[pair.actual]
    call = actual.call
    shown: JsonObject = {"expected": pair.expected, "actual": pair.actual, **_location(actual), "name": call.name}
    shown["score"] = pair.comparison.score
    if pair.comparison.differences:
        shown["differences"] = copy_json([difference.as_json() for difference in pair.comparison.differences])
    if pair.comparison.similarities:
        shown["similarities"] = dict(pair.comparison.similarities)
    if call.args_error is not None:
        shown["args_error"] = call.args_error
    return shown


def _location(call: ActualCall) -> JsonObject:
    """Return the number of the call's message, and of a sub-agent its name."""
    if isinstance(call.message, int) or call.agent is None:
        return {"message": call.message}
    return {"message": call.message, "agent": call.agent}


def _as_json(call: ToolCall) -> JsonObject:
    if call.args_error is None:
        return {"name": call.name, "args": copy_json(call.args)}
    return {"name": call.name, "args_raw": call.args_raw, "args_error": call.args_error}


def _reason(
    match: Match, pairs: Sequence[_Aligned], displaced: Sequence[_Aligned], missing: Sequence[int], extra: Sequence[int]
) -> str:
    if match.calls.expected:
        matched = sum([pair.comparison.score == 1 for pair in pairs])
        head = f"{matched} of {len(match.calls.expected)} expected calls matched"
    else:
        head = f"no call was expected{'' if match.calls.actual else ' and none was made'}"
    parts = [head]
    called = [call.name for call in match.calls.expected] + [actual.call.name for actual in match.calls.actual]
    names = {name: truncated(shown, _LONGEST) for name, shown in quoted_names(called).items()}
    if differing := [_pair_in_words(match, pair, names) for pair in pairs if pair.comparison.differences]:
        parts.append(join_limited(differing, _MOST))
    if missing:
        parts.append(_named("missing", match.rules.missing, [match.calls.expected[at] for at in missing], names))
    if displaced:
        parts.append(_named("out of order", "forbid", [match.calls.actual[pair.actual] for pair in displaced], names))
    if extra:
        parts.append(_named("extra", match.rules.extra, [match.calls.actual[at] for at in extra], names))
    return "; ".join(parts)


def _pair_in_words(match: Match, pair: _Aligned, names: Mapping[str, str]) -> str:
    call = match.calls.actual[pair.actual].call
    if call.args_error is not None:
        return f"{names[call.name]}: unreadable arguments ({call.args_error})"
    similarities = {path: f" (similarity {number:.2f})" for path, number in pair.comparison.similarities}
    differences = [
        f"{text}{similarities.get(difference.path, '')}"
        for difference, text in zip(
            pair.comparison.differences, difference_texts(pair.comparison.differences, "got", _LONGEST), strict=True
        )
    ]
    return f"{names[call.name]}: {join_limited(differences, _MOST, ', ')}"


def _named(what: str, rule: str, calls: Iterable[ToolCall | ActualCall], names: Mapping[str, str]) -> str:
    """Return tools with the number of their calls and the messages: ``extra: search x2 (messages 4, 8)``."""
    messages_by_tool = defaultdict[str, list[MessageNumber | None]](list)
    for call in calls:
        name, message = (call.call.name, call.message) if isinstance(call, ActualCall) else (call.name, None)
        messages_by_tool[name].append(message)
    tools: list[str] = []
    for name, messages in messages_by_tool.items():
        numbers = list(dict.fromkeys(str(message) for message in messages if message is not None))
        times = "" if len(messages) == 1 else f" x{len(messages)}"
        where = f" (message{'s' if len(numbers) > 1 else ''} {join_limited(numbers, _MOST, ', ')})" if numbers else ""
        tools.append(f"{names[name]}{times}{where}")
    return f"{what}{', allowed' if rule == 'allow' else ''}: {join_limited(tools, _MOST, ', ')}"
