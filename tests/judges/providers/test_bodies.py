"""Bodies of replies, against a real server: no more bytes than a limit, no longer than a deadline, whatever is sent."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from itertools import pairwise
from types import SimpleNamespace

import openai  # noqa: F401 - takes half a second, which a deadline may not have
import pytest

from judgekit.errors import AuthenticationError, JudgeError, LostError, OverloadError, ReplyError
from judgekit.judges.judge import Judge
from judgekit.judges.providers import bodies
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.score import ledger
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scoring import attempt

MB = 1_000_000
ZEROS = bytes(2**20)


def bomb(wbits: int, megabytes: int) -> bytes:
    """Zeros, compressed 1,000 times, without the end of the stream."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    head = packer.compress(b" ") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + piece * megabytes


GZIP = zlib.MAX_WBITS | 16
OF_3_GB = bomb(GZIP, 3_000)
NOTHING = b"\0\0\0\xff\xff"
"""A block of deflate that decompresses to no byte at all."""


def chunks(body: bytes, encoding: str = "identity", status: int = 200) -> bytes:
    """A reply in chunks that never ends, as far as it goes."""
    head = f"HTTP/1.1 {status} Said\r\ncontent-encoding: {encoding}\r\ntransfer-encoding: chunked\r\n\r\n"
    return head.encode() + b"%x\r\n%b\r\n" % (len(body), body)


class CountedDecoder:
    """A decoder that counts the bytes that it returns in each step."""

    def __init__(self, wbits: int) -> None:
        self._decoder = zlib.decompressobj(wbits)
        self.returned: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._decoder, name)

    def decompress(self, chunk: bytes, most: int) -> bytes:
        decompressed = self._decoder.decompress(chunk, most)
        self.returned.append(len(decompressed))
        return decompressed


@pytest.fixture
def decoders(monkeypatch):
    """The decoders of the bodies that are read."""
    created: list[CountedDecoder] = []

    def create(wbits):
        created.append(CountedDecoder(wbits))
        return created[-1]

    counted = SimpleNamespace(decompressobj=create, error=zlib.error, MAX_WBITS=zlib.MAX_WBITS)
    monkeypatch.setattr(bodies, "zlib", counted)
    return created


@pytest.fixture
def complete(question, decoders):
    """The reply of a server, or the error; no more than some tens of MB are held and decompressed on the way."""

    def run(base_url, *, timeout=60.0, **settings):
        async def ask():
            client = OpenAIClient(Connection(base_url=base_url, api_key="sk-local", timeout=timeout, **settings))
            try:
                return await client.complete(question(base_url=base_url))
            finally:
                await client.aclose()

        tracemalloc.start()
        try:
            return asyncio.run(ask())
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 60 * MB
            assert all(sum(decoder.returned) < 17 * MB for decoder in decoders)

    return run


@pytest.mark.parametrize(
    "line",
    [
        pytest.param((200, {"content-encoding": "gzip"}, OF_3_GB), id="3 GB of gzip"),
        pytest.param((200, {"content-encoding": "x-gzip"}, OF_3_GB), id="3 GB of x-gzip"),
        pytest.param(
            (200, {"content-encoding": "gzip"}, gzip.compress(b"")[:10] + NOTHING * 4 * MB), id="gzip of 0 bytes"
        ),
        pytest.param((200, {"content-encoding": "gzip"}, gzip.compress(b"{}") + bytes(17 * MB)), id="gzip and zeros"),
        pytest.param((200, {}, b" " * 17 * MB), id="17 MB"),
        pytest.param((chunks(b" " * 17 * MB), "hang"), id="chunks without end"),
        pytest.param((chunks(OF_3_GB, "gzip"), "hang"), id="chunks of gzip without end"),
        pytest.param((b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b" " * 17 * MB, "hang"), id="no length"),
    ],
)
def test_a_reply_of_more_than_16_mb_is_of_no_use(server, complete, line):
    server.script = [line]
    with pytest.raises(ReplyError, match=rf"^openai/judge-1 at {server.url}: the reply has more than 16,000,000 bytes"):
        complete(server.url)
    assert server.all_closed()


