"""Fixtures of the tests of jobs: a folder of their own, and conversations."""

from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JUDGEKIT_JUDGE", raising=False)


def _calling(number: int) -> Sample:
    """A conversation in which the tool of that number is called, where tool 0 is expected."""
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{number}", {"x": number})])]
    return Sample.of(messages, id=f"s{number}", reference_tool_calls=[ToolCall("tool_0", {"x": 0})])


@pytest.fixture(scope="session")
def samples() -> Callable[[int], list[Sample]]:
    """Makes so many samples."""
    return lambda number: [_calling(index) for index in range(number)]


@pytest.fixture
def conversations(samples) -> Callable[..., Path]:
    """Writes so many samples into a file."""

    def write(number: int, name: str = "samples.jsonl") -> Path:
        path = Path(name)
        path.write_text("".join(f"{sample.model_dump_json()}\n" for sample in samples(number)))
        return path

    return write
