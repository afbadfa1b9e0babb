"""Constraints on tool calls, independent of expected calls."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from judgekit.errors import ConfigError, check_choice, count_text, join_limited, truncated, validation_message
from judgekit.score import Score
from judgekit.scorers.agents import agent_rows
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.tool_calls.arguments import ArgMatch, compare_arguments
from judgekit.scorers.tool_calls.calling_behavior import Behavior, ConstraintResult
from judgekit.scorers.tool_calls.matchers import check_matchers
from judgekit.scorers.tool_calls.schemas import schema_problems
from judgekit.scoring import NO_CONVERSATION, compute_score
from judgekit.traces.behavior import agents, calling_agent, canonical_call
from judgekit.traces.message import CALLER_MESSAGES, FrozenModel, JsonObject, Requestor, ToolCall
from judgekit.traces.rendering import compact_json, quoted_name
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import MessageNumber, Scope, branches, conversation_path

_FEW = 500
"""The number of messages times constraints that is checked within 5 ms."""
_AT_LEAST = ArgMatch(mode="at_least")


class Constraint(FrozenModel, ABC):
    """A requirement on a conversation. Tools are named by patterns, in which ``*`` matches any text."""

    @abstractmethod
    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check whether the constraint holds."""

    def __str__(self) -> str:
        """Return the constraint as Python code, with its name in config files: ``count(search, max=3)``."""
        fields = type(self).model_fields
        given: list[str] = []
        for name, field_info in fields.items():
            value = getattr(self, name)
            if value != field_info.default:
                text = quoted_name(value) if isinstance(value, str) else compact_json(value)
                given.append(text if field_info.kw_only is False else f"{name}={text}")
        return f"{fields['type'].default}({', '.join(given)})"


_Args: TypeAlias = Annotated[JsonObject, AfterValidator(check_matchers)]


