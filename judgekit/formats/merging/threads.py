"""Threads of messages that follow one another.

The input of a model call decides which thread of its level it belongs to:

    holds everything said in a thread                       continues it
    holds the last answer of its agent's latest thread,     continues after that answer
    or of the latest of all if the agent is a new one
    shares nothing with it, and began after it had ended    is appended (models with memory, and sessions)
    anything else                                           begins a thread of its own
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from judgekit.formats.merging.comparison import Utterance, call_ids, hashes_of, repeats, split_instructions, utterances
from judgekit.formats.merging.step import Level, Levels, SpanStep
from judgekit.formats.spans import Span
from judgekit.traces.message import AIMessage, Message, SystemMessage, ToolMessage


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
    """The threads of a recording, ordered by start. Steps are added one after the other.

    Attributes:
        possible_repetitions: Model calls that are left out because they repeat an earlier one, but may be other calls.
        unconnected: Model calls that share nothing with what their agent said before.
        repeated_questions: Model calls that begin like an earlier one but lack its answer, which they may follow.
    """

    def __init__(self, levels: Levels) -> None:
        self.threads: list[Thread] = []
        self.possible_repetitions: list[SpanStep] = []
        self.unconnected: list[SpanStep] = []
        self.repeated_questions: list[SpanStep] = []
        self._levels = levels
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
            last = next((index for index in places if repeats(utterances([rest[index]]), before.last)), None)
            if last is not None:
                new = [message for message in systems if thread is None and message.text not in before.instructions]
                self._append(before, step, new, rest[last + 1 :], answered)
                return
        if thread is not None:
            apart = bool(rest) and utterances(rest[:1]) != thread.first
            if apart and step.kind == "model" and not isinstance(rest[0], ToolMessage):
                self.unconnected.append(step)
            if not rest or (apart and _follows(step.span, thread.steps[-1].span)):
                self._append(thread, step, (), rest, answered)
                return
        if before is not None and step.kind == "model" and before.first == utterances(rest[:1]):
            last_message = before.messages[-1]
            called = isinstance(last_message, AIMessage) and bool(last_message.tool_calls)
            if (thread is not None or called) and _follows(step.span, before.steps[-1].span):
                self.repeated_questions.append(step)
        thread = Thread(level, utterances(rest[:1]))
        self.threads.append(thread)
        self._append(thread, step, systems, rest, answered)

    def continue_thread(self, step: SpanStep, answered: Sequence[Message]) -> bool:
        """Return whether a step is done: it adds nothing new, or it was added to the thread that it continues."""
        level, systems, rest = self._levels.level(step), *split_instructions(step.input_messages)
        passed = hashes_of([*rest, *answered])
        if passed and (before := self._passed_hashes.get((level, passed[-1]))) is not None:
            same = _is_around(before[1], step.span) or _is_around(step.span, before[1])
            ids = call_ids(answered)
            if same or ids <= self._call_ids:
                if step.kind == "model" and answered and not ids and not same:
                    self.possible_repetitions.append(step)
                return True
        for count in range(len(rest), 0, -1):
            thread, _ = self._passed_hashes.get((level, passed[count - 1]), (None, None))
            if thread is not None and thread.end_hash == passed[count - 1]:
                new = [message for message in systems if message.text not in thread.instructions]
                self._append(thread, step, new, rest[count:], answered)
                return True
        return False

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
        for end in hashes_of([*rest, *answered], thread.end_hash):
            self._passed_hashes[thread.level, end] = thread, step.span
            thread.end_hash = end
        for message in new:
            if isinstance(message, AIMessage):
                thread.last = utterances([message])
        self._call_ids |= call_ids(new)
        thread.instructions.update(message.text for message in systems)
        thread.messages += new
        thread.steps.append(step)
        self._newest[thread.level] = thread
        for instructions in {"", _joined(split_instructions(step.input_messages)[0])}:
            self._latest[thread.level, name, instructions] = thread


def _joined(systems: Sequence[SystemMessage]) -> str:
    return "\n".join(message.text for message in systems)


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
