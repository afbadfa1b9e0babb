"""Rows of the sub-agents of a Claude Code session: where they stand, and what they say about their calls.

The conversation of a sub-agent is in a file of its own, among the rows of the session, or in rows about progress:

{"type": "progress", "parentToolUseID": "toolu_1", "data": {"type": "agent_progress", "agentId": "a1", "message": {...}}}

Its call is named in the metadata beside its file, or names it by ``agentId`` in its result.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.claude_code_rows import SessionRow
from judgekit.formats.values import as_object, lookup, str_or_none
from judgekit.traces.message import JsonObject

TOOLS = ("Task", "Agent")
"""The tool that starts sub-agents, by its names."""


def progress_rows(rows: Sequence[SessionRow], number: int) -> Iterator[SessionRow]:
    """Yield the messages of sub-agents that stand only in rows about their progress, as rows with numbers from this one.

    The other rows must have their threads; see `group_threads`.
    """
    read_contents: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        if row.thread is not None:
            read_contents[row.thread] |= row.contents
    for row in rows:
        progress = as_object(row.fields.get("data")) if row.kind == "progress" else {}
        name = str_or_none(progress.get("agentId")) or str_or_none(row.fields.get("parentToolUseID"))
        message = as_object(progress.get("message"))
        if progress.get("type") != "agent_progress" or name is None or "message" not in message:
            continue
        copy: JsonObject = {"timestamp": row.fields.get("timestamp"), **message}
        sub_agent_row = SessionRow(FieldTracker(copy), number, name)
        row.is_read = sub_agent_row.is_message
        if (
            sub_agent_row.is_message
            and not sub_agent_row.contents <= read_contents[name]
            and (data := row.tracker.object("data")) is not None
        ):
            read_contents[name] |= sub_agent_row.contents
            data.take("message")
            yield SessionRow(FieldTracker(copy, f"{data.path}.message", data.warnings), number, name)
            number += 1


def starting_calls(rows: Sequence[SessionRow], metadata: Mapping[str, JsonObject]) -> dict[str, list[str]]:
    """Return the ids of the calls that may have started each sub-agent, the most likely ones first."""
    called = {identity: block for row in rows for identity, block in row.called.items()}
    named: list[tuple[JsonValue, JsonValue]] = [(name, about.get("toolUseId")) for name, about in metadata.items()]
    named += [(row.agent, row.answered[0]) for row in rows if row.answered]
    named += [
        (lookup(row.fields.get("data"), "agentId"), row.fields.get("parentToolUseID"))
        for row in rows
        if row.kind == "progress"
    ]
    named += [
        (row.agent_in_text, row.answered[0])
        for row in rows
        if row.answered and lookup(called.get(row.answered[0]), "name") in TOOLS
    ]
    calls: dict[str, list[str]] = defaultdict(list)
    for agent, call in named:
        if isinstance(agent, str) and isinstance(call, str):
            calls[agent].append(call)
    return calls


def inherited_rows(
    threads: dict[str | None, list[SessionRow]], calls: Mapping[str, Sequence[str]], main: str | None
) -> dict[str, list[SessionRow]]:
    """Return the rows that sub-agents got from their parents, by the sub-agents that got any.

    The file of a sub-agent that continues its parent's conversation begins with a copy of that.
    """
    owners = {call: name for name in reversed(threads) for row in threads[name] for call in row.called}
    inherited: dict[str, list[SessionRow]] = {}
    for name, rows in threads.items():
        if name is None or name == main:
            continue
        parent = next((owners[call] for call in calls.get(name, ()) if owners.get(call, name) != name), main)
        marks = {mark for row in threads.get(parent, ()) for mark in row.copy_marks}
        copies = [position for position, row in enumerate(rows) if row.copy_marks & marks]
        if copies:
            last = copies[-1] + 1
            called = {identity for row in rows[:last] for identity in row.called}
            while last < len(rows) and rows[last].answered and called.issuperset(rows[last].answered):
                last += 1
            inherited[name] = list(rows[:last])
    return inherited
