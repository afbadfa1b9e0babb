"""Threads of messages that follow one another.

The input of a model call decides which thread of its level it belongs to:

    holds everything said in a thread                       continues it
    holds the last answer of its agent's latest thread,     continues after that answer
    or of the latest of all if the agent is a new one
    repeats its run's last input without the answer,        continues after the answer, if that called tools or tools
    and began after that call had ended                     ran since then (tracers that record no history)
    shares nothing with it, and began after it had ended    is appended (models with memory, and sessions)
    anything else                                           begins a thread of its own

Runs that repeat one of their own answers record the history, so the third rule does not apply to them.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from judgekit.formats.merging.comparison import (
    Utterance,
    Variants,
    call_ids,
    prefix_hashes,
    repeats_last,
    split_instructions,
    utterances,
)
from judgekit.formats.merging.step import Level, Levels, SpanStep
from judgekit.formats.spans import UNKNOWN_START, Span
from judgekit.traces.message import AIMessage, Message, SystemMessage, ToolMessage

_Run: TypeAlias = tuple[Level, SpanStep | str | None]
"""An agent run, or everything in one trace that happens outside of agents."""


@dataclass(eq=False)
class Thread:
    """Consecutive messages, and the steps that they come from."""

    level: Level
    first: list[Utterance]
    messages: list[Message] = field(default_factory=list[Message])
    steps: list[SpanStep] = field(default_factory=list[SpanStep])
    instructions: set[str] = field(default_factory=set[str])
    last: list[Utterance] = field(default_factory=list[Utterance])
    """The last answer."""
    end_hash: int = 0
    """A hash of everything said."""


class Threads:
    """The threads of a recording. Steps are added one after the other.

    Attributes:
        threads: The threads, ordered by start.
        possible_repetitions: Model calls that are left out because they repeat an earlier one, but may have been made twice.
        unconnected: Model calls that share nothing with what their agent said before.
        possibly_unrelated: Model calls with the same input as the one before, which may not follow it.
        possibly_related: Model calls with the same input as an earlier one, which may follow it.

    Args:
        levels: The levels of all steps.
        variants: Collects what is left out.
        models: The model calls, ordered by start time.
        tools: The tool calls.
    """

    def __init__(
        self, levels: Levels, variants: Variants, models: Iterable[SpanStep], tools: Iterable[SpanStep]
    ) -> None:
        self.threads: list[Thread] = []
        self.possible_repetitions: list[SpanStep] = []
        self.unconnected: list[SpanStep] = []
        self.possibly_unrelated: list[SpanStep] = []
        self.possibly_related: list[SpanStep] = []
        self._levels = levels
        self._variants = variants
        self._with_history = self._runs_with_history(models)
        self._tools: dict[_Run, list[datetime]] = defaultdict(list)
        for tool in sorted(tools, key=lambda tool: tool.span.started_at or UNKNOWN_START):
            self._tools[self._run(tool)].append(tool.span.started_at or UNKNOWN_START)
        self._parallel: set[_Run] = set()
        self._runs: dict[tuple[_Run, str], Thread] = {}
        self._newest: dict[Level, Thread] = {}
        self._passed_hashes: dict[tuple[Level, int], tuple[Thread, Span]] = {}
        self._latest: dict[tuple[Level, str | None, str], Thread] = {}
        self._call_ids: set[str] = set()

    def add(self, step: SpanStep, answered: Sequence[Message]) -> None:
        """Add a step to the thread that it belongs to."""
        if not (step.input_messages or answered) or self.continue_thread(step, answered):
            return
        level, systems, rest = self._levels.level(step), *split_instructions(step.input_messages)
        thread = self._latest.get((level, self._levels.name(step), _joined(systems)))
        before = thread or self._newest.get(level)
        if before is not None:
            places = range(len(rest) - 1, -1, -1) if before.last else ()
            last = next((index for index in places if repeats_last(utterances([rest[index]]), before.last)), None)
            if last is not None:
                new = [message for message in systems if thread is None and message.text not in before.instructions]
                repeated = [message for message in systems if message not in new]
                self._variants.keep_repetitions([*repeated, *rest[: last + 1]])
                self._append(before, step, new, rest[last + 1 :], answered)
                return
        if self._continue_unanswered(step, systems, rest, answered):
            return
        if thread is not None:
            apart = bool(rest) and utterances(rest[:1]) != thread.first
            if apart and step.kind == "model" and not isinstance(rest[0], ToolMessage):
                self.unconnected.append(step)
            if not rest or (apart and _follows(step.span, thread.steps[-1].span)):
                self._variants.keep_repetitions(systems)
                self._append(thread, step, (), rest, answered)
                return
        self._note_missing_history(step, rest, thread)
        thread = Thread(level, utterances(rest[:1]))
        self.threads.append(thread)
        self._append(thread, step, systems, rest, answered)

    def continue_thread(self, step: SpanStep, answered: Sequence[Message]) -> bool:
        """Return whether a step is done: it adds nothing new, or it was added to the thread that it continues."""
        level, systems, rest = self._levels.level(step), *split_instructions(step.input_messages)
        passed = prefix_hashes([*rest, *answered])
        if passed and (before := self._passed_hashes.get((level, passed[-1]))) is not None:
            same = _is_around(before[1], step.span) or _is_around(step.span, before[1])
            ids = call_ids(answered)
            if same or ids <= self._call_ids:
                if step.kind == "model" and answered and not ids and not same:
                    self.possible_repetitions.append(step)
                self._variants.keep_repetitions([*step.input_messages, *answered])
                return True
        for count in range(len(rest), 0, -1):
            thread, _ = self._passed_hashes.get((level, passed[count - 1]), (None, None))
            if thread is not None and thread.end_hash == passed[count - 1]:
                new = [message for message in systems if message.text not in thread.instructions]
                self._variants.keep_repetitions(
                    [*(message for message in systems if message not in new), *rest[:count]]
                )
                self._append(thread, step, new, rest[count:], answered)
                return True
        return False

    def _continue_unanswered(
        self, step: SpanStep, systems: Sequence[SystemMessage], rest: Sequence[Message], answered: Sequence[Message]
    ) -> bool:
        """Add a step that repeats its run's last input without the answer, if it follows that answer."""
        run = self._run(step)
        thread = self._runs.get((run, _joined(systems)))
        if thread is None or step.kind != "model" or run in self._with_history:
            return False
        before = thread.steps[-1]
        requests = split_instructions(before.input_messages)[1]
        same = 0
        while same < min(len(rest), len(requests)) and utterances([rest[same]]) == utterances([requests[same]]):
            same += 1
        new = rest[same:]
        repeated = same > 0 and all(isinstance(message, ToolMessage) for message in requests[same:])
        if (
            not repeated
            or any(isinstance(message, AIMessage) for message in new)
            or not _follows(step.span, before.span)
        ):
            return False
        answers = any(isinstance(message, ToolMessage) for message in new)
        ran = answers or self._has_tools_between(run, before, step)
        if not (ran or new or _calls(thread)):
            return False
        if run in self._parallel or not ran:
            self.possibly_unrelated.append(step)
        self._variants.keep_repetitions([*systems, *rest[:same]])
        self._append(thread, step, (), new, answered)
        return True

    def _note_missing_history(self, step: SpanStep, rest: Sequence[Message], thread: Thread | None) -> None:
        """Note a step that begins a thread, in case its run merely did not record the history."""
        run = self._run(step)
        own = thread or self._runs.get((run, ""))
        before = own or self._newest.get(self._levels.level(step))
        if before is None or step.kind != "model" or before.first != utterances(rest[:1]):
            return
        if own is not None and run in self._with_history:
            return
        if not _follows(step.span, before.steps[-1].span):
            self._parallel.add(run)
        elif thread is not None or _calls(before) or self._has_tools_between(run, before.steps[-1], step):
            self.possibly_related.append(step)

    def _has_tools_between(self, run: _Run, before: SpanStep, step: SpanStep) -> bool:
        """Return whether tools began to run between two steps."""
        began, end = (
            bisect_left(self._tools[run], neighbor.span.started_at or UNKNOWN_START) for neighbor in (before, step)
        )
        return began < end

    def _run(self, step: SpanStep) -> _Run:
        return self._levels.level(step), self._levels.agent(step) or step.span.trace_id

    def _runs_with_history(self, models: Iterable[SpanStep]) -> set[_Run]:
        """Return the runs in which a model call repeats an earlier answer."""
        answers_by_run: dict[_Run, set[Utterance]] = defaultdict(set)
        runs: set[_Run] = set()
        for step in models:
            answers = answers_by_run[run := self._run(step)]
            if any(
                isinstance(message, AIMessage) and not answers.isdisjoint(utterances([message]))
                for message in step.input_messages
            ):
                runs.add(run)
            answers.update(utterances(step.output_messages))
        return runs

    def _append(
        self,
        thread: Thread,
        step: SpanStep,
        systems: Sequence[SystemMessage],
        rest: Sequence[Message],
        answered: Sequence[Message],
    ) -> None:
        moment, name = step.span.ended_at or step.span.started_at, self._levels.name(step)
        results = next((index for index, message in enumerate(rest) if not isinstance(message, ToolMessage)), len(rest))
        new = [*rest[:results], *systems, *rest[results:]]
        for message in answered:
            fields: dict[str, object] = {"timestamp": message.timestamp or moment}
            if isinstance(message, AIMessage):
                fields["agent"] = message.agent or name
            new.append(message.model_copy(update=fields))
        for end in prefix_hashes([*rest, *answered], thread.end_hash):
            self._passed_hashes[thread.level, end] = thread, step.span
            thread.end_hash = end
        for message in new:
            self._variants.add_message(message)
            if isinstance(message, AIMessage):
                thread.last = utterances([message])
        self._call_ids |= call_ids(new)
        thread.instructions.update(message.text for message in systems)
        thread.messages += new
        thread.steps.append(step)
        self._newest[thread.level] = thread
        for instructions in {"", _joined(split_instructions(step.input_messages)[0])}:
            self._latest[thread.level, name, instructions] = self._runs[self._run(step), instructions] = thread


def _joined(systems: Sequence[SystemMessage]) -> str:
    return "\n".join(message.text for message in systems)


def _calls(thread: Thread) -> bool:
    last = thread.messages[-1]
    return isinstance(last, AIMessage) and bool(last.tool_calls)


def _follows(span: Span, before: Span) -> bool:
    return before.ended_at is None or span.started_at is None or before.ended_at <= span.started_at


def _is_around(outer: Span, span: Span) -> bool:
    """Return whether a span contains another or is the same, which tracers may record twice."""
    inner: Span | None = span
    while inner is not None and inner.depth > outer.depth:
        inner = inner.parent
    if inner is None or inner is outer or inner.id is None:
        return inner is outer
    return (inner.trace_id, inner.id) == (outer.trace_id, outer.id)