def test_the_limit_is_a_setting_and_counts_what_is_decompressed(server, complete):
    content = json.dumps(server.says("x" * 2_000)[2]).encode()
    for body, headers in ((content, {}), (gzip.compress(content), {"content-encoding": "gzip"})):
        server.script = [(200, headers, body)]
        assert complete(server.url, max_reply_bytes=len(content)).text == "x" * 2_000
        with pytest.raises(ReplyError, match=rf"more than {len(content) - 1:,} bytes \(max_reply_bytes\)$"):
            complete(server.url, max_reply_bytes=len(content) - 1)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("deflate", bomb(zlib.MAX_WBITS, 3_000)),
        ("gzip, gzip", gzip.compress(OF_3_GB)),
        ("br", b"\x1b"),
        ("zstd", b"\x28"),
        ("identity, gzip", OF_3_GB),
    ],
)
def test_an_encoding_that_was_not_asked_for_is_not_decoded(server, complete, encoding, body):
    server.script = [(200, {"content-encoding": encoding}, body)]
    with pytest.raises(LostError, match=f"found .a body in the encoding '{encoding}', which judgekit did not request"):
        complete(server.url)
    assert server.requests[0].headers["accept-encoding"] == "gzip"
    server.script = [(401, {"content-encoding": encoding}, body)]
    with pytest.raises(AuthenticationError, match=r"HTTP 401: .a body in the encoding"):
        complete(server.url)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param((500, {"content-encoding": "gzip"}, OF_3_GB), id="3 GB of gzip"),
        pytest.param((500, {}, b"nope " * 4 * MB), id="20 MB"),
        pytest.param((chunks(b"nope " * 4 * MB, status=500), "hang"), id="chunks without end"),
        pytest.param((500, {"content-encoding": "gzip"}, b"no gzip"), id="no gzip"),
    ],
)
def test_an_error_counts_by_its_status_however_long_its_body_is(server, complete, line):
    server.script = [line]
    with pytest.raises(OverloadError, match=r"HTTP 500: ") as info:
        complete(server.url)
    assert info.value.status == 500
    assert len(str(info.value)) < 1_000


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_deadline_holds_while_a_body_drips(server, complete, encoding):
    """The server drips spaces, or with gzip the characters of a file name, which would end with a zero byte."""
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n"
    server.script = [(head.encode() + b"\x1f\x8b\x08\x08" + bytes(6), "drip")]
    with pytest.raises(JudgeError, match=r"no reply within 0.5 s"):
        complete(server.url, timeout=0.5)
    assert server.drips < 200  # at most a hundred a second


def test_the_event_loop_goes_on_while_a_body_is_decompressed(server, question, decoders):
    """It is decompressed in many steps, between which others have their turn."""
    server.script = [server.says("x"), (200, {"content-encoding": "gzip"}, OF_3_GB)]

    async def ask():
        client = OpenAIClient(Connection(base_url=server.url, api_key="k", timeout=20, max_reply_bytes=100 * MB))
        await client.complete(question(base_url=server.url))  # which loads and connects
        asked = asyncio.create_task(client.complete(question(base_url=server.url)))
        steps = []
        while not asked.done():
            await asyncio.sleep(0)
            steps += [len(decoder.returned) for decoder in decoders]
        await client.aclose()
        with pytest.raises(ReplyError):
            await asked
        return steps

    steps = asyncio.run(ask())
    assert steps[-1] > 300
    assert max(later - earlier for earlier, later in pairwise((0, *steps))) < 10


def test_a_reply_that_is_too_long_is_not_retried_but_named_to_the_judge_once(server, sample, achieved):
    server.script = [(200, {"content-encoding": "gzip"}, OF_3_GB), server.says(achieved)]
    judge = Judge("openai/judge-1", base_url=server.url, cache_mode="off", max_reply_bytes=10_000)
    with ledger() as calls:
        score = asyncio.run(attempt(AgentGoalAccuracyWithoutReference(judge), sample))
    assert (score.value, [one.error for one in calls]) == (1.0, ["ReplyError", None])
    said = server.requests[1].body["messages"][-1]["content"]
    assert said.startswith("That reply cannot be used: openai/judge-1 at ")
    assert "the reply has more than 10,000 bytes" in said
