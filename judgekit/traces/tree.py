"""The tree of a recording: the agent's own conversation, and those of the sub-agents that it started."""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from judgekit.traces.message import Message, ToolCall

if TYPE_CHECKING:
    from judgekit.traces.trace import Trace

Scope: TypeAlias = Literal["own", "tree"]
"""The part of a recording that a scorer looks at: the agent's own conversation, or those of its sub-agents too."""

MessageNumber: TypeAlias = int | str
"""The number of a message: an integer from 1 in the agent's own conversation, and a path in one of a sub-agent.

``4.2.1`` is the first message of the second sub-agent that message 4 started. Where the recording does not say which
call started a sub-agent, its path has a 0 in place of the message's number.
"""


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

    trace: "Trace"
    path: str = ""
    call: ToolCall | None = None
    position: int = 0
    depth: int = 0

    @property
    def agent(self) -> str | None:
        """The name of the agent: as its messages give it, or the recording, or the tool that started it."""
        named = next((message.agent for message in self.trace.messages if message.role == "assistant"), None)
        if named is None and isinstance(recorded := self.trace.metadata.get("agent"), str):
            named = recorded
        return self.call.name if named is None and self.call is not None else named

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls of the agent, in order."""
        return [call for message in self.trace.messages if message.role == "assistant" for call in message.tool_calls]

    def number(self, index: int) -> MessageNumber:
        """Return the number of the message at an index."""
        return f"{self.path}.{index + 1}" if self.path else index + 1

    @cached_property
    def started(self) -> "dict[int, list[Branch]]":
        """The sub-agents by the index of the message that started them, -1 if unknown, in the order of its calls."""
        if not self.trace.children:
            return {}
        calls: dict[str, deque[tuple[int, int, ToolCall]]] = defaultdict(deque)
        for index, message in enumerate(self.trace.messages):
            if message.role == "assistant":
                for position, call in enumerate(message.tool_calls):
                    if call.id is not None:
                        calls[call.id].append((index, position, call))
        linked: list[tuple[int, int, ToolCall | None, Trace]] = []
        for child in self.trace.children:
            same = calls.get(call_id) if isinstance(call_id := child.metadata.get("call_id"), str) else None
            if not same:
                linked.append((-1, 0, None, child))
            else:  # ids repeat in real recordings: then each sub-agent belongs to the next of the calls
                linked.append((*(same.popleft() if len(same) > 1 else same[0]), child))
        found: dict[int, list[Branch]] = {}
        for index, position, caller, child in sorted(linked, key=lambda one: one[:2]):
            there = found.setdefault(index, [])
            path = f"{self.number(index)}.{len(there) + 1}"
            there.append(Branch(child, path, caller, position, self.depth + 1))
        return found


def branches(trace: "Trace") -> Iterator[Branch]:
    """Yield the conversations of a tree: the agent's own, then those of its sub-agents in order, depth first."""
    waiting = [Branch(trace)]
    while waiting:
        yield (one := waiting.pop())
        started = one.started
        waiting += [
            child for index in sorted(started, key=_last_if_unknown, reverse=True) for child in started[index][::-1]
        ]


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


def _last_if_unknown(index: int) -> float:
    return index if index >= 0 else float("inf")


def find_message(trace: "Trace", number: MessageNumber) -> Message | None:
    """Return the message with a number; ``None`` if there is none."""
    if isinstance(number, str) and trace.children:
        found = (one for one in branches(trace) if one.path and number.startswith(f"{one.path}."))
        return next((one.trace.messages[at] for one in found if (at := _index(one, number)) is not None), None)
    if isinstance(number, int) and 1 <= number <= len(trace.messages):
        return trace.messages[number - 1]
    return None


def _index(branch: Branch, number: str) -> int | None:
    last = number.removeprefix(f"{branch.path}.")
    is_there = last.isascii() and last.isdecimal() and 1 <= int(last) <= len(branch.trace.messages)
    return int(last) - 1 if is_there and last[0] != "0" else None
