"""Merging of steps into a trace and its children, and joining of model calls that were recorded as separate conversations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging.comparison import hashes_of, split_instructions, variants_of
from judgekit.formats.merging.step import Level, Levels, SpanStep
from judgekit.formats.merging.threads import Thread, Threads
from judgekit.formats.merging.tools import add_tool_results
from judgekit.formats.span_exports import conversation_id
from judgekit.formats.spans import LOGS_HINT, UNKNOWN_START, Span, final_error, read_spans, time_range
from judgekit.formats.values import lookup
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, SystemMessage
from judgekit.traces.recording import TraceWarning
from judgekit.traces.trace import Trace

_Call: TypeAlias = tuple[SpanStep, JsonObject]


def merge_steps(steps: Sequence[SpanStep]) -> dict[str, object]:
    """Return the fields of a `Trace`: messages, children, times, and ``variants`` in its metadata.

    The module ``threads`` describes how model calls are joined. The longest conversation becomes the trace. The others
    become its children, as does what happens within a tool call. Spans of tools add results and errors that the
    messages lack, and calls that no message makes, at the time when they happened. Without model calls, all calls and
    results come from the spans of tools.

    Repeated messages are left out, but those with a value that no other message has are kept among the variants. A
    warning names model calls that may have been made but say the same as others. The steps are ordered by start time.
    """
    levels = Levels(steps)
    models = [step for step in steps if step.kind == "model" and (step.input_messages or step.output_messages)]
    tools = [step for step in steps if step.kind == "tool" and step.call is not None]
    threads = Threads(levels)
    spoken = {levels.level(step) for step in models}
    for step in models:
        threads.add(step, step.output_messages)
    silent: dict[tuple[Level, Span | None], list[SpanStep]] = defaultdict(list)
    for step in tools:
        if (level := levels.level(step)) not in spoken:
            silent[level, agent.span if (agent := levels.agent(step)) else None].append(step)
    for step in steps:
        if step.kind == "agent":
            if (level := levels.level(step)) not in spoken:
                alone = silent.pop((level, step.span), ())
                told = any(isinstance(said, AIMessage) and said.tool_calls for said in step.output_messages)
                exchanges = () if told else [message for tool in alone for message in tool.as_messages()]
                threads.add(step, [*exchanges, *step.output_messages])
            else:
                threads.continue_thread(step, step.output_messages)
    for (level, _), alone in silent.items():
        if level is levels.top:
            threads.add(alone[0], [message for tool in alone for message in tool.as_messages()])
    call_ids = add_tool_results(threads.threads, tools, levels)
    doubtful = {
        "repeat an earlier one, dropped as duplicates, found {}": threads.possible_repetitions,
        "repeat none of the earlier messages, found {}: "
        "if they are separate conversations, give each its own session.id": threads.unconnected,
        "begin with an earlier question and lack the last answer; read as separate attempts, found {}: "
        "the longest (the last of equals) is the conversation, the others are its children; "
        "record the whole history": threads.repeated_questions,
    }
    for problem, calls in doubtful.items():
        if calls:
            warning = TraceWarning(f"model calls that {problem.format(len(calls))}")
            calls[0].span.fields.warnings.append(warning)
    requests = [
        message
        for thread in threads.threads
        for message in thread.messages
        if isinstance(message, HumanMessage | SystemMessage)
    ]
    if empty := sum(not message.content and not getattr(message, "tool_calls", ()) for message in requests):
        problem = f"user messages and instructions without content, found {empty} of {len(requests)}"
        warning = TraceWarning(f"{problem}: if it was moved to log records, {LOGS_HINT}")
        steps[0].span.fields.warnings.append(warning)
    merged = (message for thread in threads.threads for message in thread.messages)
    variants = variants_of(merged, sorted(steps, key=lambda step: ("model", "agent", None, "tool").index(step.kind)))
    metadata = {"variants": variants} if variants else {}
    error = final_error([step.span for step in steps])
    ended = {} if error is None else {"error": error}
    return {**_assembled(threads.threads, levels, call_ids), "metadata": metadata, **ended}


def _assembled(threads: Sequence[Thread], levels: Levels, call_ids: Mapping[SpanStep, str]) -> dict[str, object]:
    by_level: dict[Level, list[Thread]] = defaultdict(list)
    for thread in threads:
        by_level[thread.level].append(thread)
    inner: dict[Level, list[Trace]] = defaultdict(list)
    for level in levels:
        children = inner.pop(level, [])
        if own := by_level[level]:
            main = max(reversed(own), key=lambda thread: len(thread.messages))
            children = [*(_child(thread, levels) for thread in own if thread is not main), *children]
            if level.owner is None:
                return _fields(main) | {"children": children}
            call_id = call_ids.get(level.tool, level.tool.call_id) if level.tool else None
            children = [_child(main, levels, children, call_id)]
        inner[level.owner or level] += children
    children = inner[levels.top]
    if not children:
        return {"messages": []}
    longest = max(reversed(children), key=lambda trace: len(trace.messages))
    others = [*longest.children, *(child for child in children if child is not longest)]
    times = {"started_at": longest.started_at, "ended_at": longest.ended_at}
    return {"messages": longest.messages, **times, "children": others}


def _child(thread: Thread, levels: Levels, children: Sequence[Trace] = (), call_id: str | None = None) -> Trace:
    first = thread.steps[0]
    agent = first if first.kind == "agent" else levels.agent(first)
    metadata = {"call_id": call_id} if call_id else {}
    fields = {"id": (agent or first).span.id, "children": children, "metadata": metadata}
    return Trace.model_validate(_fields(thread) | fields)


def _fields(thread: Thread) -> dict[str, object]:
    return {"messages": thread.messages, **time_range([step.span for step in thread.steps])}


def join_calls(records: Iterable[JsonValue], read: Callable[[Sequence[Span]], Sequence[SpanStep]]) -> list[JsonValue]:
    """Return records of `group_spans`, joining those whose history begins with all of an earlier one.

    A client that is traced without a span around its calls and without a session id gives every call a trace
    of its own, which repeats the earlier calls. Only traces of a single span are joined.
    """
    all_records = list(records)
    if len(all_records) < 2:
        return all_records
    calls = [call for record in all_records if (call := _only_call(record, read)) is not None]
    calls.sort(key=lambda call: call[0].span.started_at or UNKNOWN_START)
    open_ends: dict[int, JsonObject] = {}
    gone: set[int] = set()
    for step, record in calls:
        passed = hashes_of(split_instructions([*step.input_messages, *step.output_messages])[1])
        before = len(passed) - len(step.output_messages)
        whole = next((earlier for end in reversed(passed[:before]) if (earlier := open_ends.pop(end, None))), None)
        if whole is not None:
            cast("list[JsonValue]", whole["spans"]).extend(cast("list[JsonValue]", record["spans"]))
            gone.add(id(record))
        if passed:
            open_ends[passed[-1]] = whole or record
    return [record for record in all_records if id(record) not in gone]


def _only_call(record: JsonValue, read: Callable[[Sequence[Span]], Sequence[SpanStep]]) -> _Call | None:
    spans = lookup(record, "spans")
    if not isinstance(record, dict) or not isinstance(spans, list) or any(map(conversation_id, spans)):
        return None
    try:
        pieces = read_spans(FieldTracker({"spans": spans}))
        steps = read(pieces) if len(pieces) == 1 else ()
    except TraceError:
        return None
    step = next((step for step in steps if step.kind == "model" and step.input_messages and step.output_messages), None)
    return None if step is None else (step, record)
