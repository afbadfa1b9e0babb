"""Spans of tools under another name than the call, such as the name of a server, a wrapper or a function."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from pydantic import JsonValue

from judgekit.formats.merging.comparison import name_and_arguments
from judgekit.formats.merging.levels import Level, Levels
from judgekit.formats.merging.step import SpanStep
from judgekit.formats.merging.threads import Thread
from judgekit.traces.message import ToolCall
from judgekit.traces.recording import TraceWarning

_Turn: TypeAlias = tuple[Thread, int] | None
"""An answer of a model with calls, by its position; ``None`` for calls of all turns, if it is not known which."""


@dataclass(eq=False)
class CallPlace:
    """The position of a call; ``answer`` is the position of its result."""

    thread: Thread
    message: int
    answer: int | None
    call: ToolCall


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
        equal = [place for place in free if name_and_arguments(place.call)[1] == arguments]
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
            elif equal or any(
                name_and_arguments(place.call)[1] == arguments and _are_alike(step, place.call) for place in calls
            ):
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
