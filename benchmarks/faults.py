"""Scores and ledgers beside misbehaving servers, and the ledger of a large run beside the server's own count.

Prints a table of servers' faults by transport and provider, and the figures of a judged run of 20,000 samples. A score
that is invented or lost, or a request that the ledger does not have, ends the script with an error.
"""

import asyncio
import json
import logging
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import openai
from server import ANSWER, completion, running

import judgekit
from judgekit import AgentGoalAccuracyWithoutReference, AIMessage, HumanMessage, Judge, Sample
from judgekit.errors import JudgeError
from judgekit.judges import retry
from judgekit.score import ledger
from judgekit.scoring import attempt

SAMPLES = 20_000
SECONDS_A_FAULT, SECONDS_OF_THE_LOAD = 10, 600
TIMEOUT = 0.5
SAMPLE = Sample.of([HumanMessage(f"Line {number}") for number in range(8)] + [AIMessage("Booked.")], id="a")
GOOD = completion({"content": json.dumps(ANSWER)}, 900)


def http(status: int, body: bytes, **headers: object) -> bytes:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def said(content: str, ending: str = "stop") -> bytes:
    """A completion with a text."""
    body = completion({"content": content}, 900).partition(b"\r\n\r\n")[2]
    return http(200, body.replace(b'"finish_reason": "stop"', f'"finish_reason": "{ending}"'.encode()))


