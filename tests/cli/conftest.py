"""What tests of the command line share: a command, as the shell would run it, and a judge that it may ask."""

import asyncio
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from judgekit.cli import load_commands, main
from judgekit.runs.rows import Row
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def heads(self) -> dict[str, str]:
        """What ``inspect`` says above the conversation, by its head."""
        above = self.out.partition("\nthe first conversation")[0]
        return dict(re.findall(r"^(\S.{0,13}?)  +(.*)$", above, re.MULTILINE))

    @property
    def counts(self) -> dict[str, list[int]]:
        """The numbers of ``probe``, by kind and by place: attacks, held, misled, wrong, unjudged."""
        lines = map(_cells, self.out.splitlines())
        return {name: [*map(int, cells)] for name, *cells in lines if len(cells) == 5 and cells[0].isdigit()}

    @property
    def table(self) -> dict[str, list[str]]:
        """The first table's lines and those about judges, by scorer, intervals and audits aside."""
        rows: dict[str, list[str]] = {}
        lines = [line.strip() for line in self.out.splitlines()]
        for rule, heads in enumerate(map(_cells, lines), 1):
            if not (rule < len(lines) and lines[rule].startswith("─") and (not rows or heads[0] == "judged scorer")):
                continue
            for name, *cells in map(_cells, lines[rule + 1 : lines.index("", rule)]):
                for aside in ("95 % interval", "audit"):
                    if aside in heads:
                        del cells[heads.index(aside) - 1]
                rows.setdefault(name, []).extend(cells)
        return rows


def _cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


