"""What is in recordings, counted: what a look at a file says before anything is scored."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from judgekit.errors import TraceError
from judgekit.traces.message import AIMessage, HumanMessage, Requestor, ToolMessage, Usage
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace

_KINDS_COUNTED = 200
_PROBLEMS_KEPT = 5
_OTHERS = "others"
_NO_REFERENCES = ("fields", "metadata", "group", "domain")


@dataclass
class Grouped:
    """Things that were said, by their words up to what was found, with how often and where first."""

    counts: Counter[str] = field(default_factory=Counter[str])
    first: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, said: str, where: str) -> None:
        """Counts one. Where there are very many kinds, the later ones are counted together."""
        kind = said.partition(", found ")[0]
        if kind not in self.counts and len(self.counts) >= _KINDS_COUNTED:
            kind = _OTHERS
        self.counts[kind] += 1
        self.first.setdefault(kind, where)


@dataclass
class Tokens:
    """Usage as it was reported, summed; ``reports`` is by how many messages, or traces."""

    reports: int = 0
    input: int = 0
    output: int = 0

    def add(self, usage: Usage | None) -> None:
        """Counts what a message, or a trace, says of its usage, if it says either number."""
        if usage is not None and not (usage.input_tokens is None and usage.output_tokens is None):
            self.reports += 1
            self.input += usage.input_tokens or 0
            self.output += usage.output_tokens or 0


@dataclass
class Inspection:
    """Counts over samples, of which only the first is kept.

    Attributes:
        conversations: Samples that were read.
        children: Traces of sub-agents, which are not counted otherwise.
        messages: By role.
        calls: By who made them.
        unparsable: Calls whose arguments are no JSON object.
        unanswered: Calls without a result.
        unpaired: Results that answer no call.
        results: By what is known of them: ``error``, ``ok`` or ``unknown``, where the format cannot say.
        references: Samples that have each of these fields.
        labels: Verdicts that came along, by name.
        repeats: Samples that share their id with one before.
        message_usage: What messages say that they took.
        trace_usage: What traces say of themselves as a whole.
        cost_usd: The costs that were reported, of so many traces as ``costs`` says.
        warnings: What could not be taken over as it stood.
        unread: Records that could not be read.
        told: What was told while reading, of which the first few ``problems`` are kept.
        first: The first sample.
    """

    conversations: int = 0
    children: int = 0
    messages: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[Requestor] = field(default_factory=Counter[Requestor])
    unparsable: int = 0
    unanswered: int = 0
    unpaired: int = 0
    results: Counter[str] = field(default_factory=Counter[str])
    references: Counter[str] = field(default_factory=Counter[str])
    labels: Grouped = field(default_factory=Grouped)
    repeats: int = 0
    message_usage: Tokens = field(default_factory=Tokens)
    trace_usage: Tokens = field(default_factory=Tokens)
    cost_usd: float = 0.0
    costs: int = 0
    warnings: Grouped = field(default_factory=Grouped)
    unread: int = 0
    told: int = 0
    problems: list[TraceError] = field(default_factory=list[TraceError])
    first: Sample | None = None
    _ids: set[str] = field(default_factory=set[str])

    def add(self, sample: Sample) -> None:
        """Counts one sample."""
        self.first = self.first or sample
        self.conversations += 1
        self.repeats += sample.id in self._ids
        self._ids.add(sample.id)
        known = set(References.__annotations__).difference(_NO_REFERENCES)
        self.references.update(name for name in sorted(known) if getattr(sample, name) is not None)
        trace = sample.trace
        self._add_messages(trace)
        for label in trace.labels:
            self.labels.add(label.name, sample.id)
        self.children += _count(trace.children)
        self.trace_usage.add(trace.usage)
        if trace.cost_usd is not None:
            self.costs += 1
            self.cost_usd += trace.cost_usd
        for warning in trace.warnings:
            where = f" at {warning.where}" if warning.where else ""
            self.warnings.add(warning.found, f"{sample.id}{where}")

    def _add_messages(self, trace: Trace) -> None:
        pairing = pair_results(trace.messages)
        self.unpaired += len(pairing.orphans)
        self.unanswered -= len(pairing.calls)
        for message in trace.messages:
            self.messages[message.role] += 1
            if isinstance(message, AIMessage):
                self.message_usage.add(message.usage)
            if isinstance(message, AIMessage | HumanMessage):
                self.calls["assistant" if isinstance(message, AIMessage) else "user"] += len(message.tool_calls)
                self.unanswered += len(message.tool_calls)
                self.unparsable += sum(call.args_error is not None for call in message.tool_calls)
            elif isinstance(message, ToolMessage):
                self.results["unknown" if message.is_error is None else "error" if message.is_error else "ok"] += 1

    def add_problem(self, problem: TraceError) -> None:
        """Counts what could not be read, or is told of a file."""
        self.told += 1
        self.unread += problem.index is not None
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(problem)

    def must_have_any(self) -> None:
        """Checks that there was something to count.

        Raises:
            TraceError: No record could be read.
        """
        if not self.conversations:
            first = f"; the first: {self.problems[0]}" if self.problems else ""
            raise TraceError(f"none of {self.unread:,} records could be read{first}")


def _count(children: Iterable[Trace]) -> int:
    return sum(1 + _count(child.children) for child in children)
