"""Who&When: failed conversations of several agents, with the agent and step of the decisive mistake.

{"question": "...", "question_ID": "4d51", "ground_truth": "8", "is_correct": false, "history": [
    {"content": "...", "role": "assistant", "name": "Excel_Expert"}, {"content": "...", "name": "Computer_terminal", "role": "user"}],
 "mistake_agent": "Excel_Expert", "mistake_step": 0, "mistake_reason": "...", "system_prompt": {"Excel_Expert": "..."}}
{"question": "...", "question_ID": "6e3b", "groundtruth": "...", "history": [
    {"content": "...", "role": "human"}, {"content": "...", "role": "Orchestrator (-> WebSurfer)"}, {"content": "...", "role": "WebSurfer"}], ...}
"""

import re

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_message
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, build_sample, first_record
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, head
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample

_OF_THE_CHAT = ("system", "developer", "user", "assistant", "tool", "function")
_REMARK = re.compile(r" \(.*\)$", re.DOTALL)
"""The remark after an orchestrator's name: ``(thought)``, ``(-> WebSurfer)``."""


class WhoWhenReader(RowReader):
    """A reader of conversations. Every speaker except the human is an agent, even one that runs code or browses.

    Source: the data set of "Which Agent Causes Task Failures and When?", https://arxiv.org/abs/2505.00212.
    """

    name = "who-when"
    shape = 'who-when: {"history": [{"role", "content", ...}], "question_ID": ..., "mistake_agent": ..., "mistake_step": ...}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize a history of messages with a speaker, next to this dataset's fields."""
        row = first_record(value)
        if not isinstance(row, dict) or {"mistake_agent", "mistake_step", "question_ID"}.isdisjoint(row):
            return False
        messages = head(row.get("history"))
        return bool(messages) and all("content" in as_object(message) for message in messages)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one conversation. The annotations of its mistake become labels."""
        row = FieldTracker.of(record)
        messages = [read_turn(turn) for turn in row.objects("history")]
        steps = len(messages)
        if not messages:
            raise TraceError("contains no messages")
        question = row.peek("question")
        questions = [message.text for message in messages if message.role == "user"]
        if isinstance(question, str) and not any(question.strip() in text for text in questions):
            row.take("question")
            row.warn("not in any user message: placed before the history, whose step 0 is message 2", "question")
            messages.insert(0, HumanMessage(question))
        if "system_prompt" in row:
            row.warn("the instructions of each agent are kept in extra", "system_prompt")
        name = "ground_truth" if row.peek("ground_truth") is not None else "groundtruth"
        truth = row.number(name) if isinstance(row.peek(name), int | float) else row.text(name)
        facts = {} if truth is None else {"reference": to_text(truth)}
        trace = {"messages": messages, "labels": _labels(row, len(messages) - steps + 1)}
        return build_sample(row, index, trace, identity=row.id("question_ID"), **facts)


def read_turn(message: FieldTracker) -> Message:
    """Read one message. Every speaker except the human is an agent."""
    role, name = message.peek("role"), message.peek("name")
    if role in _OF_THE_CHAT and (name is None or role not in ("user", "assistant")):
        return read_message(message)
    content = message.peek("content")
    if not isinstance(content, str):
        raise message.type_error("content", "a string")
    message.take("content")
    speaker = role if name is None else name
    if not isinstance(speaker, str):
        raise message.type_error("role", "an agent name, 'human', or a role with a name")
    message.take("role" if name is None else "name")
    if role == "human" or speaker in ("human", "user"):
        return HumanMessage(content, extra=message.leftover())
    agent = _REMARK.sub("", speaker)
    metadata: JsonObject = {} if agent == speaker else {"role": speaker}
    return AIMessage(content, agent=agent, metadata=metadata, extra=message.leftover())


def _labels(row: FieldTracker, first_message: int) -> list[Label]:
    """Return the labels; step 0 is the message with the number ``first_message``."""
    correct, agent, step = row.boolean("is_correct"), row.text("mistake_agent"), row.peek("mistake_step")
    labels = [] if correct is None else [Label("is_correct", correct, source="benchmark")]
    reason = None if agent is None else row.text("mistake_reason")
    if agent is not None:
        labels.append(Label("mistake_agent", agent, source="human", reason=reason))
    if isinstance(step, int | str):  # a text in half of the dataset
        row.take("mistake_step")
        number = int(step) if isinstance(step, str) and step.isdecimal() else step
        labels.append(Label("mistake_step", number, source="human"))
        if isinstance(number, int) and number >= 0:
            labels.append(Label("sound", value=False, source="human", reason=reason, message=number + first_message))
    return labels
