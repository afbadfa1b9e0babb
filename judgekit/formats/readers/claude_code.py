"""Sessions of Claude Code: its own logs, the stream of its SDK (``stream-json``), and exports of the web version.

{"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "fix it"}}
{"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": {"id": "msg_1", "content": [{"type": "text", ...}]}}
{"type": "assistant", "uuid": "u3", "parentUuid": "u2", "message": {"id": "msg_1", "content": [{"type": "tool_use", ...}]}}
{"type": "result", "subtype": "success", "session_id": "s", "total_cost_usd": 0.1, "usage": {...}}
{"loglines": [...]}
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.anthropic import read_message, read_usage
from judgekit.formats.blocks.common import content_items
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample
from judgekit.formats.readers.claude_code_rows import (
    TOOLS,
    SessionRow,
    conversation_rows,
    group_replies,
    group_threads,
    inherited_rows,
    injected_rows,
    progress_rows,
    starting_calls,
)
from judgekit.formats.session_files import SUB_AGENT_FILE, agent_of_file, is_sub_agent_file
from judgekit.formats.sub_agents import SubAgents, unread_file
from judgekit.formats.values import as_list, as_object, head, lookup, str_or_none
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, ToolMessage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample

_OF_SESSION = ("sessionId", "session_id", "cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
"""Fields that every row of a session repeats."""
_KNOWN_KINDS = ("user", "assistant", "system", "summary", "result")


class ClaudeCodeReader:
    """A reader of sessions, one conversation each. Sub-agents are children; abandoned branches are kept separately."""

    name = "claude-code"
    joins_lines = True
    shape = (
        'claude-code: {"type": "user", "uuid": ..., "sessionId": ..., "message": {"role": "user", "content": ...}}, ...'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows by their speaker, outside of the message, and their session."""
        return any(_is_row(row) or _is_export(row) for row in head(as_records(value)))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return exports as they are, and rows by session, with the files of its sub-agents.

        Rows without a session belong to the one before.
        """
        exports = [row for row in as_records(document) if _is_export(row)]
        files = [row for row in as_records(document) if is_sub_agent_file(row)]
        rows = [row for row in as_records(document) if not (_is_export(row) or is_sub_agent_file(row))]
        sessions = [rows for session in _grouped(rows, "sessionId", "session_id") for rows in _by_agent(session)]
        names = [_session_of(session) for session in sessions]
        for file in files if sessions else ():
            name = _session_of(as_list(lookup(file, "rows")))
            sessions[names.index(name) if name in names else 0].append(file)
        return [*exports, *sessions]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one session, named by its id. The rows of a single sub-agent are a conversation of their own."""
        name = "loglines" if _is_export(record) else "rows"
        document = FieldTracker.of(record if name == "loglines" else {name: as_records(record)})
        session = _Session(document, document.items(name))
        rest: JsonObject = {**document.leftover(), **session.left(name)}
        row = FieldTracker(rest, warnings=document.warnings)
        return build_sample(row, index, session.trace, session.row_fields, identity=session.identity)


