"""Messages of AutoGen, Haystack, LlamaIndex, Qwen Code, Semantic Kernel and smolagents."""

import json

import pytest

from judgekit.formats.detect import detect
from judgekit.formats.readers import READERS
from judgekit.traces.message import AIMessage, MediaPart, ReasoningPart, SystemMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.trace import Trace

PNG = "iVBORw0KGgo="


def call(name: str, number: int, **args: object) -> dict:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


def hay(role: str, *content: dict, **meta: object) -> dict:
    return {"role": role, "meta": meta, "name": None, "content": list(content)}


def hay_call(name: str, number: int, **args: object) -> dict:
    return {"tool_name": name, "arguments": args, "id": f"c{number}", "extra": None}


def hay_result(result: object, origin: dict, *, error: bool = False) -> dict:
    return {"tool_call_result": {"result": result, "origin": origin, "error": error}}


F, G = hay_call("f", 1, a=1), hay_call("g", 2)
HAYSTACK = [
    hay("system", {"text": "Be brief."}),
    hay("user", {"text": "What is it?"}, {"image": {"base64_image": PNG, "mime_type": "image/png", "detail": "low"}}),
    hay(
        "assistant",
        {"reasoning": {"reasoning_text": "Both.", "extra": {}}},
        {"text": "I look."},
        {"tool_call": F},
        {"tool_call": G},
        model="m",
        finish_reason="tool_calls",
        usage={"prompt_tokens": 3, "completion_tokens": 4},
    ),
    hay("tool", hay_result("one", F), hay_result([{"text": "two"}, {"text": "three"}], G, error=True)),
    hay("assistant", {"text": "A cat."}),
    hay("user", {"text": "Thanks"}),
]


def llama(role: str, *blocks: dict, **arguments: object) -> dict:
    return {"role": role, "additional_kwargs": arguments, "blocks": list(blocks)}


def text_block(text: str) -> dict:
    return {"block_type": "text", "text": text}


LLAMA = [
    llama("system", text_block("Be brief.")),
    llama(
        "user",
        text_block("What is it?"),
        {
            "block_type": "image",
            "image": PNG,
            "path": None,
            "url": None,
            "image_mimetype": "image/png",
            "detail": "low",
        },
    ),
    llama(
        "assistant",
        {"block_type": "thinking", "content": "Both.", "num_tokens": 2, "additional_information": {"signature": "s"}},
        text_block("I look."),
        {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "f", "tool_kwargs": '{"a": 1}'},
        {"block_type": "tool_call", "tool_call_id": "c2", "tool_name": "g", "tool_kwargs": {}},
        tool_calls=[call("f", 1, a=1), call("g", 2)],
    ),
    llama("tool", text_block("one"), tool_call_id="c1", name="f"),
    llama("function", text_block("two"), text_block("three"), tool_call_id="c2", name="g"),
    llama("model", text_block("A cat.")),
    llama("user", text_block("Thanks")),
]


def kernel(role: str, *items: dict, **fields: object) -> dict:
    return {"metadata": {}, "content_type": "message", "role": role, "items": list(items), **fields}


def kernel_item(kind: str, **fields: object) -> dict:
    return {"metadata": {}, "content_type": kind, **fields}


KERNEL = {
    "messages": [
        kernel("system", kernel_item("text", text="Be brief.")),
        kernel(
            "user",
            kernel_item("text", text="What is it?"),
            kernel_item("image", data=PNG, mime_type="image/png", data_format="base64"),
        ),
        kernel(
            "assistant",
            kernel_item("reasoning", text="Both."),
            kernel_item("text", text="I look."),
            kernel_item("function_call", id="c1", index=0, name="f", function_name="f", arguments='{"a": 1}'),
            kernel_item("function_call", id="c2", index=1, name="g", function_name="g", arguments={}),
            name="helper",
            ai_model_id="m",
            finish_reason="tool_calls",
        )
        | {"metadata": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}, "system_fingerprint": None}},
        kernel(
            "tool",
            kernel_item("function_result", id="c1", name="f", function_name="f", result="one"),
            kernel_item("function_result", id="c2", name="g", function_name="g", result="two\nthree"),
        ),
        kernel("assistant", kernel_item("text", text="A cat."), name="helper"),
        kernel("user", kernel_item("text", text="Thanks")),
    ]
}


