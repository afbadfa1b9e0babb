"""Every third-party recording is recognized and read, and nothing of it is lost."""

import json
import random
import re
from collections import Counter

import pytest

from judgekit import read
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.traces.pairing import pair_results

FORMATS = {
    "adk": {"adk", "adk-eval"},
    "anthropic": {"anthropic"},
    "anthropic-claude-code": {"claude-code"},
    "atif": {"atif"},
    "baseten": {"openai-chat"},
    "bedrock": {"bedrock"},
    "bedrock-anthropic": {"anthropic"},
    "chat-completions": {"openai-chat"},
    "google": {"gemini"},
    "inspect": {"inspect"},
    "langchain": {"langchain"},
    "mlflow": {"mlflow"},
    "openai-agents": {"openai-agents", "openai-responses"},
    "openinference": {"openinference"},
    "otel": {"otel"},
    "pydantic-ai": {"pydantic-ai"},
    "responses": {"openai-responses"},
    "tau2": {"tau2"},
    "vertex-anthropic": {"anthropic"},
    "vertex-google": {"gemini"},
}
"""The formats of the files in each folder."""
NO_CONVERSATION = {
    "adk/trip_planner_agent_initial.session.json": "the session contains no messages",
    "inspect/log_invalid.txt": "not JSON",  # it is truncated
    "inspect/log_valid.txt": "samples: the log contains none",
    "inspect/log_version_3.txt": "samples: the log contains none",
    "inspect/log_with_nan.txt": "samples: the log contains none",
    "otel/autogen_live_spans.json": "content capture was off",
}
"""Files with nothing to score, and their errors. ToolTalk's are tasks of a benchmark, not recordings."""


@pytest.fixture
def files(shared_data):
    folder = shared_data / "traces"
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in found.items() if not re.search(r"LICENSE|\.md$|^tooltalk/", name)}


def test_every_file_is_recognized_and_read(files):
    refused = {}
    for name, path in files.items():
        try:
            samples = list(read(path, on_error="raise"))
        except TraceError as error:
            refused[name] = error.problem
            continue
        assert {sample.trace.source.format for sample in samples} <= FORMATS[path.parent.name], name
    errors = {name for name in refused if name.endswith("/error.json")}  # error responses of APIs
    assert len(errors) == 14
    assert refused.keys() - errors == NO_CONVERSATION.keys()
    assert all(said in refused[name] for name, said in NO_CONVERSATION.items())


def test_nothing_of_any_file_is_forgotten(files, forgotten):
    """All files except long ones, and a random selection where there are many short ones."""
    many = [name for name in files if name.startswith("lingua/") and not name.endswith("error.json")]
    left_out = {*many, *NO_CONVERSATION} - set(random.sample(many, 40))
    tried = 0
    for name, path in files.items():
        if name in left_out or path.suffix not in (".json", ".jsonl") or path.stat().st_size > 50_000:
            continue
        text = path.read_text(encoding="utf-8")
        try:
            document = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
            reader = detect(document)
        except (ValueError, TraceError):
            continue
        tried += 1
        assert forgotten(reader, document, most=12) == [], name
    assert tried > 70


