"""Pairing of tool results with tool calls."""

from collections.abc import Sequence
from typing import NamedTuple

from judgekit.traces.message import CALLER_MESSAGES, Message, Requestor, ToolCall, ToolMessage


class PairedCall(NamedTuple):
    """A call with the index of its message, and its position in it."""

    message: int
    position: int
    call: ToolCall


class Pairing(NamedTuple):
    """The pairing of results with calls. Keys and orphans are indices of the results' messages."""

    calls: dict[int, PairedCall]
    """The call that each result answers."""
    orphans: tuple[int, ...]
    """The results that answer no call."""


def pair_results(messages: Sequence[Message]) -> Pairing:
    """Return the call that each tool result answers.

    A result belongs to the nearest preceding unanswered call with its id, because ids repeat in real recordings.
    Without an id, it answers the first unanswered call with its name in the last turn that called tools; without a
    name, the first unanswered call of that turn. A turn is an uninterrupted series of messages from one side. Results
    for the user only answer the user's calls.
    """
    agent, user = _Unanswered(), _Unanswered()
    calls: dict[int, PairedCall] = {}
    orphans: list[int] = []
    turn = 0
    role: str | None = None
    for index, message in enumerate(messages):
        if message.role != role:
            turn, role = index, message.role
        if message.role == "assistant":
            if message.tool_calls:
                agent.add(index, message.tool_calls, turn)
        elif message.role == "user":
            if message.tool_calls:
                user.add(index, message.tool_calls, turn)
        elif message.role == "tool":
            answered = (agent if message.requestor == "assistant" else user).take(message)
            if answered is None:
                orphans.append(index)
            else:
                calls[index] = answered
    return Pairing(calls, tuple(orphans))


def call_errors(messages: Sequence[Message], requestor: Requestor) -> tuple[bool | None, ...]:
    """Return whether each call of one side failed, in order; ``None`` without a result or if the format cannot say."""
    results = {
        (caller.message, caller.position): message.is_error
        for index, caller in pair_results(messages).calls.items()
        if isinstance(message := messages[index], ToolMessage)
    }
    return tuple(
        results.get((index, position))
        for index, message in enumerate(messages)
        if isinstance(message, CALLER_MESSAGES[requestor])
        for position in range(len(message.tool_calls))
    )


class _Unanswered:
    """The calls of one side that have no result yet."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[PairedCall]] = {}
        """The calls by id, the next one to be answered last: parallel calls may share an id, and are answered in order."""
        self._turn: list[PairedCall] = []
        self._named: dict[str | None, list[PairedCall]] = {}
        """The calls of the last turn by name, and all of them under ``None``; only made for results without an id."""
        self._began = -1
        self._answered: set[tuple[int, int]] = set()

    def add(self, index: int, calls: Sequence[ToolCall], turn: int) -> None:
        if turn != self._began:
            self._began, self._turn, self._named = turn, [], {}
        callers = [PairedCall(index, position, call) for position, call in enumerate(calls)]
        self._turn += callers
        for caller in reversed(callers):
            if caller.call.id is not None:
                self._by_id.setdefault(caller.call.id, []).append(caller)

    def take(self, result: ToolMessage) -> PairedCall | None:
        if result.tool_call_id is None:
            if not self._named:
                for paired in reversed(self._turn):
                    for name in (None, paired.call.name):
                        self._named.setdefault(name, []).append(paired)
            return self._last(self._named.get(result.name))
        return self._last(self._by_id.get(result.tool_call_id))

    def _last(self, waiting: list[PairedCall] | None) -> PairedCall | None:
        while waiting:
            caller = waiting.pop()
            if (key := (caller.message, caller.position)) not in self._answered:
                self._answered.add(key)
                return caller
        return None
