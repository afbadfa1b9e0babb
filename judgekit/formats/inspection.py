"""Counts of what is in recordings, shown before anything is scored."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from pydantic_core import to_jsonable_python

from judgekit.errors import TraceError, truncated
from judgekit.traces.ending import missing_answer
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Requestor, ToolMessage, Usage
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import References, Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import branches

_OTHERS = "others"


@dataclass
class WarningCounts:
    """The counts of messages by their text up to "found", with the first place of each."""

    counts: Counter[str] = field(default_factory=Counter[str])
    first_paths: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, message: str, path: str) -> None:
        """Count one message. If there are very many kinds, later kinds are counted together."""
        kind = message.partition(", found ")[0]
        if kind not in self.counts and len(self.counts) >= 200:
            kind = _OTHERS
        self.counts[kind] += 1
        self.first_paths.setdefault(kind, path)


@dataclass
class TokenTotals:
    """Reported token usage, summed. ``reports`` is the number of messages, or traces, that reported any."""

    reports: int = 0
    input: int = 0
    output: int = 0

    def add(self, usage: Usage | None) -> None:
        """Add the usage of a message or trace, if it reports input or output tokens."""
        if usage is not None and not (usage.input_tokens is None and usage.output_tokens is None):
            self.reports += 1
            self.input += usage.input_tokens or 0
            self.output += usage.output_tokens or 0


@dataclass
class Inspection:
    """Counts over samples, whose sub-agents only count as ``children``, and their calls as ``child_calls``. Only the first sample is kept.

    ``calls`` are counted by the side that made them, and ``results`` as ``error``, ``ok``, or ``unknown`` if the format
    cannot tell; ``gave_up`` and ``no_reply`` are the conversations without an answer (see `missing_answer`).
    ``costs`` is the number of traces that report a cost; ``problems`` are the first few errors and notices.
    """

    conversations: int = 0
    children: int = 0
    child_calls: int = 0
    gave_up: int = 0
    no_reply: int = 0
    errors: WarningCounts = field(default_factory=WarningCounts)
    messages: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[Requestor] = field(default_factory=Counter[Requestor])
    unparsable: int = 0
    unanswered_calls: int = 0
    unpaired: int = 0
    results: Counter[str] = field(default_factory=Counter[str])
    references: Counter[str] = field(default_factory=Counter[str])
    labels: WarningCounts = field(default_factory=WarningCounts)
    duplicate_ids: int = 0
    message_usage: TokenTotals = field(default_factory=TokenTotals)
    trace_usage: TokenTotals = field(default_factory=TokenTotals)
    cost_usd: float = 0.0
    costs: int = 0
    warnings: WarningCounts = field(default_factory=WarningCounts)
    unread_records: int = 0
    problem_count: int = 0
    problems: list[TraceError] = field(default_factory=list[TraceError])
    first_sample: Sample | None = None
    _ids: set[str] = field(default_factory=set[str])

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        self.first_sample = self.first_sample or sample
        self.conversations += 1
        self.duplicate_ids += sample.id in self._ids
        self._ids.add(sample.id)
        fields = set(References.__annotations__).difference(("fields", "metadata", "group", "domain"))
        self.references.update(name for name in sorted(fields) if getattr(sample, name) is not None)
        trace = sample.trace
        self._add_messages(trace)
        if (missing := missing_answer(trace)) is not None:
            self.gave_up += missing.gave_up
            self.no_reply += not missing.gave_up
        if trace.error is not None:
            self.errors.add(truncated(trace.error, 200), sample.id)
        for label in trace.labels:
            self.labels.add(label.name, sample.id)
        for branch in islice(branches(trace), 1, None):
            self.children += 1
            replies = (message for message in branch.trace.messages if isinstance(message, AIMessage))
            self.child_calls += sum(len(reply.tool_calls) for reply in replies)
        self.trace_usage.add(trace.usage)
        if trace.cost_usd is not None:
            self.costs += 1
            self.cost_usd += trace.cost_usd
        for warning in trace.warnings:
            where = f" at {warning.path}" if warning.path else ""
            self.warnings.add(warning.message, f"{sample.id}{where}")

    def _add_messages(self, trace: Trace) -> None:
        pairing = pair_results(trace.messages)
        self.unpaired += len(pairing.orphans)
        self.unanswered_calls -= len(pairing.calls)
        for message in trace.messages:
            self.messages[message.role] += 1
            if isinstance(message, AIMessage):
                self.message_usage.add(message.usage)
            if isinstance(message, AIMessage | HumanMessage):
                self.calls["assistant" if isinstance(message, AIMessage) else "user"] += len(message.tool_calls)
                self.unanswered_calls += len(message.tool_calls)
                self.unparsable += sum(call.args_error is not None for call in message.tool_calls)
            elif isinstance(message, ToolMessage):
                self.results["unknown" if message.is_error is None else "error" if message.is_error else "ok"] += 1

    def add_problem(self, problem: TraceError) -> None:
        """Count a record that cannot be read, or a notice about a file."""
        self.problem_count += 1
        self.unread_records += problem.index is not None
        if len(self.problems) < 5:
            self.problems.append(problem)

    def as_json(self) -> JsonObject:
        """Return the counts as JSON, with the id of the first sample."""
        counts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "_ids"}
        first = self.first_sample and self.first_sample.id
        shown: JsonObject = to_jsonable_python(
            {**counts, "problems": [*map(str, self.problems)], "first_sample": first}
        )
        return shown

    def must_have_any(self) -> None:
        """Check that at least one sample was read."""
        if not self.conversations:
            first = f"; first error: {self.problems[0]}" if self.problems else ""
            raise TraceError(f"none of {self.unread_records:,} records could be read{first}")