def said(kind: str, source: str, content: object, **fields: object) -> dict:
    return {"type": kind, "source": source, "content": content, "models_usage": None, "metadata": {}, **fields}


AUTOGEN = [
    {"type": "SystemMessage", "content": "Be brief."},
    said("MultiModalMessage", "user", ["What is it?", {"data": PNG}], created_at="2026-11-28T17:26:10Z"),
    said("ThoughtEvent", "helper", "Both."),
    said(
        "ToolCallRequestEvent",
        "helper",
        [{"id": "c1", "name": "f", "arguments": '{"a": 1}'}, {"id": "c2", "name": "g", "arguments": "{}"}],
        models_usage={"prompt_tokens": 3, "completion_tokens": 4},
    ),
    said(
        "ToolCallExecutionEvent",
        "helper",
        [
            {"content": "one", "name": "f", "call_id": "c1", "is_error": False},
            {"content": "two\nthree", "name": "g", "call_id": "c2", "is_error": True},
        ],
    ),
    said("ModelClientStreamingChunkEvent", "helper", "A "),
    said("ModelClientStreamingChunkEvent", "helper", "cat."),
    said("TextMessage", "helper", "A cat."),
    said("UserInputRequestedEvent", "boss", "", request_id="r"),
    said("TextMessage", "boss", "Thanks"),
]
EXPECTED = [
    ("system", "Be brief.", ()),
    ("user", "What is it?", ()),
    ("assistant", "I look.", (("f", {"a": 1}, "c1"), ("g", {}, "c2"))),
    ("tool", "one", "c1"),
    ("tool", "two\nthree", "c2"),
    ("assistant", "A cat.", ()),
    ("user", "Thanks", ()),
]
"""The roles, texts, and calls or answered calls of the conversations, counted by hand."""


def shown(trace: Trace) -> list[tuple]:
    return [
        (
            message.role,
            message.text,
            message.tool_call_id
            if message.role == "tool"
            else tuple((one.name, one.args, one.id) for one in getattr(message, "tool_calls", ())),
        )
        for message in trace.messages
    ]


def read_one(name: str, document: object) -> Trace:
    reader = detect(document)
    assert reader.name == name
    [record] = reader.records(document)
    return reader.sample(record, 0).trace


@pytest.mark.parametrize(
    ("name", "document", "failed"),
    [
        ("haystack", HAYSTACK, True),
        ("haystack", [{f"_{name}": held for name, held in message.items()} for message in HAYSTACK], True),
        ("llama-index", LLAMA, None),
        ("semantic-kernel", KERNEL, None),
        ("autogen", AUTOGEN, True),
    ],
    ids=["Haystack", "Haystack 2.9", "LlamaIndex", "Semantic Kernel", "AutoGen"],
)
def test_a_conversation_with_parallel_calls_an_image_and_thoughts_is_read(name, document, failed):
    trace = read_one(name, document)
    messages = shown(trace)
    if name == "autogen":  # its thoughts are events of their own, and what is said beside calls is in them
        assert messages.pop(2) == ("assistant", "", ())
        assert trace.messages[2].content == (ReasoningPart("Both."),)
        messages[2] = ("assistant", "I look.", messages[2][2])
    assert messages == EXPECTED
    [image] = [part for part in trace.messages[1].content if isinstance(part, MediaPart)]
    assert (image.kind, image.mime_type, image.data) == ("image", "image/png", PNG)
    if name != "autogen":
        assert [part.text for part in trace.messages[2].content if isinstance(part, ReasoningPart)] == ["Both."]
    asking = next(message for message in trace.messages if getattr(message, "tool_calls", ()))
    if name != "llama-index":
        assert (asking.usage.input_tokens, asking.usage.output_tokens) == (3, 4)
    results = [message for message in trace.messages if message.role == "tool"]
    assert [result.name for result in results] == ["f", "g"]
    assert results[1].is_error is failed
    assert list(pair_results(trace.messages).orphans) == []
    if name == "autogen":
        assert {message.agent for message in trace.messages if message.role == "assistant"} == {"helper"}
        [warning] = trace.warnings
        assert warning.message == "events that are not messages, kept in extra: 2 ModelClientStreamingChunkEvent"
    else:
        assert trace.warnings == ()


