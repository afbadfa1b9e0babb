"""Output of ``codex exec --json``: the events of a thread, with the items that the agent makes.

{"type": "thread.started", "thread_id": "..."}
{"type": "turn.started"}
{"type": "item.started", "item": {"id": "item_0", "type": "command_execution", "command": "ls", "status": "in_progress"}}
{"type": "item.completed", "item": {"id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "a",
  "exit_code": 0, "status": "completed"}}
{"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "Done"}}
{"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 2, "output_tokens": 5}}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.openai_responses import ItemMessages
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import as_records, build_sample
from judgekit.formats.readers.codex import read_rows, read_usage
from judgekit.formats.row_facts import to_text
from judgekit.formats.sub_agents import unread_sub_agents
from judgekit.formats.values import as_list, first_object, lookup, str_or_none
from judgekit.traces.message import JsonObject, Usage
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample

_ITEM_EVENTS = ("item.started", "item.updated", "item.completed")
_EVENTS = ("thread.started", "turn.started", "turn.completed", "turn.failed", *_ITEM_EVENTS)
_TEXTS: dict[str, JsonObject] = {
    "agent_message": {"type": "message", "role": "assistant"},
    "plan": {"type": "message", "role": "assistant"},
    "reasoning": {"type": "reasoning"},
}
"""Kinds of items that are text, as items of the Responses API."""
_CALLS = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": (),  # its arguments are a field
    "collab_tool_call": ("prompt", "receiver_thread_ids"),
    "web_search": ("query", "action"),
    "todo_list": ("items",),
}
"""Kinds of items that are calls, and the fields with their arguments."""
_FAILED = {"completed": False, "failed": True, "declined": True}


class CodexExecReader:
    """A reader of event streams, one conversation for each thread. They lack the user's prompts.

    Source: ``codex-rs/exec/src/exec_events.rs`` of the Codex CLI.
    """

    name = "codex-exec"
    joins_lines = True
    shape = 'codex-exec: {"type": "thread.started" | "turn.started" | "item.completed" | ...} in each line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize events of a thread, of a turn, or of an item that they hold."""
        row = first_object(as_records(value))
        kind = row.get("type")
        return kind in _EVENTS and (kind not in _ITEM_EVENTS or isinstance(row.get("item"), dict))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the threads. A resumed thread begins with its own id again."""
        threads: list[list[JsonValue]] = [[]]
        identity: JsonValue = None
        for row in as_records(document):
            if lookup(row, "type") == "thread.started":
                if identity not in (None, lookup(row, "thread_id")):
                    threads.append([])
                identity = lookup(row, "thread_id")
            threads[-1].append(row)
        return list(threads)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one thread."""
        thread = _Thread()
        for row in read_rows(as_records(record), thread.warnings):
            thread.event(row)
        return thread.sample(index)


