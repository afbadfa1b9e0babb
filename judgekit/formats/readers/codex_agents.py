"""Sub-agents of a Codex session: sessions with logs of their own, whose headers name the session that started them.

{"type": "session_meta", "payload": {"id": "b", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "a", ...}}}}}

The parent's log names them in the output of ``spawn_agent`` (``agent_id``, or ``task_name``), or in an event.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.formats.session_files import SUB_AGENT_FILE, codex_thread
from judgekit.formats.values import as_list, as_object, first_value, lookup, objects_in, parse_if_json, str_or_none
from judgekit.traces.message import JsonObject

_SPAWNING = "spawn_agent"
_EVENTS = {
    "collab_agent_spawn_end": ("call_id", "new_thread_id"),
    "sub_agent_activity": ("event_id", "agent_thread_id"),
}
"""Events about new sub-agents, with the fields that hold the call and the sub-agent."""


class SubAgentLog(NamedTuple):
    """The log of a sub-agent.

    Attributes:
        identity: Its id.
        file: The name of its file.
        parent: The id of the session that started it; ``None`` if unknown.
        about: The fields of its header that describe it.
        rows: Its rows.
        problem: The reason why it cannot be read, or not to its end.
    """

    identity: str
    file: str
    parent: str | None
    about: JsonObject
    rows: Sequence[JsonValue]
    problem: str | None

    @property
    def agent(self) -> str | None:
        """The name of the sub-agent: its role, the last part of its path, or its nickname."""
        path = str_or_none(self.about.get("agent_path"))
        names = (self.about.get("agent_role"), path and path.rpartition("/")[2], self.about.get("agent_nickname"))
        return next((name for name in names if isinstance(name, str) and name), None)


def sub_agent_log(record: JsonObject) -> SubAgentLog:
    """Return the log of the sub-agent in a record; see `SUB_AGENT_FILE`."""
    file, rows = str(record[SUB_AGENT_FILE]), as_list(record.get("rows"))
    header = next((row for row in rows if codex_thread(row) is not None), None)
    thread, payload = codex_thread(header), as_object(lookup(header, "payload"))
    about = {**payload, **as_object(lookup(payload, "source", "subagent", "thread_spawn"))}
    identity, parent = (file, None) if thread is None else thread
    return SubAgentLog(identity, file, parent, about, rows, str_or_none(record.get("problem")))


def inherited_count(log: SubAgentLog, parent: Iterable[JsonValue]) -> int:
    """Return the number of rows with which a log begins that repeat the log of its parent, behind its header.

    A sub-agent that continues its parent's conversation begins with a copy of that: of all items, or of messages only.
    """
    inherited = {_words(item) for item in map(_item, parent)} - {None}
    own = [_item(row) for row in log.rows]
    last = max((at for at, item in enumerate(own) if "call_id" in item and _words(item) in inherited), default=0)
    calls = {str(item.get("call_id")) for item in own[: last + 1]}
    headers = {thread.identity for row in log.rows if (thread := codex_thread(row)) is not None}
    is_fork = len(headers) > 1 or bool(log.about.get("forked_from_id"))
    for at in range(last + 1, len(own)):
        if (words := _words(own[at])) is not None or "output" in own[at]:
            if not (is_fork and words in inherited) and not (
                "output" in own[at] and str(own[at].get("call_id")) in calls
            ):
                break
            last = at
    return last


def starting_calls(logs: Iterable[Iterable[JsonValue]], agents: Sequence[SubAgentLog]) -> dict[str, list[str]]:
    """Return the ids of the calls that started each sub-agent, by the sub-agents' ids or names."""
    paths = {str(path): agent.identity for agent in agents if (path := agent.about.get("agent_path"))}
    calls: dict[str, list[str]] = defaultdict(list)
    for log in logs:
        spawning: set[str] = set()
        for item in map(_item, log):
            kind, call = str_or_none(item.get("type")) or "", str_or_none(item.get("call_id"))
            agent: JsonValue = None
            if kind in _EVENTS:
                call, agent = (str_or_none(item.get(field)) for field in _EVENTS[kind])
            elif call is not None and str(item.get("name")).endswith(_SPAWNING):
                spawning.add(call)
            elif call in spawning and kind.endswith("_output"):
                output = item.get("output")
                text = next((part.get("text") for part in objects_in(output)), output)
                agent = first_value(as_object(parse_if_json(text)), "agent_id", "task_name")
            if isinstance(agent, str) and call is not None:
                name = next((paths[path] for path in paths if path == agent or path.endswith(f"/{agent}")), agent)
                calls[name].append(call)
    return calls


def _item(row: JsonValue) -> JsonObject:
    """Return the item or event in a row. In older logs, rows are bare items."""
    payload = lookup(row, "payload")
    return payload if isinstance(payload, dict) else as_object(row)


def _words(item: JsonObject) -> tuple[str, ...] | None:
    """Return a message or call as it is compared; ``None`` for results, events and others."""
    if item.get("type") == "message":
        return (str(item.get("role")), *(str(part.get("text")) for part in objects_in(item.get("content"))))
    if "call_id" in item and ("arguments" in item or "input" in item):
        return (str(item["call_id"]), str(item.get("name")), str(first_value(item, "arguments", "input")))
    return None
