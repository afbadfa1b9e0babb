"""Results, errors and calls that only the spans of tools have, whose names may differ from those of the calls."""

import json
import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.formats.merging.comparison import name_and_arguments
from judgekit.formats.merging.step import Level, Levels, SpanStep
from judgekit.formats.merging.threads import Thread
from judgekit.traces.message import AIMessage, Message, ToolCall, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition, TraceWarning

_Turn: TypeAlias = tuple[Thread, int] | None
"""An answer of a model with calls, by its position; ``None`` for calls of all turns, if it is not known which."""


@dataclass(eq=False)
class CallPlace:
    """The position of a call; ``answer`` is the position of its result."""

    thread: Thread
    message: int
    answer: int | None
    call: ToolCall


def distinct_tools(tools: Iterable[ToolDefinition]) -> dict[str, ToolDefinition]:
    """Return tool definitions by their JSON, without duplicates."""
    return {json.dumps(tool.model_dump(mode="json"), sort_keys=True): tool for tool in tools}


def add_tool_results(threads: Sequence[Thread], tools: Sequence[SpanStep], levels: Levels) -> dict[SpanStep, str]:
    """Add results and errors from tool spans to their calls, and calls that no message makes; return the known ids.

    A span matches a call by id, else by name and arguments, else by name alone, since tracers may write arguments
    differently; else by arguments alone within a turn, see `match_renamed`.
    """
    targets = _matched(threads, tools, levels)
    changed: dict[tuple[Thread, int], list[Message]] = defaultdict(list)
    for step, target in targets.items():
        answer = target.thread.messages[target.answer] if target.answer is not None else None
        result = step.result_of(target.call)
        if isinstance(answer, ToolMessage) and target.answer is not None:
            failed = True if step.span.error is not None else step.result and step.result.is_error
            if failed is True or (failed is False and answer.is_error is None):
                changed[target.thread, target.answer] = [answer.model_copy(update={"is_error": failed})]
        elif result is not None:
            changed[target.thread, target.message].append(result)
    for thread in threads:
        thread.messages = [
            changed_message
            for index, message in enumerate(thread.messages)
            for changed_message in _completed(message, changed[thread, index])
        ]
    _insert(threads, [step for step in tools if step not in targets], levels)
    return {step: target.call.id for step, target in targets.items() if target.call.id is not None}


def _matched(threads: Sequence[Thread], tools: Sequence[SpanStep], levels: Levels) -> dict[SpanStep, CallPlace]:
    queues: dict[tuple[Level, str, str], deque[CallPlace]] = defaultdict(deque)
    for thread in threads:
        paired = pair_results(thread.messages).calls.items()
        answers = {(caller.message, caller.position): index for index, caller in paired}
        for index, message in enumerate(thread.messages):
            for position, call in enumerate(message.tool_calls if isinstance(message, AIMessage) else ()):
                target = CallPlace(thread, index, answers.get((index, position)), call)
                for name in (*_names(call), (call.name, "")):
                    queues[thread.level, *name].append(target)
    taken: set[CallPlace] = set()
    targets: dict[SpanStep, CallPlace] = {}
    for alone in (False, True):
        for step in tools:
            if step.call is not None and step not in targets:
                names = [(step.call.name, "")] if alone else _names(step.call)
                queued = (queues[levels.level(step), *name] for name in names)
                popped = (queue.popleft() for queue in queued for _ in range(len(queue)))
                free = next((target for target in popped if target not in taken), None)
                if free is not None:
                    taken.add(free)
                    targets[step] = free
    rest = [step for step in tools if step.call is not None and step not in targets]
    return targets | match_renamed(rest, dict.fromkeys(chain(*queues.values())), taken, levels)


def _insert(threads: Sequence[Thread], tools: Sequence[SpanStep], levels: Levels) -> None:
    """Insert calls that no message makes at the time when they happened. Code of a model, or a program, made them."""
    answers: dict[Level, list[tuple[float, int, int]]] = defaultdict(list)
    for number, thread in enumerate(threads):
        for index, message in enumerate(thread.messages):
            if isinstance(message, AIMessage) and message.timestamp is not None and message.timestamp.tzinfo:
                answers[thread.level].append((message.timestamp.timestamp(), number, index))
    for times in answers.values():
        times.sort()
    inserted: dict[tuple[int, int, bool], list[SpanStep]] = defaultdict(list)
    for step in tools:
        times, started = answers[levels.level(step)], step.span.started_at
        if started is None or not times:
            own = [number for number, thread in enumerate(threads) if thread.level is levels.level(step)]
            if own:
                inserted[own[-1], len(threads[own[-1]].messages) - 1, True].append(step)
            continue
        before = bisect_right(times, (started.timestamp(), len(threads), 0))
        inserted[*times[max(before, 1) - 1][1:], before > 0].append(step)
    for (number, index, after), steps in sorted(inserted.items(), key=lambda item: item[0], reverse=True):
        messages = threads[number].messages
        calls = [step.call for step in steps if step.call is not None]
        results = [result for step in steps if step.call and (result := step.result_of(step.call)) is not None]
        end = index + after
        while after and end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        answer = messages[index]
        if after and end == index + 1 and isinstance(answer, AIMessage):
            messages[index] = answer.model_copy(update={"tool_calls": (*answer.tool_calls, *calls)})
            messages[end:end] = results
        else:
            call = AIMessage(tool_calls=calls, agent=levels.name(steps[0]), timestamp=steps[0].span.started_at)
            messages[end:end] = [call, *results]


