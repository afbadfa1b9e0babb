"""Threads of messages that follow one another.

What a model call is asked decides where it belongs, of the threads of its level:

    holds all that was said in a thread                     goes on with it
    holds the last answer of its agent's latest thread      goes on after that
    shares nothing with it, and began when it had ended     is appended (models that remember, and sessions)
    all else                                                begins a thread of its own
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from judgekit.traces.merging.levels import Level, Levels
from judgekit.traces.merging.said import Atom, atoms, call_ids, ends, is_again, parted
from judgekit.traces.merging.step import Step
from judgekit.traces.merging.variants import Variants
from judgekit.traces.message import AIMessage, Message, SystemMessage, ToolMessage
from judgekit.traces.spans import Span


@dataclass(eq=False)
class Thread:
    """Messages that follow one another, and the steps that they come from."""

    level: Level
    first: list[Atom]
    messages: list[Message] = field(default_factory=list[Message])
    steps: list[Step] = field(default_factory=list[Step])
    systems: set[str] = field(default_factory=set[str])
    last: list[Atom] = field(default_factory=list[Atom])
    """The last answer."""
    end: int = 0
    """A hash of all that was said."""


class Threads:
    """The threads that steps make, which are added one after the other.

    Attributes:
        found: The threads, in the order in which they began.
        unsure: Calls of models that say the same as one before, and may have been made for that: they are left out.
        apart: Calls of models that share nothing with what their agent said before.
    """

    def __init__(self, levels: Levels, variants: Variants) -> None:
        self.found: list[Thread] = []
        self.unsure: list[Step] = []
        self.apart: list[Step] = []
        self._levels = levels
        self._variants = variants
        self._passed: dict[tuple[Level, int], tuple[Thread, Span]] = {}
        self._latest: dict[tuple[Level, str | None, str], Thread] = {}
        self._call_ids: set[str] = set()

    def add(self, step: Step, answered: Sequence[Message]) -> None:
        """Adds what a step says to the thread that it belongs to."""
        if not (step.asked or answered) or self.goes_on(step, answered):
            return
        level, systems, rest = self._levels.of(step), *parted(step.asked)
        thread = self._latest.get((level, self._levels.name(step), _joined(systems)))
        if thread is not None:
            places = range(len(rest) - 1, -1, -1) if thread.last else ()
            last = next((place for place in places if is_again(atoms([rest[place]]), thread.last)), None)
            if last is not None:
                self._variants.repeated([*systems, *rest[: last + 1]])
                self._append(thread, step, (), rest[last + 1 :], answered)
                return
            apart = bool(rest) and atoms(rest[:1]) != thread.first
            if apart and step.kind == "model" and not isinstance(rest[0], ToolMessage):
                self.apart.append(step)
            if not rest or (apart and _follows(step.span, thread.steps[-1].span)):
                self._variants.repeated(systems)
                self._append(thread, step, (), rest, answered)
                return
        thread = Thread(level, atoms(rest[:1]))
        self.found.append(thread)
        self._append(thread, step, systems, rest, answered)

    def goes_on(self, step: Step, answered: Sequence[Message]) -> bool:
        """Whether the step has been dealt with: it says nothing new, or goes on with all that was said."""
        level, systems, rest = self._levels.of(step), *parted(step.asked)
        passed = ends([*rest, *answered])
        if passed and (before := self._passed.get((level, passed[-1]))) is not None:
            same = _is_around(before[1], step.span) or _is_around(step.span, before[1])
            ids = call_ids(answered)
            if same or ids <= self._call_ids:
                if step.kind == "model" and answered and not ids and not same:
                    self.unsure.append(step)
                self._variants.repeated([*step.asked, *answered])
                return True
        for count in range(len(rest), 0, -1):
            thread, _ = self._passed.get((level, passed[count - 1]), (None, None))
            if thread is not None and thread.end == passed[count - 1]:
                new = [message for message in systems if message.text not in thread.systems]
                self._variants.repeated([*(message for message in systems if message not in new), *rest[:count]])
                self._append(thread, step, new, rest[count:], answered)
                return True
        return False

    def _append(
        self,
        thread: Thread,
        step: Step,
        systems: Sequence[SystemMessage],
        rest: Sequence[Message],
        answered: Sequence[Message],
    ) -> None:
        moment, name = step.span.ended or step.span.started, self._levels.name(step)
        results = next((place for place, one in enumerate(rest) if not isinstance(one, ToolMessage)), len(rest))
        new = [*rest[:results], *systems, *rest[results:]]
        for message in answered:
            known: dict[str, object] = {"timestamp": message.timestamp or moment}
            if isinstance(message, AIMessage):
                known["agent"] = message.agent or name
            new.append(message.model_copy(update=known))
        for end in ends([*rest, *answered], thread.end):
            self._passed[thread.level, end] = thread, step.span
            thread.end = end
        for message in new:
            self._variants.said(message)
            if isinstance(message, AIMessage):
                thread.last = atoms([message])
        self._call_ids |= call_ids(new)
        thread.systems.update(message.text for message in systems)
        thread.messages += new
        thread.steps.append(step)
        for said in {"", _joined(parted(step.asked)[0])}:
            self._latest[thread.level, name, said] = thread


def _joined(systems: Sequence[SystemMessage]) -> str:
    return "\n".join(message.text for message in systems)


def _follows(span: Span, before: Span) -> bool:
    return before.ended is None or span.started is None or before.ended <= span.started


def _is_around(outer: Span, span: Span) -> bool:
    """Whether a span is the other, or has it within: several tracers may write down one call, or one twice."""
    inner: Span | None = span
    while inner is not None and inner.depth > outer.depth:
        inner = inner.parent
    return inner is outer or (inner is not None and inner.id is not None and _identity(inner) == _identity(outer))


def _identity(span: Span) -> tuple[str | None, str | None]:
    return span.trace_id, span.id
