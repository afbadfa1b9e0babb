"""Which result belongs to which tool call."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from judgekit.traces.message import CALLERS, Message, Requestor, ToolCall, ToolMessage


class Caller(NamedTuple):
    """A call, the index of the message that makes it, its position there, and the index of its turn's first message."""

    message: int
    position: int
    call: ToolCall
    requestor: str
    turn: int


class Pairing(NamedTuple):
    """Keys and orphans are the indices of the results' messages."""

    calls: dict[int, Caller]
    """The call that a result answers."""
    orphans: tuple[int, ...]
    """Results that answer no call."""


def pair_results(messages: Sequence[Message]) -> Pairing:
    """Pairs every tool result with its call.

    A result belongs to the nearest preceding unanswered call with its id, since ids repeat in real recordings. Without
    an id, it answers the first unanswered call of its name within the last turn that called tools; without a name, the
    first unanswered one of that turn. A turn is a run of messages of one side with nothing between them. The user's
    results answer only the user's calls.
    """
    agent, user = _Unanswered("assistant"), _Unanswered("user")
    calls: dict[int, Caller] = {}
    orphans: list[int] = []
    turn = 0
    for index, message in enumerate(messages):
        if index == 0 or messages[index - 1].role != message.role:
            turn = index
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
    """Whether each call of one side failed, in their order; ``None`` where it has no result or the format cannot say."""
    results = {
        (caller.message, caller.position): message.is_error
        for index, caller in pair_results(messages).calls.items()
        if isinstance(message := messages[index], ToolMessage)
    }
    return tuple(
        results.get((index, position))
        for index, message in enumerate(messages)
        if isinstance(message, CALLERS[requestor])
        for position in range(len(message.tool_calls))
    )


class _Unanswered:
    """Calls of one side that wait for their results."""

    def __init__(self, requestor: Requestor) -> None:
        self._requestor = requestor
        self._by_id: dict[str, dict[int, deque[Caller]]] = {}
        """For each id the messages that use it: parallel calls may share one, and are taken in order."""
        self._turn: dict[str | None, deque[Caller]] = {}
        """Those of the last turn: for each name, and all under ``None``."""
        self._began = -1
        self._answered: set[tuple[int, int]] = set()

    def add(self, index: int, calls: Sequence[ToolCall], turn: int) -> None:
        if turn != self._began:
            self._began, self._turn = turn, {}
        for position, call in enumerate(calls):
            caller = Caller(index, position, call, self._requestor, turn)
            if call.id is not None:
                self._by_id.setdefault(call.id, {}).setdefault(index, deque()).append(caller)
            for name in (None, call.name):
                self._turn.setdefault(name, deque()).append(caller)

    def take(self, result: ToolMessage) -> Caller | None:
        if result.tool_call_id is None:
            return self._first(self._turn.get(result.name))
        messages = self._by_id.get(result.tool_call_id)
        while messages:
            nearest = next(reversed(messages))
            if (caller := self._first(messages[nearest])) is not None:
                return caller
            del messages[nearest]
        return None

    def _first(self, waiting: deque[Caller] | None) -> Caller | None:
        while waiting:
            caller = waiting.popleft()
            if (place := (caller.message, caller.position)) not in self._answered:
                self._answered.add(place)
                return caller
        return None
