"""Agent Trajectory Interchange Format (ATIF) of Harbor, versions 1.0 to 1.8.

{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "terminus-2", "model_name": "m"}, "steps": [
    {"step_id": 1, "source": "user", "message": "create hello.txt"},
    {"step_id": 2, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "bash",
     "arguments": {}}], "observation": {"results": [{"source_call_id": "c", "content": "ok"}]}, "metrics": {...}}]}
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_call, read_counts
from judgekit.formats.blocks.openai_chat import read_tools
from judgekit.formats.blocks.reply import to_content, unknown_part
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, as_records, build_sample, first_record
from judgekit.formats.row_facts import to_text
from judgekit.formats.sub_agents import unread_sub_agents
from judgekit.formats.values import as_list, as_object, lookup, objects_in, str_or_none
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
)
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_KINDS: dict[str, type[Message]] = {"user": HumanMessage, "agent": AIMessage, "system": SystemMessage}


class AtifReader(RowReader):
    """A reader of trajectories: one in a file, a list of them, or the values of an object.

    A step becomes a message of its source, followed by the results of its calls. Steps that repeat an earlier
    trajectory are left out. Trajectories of sub-agents are children of the one that refers to them, if they are
    in the same file.
    """

    name = "atif"
    shape = 'atif: {"schema_version": "ATIF-v...", "agent": {...}, "steps": [...]}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize trajectories by their schema version."""
        first = first_record(value)
        named = as_object(first).values()
        return _is_trajectory(first) or (0 < len(named) <= 50 and all(map(_is_trajectory, named)))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the trajectories, each with those of its sub-agents."""
        if isinstance(document, dict) and not _is_trajectory(document):
            return _with_sub_agents(list(document.values()))
        return _with_sub_agents(as_records(document))

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trajectory, named by its session."""
        trajectory = FieldTracker.of(record)
        trace = _trace(trajectory)
        if not trace["messages"]:
            raise TraceError("steps: expected steps of this trajectory, found none")
        identity = trajectory.id("session_id") or trajectory.id("trajectory_id")
        return build_sample(trajectory, index, trace, identity=identity)


def _is_trajectory(value: JsonValue) -> bool:
    return (str_or_none(lookup(value, "schema_version")) or "").startswith("ATIF-v")


