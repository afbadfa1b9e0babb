"""One conversation out of many spans: model calls repeat their history, tools and agents have spans of their own."""

import json
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue

from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    MediaPart,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from judgekit.traces.pairing import pair_results
from judgekit.traces.spans import Span
from judgekit.traces.trace import Trace

_Atom: TypeAlias = tuple[str, ...]
"""Something said, called or answered, by which messages are compared: a history may divide them in another way."""
_DEEPEST = 20
_MOST_AT_ONCE = 50
_STOP = 40
"""Characters that a stop sequence may have."""


@dataclass(eq=False)
class Step:
    """What one span says of a conversation.

    Attributes:
        span: The span, whose times, parent and error count.
        kind: A call of a model, of a tool, or the run of an agent, in which other steps happen; or none of these.
        agent: The agent that runs.
        asked: The messages that a model or an agent was given; mostly all that came before.
        answered: What came back.
        call: The call that a tool's span is about.
        result: Its result, if the span has it.
    """

    span: Span
    kind: Literal["model", "tool", "agent"] | None = None
    agent: str | None = None
    asked: Sequence[Message] = ()
    answered: Sequence[Message] = ()
    call: ToolCall | None = None
    result: ToolMessage | None = None


def merged(steps: Sequence[Step]) -> dict[str, object]:
    """Fields of a `Trace`: messages, children, times, and in its metadata ``variants``.

    A model call that is asked all that was said before goes on with that conversation; so does one that is asked a part
    of it, if that holds the last answer. What shares nothing with what its agent said before is appended to it (models
    that remember, and sessions); what goes another way is a conversation of its own. The longest one is the trace.
    Others are its children, and so are runs of agents within a call of a tool or within another agent. Spans of tools
    add results and errors that the messages lack, and calls that no message makes, after the answer before them; where
    there are no model calls, all calls and results are made of them.

    Repeated messages are left out. What holds a value that the messages do not have is kept among the variants.

    Args:
        steps: One for each span, in the order in which they began.
    """
    return _Merger(steps).fields()


@dataclass(eq=False)
class _Run:
    """What happens on one level: at the top, within the call of a tool, or within the run of an inner agent."""

    owner: "_Run | None" = None
    tool: Step | None = None
    spoken: bool = False
    """Whether models were called in it."""

    @property
    def depth(self) -> int:
        return 0 if self.owner is None else self.owner.depth + 1


@dataclass(eq=False)
class _Thread:
    """Messages that follow one another."""

    run: _Run
    first: list[_Atom]
    messages: list[Message] = field(default_factory=list[Message])
    systems: set[str] = field(default_factory=set[str])
    last: list[_Atom] = field(default_factory=list[_Atom])
    """The last answer."""
    end: int = 0
    """A hash of all that was said."""
    steps: list[Step] = field(default_factory=list[Step])


@dataclass(eq=False)
class _Place:
    """Where a call stands."""

    thread: int
    message: int
    position: int
    call: ToolCall


