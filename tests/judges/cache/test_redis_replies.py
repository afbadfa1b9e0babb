"""Replies in Redis: how they are stored, and what is done about damaged ones."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.judges.cache.redis_replies import _DICTIONARY, RedisReplies, RedisReplyStore, _packed, _unpacked
from judgekit.judges.cache.replies import Claim, RecordedReply
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
REPLY = Reply(
    text='{"goals": [{"goal": "To book a table.", "end_state": "It is booked.", "reason": "The agent booked it.", '
    '"evidence": [2], "verdict": "achieved"}]}',
    model="gpt-6-luna-2026-08-01",
    usage=Usage(input_tokens=1_812, output_tokens=96),
    cost_usd=0.000229,
)


@pytest.fixture
def server(redis_server):
    server = RedisServer(redis_server.address)
    yield server
    server.close()


def line(question, reply=REPLY, **changes):
    asked = question(**changes)
    return RecordedReply(
        key=asked.key, judge=asked.judge, prompt=asked.prompt, digests=asked.digests, recorded_at=AT, reply=reply
    )


def test_a_reply_takes_a_third_of_its_json(question, server):
    one = line(question)
    value = _packed(one, REPLY)
    assert _unpacked(one.key, value, server) == one
    assert len(value) < len(one.model_dump_json(exclude_defaults=True)) / 3
    assert len(_DICTIONARY) < 32_768  # all that zlib looks at


@given(st.text(st.characters(codec=None)), st.sampled_from(["a" * 64, "k", "\udc80", ""]))
def test_any_text_can_be_stored_under_any_key(text, key):
    kept = RecordedReply.model_construct(key=key, judge="j", prompt=text, digests={}, recorded_at=AT)
    read = _unpacked(key, _packed(kept, Reply(text=text)), None)
    assert read.reply.text == read.prompt == text.encode(errors="replace").decode()


@pytest.mark.parametrize(
    "spoil", [lambda value: value[:-1], lambda value: value[:20] + b"?" + value[21:], lambda _: b""]
)
def test_a_damaged_reply_is_deleted_and_asked_for_again(redis_server, server, question, spoil, caplog):
    async def test():
        store, key = RedisReplyStore(server), question().key
        await store.put(question(), REPLY)
        (name,) = redis_server.client.keys("jk1:r:*")
        for work in (
            lambda: store.get(key),
            lambda: store.claim(Claim(key, "t")),
            lambda: store.put(question(), Reply(text="new")),
        ):
            redis_server.client.set(name, spoil(redis_server.client.get(name) or b"x" * 99))
            yield await work()

    async def found():
        return [one async for one in test()]

    assert asyncio.run(found()) == [None, True, Reply(text="new")]
    assert caplog.record_tuples == [("judgekit", logging.WARNING, "redis://fake.test: ignoring a damaged reply")] * 3


def test_replies_of_a_newer_judgekit_are_an_error_and_left_alone(redis_server, server, question):
    async def test():
        store = RedisReplyStore(server)
        await store.put(question(), REPLY)
        (name,) = redis_server.client.keys("jk1:r:*")
        redis_server.client.set(name, newer := b"\x02" + redis_server.client.get(name)[1:])
        with pytest.raises(
            StoreError, match="holds replies of a newer judgekit; update judgekit, or use another database"
        ):
            await store.get(question().key)
        assert redis_server.client.get(name) == newer

    asyncio.run(test())


def test_replies_are_added_listed_and_pruned(server, question):
    replies = RedisReplies(server)
    lines = [
        line(question, repeat=repeat, prompt=f"{'ab'[repeat % 2]}@1") for repeat in range(1_100)
    ]  # more than a block
    lines.append(RecordedReply(key="by hand", judge="j", prompt="a", reply=REPLY))
    assert replies.add([*lines, RecordedReply(note="a note")], replace=False) == (1_101, 0, 0)
    other = lines[0].model_copy(update={"reply": Reply(text="other")})
    assert replies.add([lines[1], other], replace=False) == (0, 1, 1)
    assert [*replies.recorded()][1:] == sorted(lines[:-1], key=lambda one: (one.prompt, one.key))
    assert replies.add([other], replace=True) == (0, 0, 1)
    assert other in replies.recorded()
    assert replies.prune("a*", "openai/*", AT, dry_run=False) == 0
    assert replies.prune("b", "openai/*", None, dry_run=True) == replies.prune("b", "*", None, dry_run=False) == 550
    assert {one.prompt for one in replies.recorded()} == {"a@1", "a"}


def test_a_read_only_store_lists_requests_once(redis_server, server, question):
    async def test():
        store = RedisReplyStore(server, read_only=True)
        await store.put(question(), REPLY)
        assert await store.digests("goodness") == [question().digests]
        redis_server.client.flushall()
        assert await store.digests() == [question().digests]

    asyncio.run(test())