def _names(call: ToolCall) -> list[tuple[str, str]]:
    return ([("", call.id)] if call.id is not None else []) + [name_and_arguments(call)]


def _completed(message: Message, results: Sequence[Message]) -> list[Message]:
    return [*results[-1:]] if results and isinstance(message, ToolMessage) else [message, *results]


def match_renamed(
    steps: Sequence[SpanStep], places: Iterable[CallPlace], taken: Collection[CallPlace], levels: Levels
) -> dict[SpanStep, CallPlace]:
    """Return the calls of spans under other names: those of the same turn with the same arguments.

    If there are several, their names decide: one contains the other, but for case and punctuation. A span may also wrap
    a call, whose name and arguments are then among its own arguments. Warnings count spans for which that is not
    certain, and those that may record a call a second time.
    """
    turns: dict[Level, dict[_Turn, list[CallPlace]]] = defaultdict(lambda: defaultdict(list))
    for place in places:
        turns[place.thread.level][place.thread, place.message].append(place)
    spans: dict[tuple[Level, _Turn, str], list[SpanStep]] = defaultdict(list)
    for step in steps:
        if step.call is not None:
            level = levels.level(step)
            spans[level, _turn_of(step, turns[level]), name_and_arguments(step.call)[1]].append(step)
    targets: dict[SpanStep, CallPlace] = {}
    unsure: list[SpanStep] = []
    guessed: list[SpanStep] = []
    for (level, turn, arguments), members in spans.items():
        calls = [*chain(*turns[level].values())] if turn is None else turns[level][turn]
        free = [place for place in calls if place not in taken and place not in targets.values()]
        same = [place for place in calls if name_and_arguments(place.call)[1] == arguments]
        equal = [place for place in same if place in free]
        for step in members:
            alike = [place for place in (equal if step.has_arguments else free) if _are_alike(step, place.call)]
            if len(alike) == 1:
                targets[step] = alike[0]
                equal = [place for place in equal if place is not alike[0]]
                free.remove(alike[0])
        pending = [step for step in members if step not in targets and step.has_arguments]
        if len(pending) == len(equal) and len({place.call.name for place in equal}) == 1:
            guessed += [step for step in pending if arguments == "{}" and not _are_alike(step, equal[0].call)]
            targets |= zip(pending, equal, strict=True)
            continue
        for step in pending:
            wrapped = [place for place in free if _wraps(step, place.call)]
            if len({name_and_arguments(place.call) for place in wrapped}) == 1:
                targets[step] = wrapped[0]
                free.remove(wrapped[0])
            elif equal or any(_are_alike(step, place.call) for place in same):
                unsure.append(step)
    _warn(unsure, "may be calls under another name, or repeat calls; read as calls of their own, found {}")
    _warn(guessed, "have another name than the calls that they are taken for, and no arguments to compare, found {}")
    return targets


def _turn_of(step: SpanStep, turns: Iterable[_Turn]) -> _Turn:
    """Return the last answer with calls before a span began."""
    started = step.span.started_at
    latest: tuple[datetime, _Turn] | None = None
    for turn in turns:
        moment = None if turn is None else turn[0].messages[turn[1]].timestamp
        if started is None or moment is None or moment.tzinfo is None or moment > started:
            continue
        if latest is None or moment >= latest[0]:
            latest = moment, turn
    return latest and latest[1]


def _are_alike(step: SpanStep, call: ToolCall) -> bool:
    """Return whether one name contains the other, but for case and punctuation."""
    shorter, longer = sorted((_plain(step.call.name if step.call else ""), _plain(call.name)), key=len)
    return bool(shorter) and shorter in longer


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _wraps(step: SpanStep, call: ToolCall) -> bool:
    """Return whether the arguments of a span hold the name and the arguments of a call."""
    pending: list[JsonValue] = [step.call.args if step.call else {}]
    for value in pending:  # the list grows
        if isinstance(value, dict):
            if call.name in value.values() and (call.args in value.values() or not call.args):
                return True
            pending += value.values()
    return False


def _warn(steps: Sequence[SpanStep], problem: str) -> None:
    if steps:
        warning = TraceWarning(f"spans of tools that {problem.format(len(steps))}")
        steps[0].span.fields.warnings.append(warning)