COUNTED = {
    "lingua/snapshots/*/anthropic/*.json": "samples 231 alone 114 user 171 assistant 183 system 16 tool 17 calls 26 tools 35 in 115112 out 12693",
    "lingua/snapshots/*/bedrock-anthropic/*.json": "samples 21 alone 10 user 15 assistant 17 tool 5 calls 7 tools 4 in 3586 out 1106",
    "lingua/snapshots/*/vertex-anthropic/*.json": "samples 20 alone 10 user 14 assistant 15 tool 1 calls 3 tools 2 in 2137 out 1082",
    "lingua/snapshots/*/bedrock/*.json": "alone 20 user 28 assistant 31 tool 5 calls 7 tools 4 in 5325 out 3671",
    "lingua/snapshots/*/chat-completions/*request.json lingua/snapshots/*/baseten/*request.json": "samples 115 user 165 assistant 62 system 6 tool 12 calls 12 paired 12",
    "lingua/snapshots/*/chat-completions/*response.json lingua/snapshots/*/baseten/*response.json": "samples 110 alone 110 assistant 110 calls 10 in 8570 out 51136",
    "lingua/snapshots/*/responses/request.json": "samples 52 user 54 system 4 assistant 4 calls 4 tool 4",
    "lingua/snapshots/*/responses/response.json": "samples 49 alone 49 system 2 assistant 49 calls 21",
    "lingua/snapshots/*/responses/followup-request.json": "samples 45 user 84 system 3 assistant 49 calls 25 tool 12",
    "lingua/snapshots/*/responses/followup-response.json": "samples 45 alone 45 system 1 assistant 45 calls 5 tool 1",
    "lingua/snapshots/*/*google/request.json": "samples 49 system 2 user 49 assistant 2 tool 3 calls 3",
    "lingua/snapshots/*/*google/response.json": "samples 47 alone 47 assistant 48 tool 1 calls 6 thoughts 4 total 65659",
    "lingua/snapshots/*/*google/followup-request.json": "samples 44 system 2 user 83 assistant 47 tool 9 calls 9 thoughts 4",
    "lingua/snapshots/*/*google/followup-response.json": "samples 44 alone 44 assistant 44 calls 4 thoughts 3 total 31910",
    "anthropic-claude-code/edge_cases.jsonl": "samples 2 user 5 assistant 4 system 3 tool 1 calls 3 errors 1 out 435",
    "anthropic-claude-code/representative_messages.jsonl": "samples 1 user 4 assistant 5 tool 2 calls 2 out 445",
    "anthropic-claude-code/sample_session.json": "samples 1 user 5 assistant 15 system 1 tool 12 calls 12 errors 1",
    "anthropic-claude-code/sample_session.jsonl": "samples 1 user 2 assistant 3 tool 2 calls 2",
    "anthropic-claude-code/session_b.jsonl": "samples 1 user 2 assistant 1 out 35",
    "anthropic-claude-code/todowrite_examples.jsonl": "samples 1 user 2 assistant 6 tool 3 calls 3 out 328",
    "inspect/2025-05-12T20-28-26-04-00_security-guide.json": "samples 3 messages 9 assistant 3 labels 3",
    "inspect/2026-11-20T11-39-39-00-00_task_*.json": "samples 1 messages 5 assistant 2 calls 2 tool 2 errors 1 labels 1",
    "inspect/log_length_stop_reason.txt": "samples 1 messages 2 assistant 1 labels 1",
    "inspect/log_read_sample.json": "samples 1 messages 3 assistant 1 labels 1",
    "inspect/log_tool_call_error.json": "samples 1 messages 11 tool 11 errors 11",
    "langchain/*.json": "samples 3 user 3 assistant 6 tool 9 calls 9 errors 6",
    "mlflow/mlflow_trace.json": "samples 1 user 1 assistant 3 tool 2 calls 2 errors 1 tools 1 labels 1",
    "pydantic-ai/pydantic_ai_messages.json": "samples 1 system 2 user 1 assistant 3 tool 3 calls 3 errors 1",
    "openinference/openinference_client_span_*.json": "samples 2 user 2 assistant 4 tool 2 calls 2",
    "openinference/openinference_live_spans.json": "samples 1 system 1 user 2 assistant 2 tool 1 calls 2",
    "openinference/smolagents_live_spans.json": "samples 1 system 1 user 1 assistant 3 tool 3 calls 2",
    "otel/otel_genai_client_span_tool_calls.json": "samples 1 user 1 assistant 2 tool 1 calls 1",
    "otel/otel_genai_convention_spans.json": "samples 1 user 1 assistant 2 tool 2 calls 2 errors 1",
    "otel/otel_genai_deprecated_client_span_tool_calls.json": "samples 1 user 1 assistant 2 tool 1 calls 1",
    "otel/otel_genai_tool_execution_span.json": "samples 1 alone 1 assistant 1 tool 1 calls 1",
    "otel/pydantic_ai_live_spans.json": "samples 1 system 1 user 1 assistant 2 tool 1 calls 1",
    "atif/harbor_openhands.json": "user 1 system 3 assistant 2 calls 2 tool 1 paired 1",
    "atif/harbor_terminus2_continuation.json": "user 1 system 1 assistant 3 tool 3",
    "atif/harbor_terminus2_continuation_cont1.json": "assistant 4 tool 4",
    "atif/harbor_terminus2_invalid_json.json": "user 1 assistant 4 calls 3 tool 4 paired 3",
    "atif/harbor_terminus2_summarization.json": "user 2 system 1 assistant 7 calls 7 tool 7 paired 7",
    "atif/multimodal_trajectory.json": "user 1 assistant 2 calls 1 tool 1 paired 1",
    "atif/parallel_tools_mixed_results.json": "user 1 assistant 2 calls 3 tool 3 paired 3",
    "atif/subagent_trajectories.json": "user 1 assistant 2 calls 1 tool 1 paired 1 children 1",
    "atif/v17_embedded_subagents.json": "user 1 system 1 assistant 2 calls 1 tool 2 paired 1 children 1",
}
"""Counts from the files: conversations, those without a question, messages by role, and what they hold."""


