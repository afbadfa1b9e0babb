"""What the tests of judges share: a server that misbehaves on purpose, a client for layers to stand on, a question."""

import asyncio
import contextlib
import inspect
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import fakeredis
import pytest

from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.request import ChatMessage, Reply, Request
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.sample import Sample


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch, tmp_path):
    """No test sees the keys and proxies of whoever runs it, and none leaves a cache behind."""
    for name in ("API_KEY", "BASE_URL", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def quiet_loops(caplog) -> Iterator[None]:
    """An event loop complains in its log: of exceptions that nobody saw, of tasks that were left alone."""
    yield
    records = [record for phase in ("setup", "call") for record in caplog.get_records(phase)]
    assert [one.getMessage() for one in records if one.name == "asyncio" and one.levelno >= logging.WARNING] == []


@pytest.fixture
def no_waits(monkeypatch) -> None:
    """Retries follow at once."""
    monkeypatch.setattr("judgekit.judges.retry._backoff", lambda _: 0.0)
    monkeypatch.setattr("judgekit.judges.retry._FIRST_WAIT", 0.0)


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: Any
    at: float


class Server:
    """Speaks HTTP on loopback from a script, in a thread of its own, and keeps what it was sent.

    A line of the script is ``(status, headers, body)``, or bytes as they are with what follows them: ``(bytes, "close")``,
    ``"reset"``, ``"hang"`` or ``"drip"``, which is a byte now and then for ever; or a function of what was asked that
    gives one, perhaps an async one. The last line serves all further requests. A GET gets the line ``model``, and is kept
    in ``lookups``.
    """

    def __init__(self) -> None:
        self.script: list[tuple | Callable[[Any], tuple]] = []
        self.requests: list[Received] = []
        self.model: tuple = 404, {}, {"error": {"message": "there is no such route"}}
        self.lookups: list[Received] = []
        self.drips = 0
        self.opened = 0
        self._connections: dict[asyncio.Task, asyncio.StreamWriter] = {}
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def says(self, content: object, **changes: object) -> tuple:
        """The line of a script that is a good reply; text as it is, anything else as JSON."""
        text = content if isinstance(content, str) else json.dumps(content)
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "judge-1-2026-11-20",
            "system_fingerprint": "fp_1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "total_tokens": 1050,
                "prompt_tokens_details": {"cached_tokens": 400, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
        }
        return 200, {}, body | changes

    def all_closed(self) -> bool:
        """Whether the clients closed all their connections, now or within seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._connections, timeout=5)

    def was_asked(self) -> bool:
        """Whether a request has come, now or within seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.requests, timeout=5)

    def stop(self) -> None:
        self._run(self._hang_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _hang_up(self) -> None:
        self._server.close()
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._connections[asyncio.current_task()] = writer
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in head[1:] if line)
                if head[0].startswith("GET "):
                    self.lookups.append(Received(head[0], headers, None, time.monotonic()))
                    await self._speak(self.model, reader, writer)
                    continue
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                line = self.script[min(len(self.requests), len(self.script) - 1)]
                with self._changed:
                    self.requests.append(Received(head[0], headers, body, time.monotonic()))
                    self._changed.notify_all()
                said = line(body) if callable(line) else line
                await self._speak(await said if inspect.isawaitable(said) else said, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        with self._changed:
            del self._connections[asyncio.current_task()]
            self._changed.notify_all()

    async def _speak(self, line: tuple, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(line) == 3:
            status, headers, body = line
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"content-type": "application/json", "content-length": len(content)} | headers
            lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
            await writer.drain()
            return
        sent, then = line
        writer.write(sent)
        await writer.drain()
        if then in ("hang", "drip"):
            gone = asyncio.ensure_future(reader.read())
            while not gone.done():
                if then == "drip":
                    writer.write(b" ")
                    self.drips += 1
                await asyncio.wait({gone}, timeout=0.01)
            await gone
        elif then == "reset":
            linger = struct.pack("ii", 1, 0)  # closes with RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        raise ConnectionResetError  # nothing more is read on this connection


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port at which nobody listens, and which nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


class FakeRedisServer:
    """A Redis within this process, which runs the same scripts. It is at an address at which nothing else is."""

    address = RedisAddress("redis://fake.test")

    def __init__(self) -> None:
        self._server = fakeredis.FakeServer(server_type="redis", version=(7,))
        self.client = self.connect("")

    def connect(self, _url: str) -> fakeredis.FakeRedis:
        return fakeredis.FakeRedis(server=self._server)

    def end_claims(self) -> None:
        """End all claims, as time would."""
        for name in self.client.keys("jk1:c:*"):
            self.client.delete(name)

    def end_leases(self) -> None:
        """End all leases of reservations, as time would."""
        for name in self.client.keys("jk1:l:*"):
            self.client.zadd(name, dict.fromkeys(self.client.zrange(name, 0, -1), time.time() * 1000 - 1))


@pytest.fixture
def redis_server(monkeypatch) -> FakeRedisServer:
    server = FakeRedisServer()
    monkeypatch.setattr("judgekit.judges.redis.server.connect", server.connect)
    monkeypatch.setattr("judgekit.judges.limits.rate_limit._accounts", {})
    return server


@dataclass
class Stub:
    """Stands where a provider would. Says its lines in order, the last one again and again, once the gate is open."""

    lines: list[Reply | Exception] = field(default_factory=lambda: [Reply(text="{}")])
    gate: asyncio.Event | None = None
    requests: list[Request] = field(default_factory=list)
    under_way: int = 0
    most_at_once: int = 0
    closed: int = 0
    identity: str = "stub"

    async def complete(self, request: Request, /) -> Reply:
        line = self.lines[min(len(self.requests), len(self.lines) - 1)]
        self.requests.append(request)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
        finally:
            self.under_way -= 1
        if isinstance(line, Exception):
            raise line
        return line

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture(scope="session")
def stub() -> type[Stub]:
    return Stub


@pytest.fixture(scope="session")
def question() -> Callable[..., Request]:
    """A request; given fields replace its own."""
    asked = Request(
        provider="openai",
        base_url="https://judge.test/v1",
        model="judge-1",
        params={"temperature": 0, "seed": 7},
        messages=(ChatMessage("system", "You judge."), ChatMessage("user", "Was it good?")),
        schema_name="goodness",
        schema={"type": "object", "properties": {"good": {"type": "boolean"}}},
        prompt="goodness@12345678",
        accept=lambda _: None,
    )
    return lambda **changes: replace(asked, **changes)


@pytest.fixture(scope="session")
def sample() -> Sample:
    """A conversation of five messages, of which all is known that a shipped prompt may ask for."""
    return Sample.of(
        [
            HumanMessage("Is it raining in Paris?"),
            AIMessage("", tool_calls=[ToolCall("weather", {"city": "Paris"}, id="1")]),
            ToolMessage("12 °C, dry", tool_call_id="1"),
            AIMessage("It is dry."),
            HumanMessage("Thanks."),
        ],
        id="paris",
        reference="The user knows that it is dry.",
        reference_topics=["weather", "travel"],
    )


@pytest.fixture(scope="session")
def goal() -> dict[str, Any]:
    """A goal that was achieved."""
    return {
        "goal": "To know the weather.",
        "end_state": "Knows it.",
        "reason": "The tool says dry.",
        "evidence": [3, 4],
        "verdict": "achieved",
    }


@pytest.fixture(scope="session")
def achieved(goal) -> dict[str, Any]:
    """A good answer to both prompts about the goal."""
    return {"goals": [goal]}
