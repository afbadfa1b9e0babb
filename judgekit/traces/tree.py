"""The tree of a recording: the agent's own conversation, and those of the sub-agents that it started."""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from judgekit.traces.message import AIMessage, Message, ToolCall
from judgekit.traces.recording import Recording

Scope: TypeAlias = Literal["own", "tree"]
"""The part of a recording that a scorer looks at: the agent's own conversation, or those of its sub-agents too."""

MessageNumber: TypeAlias = int | str
"""The number of a message: an integer from 1 in the agent's own conversation, and a path in one of a sub-agent.

``4.2.1`` is the first message of the second sub-agent that message 4 started. Where the recording does not say which
call started a sub-agent, its path has a 0 in place of the message's number.
"""


_NUMBER = re.compile(r"[1-9][0-9]{0,9}")


def conversation_path(number: MessageNumber) -> str:
    """Return the path of the sub-agent whose message has a number; empty for the agent itself."""
    return "" if isinstance(number, int) else number.rpartition(".")[0]


@dataclass(frozen=True)
class Branch:
    """A conversation of a tree, with its place there.

    Attributes:
        trace: The conversation, with those of its sub-agents.
        path: The path of the sub-agent, such as ``4.2``; empty for the conversation of the agent itself.
        call: The call that started the sub-agent; ``None`` if it is unknown, and for the agent itself.
        position: The position of this call among those of its message, from 0.
        depth: The number of agents above it.
    """

    trace: Recording
    path: str = ""
    call: ToolCall | None = None
    position: int = 0
    depth: int = 0

    @cached_property
    def agent(self) -> str | None:
        """The name of the agent: the first that its messages give, or that of the recording, or the tool that started it."""
        agents = (message.agent for message in self.trace.messages if message.role == "assistant")
        named = next(filter(None, agents), None)
        if named is None and isinstance(recorded := self.trace.metadata.get("agent"), str):
            named = recorded
        return self.call.name if named is None and self.call is not None else named

    def speaker(self, message: AIMessage) -> str | None:
        """Return the name of the agent that a message is from; ``None`` if unknown.

        Messages of a sub-agent without a name are of the agent that the conversation is named after.
        """
        return self.agent if message.agent is None and self.path else message.agent

    def number(self, index: int) -> MessageNumber:
        """Return the number of the message at an index."""
        return f"{self.path}.{index + 1}" if self.path else index + 1

    @cached_property
    def started(self) -> "dict[int, list[Branch]]":
        """The sub-agents by the index of the message that started them, in order; those of unknown messages last, by -1."""
        if not self.trace.children:
            return {}
        calls: dict[str, deque[tuple[int, int, ToolCall]]] = defaultdict(deque)
        for index, message in enumerate(self.trace.messages):
            if message.role == "assistant":
                for position, call in enumerate(message.tool_calls):
                    if call.id is not None:
                        calls[call.id].append((index, position, call))
        linked: list[tuple[int, int, ToolCall | None, Recording]] = []
        for child in self.trace.children:
            same = calls.get(call_id) if isinstance(call_id := child.metadata.get("call_id"), str) else None
            if not same:
                linked.append((-1, 0, None, child))
            else:  # ids repeat in real recordings: then each sub-agent belongs to the next of the calls
                linked.append((*(same.popleft() if len(same) > 1 else same[0]), child))
        started: dict[int, list[Branch]] = {}
        for index, position, caller, child in sorted(linked, key=lambda link: (link[0] < 0, *link[:2])):
            siblings = started.setdefault(index, [])
            path = f"{self.number(index)}.{len(siblings) + 1}"
            siblings.append(Branch(child, path, caller, position, self.depth + 1))
        return started


def branches(trace: Recording) -> Iterator[Branch]:
    """Yield the conversations of a tree: the agent's own, then those of its sub-agents in order, depth first."""
    waiting = [Branch(trace)]
    while waiting:
        yield (branch := waiting.pop())
        waiting += [child for children in branch.started.values() for child in children][::-1]


def walk_messages(branch: Branch) -> Iterator[tuple[Branch, int]]:
    """Yield the place of each message of a tree, in the order of `Trace.render`: its conversation and its index there.

    The messages of a sub-agent come behind the message that started it, or at the end if that is unknown.
    """
    started = branch.started
    for index in range(len(branch.trace.messages)):
        yield branch, index
        for child in started.get(index, ()):
            yield from walk_messages(child)
    for child in started.get(-1, ()):
        yield from walk_messages(child)


class Chronology:
    """The order of the messages of a tree, as far as the recording tells it."""

    def __init__(self, trace: Recording) -> None:
        self._branches = {branch.path: branch for branch in branches(trace)}

    def precedes(self, message: MessageNumber, other: MessageNumber) -> bool | None:
        """Return whether a message comes before another one; ``None`` if it is unknown.

        Messages of an agent are in order, and a sub-agent comes behind the message that started it and before the next
        one. Sub-agents that the same message started, or an unknown one, are in the order of their times: one comes
        before another if it ends before that starts.
        """
        if isinstance(message, int) and isinstance(other, int):
            return message < other
        first, second = str(message).split("."), str(other).split(".")
        for at, (left, right) in enumerate(zip(first, second, strict=False)):
            if left != right:
                if at % 2 == 0 and "0" not in (left, right):
                    return int(left) < int(right)
                end = at + 2 - at % 2  # of the sub-agents that differ, or of a message next to one
                return _ends_before(self._times(first[:end]), self._times(second[:end]))
        return len(first) < len(second)

    def _times(self, path: Sequence[str]) -> "_Times":
        """Return the times of the sub-agent with a path, or of the message with a number."""
        if (branch := self._branches.get(".".join(path))) is not None:
            trace = branch.trace
            stamps = [message.timestamp for message in trace.messages if message.timestamp is not None]
            first, last = (stamps[0], stamps[-1]) if stamps else (None, None)
            return trace.started_at or first, trace.ended_at or last
        parent = self._branches[".".join(path[:-1])].trace if len(path) > 1 else self._branches[""].trace
        stamp = parent.messages[int(path[-1]) - 1].timestamp
        return stamp, stamp


_Times: TypeAlias = "tuple[datetime | None, datetime | None]"


def _ends_before(times: _Times, others: _Times) -> bool | None:
    (start, end), (other_start, other_end) = times, others
    with suppress(TypeError):  # only one of the times has a time zone
        if end is not None and other_start is not None and end <= other_start:
            return True
        if other_end is not None and start is not None and other_end <= start:
            return False
    return None


def find_message(trace: Recording, number: MessageNumber) -> Message | None:
    """Return the message with a number; ``None`` if there is none."""
    messages: Sequence[Message] = trace.messages
    if isinstance(number, str):
        path, _, last = number.rpartition(".")
        messages = next((branch.trace.messages for branch in branches(trace) if path and branch.path == path), ())
        number = int(last) if _NUMBER.fullmatch(last) else 0
    return messages[number - 1] if 1 <= number <= len(messages) else None
