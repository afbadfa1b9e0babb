r"""Rows of datasets on the Hugging Face Hub, in the shapes that training and arenas use.

{"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "Hello"}]}    also as texts
{"prompt": "Hi", "chosen": "Hello", "rejected": "No"}    also as messages, and without prompt
{"conversation_a": [{"role": "user", ...}, ...], "conversation_b": [...], "model_a": "m", "model_b": "n", "winner": "model_a"}
{"conversation": [{"role": "user", "content": "Hi"}, ...], "conversation_id": "c1", "model": "m"}    LMSYS-Chat, WildChat
{"instruction": "Translate", "input": "Hi", "output": "Salut"}    Alpaca
"""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.openai_chat import read_messages, read_tools
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging.comparison import utterances
from judgekit.formats.readers.base import RowReader, build_row_sample, first_record
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, head, str_or_none, unpacked
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message
from judgekit.traces.recording import Label, LabelSource
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_ELSEWHERE = frozenset(("messages", "conversations", "request", "response", "trace", "user_input"))
"""Fields that hold the conversation in other formats."""
_PAIRWISE = "pairwise"
"""The name of the scorer whose question the winner answers."""
_WINNERS: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("modela", "a"), ("better", None)),
    **dict.fromkeys(("modelb", "b"), ("worse", None)),
    "tie": ("tie", None),
    **dict.fromkeys(("tiebothbad", "bothbad"), ("tie", "both are bad")),
}
"""Winners in lower case without separators: how the first conversation is, and why."""
_MODELS = re.compile(r"gpt|claude|gemini|llama|mistral|qwen|deepseek|o\d", re.IGNORECASE)
_TURN = re.compile(r"(?:\A|\n\n)(Human|Assistant): ?")
"""The beginning of a turn in conversations that are one text, as in Anthropic's hh-rlhf."""


class HuggingFaceReader(RowReader):
    """A reader of rows: conversations, and pairs with a verdict on which one is better.

    In a pair, the trace is the first conversation or the chosen one, and its baseline the other. The verdict is a label
    named ``pairwise``: ``better``, ``worse`` or ``tie``, about the trace.
    """

    name = "huggingface"
    shape = (
        'huggingface: {"prompt", "completion"}, {"prompt", "chosen", "rejected"}, {"conversation_a", "conversation_b", '
        '"winner"}, {"conversation": [{"role", "content"}]}, {"instruction", "input", "output"}'
    )

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize rows by their columns and what these hold."""
        record = first_record(value)
        return isinstance(record, dict) and _shape(record) is not None

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one row. Other columns become the sample's fields."""
        row = FieldTracker.of(record)
        shape = _shape(as_object(record))
        if shape is None:
            raise TraceError(f"expected a row such as {self.shape}, found the columns {', '.join(map(repr, row))}")
        row.unpack("tools")
        tools = read_tools(row.optional_objects("tools"))
        facts: dict[str, object] = {}
        labels: list[Label] = []
        baseline: list[Message] = []
        if shape == "completion":
            messages = [*_take_messages(row, "prompt", HumanMessage), *_take_messages(row, "completion", AIMessage)]
        elif shape == "chosen":
            row.take("messages")  # they are the chosen ones
            messages, baseline = _preferred(row)
            labels.append(Label(_PAIRWISE, "better"))
        elif shape == "conversation_a":
            messages, baseline = (_take_conversation(row, f"conversation_{side}", f"model_{side}") for side in "ab")
            labels += _winner(row)
            if (question := row.id("question_id")) is not None:
                facts["group"] = question
        elif shape == "conversation":
            messages = _take_conversation(row, "conversation", "model")
        else:
            prompt = "\n\n".join(filter(None, (row.text("instruction"), row.text("input"))))
            messages = [HumanMessage(prompt), *_take_messages(row, "output", AIMessage)]
        if baseline:
            facts["baseline"] = Trace(messages=baseline)
        identity = row.id("id", "conversation_id") or str(index)
        return build_row_sample(row, identity, messages, facts, tools, labels)