def test_a_summary_and_code_of_autogen_are_the_agents_words_and_a_handoff_is_too():
    calls = [{"id": "c1", "name": "f", "arguments": "{}"}]
    results = [{"content": "one", "name": "f", "call_id": "c1", "is_error": False}]
    document = {
        "messages": [
            said("TextMessage", "user", "Go"),
            said("ToolCallRequestEvent", "a", calls),
            said("ToolCallExecutionEvent", "a", results),
            said("ToolCallSummaryMessage", "a", "one", tool_calls=calls, results=results),
            said("HandoffMessage", "a", "To b", target="b", context=[]),
            said("CodeExecutionEvent", "b", None, result={"exit_code": 0, "output": "42"}),
            said("StructuredMessage[Answer]", "b", {"answer": 42}),
            said("MemoryQueryEvent", "b", [{"content": "old", "mime_type": "text/plain"}]),
            said("OwnMessage", "b", "Bye"),
            said("StopMessage", "b", "TERMINATE"),
        ],
        "stop_reason": "Text 'TERMINATE' mentioned",
    }
    trace = read_one("autogen", document)
    assert [message.text for message in trace.messages] == [
        *("Go", "", "one", "one", "To b", "42", '{"answer": 42}', "Bye", "TERMINATE")
    ]
    assert [getattr(message, "agent", None) for message in trace.messages] == [None, "a", None, *"aabbbb"]
    assert [found.call.name for found in trace.tool_calls()] == ["f"]
    assert trace.termination == "Text 'TERMINATE' mentioned"
    assert [warning.message for warning in trace.warnings] == [
        "events that are not messages, kept in extra: 1 MemoryQueryEvent"
    ]


def test_the_context_of_an_agent_of_autogen_is_read():
    context = [
        {"type": "SystemMessage", "content": "Be brief."},
        {"type": "UserMessage", "content": "Go", "source": "user"},
        {
            "type": "AssistantMessage",
            "content": [{"id": "c1", "name": "f", "arguments": "{}"}],
            "source": "a",
            "thought": "Hm",
        },
        {
            "type": "FunctionExecutionResultMessage",
            "content": [{"content": "1", "name": "f", "call_id": "c1", "is_error": False}],
        },
        {"type": "UserMessage", "content": "From b", "source": "b"},
        {"type": "AssistantMessage", "content": "Done", "source": "a"},
    ]
    trace = read_one("autogen", context)
    assert shown(trace) == [
        ("system", "Be brief.", ()),
        ("user", "Go", ()),
        ("assistant", "", (("f", {}, "c1"),)),
        ("tool", "1", "c1"),
        ("assistant", "From b", ()),
        ("assistant", "Done", ()),
    ]
    assert [message.agent for message in trace.messages if isinstance(message, AIMessage)] == ["a", "b", "a"]


@pytest.mark.parametrize("wrap", [lambda history: history, lambda history: {"id": "m", "messages": history}])
def test_logs_of_magentic_one_have_a_human_and_agents(wrap):
    history = [
        {"role": "human", "content": "Where can I dance?"},
        {"role": "Orchestrator (thought)", "content": "A plan"},
        {"role": "Orchestrator (-> WebSurfer)", "content": "Search"},
        {"role": "WebSurfer", "content": "Here"},
    ]
    trace = read_one("autogen", wrap(history))
    assert [message.role for message in trace.messages] == ["user", *["assistant"] * 3]
    assert [message.agent for message in trace.messages[1:]] == ["Orchestrator", "Orchestrator", "WebSurfer"]
    assert trace.warnings == ()