def test_recordings_hold_what_was_counted_in_them(shared_data, no_question):
    for pattern, counts in COUNTED.items():
        counted = Counter()
        paths = [
            path for one in pattern.split() for path in (shared_data / "traces").glob(one) if path.name != "error.json"
        ]
        for trace in (sample.trace for path in paths for sample in read(path, on_error="raise")):
            usages = [usage for message in trace.messages if (usage := getattr(message, "usage", None))]
            results = [message for message in trace.messages if message.role == "tool"]
            parts = (
                part for message in trace.messages if not isinstance(message.content, str) for part in message.content
            )
            counted.update("system" if message.role == "developer" else message.role for message in trace.messages)
            counted.update(
                {"samples": 1, "messages": len(trace.messages), "alone": no_question in trace.warnings},
                calls=len(trace.tool_calls()),
                paired=len(pair_results(trace.messages).calls),
                errors=sum(result.is_error is True for result in results),
                thoughts=sum(part.type == "reasoning" for part in parts),
                **{name: len(getattr(trace, name)) for name in ("tools", "labels", "children")},
                **{"in": sum(usage.input_tokens or 0 for usage in usages)},
                out=sum(usage.output_tokens or 0 for usage in usages),
            )
        counted["total"] = counted["in"] + counted["out"]
        expected = {name: int(number) for name, number in zip(*[iter(counts.split())] * 2, strict=True)}
        assert {name: counted[name] for name in expected} == expected, pattern


ANSWERED = [
    ("user", "Where is order 7?"),
    ("assistant", "find_order {'id': 7}"),
    ("tool", "sent"),
    ("assistant", "It was sent."),
]
KERNEL = [
    turn if turn[1] != "find_order {'id': 7}" else ("assistant", "orders-find_order {'id': 7}") for turn in ANSWERED
]
FOUND = {
    "autogen_messages.json": ("autogen", ANSWERED, {"agent"}),
    "haystack.json": ("haystack", ANSWERED, {None}),
    "llama_messages.json": ("llama-index", ANSWERED, {None}),
    "qwen_code.jsonl": (
        "qwen-code",
        [
            ("user", "run ls"),
            ("assistant", "run_shell_command {'command': 'ls'}"),
            ("tool", "a.py"),
            ("assistant", "One file."),
        ],
        {None},
    ),
    "realtime_audio.json": ("openai-responses-stream", ANSWERED[3:], {None}),
    "semantic_kernel.json": ("semantic-kernel", KERNEL, {None}),
    "smol_steps.json": ("smolagents", [("system", "You are an expert"), *ANSWERED], {None}),
    "stream_index_0.jsonl": ("openai-chat-chunks", [("assistant", "f {'x': 0} g {'x': 1}")], {None}),
}
"""The format, turns and agents of small inputs that were read wrongly before, counted by hand. Turns are shown by the
beginning of their text, or their calls."""


@pytest.fixture
def found(shared_data):
    folder = shared_data.parent / "found"
    if not folder.is_dir():
        pytest.skip(f"the inputs that were read wrongly are not here ({folder})")
    return folder


@pytest.mark.parametrize("name", FOUND)
def test_what_was_read_wrongly_before_is_read(found, name, no_question):
    form, turns, agents = FOUND[name]
    [sample] = read(found / name, on_error="raise")
    assert sample.trace.source.format == form
    shown = [
        (
            message.role,
            " ".join(f"{call.name} {call.args}" for call in getattr(message, "tool_calls", ())) or message.text,
        )
        for message in sample.trace.messages
    ]
    assert len(shown) == len(turns)
    assert all(seen[0] == role and seen[1].startswith(text) for seen, (role, text) in zip(shown, turns, strict=True))
    assert {message.agent for message in sample.trace.messages if message.role == "assistant"} == agents
    assert pair_results(sample.trace.messages).orphans == ()
    told = {"realtime_audio.json": 1, "smol_steps.json": 1}
    assert len([warning for warning in sample.trace.warnings if warning != no_question]) == told.get(name, 0)


HELD_TOGETHER = {
    "qwen_code.jsonl": (".uuid", ".parentUuid", ".sessionId"),
    "claude_code_empty_result.jsonl": (".uuid", ".parentUuid", ".sessionId"),
    "stream_index_0.jsonl": (".id", ".index", ".role"),
    "realtime_audio.json": ("[0].response.id", "[0].response.object", ".type"),
}
"""The ends of paths of ids and kinds that only hold a recording together."""


def test_nothing_of_what_was_read_wrongly_is_forgotten(found, forgotten):
    missing = {}
    for path in sorted(found.glob("*.json*")):
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
        held = HELD_TOGETHER.get(path.name, ())
        lost = [path for path in forgotten(detect(document), document) if not path.endswith(held)]
        missing |= {path.name: lost} if lost else {}
    assert missing == {}
