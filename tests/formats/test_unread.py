"""No sample silently lacks messages or calls that its record holds, whatever the record's keys."""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats import unread
from judgekit.formats.reading import read
from judgekit.formats.unread import unread_message_warnings
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    MediaPart,
    Message,
    OtherPart,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

KEYS = (
    *("messages", "input", "output", "response", "request", "choices", "contents", "candidates", "conversations"),
    *("conversation", "history", "inputs", "outputs", "prompt", "completion", "chosen", "rejected", "turns", "traj"),
    *("steps", "events", "observations", "user_input", "actual_output", "output_message", "expected_output", "log"),
    *("reference", "references", "label", "ranking", "prediction", "results", "fields", "metadata", "extra", "item"),
    *("sample", "data", "trace", "id", "model", "system", "scores", "tools_called", "tool_calls", "trace_id", "state"),
    *("parent_run_id", "task_id", "max_tokens", "reward", "task", "info", "values", "generations"),
)
"""The keys of records of all known formats, and of other evaluation systems."""


class Writer:
    """Writes random records, in which every text and every name of a call is unique."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - no secret
        self.numbers = count(1)

    def said(self) -> str:
        return f"said-{next(self.numbers)}."

    def called(self) -> str:
        return f"call_{next(self.numbers)}_"

    def identity(self) -> str:
        return f"c{next(self.numbers)}"

    def openai(self) -> list[JsonValue]:
        identity = self.identity()
        function = {"name": self.called(), "arguments": '{"id": 7}'}
        return [
            {"role": "user", "content": self.said()},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": identity, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": identity, "content": self.said()},
            self.answer(),
        ]

    def anthropic(self) -> list[JsonValue]:
        identity = self.identity()
        return [
            {"role": "user", "content": [{"type": "text", "text": self.said()}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": identity, "name": self.called(), "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": identity, "content": self.said()}]},
        ]

    def gemini(self) -> list[JsonValue]:
        return [
            {"role": "user", "parts": [{"text": self.said()}]},
            {"role": "model", "parts": [{"functionCall": {"name": self.called(), "args": {"id": 7}}}]},
            {"role": "model", "parts": [{"text": self.said()}]},
        ]

    def bedrock(self) -> list[JsonValue]:
        use = {"toolUseId": self.identity(), "name": self.called(), "input": {"id": 7}}
        return [
            {"role": "user", "content": [{"text": self.said()}]},
            {"role": "assistant", "content": [{"toolUse": use}]},
        ]

    def langchain(self) -> list[JsonValue]:
        call = {"id": self.identity(), "name": self.called(), "args": {"id": 7}, "type": "tool_call"}
        return [{"type": "human", "content": self.said()}, {"type": "ai", "content": self.said(), "tool_calls": [call]}]

    def items(self) -> list[JsonValue]:
        call = {"type": "function_call", "call_id": self.identity(), "name": self.called(), "arguments": "{}"}
        content: list[JsonValue] = [{"type": "output_text", "text": self.said()}]
        answer = {"type": "message", "role": "assistant", "content": content}
        return [{"role": "user", "content": self.said()}, call, answer]

    def sharegpt(self) -> list[JsonValue]:
        return [{"from": "human", "value": self.said()}, {"from": "gpt", "value": self.said()}]

    def answer(self) -> JsonValue:
        return {"role": "assistant", "content": self.said()}

    def choices(self) -> list[JsonValue]:
        return [{"index": 0, "message": self.answer(), "finish_reason": "stop"}]

    def messages(self) -> list[JsonValue]:
        """Return messages of one API."""
        kinds = (self.openai, self.anthropic, self.gemini, self.bedrock, self.langchain, self.items, self.sharegpt)
        return self.random.choice(kinds)()

    def wrapped(self) -> JsonValue:
        """Return a request or a response of one API."""
        answer = {"role": "assistant", "content": [{"text": self.said()}]}
        return self.random.choice(
            [
                {"messages": self.openai()},
                {"messages": self.anthropic(), "system": [{"type": "text", "text": self.said()}]},
                {"choices": self.choices(), "model": "m"},
                {"contents": self.gemini()},
                {"candidates": [{"content": {"role": "model", "parts": [{"text": self.said()}]}}]},
                {"object": "response", "id": "r", "output": self.items()[1:]},
                {"output": {"message": answer}, "stopReason": "end_turn"},
                {"type": "message", "role": "assistant", "content": [{"type": "text", "text": self.said()}]},
                {"inputs": {"messages": self.langchain()}, "outputs": {"output": self.langchain()[1]}},
            ]
        )

    def record(self) -> JsonValue:
        """Return a record with a random selection of keys, whose values may be those of another key."""
        values = (
            *(self.messages, self.messages, self.wrapped, self.answer, self.choices),
            *(lambda: "text", lambda: 5, lambda: None, list, dict, lambda: {"name": "n"}, lambda: ["a"]),
        )
        keys = self.random.sample(KEYS, self.random.randint(1, 6))
        return {key: self.random.choice(values)() for key in keys}

    def block(self) -> JsonValue:
        """Return a part of a message of any API."""
        identity = self.identity()
        return self.random.choice(
            [
                self.said(),
                {"type": "text", "text": self.said()},
                {"text": self.said()},
                {"toolUse": {"toolUseId": identity, "name": self.called(), "input": {}}},
                {"toolResult": {"toolUseId": identity, "content": [{"text": self.said()}]}},
                {"functionCall": {"name": self.called(), "args": {}}},
                {"functionResponse": {"name": "f", "response": {"result": self.said()}}},
                {"type": "tool_use", "id": identity, "name": self.called(), "input": {}},
                {"type": "tool_result", "tool_use_id": identity, "content": self.said()},
                {"type": "output_text", "text": self.said()},
                {"type": "input_text", "text": self.said()},
                {"type": "unknown", "text": self.said()},
                {"type": "tool-call", "toolCallId": identity, "toolName": self.called(), "input": {}},
                {"type": "tool_call", "id": identity, "name": self.called(), "arguments": {}},
                {"part_kind": "user-prompt", "content": self.said()},
                {"part_kind": "tool-call", "tool_name": self.called(), "args": {}},
            ]
        )

    def call(self) -> JsonValue:
        identity = self.identity()
        return self.random.choice(
            [
                {"id": identity, "type": "function", "function": {"name": self.called(), "arguments": "{}"}},
                {"id": identity, "name": self.called(), "args": {}},
                {"id": identity, "function": self.called(), "arguments": {}},
                {"tool_name": self.called(), "parameters": {}},
            ]
        )

    def message(self) -> JsonValue:
        """Return a message with a random selection of the fields of messages."""
        blocks = [self.block() for _ in range(self.random.randint(0, 3))]
        fields: dict[str, JsonValue] = {
            "role": self.random.choice(["user", "assistant", "tool", "system", "human", "model", "Agent X"]),
            "type": self.random.choice(["human", "ai", "tool", "message", "function_call", "assistant", "reasoning"]),
            "content": self.random.choice([self.said(), blocks, None]),
            "text": self.said(),
            "parts": blocks,
            "value": self.said(),
            "from": self.random.choice(["human", "gpt"]),
            "tool_calls": [self.call()],
            "function_call": self.call(),
            "output": self.said(),
            "data": {"content": self.said()},
            "kwargs": {"content": self.said()},
            "refusal": self.said(),
            "message": self.answer(),
            "toolInvocations": [{"toolName": self.called(), "args": {}, "state": "result"}],
            "id": self.identity(),
            "tool_call_id": self.identity(),
            "usage": {"input_tokens": 1},
        }
        chosen = {name: fields[name] for name in self.random.sample(list(fields), self.random.randint(1, 5))}
        return {"role": self.random.choice(["user", "assistant"]), **chosen} if self.random.random() < 0.75 else chosen

    def conversation(self) -> JsonValue:
        """Return messages of one API, mixed with others, as a record of any format."""
        messages = [*self.messages(), self.message()] if self.random.random() < 0.5 else [self.message()]
        self.random.shuffle(messages)
        return self.random.choice(
            [
                messages,
                {"messages": messages},
                {"messages": messages, "output": self.said()},
                {"messages": messages, "response": self.message()},
                {"messages": messages, "system": [self.block()]},
                {"input": messages},
                {"input": messages, "output": self.message()},
                {"input": messages, "response": self.said()},
                {"contents": messages},
                {"conversations": messages},
                {"history": messages},
                {"user_input": messages},
                {"choices": [{"message": message} for message in messages]},
                {"request": {"messages": messages}, "response": {"choices": [{"message": self.message()}]}},
                {"request": {"contents": messages}, "response": {"candidates": [{"content": self.message()}]}},
                {"object": "response", "output": messages, "id": "r"},
                {"output": {"message": messages[0]}, "stopReason": "end_turn"},
            ]
        )


def tokens(value: JsonValue, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text and name of a call in a record, with its outermost key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from tokens(inner, key or name)
    elif isinstance(value, list):
        for inner in value:
            yield from tokens(inner, key)
    elif isinstance(value, str) and value.startswith(("said-", "call_")):
        yield key, value


def conversation(trace: Trace) -> Iterator[Message]:
    yield from trace.messages
    for child in trace.children:
        yield from conversation(child)


def heard(sample: Sample) -> str:
    """Return all texts and names of calls of a sample and its references."""
    found = [sample.reference, *(sample.references or ()), sample.label, sample.prediction]
    for message in conversation(sample.trace):
        content = (message.content,) if isinstance(message.content, str) else message.content
        found += [part if isinstance(part, str) else part.model_dump_json() for part in content]
        calls = message.tool_calls if isinstance(message, AIMessage | HumanMessage) else ()
        found += [call.name for call in calls]
    return "\n".join(filter(None, found))


def silently_lost(record: JsonValue, path: Path) -> list[tuple[str, str]]:
    """Return what a record holds that is neither in its samples nor below a key that a warning names."""
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    told: list[TraceError] = []
    try:
        samples = list(read(path, on_error=told.append))
    except TraceError:
        return []
    if told:
        return []
    whole = "\n".join(map(heard, samples))
    warnings = [f"{warning.path} {warning.message}" for sample in samples for warning in sample.trace.warnings]
    warned = {part for warning in warnings for part in re.split(r"[ .\[]", warning)}
    kept_in = {"results": "fields", "expected_output": "fields"}
    return [
        (key, token)
        for key, token in tokens(record)
        if token not in whole and warned.isdisjoint({key, kept_in.get(key), "extra"})
    ]


seeds = st.integers(0, 2**32)


@given(seeds)
def test_a_record_of_any_keys_loses_no_message_and_no_call_without_a_warning(tmp_path_factory, seed):
    record = Writer(seed).record()
    assert silently_lost(record, tmp_path_factory.getbasetemp() / "record.jsonl") == []


@given(seeds)
@example(2047)  # a message within another one
def test_messages_of_any_fields_lose_no_text_and_no_call_without_a_warning(tmp_path_factory, seed):
    record = Writer(seed).conversation()
    assert silently_lost(record, tmp_path_factory.getbasetemp() / "conversation.jsonl") == []


def test_many_of_these_records_are_read(tmp_path):
    """Records that are all refused would lose nothing."""
    path = tmp_path / "a.jsonl"
    formats: set[str] = set()
    for seed in range(400):
        for record in (Writer(seed).record(), Writer(seed).conversation()):
            path.write_text(json.dumps(record) + "\n", encoding="utf-8")
            try:
                samples = list(read(path, on_error=lambda _: None))
            except TraceError:
                continue
            formats |= {sample.trace.source.format for sample in samples if sample.trace.source}
    assert len(formats) > 8
    assert formats >= {"openai-chat", "anthropic", "gemini", "bedrock", "langchain", "openai-responses", "rows"}


def test_what_is_about_a_run_or_was_read_is_not_named():
    called = AIMessage(tool_calls=[ToolCall("f", {"a": 1}), ToolCall.model_validate({"name": "g", "args": "{oops"})])
    rest: dict[str, JsonValue] = {
        "metadata": {"scores": [{"role": "assistant", "content": "Good."}]},
        "expected": "",
        "again": {"tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}, {"name": "g", "args": "{oops"}]},
    }
    assert unread_message_warnings(rest, [called]) == []


def test_messages_in_all_their_wrappings_are_named():
    for value in (
        {"toolResult": {"content": [{"text": "x"}]}},
        {"choices": [{"text": "x"}]},
        [{"type": "human", "content": "x"}],
        '[{"role": "user", "content": "x"}]',
        {"tool_calls": [{"name": "f", "arguments": "[" * 100_000}]},
        {"tool_invocations": [{"toolName": "f", "arguments": {}}]},
        [{"tool": "f", "args": {"a": 1}}],
    ):
        assert [warning.path for warning in unread_message_warnings({"log": value}, SAID)] == ["log"]


def test_messages_with_many_other_fields_are_named():
    others: dict[str, JsonValue] = {f"field {number}": number for number in range(150)}
    value: JsonValue = [{**others, "role": "assistant", "content": "lost"}]
    assert [warning.path for warning in unread_message_warnings({"log": value}, SAID)] == ["log"]


def test_many_unread_messages_are_counted_up_to_a_hundred_in_little_time():
    many: list[JsonValue] = [{"role": "user", "content": f"{number} {'x' * 2_000}"} for number in range(4_000)]
    said = [HumanMessage(f"{number} {'y' * 2_000}") for number in range(4_000)]
    [warning] = unread_message_warnings({"log": many}, said)
    assert warning.message == "messages or tool calls not read, found 100 or more"


SAID = [HumanMessage("Where is order 7?"), AIMessage("It was sent. " * 9), AIMessage("Bye.")]


def test_only_what_the_conversation_lacks_is_named():
    rest: dict[str, JsonValue] = {
        "again": [{"role": "user", "content": " Where is order 7? "}, {"role": "assistant", "content": "Bye."}],
        "quoted": {"role": "assistant", "content": "It was sent. " * 4},
        "output": "It was sent. " * 9 + "Bye.",
        "short": {"role": "assistant", "content": "sent"},
        "response": "Good bye.",
        "text": "not a message",
        "number": 5,
        "deep": {"a": [{"b": {"role": "user", "parts": [{"text": "x"}, {"text": "y"}]}}]},
    }
    found = "messages or tool calls not read, found"
    assert unread_message_warnings(rest, SAID) == [
        TraceWarning(f"{found} 1", path="short"),
        TraceWarning(f"{found} 1", path="response"),
        TraceWarning(f"{found} 2", path="deep"),
    ]


def test_encrypted_reasoning_is_no_unread_message(tmp_path):
    asked: JsonValue = {"role": "user", "content": "Hi"}
    encrypted: JsonValue = {"type": "reasoning.encrypted", "data": "gAAAAA", "format": "openai-responses-v1"}
    hidden: JsonValue = [{"type": "redacted_thinking", "data": "EmwKAh"}, {"type": "text", "text": "Hello"}]
    records: list[JsonValue] = [
        {"messages": [asked, {"role": "assistant", "content": "Hello", "reasoning_details": [encrypted]}]},
        {"model": "claude-x", "max_tokens": 9, "messages": [asked, {"role": "assistant", "content": hidden}]},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    samples = list(read(path, on_error="raise"))
    assert [sample.trace.source.format for sample in samples if sample.trace.source] == ["openai-chat", "anthropic"]
    assert [sample.trace.warnings for sample in samples] == [(), ()]


def said(extra: dict[str, JsonValue], **fields: JsonValue) -> AIMessage:
    call = ToolCall("f", {"a": 1}, id="c", extra={"requestor": "assistant"})
    return AIMessage.model_validate({"content": "Hi", "tool_calls": [call], "extra": extra, **fields})


NAMES = ["content", "text", "parts", "items", "blocks", "message", "payload", "body", "value", "kwargs", "data", "x"]
KINDS = ["text", "message", "block", "output_text", "human", "tool_result", 5, None, ""]
shapes = st.recursive(
    st.just("Hello you"),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
        | st.builds(
            lambda kind, name, held: {"type": kind, name: held}, st.sampled_from(KINDS), st.sampled_from(NAMES), inner
        )
    ),
    max_leaves=4,
)
turns = st.builds(
    lambda role, name, held, others: {**others, **role, name: held},
    st.sampled_from(
        [{"role": role} for role in ("user", "assistant", "model", "human")] + [{"from": "gpt"}, {"type": "ai"}]
    ),
    st.sampled_from(NAMES),
    shapes,
    st.sampled_from([{}, {"content": None}, {"content": ""}, {"content": []}, {"metadata": {}}, {"id": "1"}]),
)


@given(
    st.lists(turns, min_size=1, max_size=3), st.sampled_from(["{}", '{{"messages": {}}}', '{{"x": 1, "messages": {}}}'])
)
def test_no_conversation_of_any_shape_comes_out_empty(messages, wrapped):
    errors: list[TraceError] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        path.write_text(wrapped.format(json.dumps(messages)), encoding="utf-8")
        try:
            samples = list(read(path, on_error=errors.append))
        except TraceError as error:
            samples, errors = [], [error]
    assert samples or errors
    for sample in samples:
        spoken = [message for message in sample.trace.messages if isinstance(message, HumanMessage | AIMessage)]
        assert any(message.text or message.tool_calls or media(message) for message in spoken), sample
    assert all(error.problem for error in errors)


def media(message: Message) -> bool:
    return not isinstance(message.content, str) and any(part.type in ("media", "reasoning") for part in message.content)


def test_an_empty_conversation_says_where_its_text_is():
    def silence(messages):
        return unread.silence(Sample(id="1", trace=Trace(messages=messages)), "openai-chat")

    asked = [HumanMessage("", extra={"blocks": [{"text": "Hi"}], "id": "1"}), AIMessage([OtherPart({"text": "Yo"})])]
    assert silence(asked) == "all messages are empty: the text of messages[0] is in 'blocks', which is not read"
    assert silence(asked[1:]) == "all messages are empty: the text of messages[0] is in 'content', which is not read"
    assert silence([HumanMessage(" "), AIMessage("")]) == "all messages are empty"
    assert silence([AIMessage("", extra={"status": "done", "usage": {"text": "x"}})]) is None
    assert silence([HumanMessage(""), AIMessage("", tool_calls=[ToolCall("f")])]) is None
    assert silence([HumanMessage([MediaPart(kind="image", url="x:")])]) is None
    assert silence([SystemMessage("Be kind"), ToolMessage("1")]) is None
    assert unread.silence(Sample(id="1", trace=Trace(messages=[HumanMessage("")])), "judgekit") is None