@pytest.fixture(scope="session")
def ended() -> type[Ended]:
    return Ended


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """In a folder of its own, with nothing in the environment that matters here."""
    monkeypatch.chdir(tmp_path)
    for name in (
        *("JUDGEKIT_JUDGE", "OPENAI_API_KEY", "GITHUB_STEP_SUMMARY"),
        *("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(autouse=True, scope="session")
def _built_once() -> Iterator[None]:
    """The parser of the command line, which typer would build anew for every command, with all commands in it."""
    load_commands([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def cli(monkeypatch, capsys) -> Callable[..., Ended]:
    """Runs a command as the shell would."""

    def call(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["judgekit", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        assert "Traceback" not in out + err
        return Ended(0 if code is None else code, out, err)

    return call


_COMMAND = """
import os, signal
import judgekit.judges.cache.cache, judgekit.judges.cache.replies
from judgekit.cli import main
judgekit.judges.cache.cache.CLAIM_LEASE_SECONDS = judgekit.judges.cache.replies.CLAIM_LEASE_SECONDS = float(os.environ.get("TEST_LEASE", "0.2"))  # what was under way when it was killed is asked soon
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have switched it off
    main()
"""


@pytest.fixture
def started(forked) -> Callable[..., Any]:
    """Starts judgekit's commands in processes of their own, which are gone when the test is."""
    script = Path("command.py").absolute()
    script.write_text(_COMMAND)
    return partial(forked, "python", script)


@pytest.fixture(scope="session")
def unspent() -> Callable[[Iterable[Row]], list[Row]]:
    """Gives rows without who answered their calls and what these took, so that those of two runs can be compared."""
    nobody = {"judge": "", "model": None, "system_fingerprint": None, "share": None}
    free = {**nobody, "cached": False, "cost_usd": None, "seconds": 0.0, "usage": None}

    def without(row: Row) -> Row:
        calls = tuple(call.model_copy(update=free) for call in row.score.calls)
        return row.model_copy(update={"score": row.score.model_copy(update={"calls": calls})})

    return lambda rows: [*map(without, rows)]


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits for something that another process does."""

    def until(it_is_so: Callable[[], object]) -> None:
        began = time.monotonic()
        while not it_is_so():
            assert time.monotonic() - began < 30
            time.sleep(0.002)

    return until


class Judging:
    """An OpenAI-compatible judge that needs a few milliseconds for each answer, and counts what it is asked.

    A goal is achieved where the name of the called tool ends in an even digit. Tests replace its methods.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._connections: set[asyncio.Task] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.live()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.begin()

    def begin(self) -> None:
        """Starts as if nobody had asked it before, and answers as it is written here."""
        self.asked: Counter[str] = Counter()
        self.requests: list[dict] = []
        self.waits_for = 0
        """The number of requests that have to be there before any is answered."""
        self.shutdown_date: object = None
        self.seconds = 0.003
        self.reason = "the call was made"
        self.dies_at: int | None = None
        """The request at which it dies, without an answer to any that it has."""
        self.died = threading.Event()
        self.hangs_from: int | None = None
        """The request from which on none gets an answer."""
        for name in ("answer", "reply"):
            self.__dict__.pop(name, None)
        if self._is_dead:
            self.live()

    def live(self) -> None:
        """Listens, also once more after it died."""
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]
        self._is_dead = False

    def _die(self) -> None:
        self._is_dead = True
        for listener in self._server.sockets:
            self._loop.remove_reader(listener)  # accept no more, then serve what is accepted, then close:
        self._loop.call_soon(self._server.close)  # asyncio forgets, unclosed, what was accepted and is served too late
        for writer in self._writers:
            writer.transport.abort()
        self.died.set()

    @staticmethod
    def number(conversation: str) -> int:
        """That of the tool that was called."""
        return int(re.search(r"tool_(\d+)", conversation)[1])

    def answer(self, conversation: str) -> dict:
        verdict = "not_achieved" if self.number(conversation) % 2 else "achieved"
        return {"goals": [{"goal": "g", "end_state": "e", "reason": self.reason, "evidence": [2], "verdict": verdict}]}

    def decide(self, conversation: str, questions: list[dict]) -> list[dict]:
        """Answers choices as a decision model does, each question with a probability of its own."""
        decided = []
        for at, question in enumerate(questions):
            labels = [choice["value"] for choice in question["choices"]]
            chosen = labels[(self.number(conversation) + at) % 2]
            probabilities = [{"value": chosen, "probability": 0.6 + self.number(conversation) / 2000 + at / 100}]
            answer = {"type": "choice", "name": question["name"], "choice": chosen, "confidence": 0.5}
            decided.append({**answer, "probabilities": probabilities})
        return decided

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(asyncio.current_task())
        self._writers.add(writer)
        if self._is_dead:
            writer.transport.abort()
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if head.startswith(b"get "):
                    status, reply = 200, {"id": "m", "object": "model", "shutdown_date": self.shutdown_date}
                else:
                    body = await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                    status, reply = await self._reply(json.loads(body))
                content = json.dumps(reply).encode()
                writer.write(b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\n" % status)
                writer.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
                await writer.drain()
        writer.close()

    async def _reply(self, request: dict) -> tuple[int, dict]:
        conversation = request.get("messages", request.get("input"))[1]["content"]
        self.asked[conversation] += 1
        self.requests.append(request)
        if self.asked.total() == self.dies_at:
            self._die()
        if self.hangs_from is not None and self.asked.total() >= self.hangs_from:
            await asyncio.Event().wait()
        while len(self.requests) < self.waits_for:  # noqa: ASYNC110 - tests set it from another thread
            await asyncio.sleep(0.002)
        await asyncio.sleep(self.seconds)
        return self.reply(request, conversation)

    def reply(self, request: dict, conversation: str) -> tuple[int, dict]:
        """The status and the body of the reply to a request."""
        if "questions" in request:
            return 200, {"model": "m-1", "answers": self.decide(conversation, request["questions"])}
        message = {"role": "assistant", "content": json.dumps(self.answer(conversation))}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
        return 200, {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    def hang_up(self) -> None:
        """Ends all connections."""
        self._run(self._hang_up())

    def stop(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _close(self) -> None:
        self._server.close()

    async def _hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._connections.clear()
        self._writers.clear()


@pytest.fixture(scope="module")
def _judge_server() -> Iterator[Judging]:
    serving = Judging()
    yield serving
    serving.stop()


@pytest.fixture
def judging(_judge_server) -> Iterator[Judging]:
    """A judge that is the default of ``judgekit.toml``, at one address for all tests of a module."""
    serving = _judge_server
    serving.begin()
    Path("judgekit.toml").write_text(
        f'[judges.default]\nmodel = "openai/test"\nbase_url = "{serving.url}"\nconcurrency = 16\n'
    )
    yield serving
    serving.hang_up()


def _calling(number: int, expected: str = "tool_0") -> Sample:
    """A conversation in which the tool of that number was called."""
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{number}", {"x": number})])]
    references = [ToolCall(expected, {"x": 0})]
    return Sample.of(messages, id=f"s{number}", reference_tool_calls=references)


@pytest.fixture(scope="session")
def calling() -> Callable[..., Sample]:
    return _calling


@pytest.fixture
def conversations() -> Callable[..., Path]:
    """Writes so many conversations into a file of samples."""

    def write(number: int, name: str = "samples.jsonl") -> Path:
        path = Path(name)
        path.write_text("".join(_calling(index).model_dump_json() + "\n" for index in range(number)))
        return path

    return write