FAULTS: Mapping[str, bytes | None] = {
    "429": http(429, b"{}"),
    "429 for a day": http(429, b"{}", retry_after=86_400),
    **{f"{status}": http(status, b"{}") for status in (400, 401, 403, 404, 408, 413, 422, 500, 502, 503, 504, 529)},
    "redirect": http(307, b"", location="http://127.0.0.2:9/v1/chat/completions"),
    "closed without a word": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nconte",
    "half a body": GOOD[: len(GOOD) // 2],
    "hangs": None,
    "garbage": b"SSH-2.0-OpenSSH_9.6\r\n",
    "no JSON": http(200, b"<html>It works!</html>", content_type="text/html"),
    "empty": http(200, b""),
    "of a wrong type": http(200, b'{"choices": 3}'),
    "no choices": http(200, b'{"choices": []}'),
    "no gzip": http(200, b"{}", content_encoding="gzip"),
    "500 kB of nothing": http(200, b" " * 500_000),
    "an error as a success": http(200, b'{"error": {"message": "no", "code": 500}}'),
    "prose": said("It went well."),
    "half an answer": said(json.dumps(ANSWER)[:-9]),
    "two answers": said(json.dumps(ANSWER) + json.dumps(ANSWER).replace("achieved", "not_achieved")),
    "reasoning that does not end": said(f"<think>{json.dumps(ANSWER)}"),
    "cut off": said(json.dumps(ANSWER), "length"),
    "filtered": said("", "content_filter"),
}


class FaultyServer:
    """Answers with a fault, once or always, and counts the requests that it got."""

    def __init__(self) -> None:
        self.fault: bytes | None = b""
        self.lasts = False
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length: ")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            self.requests += head.startswith(b"post")
            reply = self.fault if self.lasts or self.requests == 1 else GOOD
            if reply is None:
                await reader.read()
            else:
                writer.write(reply.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
                await writer.drain()
        writer.close()


@contextmanager
def listening(server: FaultyServer) -> Iterator[str]:
    """The base URL of the server, which runs in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    start = asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = asyncio.run_coroutine_threadsafe(start, loop).result().sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1"
    loop.call_soon_threadsafe(loop.stop)


def outcome(server: FaultyServer, model: str, url: str, timeout: float = TIMEOUT) -> str:
    """The value or error of one score; raises an error if anything is invented, lost or takes too long."""
    server.requests = 0
    judge = Judge(model, base_url=url, api_key_env="FAULTS_KEY", cache_mode="off", timeout=timeout, attempts=3)
    began = time.monotonic()
    with ledger() as calls:
        try:
            score = asyncio.run(attempt(AgentGoalAccuracyWithoutReference(judge), SAMPLE))
        except JudgeError as error:  # stops the run
            found = type(error).__name__
        else:
            found = score.error or f"{score.value:g}"
    assert time.monotonic() - began < SECONDS_A_FAULT * timeout / TIMEOUT, "took too long"
    assert found == "1" or found.endswith("Error"), f"invented {found}"
    assert not (server.lasts and found == "1"), "invented"
    counted = sum(call.is_request for call in calls)
    assert counted == server.requests, f"the ledger has {counted} requests, the server {server.requests}"
    return found


def without_aiohttp(**_: object) -> None:
    raise RuntimeError


def faults() -> None:
    """Print the table of faults."""
    retry._backoff = lambda _: 0.0  # noqa: SLF001 - the waits are not what is measured
    aiohttp = openai.DefaultAioHttpClient
    columns = [(aiohttp, "openai/judge"), (without_aiohttp, "openai/judge")]
    if find_spec("litellm"):
        columns += [(aiohttp, f"litellm/{name}/judge") for name in ("openai", "mistral")]
    names = [f"{'aiohttp' if client is aiohttp else 'httpx'}, {model}" for client, model in columns]
    print("| fault |", " | ".join(f"{name}: once, always" for name in names), "|")
    print("|---" * (len(columns) + 1) + "|")
    cases, server = 0, FaultyServer()
    with listening(server) as url:
        server.fault = GOOD
        for _, model in columns:  # the first request of litellm imports for many seconds
            outcome(server, model, url, timeout=60)
        for fault, server.fault in FAULTS.items():
            cells = []
            for client, model in columns:
                openai.DefaultAioHttpClient = client  # type: ignore[misc,assignment]
                found = []
                for server.lasts in (False, True):
                    try:
                        found.append(outcome(server, model, url))
                    except AssertionError as error:
                        raise AssertionError(f"{fault}, {model}: {error}") from None
                    cases += 1
                cells.append(", ".join(found))
            print(f"| {fault} |", " | ".join(cells), "|", flush=True)
    openai.DefaultAioHttpClient = aiohttp  # type: ignore[misc]
    print(f"\n{cases} cases: no score invented or lost, and every request in the ledger\n")


def load(number: int) -> None:
    """Print how long a judged run takes, and check its ledger against the server's count."""
    samples = [
        Sample.of([*SAMPLE.trace.messages[:-1], AIMessage(f"Booked table {index}.")], id=str(index))
        for index in range(number)
    ]
    with tempfile.TemporaryDirectory() as folder, running("counting") as url:
        judge = Judge("openai/judge", base_url=url, api_key_env="FAULTS_KEY", cache_mode="off", concurrency=32)
        began = time.monotonic()
        run = judgekit.run(samples, [AgentGoalAccuracyWithoutReference(judge)], store=Path(folder) / "runs.sqlite")
        seconds = time.monotonic() - began
        with urllib.request.urlopen(url) as response:  # noqa: S310 - loopback
            requests, characters, _ = json.load(response)
    [line] = run.summary
    print(f"{number:,} samples: {seconds:.0f} s, {line.requests:,} requests in the ledger, {requests:,} at the server")
    print(f"tokens in the ledger: {line.tokens:,}; characters at the server: {characters:,}")
    assert (line.counts.get("scored"), line.requests) == (number, requests)
    assert line.tokens is not None
    assert 0 <= characters / 4 + 60 * number - line.tokens < number  # the server rounds each prompt down
    assert seconds < SECONDS_OF_THE_LOAD


if __name__ == "__main__":
    import os

    os.environ["FAULTS_KEY"] = "key"
    logging.disable()
    jobs = {"faults": faults, "load": partial(load, int(sys.argv[2]) if len(sys.argv) > 2 else SAMPLES)}
    for name in sys.argv[1:2] or jobs:
        jobs[name]()