def _with_sub_agents(trajectories: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the trajectories. One that others refer to is put into these: one only if it refers to others itself."""
    named = [(_name(trajectory), _referenced_names(trajectory), trajectory) for trajectory in trajectories]
    uses = Counter(name for name, _, _ in named)
    wanted = Counter(ref for name, refs, _ in named for ref in refs if ref != name)
    inner = {
        name: (refs, trajectory)
        for name, refs, trajectory in named
        if name is not None
        and uses[name] == 1
        and wanted[name]
        and (wanted[name] == 1 or not any(ref in uses for ref in refs))
    }
    placed: set[str] = set()
    waiting = [ref for name, refs, _ in named if name not in inner for ref in refs]
    while waiting:  # what only refers to itself, by others, stays apart
        if (ref := waiting.pop()) in inner and ref not in placed:
            placed.add(ref)
            waiting += inner[ref][0]

    def whole(refs: Iterable[str], trajectory: JsonValue) -> JsonValue:
        children = [whole(*inner[ref]) for ref in refs if ref in placed]
        if not children or not isinstance(trajectory, dict):
            return trajectory
        own = as_list(trajectory.get("subagent_trajectories"))
        return {**trajectory, "subagent_trajectories": [*own, *children]}

    return [whole(refs, trajectory) for name, refs, trajectory in named if name not in placed]


def _name(value: JsonValue) -> str | None:
    """Return the name by which other trajectories refer to this one. Those of one session have their own ids."""
    identity = lookup(value, "trajectory_id")
    return identity if isinstance(identity, str) else str_or_none(lookup(value, "session_id"))


def _referenced_names(trajectory: JsonValue) -> list[str]:
    steps = as_list(lookup(trajectory, "steps"))
    results = [result for step in steps for result in objects_in(lookup(step, "observation", "results"))]
    return list(dict.fromkeys(name for result in results for name in _refs(result.get("subagent_trajectory_ref"))))


def _refs(value: JsonValue) -> list[str]:
    return [name for ref in as_records(value) if (name := _name(ref)) is not None]


def _trace(trajectory: FieldTracker) -> dict[str, object]:
    """Return the fields of a `Trace`, without the leftover of the trajectory."""
    agent = trajectory.object("agent") or FieldTracker({})
    children = trajectory.objects("subagent_trajectories")
    calls: dict[str, str | None] = dict.fromkeys(name for child in children if (name := _own_name(child)) is not None)
    model = agent.peek("model_name")
    messages = [message for step in trajectory.objects("steps") for message in _messages(step, model, calls)]
    if "continued_trajectory_ref" in trajectory:
        trajectory.warn("the conversation continues in another file", "continued_trajectory_ref")
    cost, usage = _total(trajectory.object("final_metrics"))
    return {
        "messages": messages,
        "tools": read_tools(agent.optional_objects("tool_definitions")),
        "usage": usage,
        "cost_usd": cost,
        "children": [_child(child, calls) for child in children],
    }


def _own_name(trajectory: FieldTracker) -> str | None:
    return _name({name: trajectory.peek(name) for name in ("trajectory_id", "session_id")})


def _child(trajectory: FieldTracker, calls: Mapping[str, str | None]) -> Trace:
    name = _own_name(trajectory)
    about = {"call_id": None if name is None else calls[name], "agent": lookup(trajectory.peek("agent"), "name")}
    metadata = {key: fact for key, fact in about.items() if fact is not None}
    fields = _trace(trajectory)
    identity = trajectory.id("trajectory_id") or trajectory.id("session_id")
    return Trace.model_validate({**fields, "id": identity, "metadata": metadata, "extra": trajectory.leftover()})


def _messages(step: FieldTracker, model: JsonValue, children: dict[str, str | None]) -> list[Message]:
    """Read a step and its results. Calls that sub-agents answer are added to ``children``."""
    source = step.one_of("source", _KINDS)
    if step.peek("is_copied_context") is True:
        step.warn("repeats an earlier trajectory; kept in extra, not as a message")
        return []
    step.take("source")
    content: list[Part] = _content(step, "message")
    fields: dict[str, object] = {"timestamp": step.time("timestamp")}
    calls: list[ToolCall] = []
    if source == "agent":
        if thought := step.text("reasoning_content"):
            content.insert(0, ReasoningPart(thought))
        calls = [read_call(call, name="function_name", ids=("tool_call_id",)) for call in step.objects("tool_calls")]
        fields |= {"tool_calls": calls, "model": step.text("model_name") or str_or_none(model)}
        fields["usage"] = _usage(step.object("metrics"))
    results = _results(step, calls, children)
    message = _KINDS[source].model_validate({**fields, "content": to_content(content), "extra": step.leftover()})
    return [message, *results]


def _results(step: FieldTracker, calls: Sequence[ToolCall], children: dict[str, str | None]) -> list[ToolMessage]:
    observation = step.object("observation")
    observed = [] if observation is None else observation.objects("results")
    named = {name for result in observed if isinstance(name := result.peek("source_call_id"), str)}
    open_calls = [call for call in calls if call.id not in named]
    unnamed = [result for result in observed if "source_call_id" not in result]
    if len(unnamed) > 1 and calls and len(unnamed) != len(open_calls):
        problem = f"{len(unnamed)} results without a call id, for {len(open_calls)} calls, paired in order"
        step.warn(problem, "observation")
    results: list[ToolMessage] = []
    for result in observed:
        fields: dict[str, object] = {"tool_call_id": (identity := result.id("source_call_id"))}
        refs = _refs(result.peek("subagent_trajectory_ref"))
        children.update((name, identity) for name in refs if name in children)
        if unread := [name for name in refs if name not in children]:
            result.warnings.append(unread_sub_agents(unread))
        if identity is None and not calls:
            if "content" not in result:
                continue  # it only refers to sub-agents, and stays in the step
            fields["name"] = "observation"  # so that it answers no call of an earlier step
        content = to_content(_content(result, "content"))
        results.append(ToolMessage.model_validate({**fields, "content": content, "extra": result.leftover()}))
    return results


def _content(holder: FieldTracker, name: str) -> list[Part]:
    value = holder.peek(name)
    if isinstance(value, list):
        return [_part(part) for part in holder.items(name)]
    if name == "message" and value is not None and not isinstance(value, str):
        raise holder.type_error(name, "a string or a list of parts")
    holder.take(name)
    return [] if value in (None, "") else [TextPart(to_text(value))]


def _part(part: FieldTracker | JsonValue) -> Part:
    if not isinstance(part, FieldTracker):
        return OtherPart(part)
    kind = part.peek("type")
    if kind == "text" and isinstance(part.peek("text"), str):
        part.take("type")
        return TextPart(part.text("text") or "", extra=part.leftover())
    source = part.object("source") if kind in ("image", "audio") else None
    if source is not None and isinstance(source.peek("path"), str):
        part.take("type")
        media = {"kind": kind, "url": source.text("path"), "mime_type": source.text("media_type")}
        return MediaPart.model_validate({**media, "extra": part.leftover()})
    return unknown_part(part)


def _usage(metrics: FieldTracker | None) -> Usage | None:
    if metrics is not None:
        for name in ("prompt_token_ids", "completion_token_ids", "logprobs"):
            metrics.discard(name, "values per token, dropped")
    return read_counts(metrics, input="prompt_tokens", output="completion_tokens", cached="cached_tokens")


def _total(metrics: FieldTracker | None) -> tuple[float | None, Usage | None]:
    if metrics is None:
        return None, None
    cost = metrics.number("total_cost_usd")
    counts = {"input": "total_prompt_tokens", "output": "total_completion_tokens", "cached": "total_cached_tokens"}
    usage = read_counts(metrics, **counts)
    return cost, None if usage == Usage() else usage