class _Session:
    """The content of a session's rows. Rows that are not messages are kept as they are."""

    def __init__(self, document: FieldTracker, items: Sequence[FieldTracker | JsonValue]) -> None:
        self._document = document
        self._kept: list[JsonValue] = []
        self.row_fields: set[str] = set()
        self._files: dict[str, str] = {}
        self._about: dict[str, JsonObject] = {}
        rows = self._rows(items)
        threads = group_threads(rows)
        main = None if None in threads else next(iter(threads), None)
        calls = starting_calls(rows, self._about)
        rows = self._without_inherited(rows, threads, calls, main)
        threads = group_threads(rows)
        first = next(iter(threads.get(main, [])), None)
        self._main = main
        named = {} if first is None else first.fields
        self._shared: JsonObject = {name: named[name] for name in _OF_SESSION if name in named}
        agent = first.fields.get("agentId") if first and main is not None else None
        names = (self._shared.get("sessionId", self._shared.get("session_id")), agent)
        self.identity = "#".join(name for name in names if isinstance(name, str)) or None
        kept = conversation_rows(rows)
        others = [row for row in rows if not row.is_message]
        chats = {name: self._messages([row for row in rows if row.index in kept]) for name, rows in threads.items()}
        if not (messages := chats.pop(main, [])):
            raise TraceError("contains no messages")
        agents = {name: self._agent(name, chat) for name, chat in chats.items() if name is not None and chat}
        parents = {row.agent: None if row.thread == main else row.thread for row in rows if row.agent and row.answered}
        sub_agents = SubAgents(messages, agents, calls, TOOLS, self._files, parents)
        document.warnings += sub_agents.warnings()
        self.trace: dict[str, object] = {
            **_times(messages),
            **_reported([row.tracker for row in others]),
            "messages": messages,
            "children": sub_agents.traces(),
            "metadata": self._shared,
        }
        self._abandoned = [row.tracker.leftover() for row in rows if row.is_message and row.index not in kept]
        if count := len(self._abandoned):
            document.warn(f"{count} rows of abandoned branches, kept in extra as 'abandoned'", "abandoned")
        self._keep_others(others, [row for row in items if not isinstance(row, FieldTracker)])

    def _rows(self, items: Sequence[FieldTracker | JsonValue]) -> list[SessionRow]:
        """Return the rows of the session, of the files of its sub-agents, and those that only rows about progress hold."""
        trackers = [(index, item) for index, item in enumerate(items) if isinstance(item, FieldTracker)]
        rows = [SessionRow(item, index) for index, item in trackers if SUB_AGENT_FILE not in item]
        count = len(items)
        for file in (item for _, item in trackers if SUB_AGENT_FILE in item):
            held = self._rows_of(file, count)
            count += len(held)
            rows += held
        rows = self._without_copies(rows)
        group_threads(rows)
        return [*rows, *progress_rows(rows, count)]

    def _rows_of(self, file: FieldTracker, count: int) -> list[SessionRow]:
        """Return the rows of a sub-agent's file, numbered from a count."""
        name = file.text(SUB_AGENT_FILE) or ""
        rows = [row for row in file.items("rows") if isinstance(row, FieldTracker)]
        agents = (identity for row in rows if isinstance(identity := row.peek("agentId"), str))
        agent = next(agents, agent_of_file(name))
        self._files.setdefault(agent, name)
        if (about := file.take("meta")) and isinstance(about, dict):
            self._about[agent] = about
        problem = file.text("problem")
        if problem is None and not any(row.peek("type") in ("user", "assistant") for row in rows):
            problem = "contains no messages"
        if problem is not None:
            self._document.warnings.append(unread_file(name, problem))
        names = [str_or_none(row.peek("agentId")) or agent for row in rows]
        return list(map(SessionRow, rows, range(count, count + len(rows)), names))

    def _agent(self, name: str, chat: list[Message]) -> dict[str, object]:
        about = self._about.get(name, {})
        kind = about.get("agentType")
        metadata: JsonObject = {"agent": kind} if isinstance(kind, str) else {}
        extra: JsonObject = {"file": self._files[name]} if name in self._files else {}
        if about:
            extra["meta"] = about
        return {"messages": chat, **_times(chat), "metadata": metadata, "extra": extra}

    def _without_inherited(
        self,
        rows: Sequence[SessionRow],
        threads: dict[str | None, list[SessionRow]],
        calls: Mapping[str, Sequence[str]],
        main: str | None,
    ) -> list[SessionRow]:
        """Remove the copies of their parents' rows with which the files of sub-agents begin.

        A file that no call started and that only adds to such a copy without calling tools is no sub-agent: it holds the
        program's own requests, for example for the summary of a long session.
        """
        removed: set[int] = set()
        called = {identity for row in rows for identity in row.called}
        for name, copies in inherited_rows(threads, calls, main).items():
            self._document.warn(f"{len(copies)} rows that a sub-agent got from its parent, read once", "rows")
            removed.update(row.index for row in copies)
            own = [row for row in threads[name] if row.index not in removed]
            if called.isdisjoint(calls.get(name, ())) and not any(row.called for row in own):
                shown = self._files.get(name, name)
                self._document.warn(f"{shown}: the program's own requests about the session, not read", "rows")
                removed.update(row.index for row in own)
        for row in rows if removed else ():
            if row.index in removed:
                row.tracker.leftover()
        return [row for row in rows if row.index not in removed]

    def left(self, name: str) -> JsonObject:
        left: dict[str, list[JsonValue]] = {name: self._kept, "abandoned": [*self._abandoned]}
        return {name: rows for name, rows in left.items() if rows}

    def _without_copies(self, rows: list[SessionRow]) -> list[SessionRow]:
        seen: dict[str, JsonObject] = {}
        single: list[SessionRow] = []
        for row in rows:
            if row.uuid is None or seen.get(row.uuid) != row.fields:
                single.append(row)
            if row.uuid is not None:
                seen[row.uuid] = row.fields
        if len(single) < len(rows):
            self._document.warn(f"{len(rows) - len(single)} duplicate rows, dropped")
        return single

    def _messages(self, rows: Sequence[SessionRow]) -> list[Message]:
        injected = injected_rows(rows)
        messages: list[Message] = []
        for group in group_replies(rows):
            try:
                replies = self._reply(group) if group[0].kind == "assistant" else self._turn(group[0])
            except TraceError as error:
                group[0].tracker.warn(f"unreadable row, kept in extra: {error.problem}")
                self._kept += [row.fields for row in group]
                continue
            if group[0].index in injected:
                replies = [_as_instructions(message) for message in replies]
            messages += replies
        return messages

    def _turn(self, row: SessionRow) -> list[Message]:
        messages = read_message(_message_of(row))
        results = (index for index, message in enumerate(messages) if isinstance(message, ToolMessage))
        about = {"id": row.tracker.id("uuid"), "timestamp": row.tracker.time("timestamp")}
        messages = [message.model_copy(update=about) for message in messages]
        return _with_extra(messages, next(results, len(messages) - 1), self._row_leftover(row))

    def _reply(self, group: Sequence[SessionRow]) -> list[Message]:
        """Read a reply. Each of its blocks has a row, which repeats the usage; the highest count is the total."""
        parts = [_message_of(row) for row in group]
        if odd := next((message for message in parts if message.peek("role") != "assistant"), None):
            raise odd.type_error("role", "'assistant', like the type of its row")
        blocks = [block for message in parts for block in content_items(message)]
        whole = max(reversed(parts), key=_output_tokens)
        others = [message for message in parts if message is not whole]
        stops = filter(None, (other.text("stop_reason") for other in others))
        stop = None if "stop_reason" in whole else next(stops, None)
        for other in others:
            for name in other:
                other.take_if(name, whole.peek(name))
        messages = read_message(whole, blocks)
        time = group[0].tracker.time("timestamp")
        messages = [message.model_copy(update={"timestamp": time}) for message in messages]
        last = max(index for index, message in enumerate(messages) if isinstance(message, AIMessage))
        if stop is not None:
            messages[last] = messages[last].model_copy(update={"finish_reason": stop})
        rests = [self._row_leftover(row) for row in group]
        return _with_extra(messages, last, rests[0] if len(rests) == 1 else {"rows": [*rests]})

    def _row_leftover(self, row: SessionRow) -> JsonObject:
        """Return what was not taken of a row, without what all rows repeat."""
        row.tracker.take("type")
        if row.tracker.peek("isSidechain") is (row.thread != self._main):  # the trace shows this
            row.tracker.take("isSidechain")
        repeated = {**self._shared, "agentId": row.thread, "parent_tool_use_id": row.thread}
        for name, value in repeated.items():
            row.tracker.take_if(name, value)
        left = row.tracker.leftover()
        self.row_fields |= left.keys() - {"toolUseResult", "tool_use_result", "message"}
        return left

    def _keep_others(self, rows: Sequence[SessionRow], values: Sequence[JsonValue]) -> None:
        kinds = Counter(row.kind if isinstance(row.kind, str) else "" for row in rows if not row.is_read)
        if odd := len(values) + sum(kinds.pop(kind, 0) for kind in ("", "user", "assistant")):
            self._document.warn(f"{odd} lines that are not rows of a session, kept in extra", "rows")
        if unread := ", ".join(f"{number} {kind}" for kind, number in kinds.items() if kind not in _KNOWN_KINDS):
            self._document.warn(f"rows of unread types, kept in extra: {unread}", "rows")
        self._kept += [*(row.tracker.leftover() for row in rows), *values]


