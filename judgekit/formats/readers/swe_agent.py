"""Trajectories of SWE-agent and mini-SWE-agent.

{"trajectory": [{"action", "observation", ...}], "history": [{"role": "assistant", "content": "...", "agent": "main", "thought", "action",
  "tool_calls": [...]}, {"role": "tool", "content": "...", "tool_call_ids": ["call_1"]}], "info": {"exit_status": "submitted", ...}}
{"trajectory_format": "mini-swe-agent-1.1", "messages": [{"role": "user", "content": "..."}], "info": {...}}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import plain_usage
from judgekit.formats.blocks.openai_chat import read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, build_sample, first_record
from judgekit.formats.values import as_object, head, str_or_none
from judgekit.traces.message import Message
from judgekit.traces.sample import Sample

_OWN = frozenset(("message_type", "agent", "is_demo", "thought", "action", "tool_call_ids"))


class SWEAgentReader(RowReader):
    """A reader of the messages that the model saw, without demonstrations. Actions in text do not become calls."""

    name = "swe-agent"
    shape = (
        'swe-agent: {"history": [{"role", "content", "agent", ...}], "trajectory": [...], "info": {"exit_status", ...}}'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize a history of messages with this format's fields, or the format's name."""
        row = as_object(first_record(value))
        if (str_or_none(row.get("trajectory_format")) or "").startswith("mini-swe-agent"):
            return True
        messages = list(map(as_object, head(row.get("history"))))
        if not messages or not all("role" in message for message in messages):
            return False
        own = any(not _OWN.isdisjoint(message) for message in messages)
        return own or isinstance(row.get("trajectory"), list)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trajectory. Its exit status does not show whether the task was solved."""
        row = FieldTracker.of(record)
        messages = [message for turn in row.objects("history", "messages") for message in _read(turn)]
        if not messages:
            raise TraceError("contains no messages")
        queries = [step.take("query") for step in row.optional_objects("trajectory")]
        if any(queries):
            row.warn("the steps' queries repeat the history and are dropped", "trajectory")
        info = row.object("info") or FieldTracker({})
        stats = info.object("model_stats") or FieldTracker({})
        sent, received = stats.count("tokens_sent"), stats.count("tokens_received")
        trace = {
            "messages": messages,
            "termination": info.text("exit_status"),
            "cost_usd": stats.number("instance_cost"),
            "usage": plain_usage(sent, received),
        }
        return build_sample(row, index, trace, identity=row.id("instance_id"))


def _read(turn: FieldTracker) -> list[Message]:
    if turn.peek("role") == "exit":  # not a message but the run's exit: it stays in extra
        return []
    if turn.boolean("is_demo"):
        turn.warn("a demonstration, not part of the conversation, dropped")
        turn.leftover()
        return []
    answered = turn.peek("tool_call_ids")
    identity = answered[0] if isinstance(answered, list) and len(answered) == 1 else None
    details: dict[str, object] = {}
    if turn.peek("role") == "tool" and isinstance(identity, str):
        turn.take("tool_call_ids")
        details["tool_call_id"] = identity
    if turn.peek("role") == "assistant":
        details["agent"] = turn.text("agent")
    if about := turn.object("extra"):  # in mini-SWE-agent
        details["timestamp"] = about.time("timestamp")
        if turn.peek("role") == "assistant" and (response := about.object("response")):
            details["usage"] = read_usage(response.object("usage"))
            details["model"] = response.text("model")
    message = read_message(turn)
    given = {name: value for name, value in details.items() if value is not None}
    return [message.model_copy(update=given) if given else message]
