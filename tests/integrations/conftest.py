"""What the tests of integrations share."""

import json
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from judgekit import HumanMessage, PromptScorer, Run, Sample, Score, ScriptedJudge, ToolCallF1, Trace, load_prompt, run
from judgekit.score import JudgeCall

PAID = JudgeCall(judge="openai/a", prompt="tone@1", cost_usd=0.25)
SCORES = (
    Score.scored("tone", 0.5, label="partly", reason="It is kind.", details={"tp": 1}, calls=[PAID, PAID]),
    Score.skipped("f1", "no reference"),
    Score.failed("goal", "TruncatedError: cut off", error="TruncatedError", calls=[PAID]),
    Score.abstained("panel", "they disagree", calls=[PAID, PAID.model_copy(update={"cost_usd": None})]),
)
"""One of each status."""


@pytest.fixture
def run_with(run_of) -> Callable[..., Run]:
    """Gives a function that makes a run of one sample with these scores, the first four if not given."""

    def make(sample: Sample | None = None, scores: Iterable[Score] = SCORES, *, trace_id: str | None = None) -> Run:
        sample = sample or Sample(id="s1", trace=Trace(id=trace_id))
        return run_of(*([score] for score in scores), samples=[sample])

    return make


class Loopback(ThreadingHTTPServer):
    """A server that keeps the requests it gets, and answers each with the next of ``answers``, or the last one."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, Mapping[str, str], Any]] = []
        self.answers: list[tuple[int, object] | Callable[[Any], tuple[int, object]]] = [(200, {})]
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Loopback

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), body))
            answers = self.server.answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        status, found = answer(body) if callable(answer) else answer
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def loopback(monkeypatch) -> Iterator[Loopback]:
    """A server on this machine; requests are retried without waiting."""
    monkeypatch.setattr("judgekit.integrations.json_client._PAUSE_SECONDS", 0.0)
    with Loopback() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def coin_flipper() -> Callable[[str], PromptScorer]:
    """A scorer of this name whose judge flips a coin."""
    coin = random.Random(0)  # noqa: S311 - any coin will do

    def flipped(_: object) -> dict[str, object]:
        return {"reason": "heads or tails", "evidence": [], "verdict": coin.choice(["fitting", "lacking"])}

    return lambda name: PromptScorer(load_prompt("tone"), ScriptedJudge(flipped), name=name)


@pytest.fixture
def coin_flips(coin_flipper: Callable[[str], PromptScorer]) -> Run:
    """Thirty verdicts of a judge that flips a coin, under the name ``mine``, and as many scores without a judge."""
    conversation = Sample.of([HumanMessage("Hi")], id="s1", reference_tool_calls=[])
    trace = conversation.trace.model_copy(update={"id": "tr-" + "a" * 32})
    samples = [conversation.model_copy(update={"trace": trace})] * 30
    return run(samples, [coin_flipper("mine"), ToolCallF1()])


@pytest.fixture
def snippet() -> Callable[[str], str]:
    """The snippet of the documentation that stands below a heading."""
    text = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")

    def below(heading: str) -> str:
        return re.search(rf"^## {heading}\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]

    return below