class Require(Constraint):
    """The tool must be called, with at least these arguments if they are given; their values may be value matchers.

    Unreadable arguments do not match.

    Example:
        ``Require("search", {"query": contains("Paris")})``
    """

    type: Literal["require"] = "require"
    tool: str = Field(kw_only=False)
    args: _Args | None = Field(default=None, kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that a call matches."""
        calls = behavior.calls_of(self.tool)
        for actual in calls:
            if _has(actual.call, self.args):
                return ConstraintResult(holds=True, reason=_place(actual))
        return ConstraintResult(holds=False, reason="not called with these arguments" if calls else "not called")


class Forbid(Constraint):
    """The tool must not be called, or not with at least these arguments; their values may be value matchers.

    Undecided if arguments matter and cannot be read.

    Example:
        ``Forbid("refund", {"amount": between(100, None)})``
    """

    type: Literal["forbid"] = "forbid"
    tool: str = Field(kw_only=False)
    args: _Args | None = Field(default=None, kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that no call matches."""
        calls = behavior.calls_of(self.tool)
        if forbidden := [actual for actual in calls if _has(actual.call, self.args)]:
            return ConstraintResult(holds=False, reason=_joined(map(_place, forbidden)), violations=forbidden)
        if unread := [actual for actual in calls if actual.call.args_error is not None]:
            return ConstraintResult(holds=None, reason=f"unreadable arguments: {_joined(map(_place, unread))}")
        return ConstraintResult(holds=True, reason="not called with these arguments" if calls else "not called")


class Count(Constraint):
    """The tool must be called at least ``min`` times and at most ``max`` times."""

    type: Literal["count"] = "count"
    tool: str = Field(kw_only=False)
    min: int = Field(default=0, ge=0)
    max: int | None = None

    @model_validator(mode="after")
    def _must_bound(self) -> "Count":
        if self.min == 0 and self.max is None:
            raise ValueError("min or max is required")
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max must be at least min, found min={self.min} and max={self.max}")
        return self

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that the number of calls is within bounds."""
        number = len(behavior.calls_of(self.tool))
        holds = self.min <= number and (self.max is None or number <= self.max)
        return ConstraintResult(holds, count_text(number, "call"))


class Before(Constraint):
    """Each call of ``then`` must follow a call of ``first`` in an earlier message.

    Holds if ``then`` is not called. The calls of one message are simultaneous. Undecided if it depends on sub-agents
    that worked in parallel, and the recording does not tell in which order.
    """

    type: Literal["before"] = "before"
    first: str = Field(kw_only=False)
    then: str = Field(kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that no call of ``then`` comes too early."""
        calls = behavior.calls_of(self.then)
        starts = _first_of_each_agent(behavior.calls_of(self.first))
        precedes = behavior.chronology.precedes
        follows = [_any(precedes(start.message, actual.message) for start in starts) for actual in calls]
        if early := [actual for actual, holds in zip(calls, follows, strict=True) if holds is False]:
            reason = f"{_joined(map(_place, early))} without {_name(self.first)} before it"
            return ConstraintResult(holds=False, reason=reason, violations=early)
        if unordered := [actual for actual, holds in zip(calls, follows, strict=True) if holds is None]:
            reason = f"{_joined(map(_place, unordered))}: the recording does not tell whether {_name(self.first)} came before"
            return ConstraintResult(holds=None, reason=reason)
        return ConstraintResult(holds=True, reason=_place(calls[0]) if calls else f"{_name(self.then)} is not called")


class NoRepeat(Constraint):
    """No call may be repeated with equal arguments, unless the previous one is known to have failed (a retry).

    Calls of one message are simultaneous, so none of them is a retry. Unreadable arguments are equal if their text is.
    Each agent is looked at by itself: sub-agents may repeat what others did.
    """

    type: Literal["no_repeat"] = "no_repeat"
    tool: str = Field(default="*", kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that no call is a repeat."""
        before: dict[tuple[str, str], tuple[MessageNumber, bool]] = {}
        repeats: list[ActualCall] = []
        notes: list[str] = []
        for actual, failed in behavior.outcomes_of(self.tool):
            key = conversation_path(actual.message), canonical_call(actual.call)
            message, may_retry = before.get(key, (0, True))
            if message == actual.message or not may_retry:
                repeats.append(actual)
                notes.append(f"{_place(actual)} repeats message {message}")
            if may_retry:
                before[key] = actual.message, failed is True
        return ConstraintResult(not repeats, _joined(notes) or "no repeats", repeats)


class Status(Constraint):
    """The calls of the tool must end with this status; if the pattern matches several tools, those of each of them.

    ``ok``: none failed. ``recovered``: some failed, and the last one did not. ``error``: the last one failed. Undecided
    if the tool is not called, or if the status depends on calls of which it is unknown whether they failed, or on which
    of them was the last, as with sub-agents that worked in parallel.
    """

    type: Literal["status"] = "status"
    tool: str = Field(kw_only=False)
    status: Literal["ok", "error", "recovered"] = Field(kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that the calls of each tool ended with the status."""
        made_by_tool = defaultdict[str, list[tuple[ActualCall, bool | None]]](list)
        for actual, failed in behavior.outcomes_of(self.tool):
            made_by_tool[actual.call.name].append((actual, _not(failed)))
        if not made_by_tool:
            return ConstraintResult(holds=None, reason="not called")
        if self.status != "ok" and (
            unordered := [tool for tool, calls in made_by_tool.items() if not _has_last(behavior, calls)]
        ):
            names = ", ".join(map(_name, unordered))
            return ConstraintResult(None, f"the recording does not tell which call was the last one of {names}")
        outcomes = {tool: [success for _, success in calls] for tool, calls in made_by_tool.items()}
        verdicts = {tool: self._has_status(successes) for tool, successes in outcomes.items()}
        holds = _all(verdicts.values())
        endings = (_ending(tool, outcomes[tool]) for tool, verdict in verdicts.items() if verdict is holds)
        deciding = (
            outcome for calls in made_by_tool.values() for outcome in (calls if self.status == "ok" else calls[-1:])
        )
        violations = [actual for actual, success in deciding if success is (self.status == "error")]
        return ConstraintResult(holds, _joined(endings), violations)

    def _has_status(self, successes: Sequence[bool | None]) -> bool | None:
        if self.status == "ok":
            return _all(successes)
        if self.status == "error":
            return _not(successes[-1])
        return _all([_not(_all(successes[:-1])), successes[-1]])


class MaxSteps(Constraint):
    """The side whose calls are checked must send at most ``n`` messages, with or without calls.

    The agent's side includes its sub-agents.
    """

    type: Literal["max_steps"] = "max_steps"
    n: int = Field(ge=0, kw_only=False)

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that there are no more messages."""
        has_sub_agents = behavior.requestor == "assistant"
        traces = [branch.trace for branch in branches(behavior.trace) if has_sub_agents or not branch.path]
        sent = CALLER_MESSAGES[behavior.requestor]
        steps = sum(isinstance(message, sent) for trace in traces for message in trace.messages)
        return ConstraintResult(steps <= self.n, count_text(steps, "message"))


class SchemaValid(Constraint):
    """The arguments of each call must conform to the tool's JSON Schema in the trace.

    Calls of undefined tools and unreadable arguments violate this. Undecided if the trace defines no tools, or if a
    schema is unusable (`schema_problems`). The calls of a sub-agent are compared with its own tools.
    """

    type: Literal["schema_valid"] = "schema_valid"

    def check(self, behavior: Behavior, /) -> ConstraintResult:
        """Check that no call has a problem."""
        tools = {branch.path: branch.trace.tools for branch in branches(behavior.trace)}
        if not any(tools.values()):
            return ConstraintResult(holds=None, reason="the trace defines no tools")
        problems: list[str] = []
        invalid: list[ActualCall] = []
        undecided: list[str] = []
        for actual in behavior.calls:
            defined = tools[conversation_path(actual.message)]
            try:
                if not defined:
                    raise ValueError("the recording does not define the tools of its agent")
                flaws = [f"{_place(actual)}: {problem}" for problem in schema_problems(actual.call, defined)]
                problems += flaws
                invalid += [actual] if flaws else []
            except ValueError as error:
                undecided.append(f"{_place(actual)}: {error}")
        if problems:
            return ConstraintResult(holds=False, reason=_joined(problems), violations=invalid)
        reason = _joined(undecided) or f"{count_text(len(behavior.calls), 'call')}, all valid"
        return ConstraintResult(None if undecided else True, reason)


_Any: TypeAlias = Require | Forbid | Count | Before | NoRepeat | Status | MaxSteps | SchemaValid
_CONSTRAINTS = TypeAdapter(tuple[Annotated[_Any, Field(discriminator="type")], ...])


@dataclass(frozen=True)
class ToolConstraints(ScopedScorer):
    """1 if all decidable constraints hold, else the share of them that do.

    Constraints need no reference. In a config file, each is a table with its ``type``, such as
    ``{type = "before", first = "verify", then = "refund"}``. Unlike other scorers, this one looks at sub-agents too,
    unless ``scope="own"``: what is forbidden is forbidden to all of them.

    Skipped without a conversation, and if no constraint can be decided. No judge. Details: ``constraints``, each with
    whether it ``holds`` (``null``: undecided) and its ``reason``; ``held`` and ``broken``, the numbers of each. If there
    are several agents, also ``by_agent``: of each, the number of its ``calls``, ``errors`` and ``repeats``, and the
    constraints that its calls ``violated``. `Require`, `Count` and `MaxSteps` are about all agents together.

    Args:
        constraints: The constraints.
        requestor: The side whose calls are checked.
        name: The name of the scores.

    Raises:
        ConfigError: There are no constraints, one is invalid, or the requestor is unknown.

    Example:
        ``ToolConstraints([Require("search"), Before("verify", "refund"), MaxSteps(10)])``
    """

    constraints: Sequence[Constraint]
    requestor: Requestor = "assistant"
    name: str = "tool_constraints"
    scope: Scope = field(default="tree", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("requestor", self.requestor, get_args(Requestor))
        try:
            constraints = _CONSTRAINTS.validate_python(self.constraints)
        except ValidationError as error:
            raise ConfigError(f"constraints: {validation_message(error, self.constraints)}") from error
        if not constraints:
            raise ConfigError("constraints: expected one or more, such as Require('search')")
        object.__setattr__(self, "constraints", constraints)

    async def _score(self, sample: Sample) -> Score:
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        large = len(sample.trace.messages) * len(self.constraints) > _FEW
        return await compute_score(lambda: self._checked(sample.trace), large=large)

    def _checked(self, trace: Trace) -> Score:
        behavior = Behavior(trace, self.requestor)
        verdicts = [(str(constraint), constraint.check(behavior)) for constraint in self.constraints]
        outcomes = [check.holds for _, check in verdicts]
        held, broken, undecided = (outcomes.count(what) for what in (True, False, None))
        notes = [
            f"{constraint}{' is undecided' if check.holds is None else ''}: {check.reason}"
            for constraint, check in sorted(verdicts, key=lambda verdict: verdict[1].holds is None)
            if not check.holds
        ]
        details: dict[str, JsonValue] = {
            "constraints": [
                {"constraint": constraint, "holds": check.holds, "reason": check.reason}
                for constraint, check in verdicts
            ],
            "held": held,
            "broken": broken,
            **_by_agent(behavior, verdicts),
        }
        if undecided == len(verdicts):
            return Score.skipped(self.name, join_limited(notes), details=details)
        reason = join_limited([f"{held} of {held + broken} constraints hold", *notes])
        return Score.scored(self.name, held / (held + broken), reason=reason, details=details)


def _by_agent(behavior: Behavior, verdicts: Sequence[tuple[str, ConstraintResult]]) -> JsonObject:
    """Return the constraints that each agent violated, if there are several agents."""
    if behavior.requestor == "user" or len(agents(behavior.trace)) < 2:
        return {}
    violated = [(name, {*map(calling_agent, check.violations)}) for name, check in verdicts if check.holds is False]
    rows = agent_rows(behavior.trace, behavior.outcomes_of("*")).items()
    by_agent: list[JsonValue] = [
        {**row, "violated": [name for name, agents in violated if agent in agents]} for agent, row in rows
    ]
    return {"by_agent": by_agent}


def _has(call: ToolCall, args: JsonObject | None) -> bool:
    return args is None or compare_arguments(_AT_LEAST, ExpectedCall(call.name, args), call).score == 1


def _first_of_each_agent(calls: Iterable[ActualCall]) -> Sequence[ActualCall]:
    first_calls: dict[str, ActualCall] = {}
    for actual in calls:
        first_calls.setdefault(conversation_path(actual.message), actual)
    return [*first_calls.values()]


def _has_last(behavior: Behavior, calls: Sequence[tuple[ActualCall, bool | None]]) -> bool:
    """Return whether the last of the calls came after all others, or all that may have been the last ended alike."""
    ends = {conversation_path(actual.message): (actual.message, success) for actual, success in calls}
    message, success = ends.pop(conversation_path(calls[-1][0].message))
    return all(success is other or behavior.chronology.precedes(number, message) for number, other in ends.values())


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    """Return the disjunction of the verdicts in three-valued logic."""
    outcomes = set(verdicts)
    return True if True in outcomes else None if None in outcomes else False


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Return the conjunction of the verdicts in three-valued logic."""
    outcomes = set(verdicts)
    return False if False in outcomes else None if None in outcomes else True


def _not(verdict: bool | None) -> bool | None:  # noqa: FBT001 - the only argument
    return None if verdict is None else not verdict


def _name(tool: str) -> str:
    return quoted_name(truncated(tool, 80))


def _place(call: ActualCall) -> str:
    return f"{_name(call.call.name)} in message {call.message}"


def _ending(tool: str, successes: Sequence[bool | None]) -> str:
    parts = [f"{successes.count(False):,} of {count_text(len(successes), 'call')} failed"]
    if unknown := successes.count(None):
        parts.append(f"{unknown} may have failed")
    if len(successes) > 1 and successes[-1] is not None:
        parts.append(f"the last one {'succeeded' if successes[-1] else 'failed'}")
    return f"{_name(tool)}: {', '.join(parts)}"


def _joined(items: Iterable[str], most: int = 3) -> str:
    texts = list(items)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