def _reported(rows: Sequence[FieldTracker]) -> dict[str, object]:
    """Return what is recorded for the whole session: the tools at its start and the result at its end."""
    about: dict[str, object] = {}
    start = next((row for row in rows if (row.peek("type"), row.peek("subtype")) == ("system", "init")), None)
    tools = start.peek("tools") if start is not None else None
    if start is not None and isinstance(tools, list) and all(isinstance(name, str) for name in tools):
        start.take("tools")
        about["tools"] = [ToolDefinition(str(name)) for name in tools]
    ends = [row for row in rows if row.peek("type") == "result"]
    if ends:
        reason = ends[-1].peek("subtype")
        failed = ends[-1].peek("is_error") is True and reason in (None, "success")
        about["termination"] = "error" if failed else reason if isinstance(reason, str) else None
    if len(ends) == 1:  # each of several counts only its own part
        about["usage"] = read_usage(ends[0].object("usage"))
        about["cost_usd"] = ends[0].number("total_cost_usd")
    return about


def _is_row(row: JsonValue) -> bool:
    if not isinstance(row, dict):
        return False
    kind, session = row.get("type"), "sessionId" in row or "session_id" in row
    if kind in ("user", "assistant"):
        return (
            "message" in row
            and "parts" not in as_object(row["message"])
            and (session or "uuid" in row or "parent_tool_use_id" in row)
        )
    if kind == "summary":
        return "leafUuid" in row
    return kind in ("system", "result") and session and "subtype" in row and "systemPayload" not in row  # Qwen Code's