def test_a_chat_store_of_llama_index_holds_conversations():
    store = {"store": {"alice": LLAMA, "bob": LLAMA[:2]}, "class_name": "SimpleChatStore"}
    reader = detect(store)
    samples = [reader.sample(record, number) for number, record in enumerate(reader.records(store))]
    assert [(sample.id, len(sample.trace.messages)) for sample in samples] == [("alice", 7), ("bob", 2)]
    old = [
        {"role": "user", "content": "Hi", "additional_kwargs": {}},
        {"role": "assistant", "content": "Yo", "additional_kwargs": {}},
    ]
    assert [message.text for message in read_one("llama-index", old).messages] == ["Hi", "Yo"]


def action(number: int, calls: list | None = None, **fields: object) -> dict:
    return {
        "step_number": number,
        "timing": {"start_time": 1.0, "end_time": 2.0, "duration": 1.0},
        "model_input_messages": [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}],
        "tool_calls": calls or [],
        "error": None,
        "model_output_message": {"role": "assistant", "content": fields.get("model_output"), "tool_calls": calls},
        "model_output": None,
        "code_action": None,
        "observations": None,
        "observations_images": None,
        "action_output": None,
        "token_usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        "is_final_answer": False,
        **fields,
    }


def final(**arguments: object) -> dict:
    return {"id": "c9", "type": "function", "function": {"name": "final_answer", "arguments": arguments}}


STEPS = [
    {"task": "What is it?", "task_images": None},
    {
        "plan": "1. Look",
        "model_input_messages": [],
        "model_output_message": {"role": "assistant", "content": "1. Look"},
    },
    action(1, [call("f", 1, a=1)], model_output="I look.", observations="one"),
    action(2, [call("f", 2), call("g", 3)], observations="two\nthree"),
    action(3, [call("g", 4)], error={"type": "AgentToolExecutionError", "message": "broken"}),
    action(4, None, model_output="Hm", error={"type": "AgentParsingError", "message": "no call"}),
    action(5, [final(answer="A cat.")], model_output="Easy.", observations="A cat.", is_final_answer=True),
]


def test_steps_of_smolagents_are_calls_observations_and_an_answer():
    trace = read_one("smolagents", STEPS)
    assert shown(trace) == [
        ("system", "Be brief.", ()),
        ("user", "What is it?", ()),
        ("assistant", "1. Look", ()),
        ("assistant", "I look.", (("f", {"a": 1}, "c1"),)),
        ("tool", "one", "c1"),
        ("assistant", "", (("f", {}, "c2"), ("g", {}, "c3"))),
        ("tool", "two\nthree", "c2"),
        ("assistant", "", (("g", {}, "c4"),)),
        ("tool", "broken", "c4"),
        ("assistant", "Hm", ()),
        ("system", "no call", ()),
        ("assistant", "A cat.", ()),
    ]
    assert [message.is_error for message in trace.messages if message.role == "tool"] == [False, False, True]
    assert trace.messages[-1].content[0] == ReasoningPart("Easy.")
    assert (trace.messages[-1].usage.input_tokens, trace.termination) == (3, None)
    assert [warning.message for warning in trace.warnings] == [
        "one text for 2 calls, kept as the result of the first",
        "repeats the history, left out except the system prompt, found 6",
    ]


def test_what_a_managed_agent_of_smolagents_did_is_missing_with_a_warning():
    report = "Here is the final answer from your managed agent 'searcher':\nrain"
    trace = read_one("smolagents", [STEPS[0], action(1, [call("searcher", 1)], observations=report), STEPS[-1]])
    missing = next(warning for warning in trace.warnings if warning.path == "children")
    assert missing.message == "sub-agents whose conversations are not in the recording, found 1: searcher"


def test_code_of_smolagents_is_a_call_and_its_answer_follows():
    code = {"id": "c1", "type": "function", "function": {"name": "python_interpreter", "arguments": "final_answer(42)"}}
    last = action(
        1, [code], model_output="Thought", observations="Execution logs: 42", action_output=42, is_final_answer=True
    )
    trace = read_one("smolagents", {"steps": [STEPS[0], last], "output": 42, "state": "success"})
    assert [(message.role, message.text) for message in trace.messages[2:]] == [
        ("assistant", "Thought"),
        ("tool", "Execution logs: 42"),
        ("assistant", "42"),
    ]
    assert (trace.termination, "output" in trace.extra) == ("success", False)


