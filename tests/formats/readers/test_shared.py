"""Every third-party recording is recognized and read, and nothing of it is lost."""

import json
import random
import re

import pytest

from judgekit import read
from judgekit.errors import TraceError
from judgekit.formats.detect import detect

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
