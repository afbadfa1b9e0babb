"""Which result belongs to which tool call."""

from collections.abc import Sequence
from typing import NamedTuple

from judgekit.traces.message import CALLERS, AIMessage, HumanMessage, Message, Requestor, ToolCall, ToolMessage


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
    unanswered: list[Caller] = []
    last_turns: dict[str, int] = {}
    calls: dict[int, Caller] = {}
    orphans: list[int] = []
    turn = 0
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage | HumanMessage):
            requestor = "assistant" if isinstance(message, AIMessage) else "user"
            if index == 0 or messages[index - 1].role != message.role:
                turn = index
            unanswered.extend(
                Caller(index, position, call, requestor, turn) for position, call in enumerate(message.tool_calls)
            )
            if message.tool_calls:
                last_turns[requestor] = turn
        elif isinstance(message, ToolMessage):
            own = [one for one in unanswered if one.requestor == message.requestor]
            match = _find(message, own, last_turns.get(message.requestor))
            if match is None:
                orphans.append(index)
            else:
                unanswered = [one for one in unanswered if one is not match]
                calls[index] = match
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


def _find(result: ToolMessage, unanswered: Sequence[Caller], last_turn: int | None) -> Caller | None:
    if result.tool_call_id is not None:
        same_id = [one for one in unanswered if one.call.id == result.tool_call_id]
        # Parallel calls may share one id too; within one message they are answered in order.
        return next((one for one in same_id if one.message == same_id[-1].message), None)
    turn = [one for one in unanswered if one.turn == last_turn]
    return next((one for one in turn if result.name in (None, one.call.name)), None)
