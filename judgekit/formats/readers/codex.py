"""Sessions of the Codex CLI, as it keeps them in ~/.codex/sessions: items of the Responses API, each in an envelope.

{"timestamp": "...", "type": "session_meta", "payload": {"id": "...", "cwd": "...", "cli_version": "...", ...}}
{"timestamp": "...", "type": "turn_context", "payload": {"model": "...", ...}}
{"timestamp": "...", "type": "response_item", "payload": {"type": "message", "role": "user", "content": [...]}}
{"timestamp": "...", "type": "event_msg", "payload": {"type": "token_count", "info": {...}}}
{"type": "session_meta", "payload": {"id": "b", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "a", ...}}}}}

The last is the header of a sub-agent's log. The parent's log names it in the output of ``spawn_agent`` (``agent_id``, or
``task_name``), or in an event.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.openai_responses import ItemMessages
from judgekit.formats.field_tracker import FieldTracker, parse_time
from judgekit.formats.readers.base import as_records, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.session_files import SUB_AGENT_FILE, codex_thread, is_sub_agent_file
from judgekit.formats.sub_agents import SubAgents, unread_file
from judgekit.formats.values import (
    as_list,
    as_object,
    first_object,
    first_value,
    lookup,
    objects_in,
    parse_if_json,
    str_or_none,
)
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, Usage
from judgekit.traces.recording import ToolDefinition, TraceWarning
from judgekit.traces.sample import Sample

_EVENTS = {
    "collab_agent_spawn_end": ("call_id", "new_thread_id"),
    "sub_agent_activity": ("event_id", "agent_thread_id"),
}
"""Events about new sub-agents, with the fields that hold the call and the sub-agent."""

_ROWS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state")
_REPEATING = (
    *("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"),
    *("agent_reasoning_section_break", "token_count", "task_complete", "turn_complete", "exec_command_end"),
    *("mcp_tool_call_end", "patch_apply_end", "web_search_end", "image_generation_end", "view_image_tool_call"),
    *("dynamic_tool_call_request", "dynamic_tool_call_response", "item_completed"),
)
"""Events that repeat what items record."""
_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")


class SubAgentLog(NamedTuple):
    """The log of a sub-agent: its id, its file, the session that started it, what its header says, and any problem."""

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


class CodexReader:
    """A reader of session logs. The first ``session_meta`` names the conversation.

    Messages that Codex writes as the user (environment, AGENTS.md) become messages of a developer. Source: the
    protocol of the Codex CLI (``RolloutItem``).
    """

    name = "codex"
    joins_lines = True
    shape = 'codex: {"timestamp": ..., "type": "session_meta" | "response_item" | ..., "payload": {...}} in each line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows by their kinds."""
        row = first_object(as_records(value))
        return row.get("type") in _ROWS and isinstance(row.get("payload"), dict)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return all rows as one session. A fork's log repeats the original session, including its header."""
        return [as_records(document)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one session, with those of its sub-agents."""
        rows = [row for row in as_records(record) if not is_sub_agent_file(row)]
        session = _Session()
        session.read(rows)
        fields = session.fields()
        logs = [sub_agent_log(row) for row in as_records(record) if is_sub_agent_file(row)]
        agents = {log.identity: part for log in logs if (part := _sub_agent(log, logs, rows, session.warnings))}
        files = {log.identity: log.file for log in logs}
        parents = {log.identity: log.parent if log.parent in files else None for log in logs}
        calls = starting_calls([rows, *(log.rows for log in logs)], logs)
        messages = cast("Sequence[Message]", fields["messages"])
        tree = SubAgents(messages, agents, calls, files=files, parents=parents)
        session.warnings += tree.warnings()
        left = FieldTracker({"rows": session.left} if session.left else {}, warnings=session.warnings)
        return build_sample(left, index, {**fields, "children": tree.traces()}, identity=session.identity)


def _sub_agent(
    log: SubAgentLog, logs: Sequence[SubAgentLog], rows: Sequence[JsonValue], warnings: list[TraceWarning]
) -> Mapping[str, object] | None:
    parent = next((other.rows for other in logs if other.identity == log.parent), rows)
    inherited = inherited_count(log, parent)
    if inherited:
        warnings.append(TraceWarning(f"{inherited} rows that a sub-agent got from its parent, read once"))
    part, problem, fields = _Session(), log.problem, None
    try:
        part.read([*log.rows[:1], *log.rows[inherited + 1 :]] if inherited else log.rows)
        about = {"file": log.file, **({"rows": part.left} if part.left else {})}
        metadata = {} if log.agent is None else {"agent": log.agent}
        fields = {**part.fields(), "warnings": part.warnings, "extra": about, "metadata": metadata}
    except TraceError as error:
        problem = problem or error.problem
    if problem is not None:
        warnings.append(unread_file(log.file, problem))
    return fields


class _Session:
    """A session that is read row by row."""

    def __init__(self) -> None:
        self.warnings: list[TraceWarning] = []
        self._items = ItemMessages()
        self._head: list[Message] = []
        self._typed: list[tuple[int, HumanMessage]] = []
        self._tools: list[ToolDefinition] = []
        self.left: list[JsonValue] = []
        self.identity: str | None = None
        self._model: str | None = None
        self._total: JsonValue = None
        self._usage: Usage | None = None
        self._failed: dict[str, bool] = {}
        self._termination: str | None = None
        self._error: str | None = None
        self._repeating = 0
        self._reports = 0
        self._turns: list[int] = []
        self._times: list[JsonValue] = []

    def read(self, rows: Iterable[JsonValue]) -> None:
        for row in read_rows(rows, self.warnings):
            self.row(row)

    def row(self, row: FieldTracker) -> None:
        """Read a row. Its leftover is kept."""
        kind = row.peek("type")
        if kind == "response_item":
            self._enveloped(row)
        elif (inner := row.object("payload") if kind in _ROWS else None) is not None:
            self._times.append(row.peek("timestamp"))
            if kind == "session_meta":
                self._meta(inner)
            elif kind == "turn_context" and isinstance(model := inner.peek("model"), str):
                self._model = model
            elif kind == "compacted":
                inner.warn("a summary replaced the history for the model here; the full history is kept")
            elif kind == "event_msg" and self._event(inner):
                self._repeating += 1
                return
        elif kind is not None:
            row.warn(f"unreadable row of type {to_text(kind):.80}, kept in extra")
        if rest := row.leftover():
            self.left.append(rest)

    def item(self, item: FieldTracker) -> None:
        if item.peek("type") == "ghost_snapshot":  # a snapshot of files, for undoing
            self.left.append(item.leftover())
            return
        by_user = item.peek("role") == "user"
        call_id = item.peek("call_id")
        answers = isinstance(call_id, str) and str(item.peek("type")).endswith("_output")
        is_error = self._failed.pop(str(call_id), None) if answers else None
        self._items.add(item, model=self._model, is_error=is_error)
        if by_user:
            self._termination = self._error = None
            messages = self._items.messages()
            if isinstance(_as_developer_message(messages[-1]), HumanMessage):
                self._turns.append(len(messages) - 1)

    def fields(self) -> dict[str, object]:
        messages = self._items.messages()
        if not any(isinstance(message, HumanMessage) for message in messages):
            for position, message in reversed(self._typed):
                messages.insert(position, message)
            self._repeating -= len(self._typed)
        messages = [*self._head, *map(_as_developer_message, messages)]
        if not messages:
            raise TraceError("contains no messages: no row is a response_item")
        if self._repeating:
            self.warnings.append(TraceWarning(f"{self._repeating} events that repeat items or count tokens, dropped"))
        counted = sum(isinstance(message, AIMessage) and message.usage is not None for message in messages)
        if (lost := self._reports - counted) > 0:
            self.warnings.append(TraceWarning(f"{lost} token counts belong to no reply in this file"))
        times = [time for time in self._times if time is not None]
        return {
            "messages": messages,
            "tools": self._tools,
            "started_at": parse_time(times[0]) if times else None,
            "ended_at": parse_time(times[-1]) if times else None,
            "usage": self._usage,
            "termination": self._termination,
            "error": self._error,
        }

    def _enveloped(self, row: FieldTracker) -> None:
        payload = row.peek("payload")
        if not isinstance(payload, dict):
            raise row.type_error("payload", "an item")
        self._times.append(row.peek("timestamp"))
        row.take("payload")
        row.take("type")
        self.item(FieldTracker({**payload, "timestamp": row.take("timestamp")}, f"{row.path}.payload", self.warnings))

    def _meta(self, header: FieldTracker) -> None:
        if self.identity is not None:  # the header of the session that this one was forked from
            return
        self.identity = header.id("id")
        base = header.maybe_object("base_instructions")
        instructions = header.text("instructions") if base is None else base.text("text")
        if instructions:
            self._head.append(SystemMessage(instructions))
        self._tools += read_tools(header.optional_objects("dynamic_tools"))

    def _event(self, event: FieldTracker) -> bool:
        """Read an event. Return whether it repeats what is recorded elsewhere."""
        kind = event.peek("type")
        if kind == "token_count":
            self._count(event)
        elif kind == "user_message" and isinstance(text := event.peek("message"), str):
            self._typed.append((len(self._items.messages()), HumanMessage(text)))
        elif kind in ("turn_aborted", "error"):
            self._termination = event.text("reason", "message")
            self._error = self._termination if kind == "error" else self._error
        elif kind == "thread_rolled_back":
            turns = event.peek("num_turns")
            if isinstance(turns, int) and turns > 0 and self._turns:
                messages, start = self._items.messages(), self._turns[-turns:][0]
                event.warn(f"{len(messages) - start} messages of {turns} turns that the user undid, dropped")
                del messages[start:], self._turns[-turns:]
        failed = _failure(event)
        if failed is not None and isinstance(call_id := event.peek("call_id"), str):
            self._failed[call_id] = failed
        return kind in _REPEATING

    def _count(self, event: FieldTracker) -> None:
        info = event.maybe_object("info")
        if info is None or (total := info.peek("total_token_usage")) == self._total:
            return  # also sent when only the limits have changed
        self._total = total
        self._usage = read_usage(info, "total_token_usage")
        if (usage := read_usage(info, "last_token_usage")) is not None:
            self._reports += 1
            self._items.set_usage(usage)


def _as_developer_message(message: Message) -> Message:
    """Return the message as a developer's if Codex wrote it as the user."""
    if not isinstance(message, HumanMessage) or not message.content:
        return message
    parts = [message.content] if isinstance(message.content, str) else message.content
    texts = [part if isinstance(part, str) else getattr(part, "text", "") for part in parts]
    if not all(text.lstrip().startswith(_CONTEXT) for text in texts):
        return message
    about = {"id": message.id, "timestamp": message.timestamp, "metadata": {"role": "user"}, "extra": message.extra}
    return SystemMessage.model_validate({"content": message.content, "role": "developer", **about})


def read_rows(rows: Iterable[JsonValue], warnings: list[TraceWarning]) -> Iterator[FieldTracker]:
    """Yield the rows of a log."""
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            yield FieldTracker(row, f"[{number}]", warnings)
        else:
            warnings.append(TraceWarning("a row that is not an object, dropped", path=f"[{number}]"))


def read_usage(holder: FieldTracker, name: str) -> Usage | None:
    """Read the token counts in a field, under Codex's names."""
    tokens = holder.maybe_object(name)
    return read_counts(tokens, cached="cached_input_tokens", reasoning="reasoning_output_tokens")


def _failure(event: FieldTracker) -> bool | None:
    """Return whether a call failed, if the event at its end shows it."""
    code, success, result = event.peek("exit_code"), event.peek("success"), event.peek("result")
    if isinstance(code, int):
        return code != 0
    if isinstance(success, bool):
        return not success
    return "Err" in result if isinstance(result, dict) and result.keys() & {"Ok", "Err"} else None


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
            is_result = "output" in own[at] and str(own[at].get("call_id")) in calls
            if not (is_result or (is_fork and words in inherited)):
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
            elif call is not None and str(item.get("name")).endswith("spawn_agent"):
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
    """Return the item or event in a row."""
    return as_object(lookup(row, "payload"))


def _words(item: JsonObject) -> tuple[str, ...] | None:
    """Return a message or call as it is compared; ``None`` for results, events and others."""
    if item.get("type") == "message":
        return (str(item.get("role")), *(str(part.get("text")) for part in objects_in(item.get("content"))))
    if "call_id" in item and ("arguments" in item or "input" in item):
        return (str(item["call_id"]), str(item.get("name")), str(first_value(item, "arguments", "input")))
    return None