class _Thread:
    """A thread that is read event by event. An item is placed where it starts, in its last state."""

    def __init__(self) -> None:
        self.warnings: list[TraceWarning] = []
        self._identity: str | None = None
        self._parts: list[str | None] = []
        self._items: dict[str, FieldTracker] = {}
        self._runs = self._updates = 0
        self._counts: list[FieldTracker] = []
        self._left: list[FieldTracker] = []
        self._failure: str | None = None
        self._open = False
        self._sub_agents: list[str] = []

    def event(self, row: FieldTracker) -> None:
        kind, item = row.peek("type"), row.peek("item")
        self._left.append(row)
        if kind in _ITEM_EVENTS and isinstance(item, dict):
            row.take("item")
            self._updates += kind == "item.updated"
            self._item(FieldTracker(item, f"{row.path}.item", self.warnings))
        elif kind == "thread.started":
            self._runs += 1
            self._identity = row.id("thread_id") or self._identity
        elif kind == "turn.started":
            self._open, self._failure = True, None
        elif kind in ("turn.completed", "turn.failed"):
            self._open = False
            self._parts.append(None)
            error = row.object("error")
            self._failure = None if error is None else error.text("message")
            if kind == "turn.completed":
                self._counts.append(row)
        elif kind == "error":
            self._failure = row.text("message")
            row.warn(f"an error: {short_repr(self._failure)}")
        else:
            row.warn(f"unknown event type {to_text(kind):.80}, kept as is")

    def sample(self, index: int) -> Sample:
        items = ItemMessages()
        for key in self._parts:
            if key is None:
                items.messages()  # a turn ends the message
            elif (item := self._items[key]).peek("type") == "error":
                item.warn(f"an error: {short_repr(item.peek('message'))}")
                self._left.append(item)
            else:
                _add(items, item)
        messages = items.messages()
        if unread := list(dict.fromkeys(self._sub_agents)):
            self.warnings.append(unread_sub_agents(unread))
        if not messages:
            raise TraceError(f"contains no messages: {self._failure or 'no item comes from the agent'}")
        if self._updates:
            self.warnings.append(TraceWarning(f"earlier versions of updated items, dropped, found {self._updates}"))
        if self._open:
            self.warnings.append(TraceWarning("the stream ends before the last turn is complete"))
        trace = {"messages": messages, "usage": self._usage(), "termination": self._failure, "error": self._failure}
        rows: list[JsonValue] = [rest for row in self._left if (rest := row.leftover()).keys() - {"type"}]
        row = FieldTracker({"rows": rows} if rows else {}, warnings=self.warnings)
        return build_sample(row, index, trace, identity=self._identity)

    def _item(self, item: FieldTracker) -> None:
        identity = item.peek("id")
        key = item.path if identity is None else f"{self._runs} {to_text(identity)}"
        if key not in self._items:
            self._parts.append(key)
        self._items[key] = item
        if item.peek("type") == "collab_tool_call" and item.peek("tool") == "spawn_agent":
            self._sub_agents += filter(None, map(str_or_none, as_list(item.peek("receiver_thread_ids"))))

    def _usage(self) -> Usage | None:
        if len(self._counts) == 1:
            return read_usage(self._counts[0], "usage")
        if self._counts:
            text = f"token counts of turns, which may include earlier turns, kept in extra, found {len(self._counts)}"
            self.warnings.append(TraceWarning(text))
        return None


def _add(items: ItemMessages, item: FieldTracker) -> None:
    kind = str(item.peek("type"))
    if kind in _TEXTS:
        item.take("type")
        if not isinstance(item.peek("text"), str):
            raise item.type_error("text", "a string")
        content = item.take("text")
        items.add(item.extended(**_TEXTS[kind], content=content))
    elif kind in _CALLS:
        _add_call(items, item, kind)
    else:
        items.add(item)


def _add_call(items: ItemMessages, item: FieldTracker, kind: str) -> None:
    fields: JsonObject = {name: value for name in _CALLS[kind] if (value := item.take(name)) is not None}
    arguments = item.take("arguments") if kind == "mcp_tool_call" else fields
    name = item.text("tool") if "tool" in item else kind
    identity, status, code = item.id("id"), item.peek("status"), item.peek("exit_code")
    output = _output(item)
    call: JsonObject = {"type": "function_call", "name": name, "call_id": identity, "arguments": arguments}
    items.add(item.extended(**call))
    if status == "in_progress":
        item.warn("a call that did not finish")
    if kind not in ("web_search", "todo_list") and (output or status != "in_progress"):
        failed = True if code not in (None, 0) else _FAILED.get(str(status))
        result: JsonObject = {"type": "function_call_output", "call_id": identity, "name": name, "output": output}
        items.add(FieldTracker(result, item.path, item.warnings), is_error=failed)


def _output(item: FieldTracker) -> JsonValue:
    error = item.object("error")
    result = item.object("result")
    if error is not None and (text := error.text("message")) is not None:
        return text
    if result is not None:
        return result.take("content") or result.take("structured_content")
    return item.take("aggregated_output", "agents_states")