def _shape(record: JsonObject) -> str | None:
    """Return the column that decides how a row is read; ``None`` if it has none of the shapes."""
    elsewhere = {name for name in _ELSEWHERE if record.get(name) is not None}
    repeats_chosen = elsewhere == {"messages"} and record["messages"] == record.get("chosen")  # as in UltraFeedback
    if elsewhere and not repeats_chosen:
        return None

    def speaks(*names: str) -> bool:
        return all(isinstance(value := record.get(name), str) or _are_messages(value) for name in names)

    for name in ("conversation", "conversation_a"):
        if _are_messages(record.get(name)) and (name == "conversation" or _are_messages(record.get("conversation_b"))):
            return name
    if speaks("chosen", "rejected") and (record.get("prompt") is None or speaks("prompt")):
        return "chosen"
    if speaks("prompt", "completion"):
        return "completion"
    is_instruction = all(isinstance(record.get(name), str) for name in ("instruction", "output"))
    return "instruction" if is_instruction and isinstance(record.get("input"), str | None) else None


def _are_messages(value: JsonValue) -> bool:
    messages = unpacked(value)
    return bool(head(messages)) and all({"role", "content"} <= as_object(message).keys() for message in head(messages))


def _take_messages(row: FieldTracker, name: str, kind: type[HumanMessage | AIMessage]) -> list[Message]:
    """Take a column: messages, also as JSON text, or a text, which becomes a message of this type."""
    value = row.take(name)
    if _are_messages(value):
        return read_messages(FieldTracker({name: unpacked(value)}, row.path, row.warnings), name)
    return [] if value is None else [kind(to_text(value))]


def _take_conversation(row: FieldTracker, name: str, model: str) -> list[Message]:
    """Take a conversation, and the model that gave its answers."""
    answered_by = row.text(model)
    return [
        message.model_copy(update={"model": answered_by}) if isinstance(message, AIMessage) else message
        for message in _take_messages(row, name, HumanMessage)
    ]


def _preferred(row: FieldTracker) -> tuple[list[Message], list[Message]]:
    """Return the chosen and the rejected conversation, each with the prompt if it does not begin with it."""
    prompt = _take_messages(row, "prompt", HumanMessage)
    sides = [_turns(row, name) for name in ("chosen", "rejected")]
    whole = [utterances(side[: len(prompt)]) == utterances(prompt) for side in sides]
    if prompt and not all(whole) and any(isinstance(side[0], HumanMessage) for side in sides):
        row.warn("the conversations do not begin with the prompt, which is read before them", "prompt")
    chosen, rejected = (side if begins else [*prompt, *side] for side, begins in zip(sides, whole, strict=True))
    return chosen, rejected


def _turns(row: FieldTracker, name: str) -> list[Message]:
    """Take one side of a pair, which may be a conversation in one text."""
    value = row.peek(name)
    pieces = _TURN.split(value) if isinstance(value, str) else []
    if len(pieces) < 3 or pieces[0]:
        return _take_messages(row, name, AIMessage)
    row.take(name)
    kinds = {"Human": HumanMessage, "Assistant": AIMessage}
    return [kinds[who](text) for who, text in zip(pieces[1::2], pieces[2::2], strict=True)]


def _winner(row: FieldTracker) -> list[Label]:
    """Return the verdict on a pair, by the person or model that the row names. Arenas ask people."""
    winner = row.peek("winner")
    if winner is None:
        return []
    verdict = _WINNERS.get(re.sub(r"[\W_]", "", winner).lower()) if isinstance(winner, str) else None
    if verdict is None:
        choices = "model_a, model_b, tie, both_bad"
        row.warn(f"expected one of {choices}, found {short_repr(winner)}; no label is read", "winner")
        return []
    row.take("winner")
    annotator = str_or_none(first_record(row.peek("judge")))
    source: LabelSource = "judge" if annotator is not None and _MODELS.match(annotator) else "human"
    choice, reason = verdict
    return [Label(_PAIRWISE, choice, source=source, annotator=annotator, reason=reason)]