def test_smolagents_that_ran_out_of_steps_say_so():
    error = {"type": "AgentMaxStepsError", "message": "Reached max steps."}
    trace = read_one(
        "smolagents",
        [STEPS[0], action(1, [call("f", 1)], observations="1"), action(2, error=error, action_output="A dog?")],
    )
    assert (trace.messages[-1].text, trace.termination) == ("A dog?", "AgentMaxStepsError")
    assert SystemMessage("Reached max steps.") in [
        message.model_copy(update={"extra": {}}) for message in trace.messages
    ]


def qwen(number: int, kind: str, parent: int | None, *parts: dict, **fields: object) -> dict:
    role = "model" if kind == "assistant" else "user"
    return {
        "uuid": f"u{number}",
        "parentUuid": None if parent is None else f"u{parent}",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:01Z",
        "type": kind,
        "cwd": "/w",
        "version": "0.5.0",
        **({"message": {"role": role, "parts": list(parts)}} if parts else {}),
        **fields,
    }


def function(name: str, number: int, **args: object) -> dict:
    return {"functionCall": {"id": f"c{number}", "name": name, "args": args}}


def response(name: str, number: int, **outcome: object) -> dict:
    return {"functionResponse": {"id": f"c{number}", "name": name, "response": outcome}}


QWEN = [
    qwen(1, "user", None, {"text": "Look"}),
    qwen(2, "assistant", 1, {"text": "Wrong way"}),
    qwen(3, "user", None, {"text": "What is it?"}),
    qwen(
        4,
        "assistant",
        3,
        {"text": "Both.", "thought": True},
        {"text": "I look."},
        function("f", 1, a=1),
        function("g", 2),
        model="qwen3",
        usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 4},
    ),
    qwen(5, "tool_result", 4, response("f", 1, output="one"), toolCallResult={"callId": "c1", "status": "success"}),
    qwen(6, "tool_result", 5, response("g", 2, error="two"), toolCallResult={"callId": "c2", "status": "error"}),
    qwen(7, "system", 6, subtype="ui_telemetry", systemPayload={"uiEvent": {"duration_ms": 4}}),
    qwen(8, "user", None, {"text": "Find it"}, isSidechain=True, agentId="explore-1", agentName="Explore"),
    qwen(9, "assistant", 8, function("grep", 3), isSidechain=True, agentId="explore-1", agentName="Explore"),
    qwen(10, "assistant", 7, {"text": "A cat."}, model="qwen3"),
]


def test_a_session_of_qwen_code_is_its_last_path_and_its_sub_agents():
    trace = read_one("qwen-code", QWEN)
    assert shown(trace) == [
        ("user", "What is it?", ()),
        ("assistant", "I look.", (("f", {"a": 1}, "c1"), ("g", {}, "c2"))),
        ("tool", "one", "c1"),
        ("tool", "two", "c2"),
        ("assistant", "A cat.", ()),
    ]
    assert [message.is_error for message in trace.messages if message.role == "tool"] == [False, True]
    assert (trace.messages[1].model, trace.messages[1].usage.output_tokens) == ("qwen3", 4)
    [child] = trace.children
    assert (child.id, [found.call.name for found in child.tool_calls()], child.messages[1].agent) == (
        "explore-1",
        ["grep"],
        "Explore",
    )
    assert [warning.message for warning in trace.warnings] == ["unread rows, kept in extra: 2 abandoned branch"]
    alone = read_one("qwen-code", QWEN[7:9])
    assert (alone.id, alone.messages[0].text, alone.children) == ("s#explore-1", "Find it", ())


FORMATS = {
    "haystack": HAYSTACK,
    "llama-index": LLAMA,
    "semantic-kernel": KERNEL,
    "autogen": AUTOGEN,
    "smolagents": STEPS,
    "qwen-code": QWEN,
}


def test_nothing_is_forgotten_and_nothing_crashes(forgotten, crashes):
    for name, document in FORMATS.items():
        missing = forgotten(READERS[name], document)
        assert [path for path in missing if not path.endswith((".uuid", ".parentUuid", ".type", ".source"))] == []
        assert crashes(READERS[name], document) == []
