"""Every third-party recording is recognized and read, and nothing of it is lost."""

import json
import random
import re

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