class _Merger:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.threads: list[_Thread] = []
        self.variants: list[JsonValue] = []
        self._passed: dict[tuple[_Run | None, int], _Thread] = {}
        self._latest: dict[tuple[_Run, str | None, str], _Thread] = {}
        self._values: set[tuple[str, str]] = set()
        self._seen: set[str] = set()
        self._top = _Run()
        self._runs, self._agents = _levels(steps, self._top)
        self._call_ids: dict[Step | None, str | None] = {}

    def fields(self) -> dict[str, object]:
        models = [step for step in self.steps if step.kind == "model" and (step.asked or step.answered)]
        for step in models:
            self._runs[step].spoken = True
        for step in models:
            self._place(step, step.answered)
        silent: dict[tuple[_Run, Step | None], list[Step]] = defaultdict(list)
        for step in self.steps:
            if step.kind == "tool" and not (run := self._runs[step]).spoken:
                silent[run, self._agents[step]].append(step)
        for step in self.steps:
            if step.kind == "agent":
                run = self._runs[step]
                if not run.spoken:
                    tools = silent.pop((run, step), ())
                    self._place(step, [*(message for tool in tools for message in _exchange(tool)), *step.answered])
                elif not self._goes_on(step, step.answered):
                    self._repeated([*step.asked, *step.answered])
        for (run, _), tools in silent.items():
            if run is self._top:
                self._place(tools[0], [message for tool in tools for message in _exchange(tool)])
        self._complete()
        return {**self._assembled(), "metadata": {"variants": self.variants} if self.variants else {}}

    def _place(self, step: Step, answered: Sequence[Message]) -> None:
        if not (step.asked or answered) or self._goes_on(step, answered):
            return
        run, systems, rest = self._runs[step], *_parted(step.asked)
        thread = self._latest.get((run, self._name(step), _joined(systems)))
        if thread is not None:
            places = range(len(rest) - 1, -1, -1) if thread.last else ()
            said = ((place, _atoms([rest[place]])) for place in places)
            last = next((place for place, atoms in said if _is_again(atoms, thread.last)), None)
            if last is not None:
                self._repeated([*systems, *rest[: last + 1]])
                self._append(thread, step, (), rest[last + 1 :], answered)
                return
            if not rest or _atoms(rest[:1]) != thread.first:
                self._repeated(systems)
                self._append(thread, step, (), rest, answered)
                return
        thread = _Thread(run, _atoms(rest[:1]))
        self.threads.append(thread)
        self._append(thread, step, systems, rest, answered)

    def _goes_on(self, step: Step, answered: Sequence[Message]) -> bool:
        """Whether the step has been dealt with: it says nothing new, or goes on with all that was said."""
        run, systems, rest = self._runs[step], *_parted(step.asked)
        ends = _ends([*rest, *answered])
        if ends and (run, ends[-1]) in self._passed:
            self._repeated([*step.asked, *answered])
            return True
        for count in range(len(rest), 0, -1):
            for level in (run, run.owner):  # an agent to which all was handed over speaks on the level above
                thread = self._passed.get((level, ends[count - 1]))
                if thread is None or thread.end != ends[count - 1]:
                    continue
                new = [message for message in systems if message.text not in thread.systems]
                if thread.last or (level is run and not new):
                    self._repeated([*(message for message in systems if message not in new), *rest[:count]])
                    self._append(thread, step, new, rest[count:], answered)
                    return True
        return False

    def _append(
        self,
        thread: _Thread,
        step: Step,
        systems: Sequence[Message],
        rest: Sequence[Message],
        answered: Sequence[Message],
    ) -> None:
        moment, name = step.span.ended or step.span.started, self._name(step)
        new = [*systems, *rest]
        for message in answered:
            known: dict[str, object] = {"timestamp": message.timestamp or moment}
            if isinstance(message, AIMessage):
                known["agent"] = message.agent or name
            new.append(message.model_copy(update=known))
        thread.systems.update(message.text for message in systems)
        for end in _ends([*rest, *answered], thread.end):
            self._passed[thread.run, end] = thread
            thread.end = end
        for message in new:
            self._values |= _values(_dumped(message))
            if isinstance(message, AIMessage):
                thread.last = _atoms([message])
        thread.messages += new
        thread.steps.append(step)
        for said in {"", _joined(_parted(step.asked)[0])}:
            self._latest[thread.run, name, said] = thread

    def _name(self, step: Step) -> str | None:
        return step.agent or (within.agent if (within := self._agents[step]) else None)

    def _repeated(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._keep(_dumped(message))

    def _keep(self, found: JsonObject) -> None:
        """Keeps what holds a value that nothing else has."""
        text = json.dumps(found, sort_keys=True)
        if text not in self._seen:
            self._seen.add(text)
            if not (values := _values(found)) <= self._values:
                self._values |= values
                self.variants.append(found)

    def _complete(self) -> None:
        """Adds what only the spans of tools know."""
        queues: dict[tuple[_Run | None, str, str], deque[_Place]] = defaultdict(deque)
        results: dict[tuple[int, int, int], int] = {}
        for number, thread in enumerate(self.threads):
            for index, caller in pair_results(thread.messages).calls.items():
                results[number, caller.message, caller.position] = index
            for index, message in enumerate(thread.messages):
                for position, call in enumerate(message.tool_calls if isinstance(message, AIMessage) else ()):
                    standing = _Place(number, index, position, call)
                    for level, name in product((thread.run, None), (*_names(call), *_called(call))):
                        queues[level, *name].append(standing)
        taken: set[_Place] = set()
        changed: dict[tuple[int, int], list[ToolMessage]] = defaultdict(list)
        tools = [(step, step.call) for step in self.steps if step.kind == "tool" and step.call is not None]
        found: dict[Step, _Place] = {}
        for reach, names in ((0, _names), (0, _called), (1, _names), (2, _names)):
            for step, call in tools:
                run = self._runs[step]
                level = (run, run.owner, None)[reach]
                queued = (queues[level, *name] for name in names(call) if step not in found)
                place = next((place for queue in queued if (place := _next(queue, taken))), None)
                if place is not None:
                    taken.add(place)
                    found[step] = place
        for step, place in found.items():
            self._call_ids[step] = place.call.id
            answer = results.get((place.thread, place.message, place.position))
            message = self.threads[place.thread].messages[place.message if answer is None else answer]
            if isinstance(message, ToolMessage) and step.span.error is not None:
                changed[place.thread, answer or 0] = [message.model_copy(update={"is_error": True})]
            elif answer is None and (result := _result(step, place.call)) is not None:
                self._values |= _values(_dumped(result))
                changed[place.thread, place.message].append(result)
            self._keep(_recorded(step))
        for number, thread in enumerate(self.threads):
            thread.messages = [
                one
                for index, message in enumerate(thread.messages)
                for one in _completed(message, changed[number, index])
            ]
        self._insert([step for step, _ in tools if step not in found])

    def _insert(self, tools: Sequence[Step]) -> None:
        """Puts calls that no message makes where they happened: code that a model wrote calls tools, and so do programs."""
        answers: dict[_Run, list[tuple[float, int, int]]] = defaultdict(list)
        for number, thread in enumerate(self.threads):
            for index, message in enumerate(thread.messages):
                if isinstance(message, AIMessage) and message.timestamp is not None and message.timestamp.tzinfo:
                    answers[thread.run].append((message.timestamp.timestamp(), number, index))
        for known in answers.values():
            known.sort()
        inserted: dict[tuple[int, int], list[Step]] = defaultdict(list)
        for step in tools:
            known = answers[self._runs[step]]
            started = step.span.started
            before = bisect_right(known, (started.timestamp(), len(self.threads), 0)) if started else 0
            if before:
                inserted[known[before - 1][1:]].append(step)
            else:
                self._keep(_recorded(step))
        for (number, index), steps in sorted(inserted.items(), reverse=True):
            messages = self.threads[number].messages
            calls = [step.call for step in steps if step.call is not None]
            results = [result for step in steps if step.call and (result := _result(step, step.call)) is not None]
            end = index + 1
            while end < len(messages) and isinstance(messages[end], ToolMessage):
                end += 1
            answer = messages[index]
            if end == index + 1 and isinstance(answer, AIMessage):
                messages[index] = answer.model_copy(update={"tool_calls": (*answer.tool_calls, *calls)})
                messages[end:end] = results
            else:
                call = AIMessage(tool_calls=calls, agent=self._name(steps[0]), timestamp=steps[0].span.started)
                messages[end:end] = [call, *results]

    def _assembled(self) -> dict[str, object]:
        threads: dict[_Run, list[_Thread]] = defaultdict(list)
        for thread in self.threads:
            threads[thread.run].append(thread)
        known = dict.fromkeys((*self._runs.values(), *(thread.run for thread in self.threads), self._top))
        runs = sorted(_with_owners(known), key=lambda run: run.depth, reverse=True)
        inner: dict[_Run, list[Trace]] = defaultdict(list)
        for run in runs:
            if not (own := threads[run]):
                if run.owner is not None:
                    inner[run.owner] += inner.pop(run, [])
                continue
            main = max(reversed(own), key=lambda thread: len(thread.messages))
            others = [self._child(thread) for thread in own if thread is not main]
            children = [*others, *inner.pop(run, [])]
            if run.owner is None:
                return _fields(main) | {"children": children}
            inner[run.owner].append(self._child(main, children, self._call_ids.get(run.tool)))
        children = inner[self._top]
        if not children:
            return {"messages": []}
        longest = max(reversed(children), key=lambda trace: len(trace.messages))
        others = [*longest.children, *(child for child in children if child is not longest)]
        return {
            "messages": longest.messages,
            "started_at": longest.started_at,
            "ended_at": longest.ended_at,
            "children": others,
        }

    def _child(self, thread: _Thread, children: Sequence[Trace] = (), call_id: str | None = None) -> Trace:
        first = thread.steps[0]
        agent = first if first.kind == "agent" else self._agents[first]
        known = {
            "id": (agent or first).span.id,
            "children": children,
            "metadata": {"call_id": call_id} if call_id else {},
        }
        return Trace.model_validate(_fields(thread) | known)


def _with_owners(runs: Iterable[_Run]) -> list[_Run]:
    found: dict[_Run, None] = {}
    for run in runs:
        owner: _Run | None = run
        while owner is not None and owner not in found:
            found[owner] = None
            owner = owner.owner
    return list(found)


def _fields(thread: _Thread) -> dict[str, object]:
    spans = [step.span for step in thread.steps]
    return {
        "messages": thread.messages,
        "started_at": min((span.started for span in spans if span.started), default=None),
        "ended_at": max((span.ended for span in spans if span.ended), default=None),
    }


def _levels(steps: Sequence[Step], top: _Run) -> tuple[dict[Step, _Run], dict[Step, Step | None]]:
    """The run in which each step happens, and the agent that runs there, if one is known."""
    by_span = {id(step.span): step for step in steps}
    outermost: dict[Step, Step | None] = {}
    agents: dict[Step, Step | None] = {}
    downwards = sorted(steps, key=lambda step: step.span.depth)
    for step in downwards:
        above = by_span.get(id(step.span.parent))
        acts = step if step.kind in ("agent", "tool") else None
        outermost[step] = acts if above is None else outermost[above] or acts
        agents[step] = None if above is None else above if above.kind == "agent" else agents[above]
    around = _around(steps, outermost)
    order = {step: number for number, step in enumerate(steps)}
    downwards.sort(key=lambda step: -1 if (acts := outermost[step]) is None else order[acts])
    runs: dict[Step, _Run] = {}
    inside: dict[Step, _Run] = {}
    of_agents: dict[int, _Run] = {}
    for step in downwards:
        above = by_span.get(id(step.span.parent))
        run = top if above is None else inside[above]
        if id(step.span) in of_agents:  # it says the same in several ways
            run = of_agents[id(step.span)]
        elif step.kind == "agent":
            calls = [call for call in around.get(step, ()) if call in inside]
            agent = agents[step]
            if len(calls) == 1:
                run = inside[calls[0]]
            elif calls:
                run = _within(runs[calls[-1]])
            elif agent is not None and agent.agent != step.agent and run is runs[agent]:
                run = _within(run)
            of_agents[id(step.span)] = run
        runs[step] = run
        inside[step] = _within(run, step) if step.kind == "tool" else run
    return runs, agents


def _within(run: _Run, tool: Step | None = None) -> _Run:
    return _Run(run, tool) if run.depth < _DEEPEST else run


def _around(steps: Sequence[Step], outermost: dict[Step, Step | None]) -> dict[Step, list[Step]]:
    """The calls of tools during which an agent ran that has no other place: some tracers hang all agents up at the root."""
    calls: list[Step] = []
    around: dict[Step, list[Step]] = {}
    for step in steps:
        if step.kind == "tool":
            calls.append(step)
        elif step.kind == "agent" and outermost[step] is step:
            calls = [call for call in calls[-_MOST_AT_ONCE:] if _lasts(call.span, step.span.started)]
            around[step] = [call for call in calls if _lasts(call.span, step.span.ended) and _same_trace(call, step)]
    return around


def _lasts(span: Span, moment: datetime | None) -> bool:
    return span.ended is not None and moment is not None and span.ended >= moment


def _same_trace(one: Step, other: Step) -> bool:
    return one.span.trace_id == other.span.trace_id


def _parted(messages: Sequence[Message]) -> tuple[list[SystemMessage], list[Message]]:
    """The instructions at the beginning, and the rest."""
    systems: list[SystemMessage] = []
    for message in messages:
        if not isinstance(message, SystemMessage):
            break
        systems.append(message)
    return systems, list(messages[len(systems) :])


def _joined(systems: Iterable[SystemMessage]) -> str:
    return "\n".join(message.text for message in systems)


def _atoms(messages: Iterable[Message]) -> list[_Atom]:
    """What messages say, but for reasoning, which a history may leave out, and for spaces."""
    atoms: list[_Atom] = []
    for message in messages:
        text = " ".join(message.text.split())
        parts = () if isinstance(message.content, str) else message.content
        media = [part.url or part.data or "" for part in parts if isinstance(part, MediaPart)]
        calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
        if text or media or not calls:
            atoms.append((message.role, text, *media))
        atoms += [("call", *_signature(call)) for call in calls]
    return atoms


def _is_again(atoms: Sequence[_Atom], last: Sequence[_Atom]) -> bool:
    """Whether this was said last. A history may put back the stop sequence at which the answer was cut off."""
    if atoms == last or len(atoms) != 1 or len(last) != 1:
        return atoms == last
    (role, text, *_), (other, said, *_) = *atoms, *last
    return role == other == "assistant" and 0 < len(said) < len(text) <= len(said) + _STOP and text.startswith(said)


def _ends(messages: Sequence[Message], end: int = 0) -> list[int]:
    """A hash of all that was said, after each message."""
    ends: list[int] = []
    for message in messages:
        for atom in _atoms([message]):
            end = hash((end, atom))
        ends.append(end)
    return ends


def _signature(call: ToolCall) -> tuple[str, str]:
    return call.name, call.args_raw if call.args_error and call.args_raw else json.dumps(call.args, sort_keys=True)


def _names(call: ToolCall) -> list[tuple[str, str]]:
    """By what a call is found again: its id, or else its name and arguments."""
    return ([("", call.id)] if call.id is not None else []) + [_signature(call)]


def _called(call: ToolCall) -> list[tuple[str, str]]:
    """By its name alone: a tracer may write arguments in a way of its own."""
    return [(call.name, "")]


def _next(queue: deque[_Place], taken: set[_Place]) -> _Place | None:
    while queue:
        if (place := queue.popleft()) not in taken:
            return place
    return None


def _exchange(tool: Step) -> list[Message]:
    if tool.call is None:
        return []
    call = AIMessage(tool_calls=[tool.call], timestamp=tool.span.started)
    return [call] if (result := _result(tool, tool.call)) is None else [call, result]


def _result(tool: Step, call: ToolCall) -> ToolMessage | None:
    """The result that a tool's span knows of; the text of an error if there is no other."""
    error = tool.span.error
    if tool.result is None and error is None:
        return None
    result = tool.result or ToolMessage(error or "")
    known: dict[str, object] = {
        "tool_call_id": call.id,
        "name": result.name or call.name,
        "timestamp": result.timestamp or tool.span.ended,
        "is_error": True if error is not None else result.is_error,
    }
    return result.model_copy(update=known)


def _completed(message: Message, found: list[ToolMessage]) -> list[Message]:
    return [*found[-1:]] if found and isinstance(message, ToolMessage) else [message, *found]


def _recorded(tool: Step) -> JsonObject:
    values = {"call": tool.call, "result": tool.result}
    return {name: _dumped(value) for name, value in values.items() if value is not None}


def _dumped(value: Message | ToolCall) -> JsonObject:
    return cast("JsonObject", value.model_dump(mode="json", exclude_defaults=True))


def _values(value: JsonValue, name: str = "") -> set[tuple[str, str]]:
    """Every scalar with the name of its field."""
    found: set[tuple[str, str]] = set()
    pending = [(name, value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name, item) for item in value]
        elif value is not None:
            found.add((name, repr(value)))
    return found