def _is_export(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("loglines"), list)


def _session_of(rows: Sequence[JsonValue]) -> str | None:
    names = (str_or_none(lookup(row, "sessionId") or lookup(row, "session_id")) for row in rows)
    return next(filter(None, names), None)


def _by_agent(rows: list[JsonValue]) -> list[list[JsonValue]]:
    """Return the rows of a session as one list, or by sub-agent if it only has rows of sub-agents."""
    talk = [row for row in rows if lookup(row, "type") in ("user", "assistant")]
    return [rows] if any(lookup(row, "isSidechain") is not True for row in talk) else _grouped(rows, "agentId")


def _grouped(rows: Sequence[JsonValue], *names: str) -> list[list[JsonValue]]:
    """Return rows by the name in one of these fields. Rows without it belong to the group before, or to the first one."""
    groups: dict[str, list[JsonValue]] = {}
    current: list[JsonValue] = []
    for row in rows:
        if (name := str_or_none(lookup(row, names[0]) or lookup(row, names[-1]))) is not None:
            current = groups.setdefault(name, [] if groups else current)
        current.append(row)
    return [*groups.values()] or [current][: len(current)]


def _message_of(row: SessionRow) -> FieldTracker:
    message = row.tracker.object("message")
    if message is None:
        raise row.tracker.type_error("message", "a message")
    return message


def _as_instructions(message: Message) -> Message:
    if not isinstance(message, HumanMessage):
        return message
    return SystemMessage(message.content, id=message.id, timestamp=message.timestamp, extra=message.extra)


def _with_extra(messages: list[Message], index: int, rest: JsonObject) -> list[Message]:
    message = messages[index]
    extra: JsonObject = {**rest, "message": message.extra} if message.extra else rest
    messages[index] = message.model_copy(update={"extra": extra})
    return messages


def _output_tokens(message: FieldTracker) -> float:
    count = lookup(message.peek("usage"), "output_tokens")
    return count if isinstance(count, int | float) else -1


def _times(messages: Sequence[Message]) -> dict[str, object]:
    times = [message.timestamp for message in messages if message.timestamp is not None]
    return {"started_at": times[0], "ended_at": times[-1]} if times else {}
