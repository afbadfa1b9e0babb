"""A server of runs on loopback, and clients of it."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from judgekit import (
    AgentGoalAccuracyWithReference,
    AIMessage,
    HumanMessage,
    Judge,
    Sample,
    Score,
    ToolCallF1,
    TopicAdherence,
    load_prompt,
    run,
)

pytest.importorskip("starlette", reason="the server needs it")
pytest.importorskip("uvicorn", reason="the server needs it")

from judgekit.runs.rows import Input
from judgekit.runs.store import RunStore
from judgekit.view.access import Access
from judgekit.view.pages import Pages
from judgekit.view.serving import bind, server
from tests.failures.conftest import analyzed  # noqa: F401 - a fixture


@dataclass(frozen=True)
class Kind:
    """A judge that finds every second sample kind."""

    name: str = "kind"
    always: float | None = None

    @property
    def prompts(self):
        return (load_prompt("faithfulness"),)

    async def ascore(self, sample: Sample, /) -> Score:
        value = float(int(sample.id) % 2) if self.always is None else self.always
        return Score.scored("kind", value, reason=f"because of {sample.id}")


def samples(count: int, first: int = 0) -> list[Sample]:
    return [
        Sample.of([HumanMessage(f"Question {number}?"), AIMessage(f"Answer {number}.")], id=str(number))
        for number in range(first, first + count)
    ]


@dataclass
class Served:
    """A server, and what opens it."""

    path: Path
    access: Access

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.access.port}"

    def client(self, **headers: str) -> httpx.Client:
        """A client without the cookie."""
        return httpx.Client(base_url=self.base, headers=headers, timeout=30, trust_env=False)

    def opened(self) -> httpx.Client:
        """A client that has opened the pages."""
        with self.client() as client:
            assert client.get(f"/open?token={self.access.token}").status_code == 200
            cookies = dict(client.cookies)
        return httpx.Client(base_url=self.base, cookies=cookies, timeout=30, trust_env=False)

    def post(self, client: httpx.Client, path: str, sent: object) -> httpx.Response:
        return client.post(path, json=sent, headers={"x-judgekit-token": self.access.write_token})


def as_read_from_a_file(path: Path, *numbers: int) -> None:
    """Makes runs of samples in Python runs of one file."""
    store = RunStore(path)
    for number in numbers:
        read = Input(path="recorded.jsonl", sha256="0" * 64, size=1)
        store.change(store.record(number).model_copy(update={"inputs": (read,)}))


@contextmanager
def serving(path: Path) -> Iterator[Served]:
    with bind("127.0.0.1", 0) as bound:
        access = Access("127.0.0.1", bound.getsockname()[1])
        started = server(Pages(path), access)
        thread = threading.Thread(target=lambda: asyncio.run(started.serve(sockets=[bound])))
        thread.start()
        try:
            yield Served(path, access)
        finally:
            started.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory) -> Path:
    """A file of two runs: 30 samples with a judge, and the same ones again."""
    path = tmp_path_factory.mktemp("two") / "runs.sqlite"
    for _ in range(2):
        run(samples(30), [Kind()], store=path)
    return path


@pytest.fixture
def served(two_runs, tmp_path) -> Iterator[Served]:
    """A copy of the two runs."""
    with serving(shutil.copy(two_runs, tmp_path / "runs.sqlite")) as started:
        yield started


@pytest.fixture(scope="module")
def demo(tmp_path_factory, examples) -> Iterator[Served]:
    """The example conversations, scored three times."""
    path = tmp_path_factory.mktemp("demo") / "runs.sqlite"
    judge = Judge("demo/handwritten", cache=examples / "replies.jsonl", cache_mode="replay")
    conversations = examples / "conversations.jsonl"
    run(conversations, [ToolCallF1(), TopicAdherence(judge), AgentGoalAccuracyWithReference(judge)], store=path)
    for _ in range(2):
        run(conversations, [ToolCallF1()], store=path)
    with serving(path) as started:
        yield started
