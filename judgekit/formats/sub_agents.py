"""The tree of the sub-agents that coding agents record one by one: the call that started each, and its parent."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from judgekit.errors import join_limited
from judgekit.formats.readers.base import unpaired_warnings
from judgekit.traces.message import AIMessage, JsonObject, Message, ToolCall
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import UNREAD_SUB_AGENTS, TraceWarning
from judgekit.traces.trace import Trace

_PROMPTS = ("prompt", "message")
_KINDS = ("subagent_type", "agent_type")
"""The arguments of calls that hold the task of a sub-agent, and that name its kind."""


class _Caller(NamedTuple):
    """A call that started a sub-agent, and the sub-agent that made it; ``None`` for the session itself."""

    parent: str | None
    call: ToolCall


class SubAgents:
    """The sub-agents of a session, as a tree below the session's own conversation.

    Args:
        messages: The messages of the session itself.
        agents: The fields of the trace of each sub-agent, by its name.
        calls: The ids of the calls that may have started each sub-agent, the most likely ones first. There may be names
            of sub-agents whose conversations were not recorded.
        tools: The names of tools of which each call starts a sub-agent, unless it fails.
        files: The files that the sub-agents are from, by their names, for warnings.
        parents: The parents that are known of sub-agents, by their names: other sub-agents, or ``None`` for the session.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        agents: Mapping[str, Mapping[str, object]],
        calls: Mapping[str, Sequence[str]],
        tools: Collection[str] = (),
        files: Mapping[str, str] | None = None,
        parents: Mapping[str, str | None] | None = None,
    ) -> None:
        self._agents = agents
        self._parents = parents or {}
        self._files = files or {}
        self._calls = calls
        self._tools = tools
        self._chats: dict[str | None, Sequence[Message]] = {None: messages}
        self._chats |= {name: cast("Sequence[Message]", fields["messages"]) for name, fields in agents.items()}
        self._callers: dict[str, _Caller] = {}
        self._link_by_id()
        self._link_by_prompt()
        self._below: dict[str | None, list[str]] = defaultdict(list)
        self._unattached: list[str] = []
        self._nest()

    def traces(self, parent: str | None = None) -> list[Trace]:
        """Return the traces of the sub-agents that the session or another sub-agent started."""
        return [self._trace(name) for name in self._below[parent]]

    def warnings(self) -> Iterator[TraceWarning]:
        """Yield warnings about sub-agents that no call started, and about calls whose sub-agents were not recorded."""
        if self._unattached:
            names = [self._files.get(name, name) for name in self._unattached]
            yield TraceWarning(f"sub-agents that no call in the recording started, {_listed(names)}")
        if unread := list(dict.fromkeys(self._unread())):
            yield unread_sub_agents(unread)

    def _all_calls(self) -> Iterator[_Caller]:
        for owner, messages in self._chats.items():
            replies = [message for message in messages if isinstance(message, AIMessage)]
            yield from (_Caller(owner, call) for message in replies for call in message.tool_calls)

    def _link_by_id(self) -> None:
        callers: dict[str, list[_Caller]] = defaultdict(list)
        for caller in self._all_calls():
            if caller.call.id is not None:
                callers[caller.call.id].append(caller)
        for name in self._agents:
            named = (caller for identity in (name, *self._calls.get(name, ())) for caller in callers.get(identity, ()))
            callers_of = [caller for caller in named if caller.parent != name]
            if callers_of:  # ids of calls may repeat
                parent = self._parents.get(name, callers_of[0].parent)
                self._callers[name] = next((caller for caller in callers_of if caller.parent == parent), callers_of[0])

    def _link_by_prompt(self) -> None:
        linked = {caller.call.id for caller in self._callers.values()}
        prompted: dict[str, deque[_Caller]] = defaultdict(deque)
        for caller in self._all_calls():
            prompts = (caller.call.args.get(name) for name in _PROMPTS)
            if caller.call.id not in linked and (prompt := next((text for text in prompts if text), None)) is not None:
                prompted[str(prompt)].append(caller)
        for name in self._agents.keys() - self._callers.keys() if prompted else ():
            task = next((message.text for message in self._chats[name] if message.role == "user"), "")
            if (same := prompted.get(task)) and same[0].parent != name:
                self._callers[name] = same.popleft()

    def _nest(self) -> None:
        """Put each sub-agent below its parent, or below the session if no call or only one of its own tree started it."""
        started: dict[str | None, list[str]] = defaultdict(list)
        for name in self._agents:
            if (caller := self._callers.get(name)) is not None:
                started[caller.parent].append(name)
            elif (parent := self._parents.get(name)) in self._agents:
                started[parent].append(name)
                self._unattached.append(name)
        left = dict.fromkeys(self._agents)
        waiting: list[str | None] = [None]
        while waiting or left:
            if not waiting:
                self._unattached.append(loose := next(iter(left)))
                self._callers.pop(loose, None)
                self._below[None].append(loose)
                del left[loose]
                waiting.append(loose)
            parent = waiting.pop()
            for name in started[parent]:
                if name in left:
                    self._below[parent].append(name)
                    del left[name]
                    waiting.append(name)

    def _trace(self, name: str) -> Trace:
        fields, caller = self._agents[name], self._callers.get(name)
        metadata = dict(cast("JsonObject", fields.get("metadata", {})))
        if caller is not None:
            kinds = (kind for argument in _KINDS if isinstance(kind := caller.call.args.get(argument), str))
            named = {"call_id": caller.call.id, "agent": next(kinds, None)}
            metadata = {**{key: value for key, value in named.items() if value is not None}, **metadata}
        warnings = (*cast("Sequence[TraceWarning]", fields.get("warnings", ())), *unpaired_warnings(self._chats[name]))
        about = {"id": name, "metadata": metadata, "children": self.traces(name), "warnings": warnings}
        return Trace.model_validate({**fields, **about})

    def _unread(self) -> Iterator[str]:
        """Yield the names of sub-agents that were not recorded, or the calls that started them."""
        linked = {id(caller.call) for caller in self._callers.values()}
        named: dict[str | None, str] = {identity: name for name, ids in self._calls.items() for identity in ids}
        failed = {
            id(pair.call)
            for messages in self._chats.values()
            for index, pair in pair_results(messages).calls.items()
            if getattr(messages[index], "is_error", None)
        }
        for _, call in self._all_calls():
            if id(call) in linked or id(call) in failed or named.get(call.id) in self._agents:
                continue
            if call.id in named:
                yield named[call.id]
            elif call.name in self._tools and call.args.keys() & _PROMPTS:
                yield f"that of call {call.id}"


def unread_sub_agents(names: Sequence[str]) -> TraceWarning:
    """Return the warning about sub-agents that were not recorded."""
    problem = f"sub-agents whose conversations are not in the recording, {_listed(names)}"
    return TraceWarning(problem, path=UNREAD_SUB_AGENTS)


def unread_file(name: str, problem: str) -> TraceWarning:
    """Return the warning about the file of a sub-agent that cannot be read."""
    return TraceWarning(f"files of sub-agents that cannot be read, found {name}: {problem}", path=UNREAD_SUB_AGENTS)


def _listed(names: Sequence[str]) -> str:
    return f"found {len(names)}: {join_limited(names, separator=', ')}"
